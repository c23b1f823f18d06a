/**
 * Device tokens: an FCM token, or a web push subscription as JSON. Validates tokens at registration; the endpoint of a
 * subscription is checked again with every message.
 */
import { createECDH } from 'node:crypto'
import { invalidField } from '../../../errors.ts'
import type { WebPushKeys } from '../providers/web-push-encryption.ts'

export const platforms = ['android', 'ios', 'web'] as const
export type Platform = (typeof platforms)[number]

/** The provider that delivers. */
export type Kind = 'fcm' | 'web'

export interface WebSubscription {
  readonly endpoint: URL
  readonly keys: WebPushKeys
}

/** A web push subscription is JSON; FCM tokens never start with a brace. */
export const kindOf = (token: string, platform: Platform): Kind =>
  platform === 'web' && token.startsWith('{') ? 'web' : 'fcm'

/** Null for anything but a valid web push subscription. */
export function findSubscription(token: string): WebSubscription | null {
  const { endpoint, keys } = objectOf(parsed(token))
  const { p256dh, auth } = objectOf(keys)
  const url = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  const point = bytesOf(p256dh)
  const secret = bytesOf(auth)
  if (!url || !/^https?:$/.test(url.protocol) || secret?.length !== 16 || !point || !isPoint(point)) return null
  return { endpoint: url, keys: { p256dh: point, auth: secret } }
}

/** Throws 400 for a token that can never be sent to. */
export function checkToken(token: string, platform: Platform, isReachable: (endpoint: URL) => boolean): void {
  if (kindOf(token, platform) === 'fcm') {
    // FCM tokens consist of these characters only.
    if (!/^[\x21-\x7e]+$/.test(token)) throw invalidField('token', 'pattern', 'must be printable ASCII without spaces')
    return
  }
  const subscription = findSubscription(token)
  if (!subscription) throw invalidField('token', 'pattern', 'must be a web push subscription with an endpoint and keys')
  if (!isReachable(subscription.endpoint))
    throw invalidField('token', 'pattern', 'must have a public https URL as its endpoint')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

/** Browsers write base64url, some libraries base64. */
const bytesOf = (text: unknown): Buffer | null =>
  typeof text === 'string' && /^[\w+/-]{1,128}={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null

function isPoint(bytes: Buffer): boolean {
  if (bytes.length !== 65 || bytes[0] !== 4) return false
  const ecdh = createECDH('prime256v1')
  ecdh.generateKeys()
  try {
    ecdh.computeSecret(bytes)
    return true
  } catch {
    return false
  }
}
