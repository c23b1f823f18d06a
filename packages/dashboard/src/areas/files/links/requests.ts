/** Signed links. The server stores none of them: each is sealed, with its file, issuer and expiry. */
import { api } from '../../../app/transport.ts'

export interface SignedLink {
  readonly url: string
  readonly expiresAt: string
}

export const lifetimes = [
  { value: '5m', label: '5 minutes' },
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '1 day' },
  { value: '7d', label: '7 days' },
] as const

export type Lifetime = (typeof lifetimes)[number]['value']

const pathOf = (bucket: string): string => `/api/storage/${encodeURIComponent(bucket)}`

export const createLink = (bucket: string, key: string, expiresIn: Lifetime): Promise<SignedLink> =>
  api.post(`${pathOf(bucket)}/signed-url`, { body: { key, expiresIn } })

export interface UploadLinkBody {
  readonly key: string
  readonly expiresIn: Lifetime
  /** Such as `5MB`. */
  readonly maxFileSize?: string
}

export const createUploadLink = (bucket: string, body: UploadLinkBody): Promise<SignedLink> =>
  api.post(`${pathOf(bucket)}/signed-upload-url`, { body: { ...body } })
