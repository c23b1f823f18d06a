/** Verification of webhooks that other services send. */
import { findWebhookFault, parseWebhookKeys } from '../../../base/crypto/webhook-signature.ts'
import { HttpError } from './http-error.ts'

/**
 * Verifies a webhook that was signed after Standard Webhooks 1.0. `body` is the text as it was received, so the
 * function needs `rawBody`. `secret` is `whsec_…`, or a public key `whpk_…`; several are separated by spaces. Throws
 * `HttpError` 401, slug `invalid-signature`, unless the signature matches and its timestamp is at most five minutes
 * from `now`.
 */
export function verifyWebhook(
  body: string,
  headers: Headers | Readonly<Record<string, string | undefined>>,
  secret: string | undefined,
  { now = new Date() }: { readonly now?: Date } = {},
): void {
  if (!secret) throw new Error('verifyWebhook needs a secret')
  const get = (name: string): string =>
    (headers instanceof Headers ? headers.get(`webhook-${name}`) : headers[`webhook-${name}`]) ?? ''
  const message = { id: get('id'), timestamp: get('timestamp'), signature: get('signature'), body }
  const fault = findWebhookFault(message, parseWebhookKeys(secret), now.getTime())
  if (fault !== null) throw new HttpError(401, 'invalid-signature', fault)
}
