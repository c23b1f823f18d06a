/**
 * Encrypts a message for one browser (RFC 8291 with `aes128gcm` of RFC 8188), so that the push service cannot read it.
 * One record per message, since messages are smaller than 4 KiB.
 */
import { createCipheriv, createECDH, type ECDH, hkdfSync, randomBytes } from 'node:crypto'

/** The keys of a subscription: the browser's public key and a secret shared with its senders. */
export interface WebPushKeys {
  /** An uncompressed point of P-256, 65 bytes. */
  readonly p256dh: Buffer
  /** 16 bytes. */
  readonly auth: Buffer
}

/** Unique per message; tests inject those of the RFC's example. */
export interface MessageSecrets {
  readonly sender: ECDH
  /** 16 bytes. */
  readonly salt: Buffer
}

const recordBytes = 4096
/** Padding delimiter of the last record. */
const lastDelimiter = Buffer.from([2])

function newSecrets(): MessageSecrets {
  const sender = createECDH('prime256v1')
  sender.generateKeys()
  return { sender, salt: randomBytes(16) }
}

const derive = (secret: Buffer, salt: Buffer, info: string | Buffer, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length))

/** The request body for the push service. Throws if the browser's key is not a point on the curve. */
export function encryptWebPush(
  text: string,
  { p256dh, auth }: WebPushKeys,
  { sender, salt }: MessageSecrets = newSecrets(),
): Uint8Array<ArrayBuffer> {
  const senderKey = sender.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), p256dh, senderKey])
  const secret = derive(sender.computeSecret(p256dh), auth, info, 32)
  const key = derive(secret, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = derive(secret, salt, 'Content-Encoding: nonce\0', 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(recordBytes)
  head.writeUInt8(senderKey.length, 4)
  const sealed = [cipher.update(text, 'utf8'), cipher.update(lastDelimiter), cipher.final(), cipher.getAuthTag()]
  return new Uint8Array(Buffer.concat([salt, head, senderKey, ...sealed]))
}
