/** The browser side of web push: subscription keys and decryption of messages (RFC 8291). */
import { createDecipheriv, createECDH, type ECDH, hkdfSync, randomBytes } from 'node:crypto'

export interface Browser {
  readonly ecdh: ECDH
  readonly keys: { readonly p256dh: Buffer; readonly auth: Buffer }
}

export function newBrowser(): Browser {
  const ecdh = createECDH('prime256v1')
  return { ecdh, keys: { p256dh: ecdh.generateKeys(), auth: randomBytes(16) } }
}

/** The subscription as sent by a page. */
export const subscriptionOf = (endpoint: string, { keys }: Browser): string =>
  JSON.stringify({
    endpoint,
    expirationTime: null,
    keys: { p256dh: keys.p256dh.toString('base64url'), auth: keys.auth.toString('base64url') },
  })

const derive = (secret: Buffer, salt: Buffer, info: string | Buffer, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length))

/** Throws if the message is encrypted for another browser or has been altered. */
export function decryptWebPush(body: Uint8Array, { ecdh, keys }: Browser): string {
  const bytes = Buffer.from(body)
  const salt = bytes.subarray(0, 16)
  const senderEnd = 21 + bytes.readUInt8(20)
  const sender = bytes.subarray(21, senderEnd)
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), keys.p256dh, sender])
  const secret = derive(ecdh.computeSecret(sender), keys.auth, info, 32)
  const key = derive(secret, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = derive(secret, salt, 'Content-Encoding: nonce\0', 12)
  const cipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(bytes.subarray(-16))
  const padded = Buffer.concat([cipher.update(bytes.subarray(senderEnd, -16)), cipher.final()])
  const end = padded.lastIndexOf(2)
  if (end < 0 || padded.subarray(end + 1).some((byte) => byte !== 0)) throw new Error('no last record')
  return padded.toString('utf8', 0, end)
}
