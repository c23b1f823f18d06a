/**
 * Signatures of webhooks after the Standard Webhooks specification 1.0: HMAC-SHA256 (`v1`) with secrets `whsec_…`, and
 * Ed25519 (`v1a`) with private keys `whsk_…` and public keys `whpk_…`. A value may hold several secrets, separated by
 * spaces: while a secret is rotated, a message carries a signature of each.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signWith,
  timingSafeEqual,
  verify as verifyWith,
} from 'node:crypto'

type Key =
  | { readonly kind: 'hmac'; readonly secret: Buffer }
  | { readonly kind: 'private' | 'public'; readonly key: KeyObject }

/** What a message is signed with or verified against; never empty. */
export type WebhookKeys = readonly Key[]

export interface WebhookMessage {
  /** The same for every attempt to deliver the message. */
  readonly id: string
  /** Seconds since 1970 of this attempt. */
  readonly timestamp: number
  readonly body: string
}

/** The difference between the clocks of sender and receiver that is accepted, in seconds, as the specification says. */
export const webhookToleranceSeconds = 300

/** The specification requires 24 to 64 random bytes. */
const [hmacBytesMin, hmacBytesMax] = [24, 64]
const ed25519Bytes = 32
/** DER headers in front of the 32 bytes of an Ed25519 key (RFC 8410). */
const privateHead = Buffer.from('302e020100300506032b657004220420', 'hex')
const publicHead = Buffer.from('302a300506032b6570032100', 'hex')

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

function parseKey(text: string): Key {
  const [, prefix, encoded] = /^(whsec|whsk|whpk)_(.+)$/.exec(text) ?? []
  const bytes = encoded !== undefined && base64.test(encoded) ? Buffer.from(encoded, 'base64') : null
  if (prefix === undefined || bytes === null) throw new Error('A webhook secret is whsec_ and base64')
  if (prefix === 'whsec') {
    if (bytes.length < hmacBytesMin || bytes.length > hmacBytesMax)
      throw new Error(`A webhook secret has ${hmacBytesMin} to ${hmacBytesMax} bytes in base64 after whsec_`)
    return { kind: 'hmac', secret: bytes }
  }
  // Some libraries append the public key to the private one.
  const isLong = prefix === 'whsk' && bytes.length === 2 * ed25519Bytes
  if (bytes.length !== ed25519Bytes && !isLong) throw new Error('An Ed25519 key has 32 bytes in base64')
  const raw = bytes.subarray(0, ed25519Bytes)
  return prefix === 'whsk'
    ? {
        kind: 'private',
        key: createPrivateKey({ key: Buffer.concat([privateHead, raw]), format: 'der', type: 'pkcs8' }),
      }
    : { kind: 'public', key: createPublicKey({ key: Buffer.concat([publicHead, raw]), format: 'der', type: 'spki' }) }
}

/** Parses secrets separated by spaces. Throws an `Error` that does not quote them. */
export function parseWebhookKeys(text: string): WebhookKeys {
  const keys = text.split(/\s+/).filter(Boolean).map(parseKey)
  if (keys.length === 0) throw new Error('A webhook secret is whsec_ and base64')
  return keys
}

const contentOf = ({ id, timestamp, body }: WebhookMessage): Buffer => Buffer.from(`${id}.${timestamp}.${body}`)

const hmacOf = (secret: Buffer, content: Buffer): Buffer => createHmac('sha256', secret).update(content).digest()

function signatureOf(key: Key, content: Buffer): string {
  if (key.kind === 'public') throw new Error('A public key cannot sign')
  return key.kind === 'hmac'
    ? `v1,${hmacOf(key.secret, content).toString('base64')}`
    : `v1a,${signWith(null, content, key.key).toString('base64')}`
}

/** The headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, with one signature per key. */
export function signWebhook(message: WebhookMessage, keys: WebhookKeys): Readonly<Record<string, string>> {
  const content = contentOf(message)
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': keys.map((key) => signatureOf(key, content)).join(' '),
  }
}

/** Whether one signature of a message fits a key. Secrets are compared in constant time. */
function matches(key: Key, signature: string, content: Buffer): boolean {
  const [version, encoded = ''] = signature.split(',')
  const given = Buffer.from(encoded, 'base64')
  if (key.kind === 'hmac') {
    const expected = hmacOf(key.secret, content)
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  }
  const publicKey = key.kind === 'private' ? createPublicKey(key.key) : key.key
  return version === 'v1a' && verifyWith(null, content, publicKey, given)
}

/** A message carries at most a few signatures; more are an attempt to make the receiver compute. */
const signaturesMax = 8

/** Why a message is refused; null if it is genuine and its timestamp within the tolerance of `nowMs`. */
export function findWebhookFault(
  { id, timestamp, signature, body }: { id: string; timestamp: string; signature: string; body: string },
  keys: WebhookKeys,
  nowMs: number,
): string | null {
  if (id === '' || signature === '' || !/^\d{1,12}$/.test(timestamp)) return 'A header of the webhook is missing'
  const seconds = Number(timestamp)
  if (Math.abs(nowMs / 1000 - seconds) > webhookToleranceSeconds)
    return 'The timestamp of the webhook is too old or new'
  const content = contentOf({ id, timestamp: seconds, body })
  const signatures = signature.split(' ').slice(0, signaturesMax)
  return keys.some((key) => signatures.some((one) => matches(key, one, content)))
    ? null
    : 'The signature of the webhook does not match'
}
