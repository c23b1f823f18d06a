/** Issues signed URLs: authorization, lifetime and address. `uploads/tokens` defines what a token contains. */
import { randomUUID } from 'node:crypto'
import { required } from '../../access/check.ts'
import type { Clock } from '../../base/clock.ts'
import { parseByteSize } from '../../base/text/bytes.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { parseDuration } from '../../base/text/duration.ts'
import { ApiError, authenticationRequired, invalidField } from '../../errors.ts'
import type { Call } from '../../http/endpoint.ts'
import { signedUploadLifetimeMs, signedUrlLifetimeMaxMs, signedUrlLifetimeMs } from '../../limits/storage.ts'
import type { BucketCall } from './buckets.ts'
import { keyInPath, parseKey } from './keys.ts'
import type { StoredObject } from './object-rows.ts'
import type { Objects } from './objects.ts'
import { issuerOf, type Tokens } from './uploads/tokens.ts'

export interface SignedUrl {
  readonly url: string
  readonly expiresAt: string
}

export interface SignedUrls {
  /** Throws 404, 401 or 403 as a download by the caller would. */
  read(bucket: BucketCall, call: Call, body: { key: string; expiresIn?: string | undefined }): Promise<SignedUrl>
  /** Omits absent keys. Throws 401 or 403 if one of the existing files is not readable. */
  readMany(
    bucket: BucketCall,
    call: Call,
    body: { keys: readonly string[]; expiresIn?: string | undefined },
  ): Promise<readonly (SignedUrl & { readonly key: string })[]>
  /** Throws 401 or 403 if the caller may not write the file. */
  write(bucket: BucketCall, call: Call, body: SignedUploadBody): Promise<SignedUrl & { maxFileSize?: number }>
}

export interface SignedUploadBody {
  readonly key: string
  readonly expiresIn?: string | undefined
  readonly maxFileSize?: string | number | undefined
}

/** Throws 400 for an invalid or too long duration. */
function parseLifetime(text: string | undefined, defaultMs: number): number {
  if (text === undefined) return defaultMs
  let ms: number
  try {
    ms = parseDuration(text)
  } catch (error) {
    throw invalidField('expiresIn', 'pattern', (error as Error).message)
  }
  if (ms > signedUrlLifetimeMaxMs) throw invalidField('expiresIn', 'max', 'must be at most 7d')
  return ms
}

function parseMaxFileSize(size: string | number | undefined): number | null {
  if (size === undefined) return null
  if (typeof size === 'number') {
    if (Number.isSafeInteger(size) && size > 0) return size
    throw invalidField('maxFileSize', 'min', 'must be a positive integer number of bytes')
  }
  try {
    return parseByteSize(size)
  } catch (error) {
    throw invalidField('maxFileSize', 'pattern', (error as Error).message)
  }
}

/**
 * The base URL of the request, for a server without a configured public URL. It comes from the request's own headers
 * and is returned to the same caller only, so a forged `Host` affects no other client. Empty (a relative URL) if the
 * request has no valid address.
 */
function originOf({ url: requestUrl, headers }: Call): string {
  const url = URL.parse(requestUrl)
  if (!url) return ''
  if (headers.get('x-forwarded-proto')?.toLowerCase() === 'https') url.protocol = 'https:'
  return url.origin
}

export function createSignedUrls(deps: {
  tokens: Tokens
  objects: Objects
  clock: Clock
  publicUrl: () => string | null
}): SignedUrls {
  const { tokens, objects, clock, publicUrl } = deps
  const baseOf = (call: Call): string => publicUrl() ?? originOf(call)

  function issue({ bucket, caller }: BucketCall, key: string, lifetimeMs: number) {
    if (caller.kind === 'anonymous') throw authenticationRequired()
    const expires = clock.now() + lifetimeMs
    return { bucket: bucket.name, key, expires, issuer: issuerOf(caller) }
  }

  function readUrl(bucket: BucketCall, call: Call, object: StoredObject, lifetimeMs: number): SignedUrl {
    const { key, size, contentType, etag } = object
    const common = issue(bucket, key, lifetimeMs)
    const token = tokens.seal({ ...common, use: 'read', size, type: contentType, etag })
    const path = `/api/storage/${encodeURIComponent(bucket.bucket.name)}/${keyInPath(key)}`
    return { url: `${baseOf(call)}${path}?token=${token}`, expiresAt: formatDatetime(common.expires) }
  }

  async function findReadable(bucket: BucketCall, key: string): Promise<StoredObject | null> {
    try {
      return await objects.getReadable(bucket, key)
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null
      throw error
    }
  }

  return {
    async read(bucket, call, { key, expiresIn }) {
      const lifetimeMs = parseLifetime(expiresIn, signedUrlLifetimeMs)
      return readUrl(bucket, call, await objects.getReadable(bucket, parseKey(key)), lifetimeMs)
    },

    async readMany(bucket, call, { keys, expiresIn }) {
      const lifetimeMs = parseLifetime(expiresIn, signedUrlLifetimeMs)
      required(bucket.permissions.read(), bucket.caller)
      const names = [...new Set(keys.map((key, at) => parseKey(key, `keys[${at}]`)))]
      const found = await Promise.all(names.map((key) => findReadable(bucket, key)))
      return found
        .filter((object) => object !== null)
        .map((object) => ({ key: object.key, ...readUrl(bucket, call, object, lifetimeMs) }))
    },

    async write(bucket, call, body) {
      const lifetimeMs = parseLifetime(body.expiresIn, signedUploadLifetimeMs)
      const bytesMax = parseMaxFileSize(body.maxFileSize)
      const key = parseKey(body.key)
      required(bucket.permissions.insert(), bucket.caller)
      await objects.checkOverwrite(bucket, key)
      const common = issue(bucket, key, lifetimeMs)
      const token = tokens.seal({ ...common, use: 'write', id: randomUUID(), bytesMax })
      const path = `/api/storage/${encodeURIComponent(bucket.bucket.name)}/upload`
      const url = `${baseOf(call)}${path}?token=${token}&key=${encodeURIComponent(key)}`
      const expiresAt = formatDatetime(common.expires)
      return bytesMax === null ? { url, expiresAt } : { url, expiresAt, maxFileSize: bytesMax }
    },
  }
}
