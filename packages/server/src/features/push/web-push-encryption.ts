/**
 * Encryption of a message for one browser (RFC 8291 with `aes128gcm` of RFC 8188): the push service in between carries
 * it and cannot read it. One record per message, since messages are below 4 KiB.
 */
import { createCipheriv, createECDH, type ECDH, hkdfSync, randomBytes } from 'node:crypto'

/** What a browser gives out: its public key and a secret shared with whoever may send to it. */
export interface WebPushKeys {
  /** An uncompressed point of P-256, 65 bytes. */
  readonly p256dh: Buffer
  /** 16 bytes. */
  readonly auth: Buffer
}

/** Of one message, and never of another; tests give those of the standard's example. */
export interface MessageSecrets {
  readonly sender: ECDH
  /** 16 bytes. */
  readonly salt: Buffer
}

const recordBytes = 4096
/** Ends the last record. */
const lastDelimiter = Buffer.from([2])

function newSecrets(): MessageSecrets {
  const sender = createECDH('prime256v1')
  sender.generateKeys()
  return { sender, salt: randomBytes(16) }
}

const derive = (secret: Buffer, salt: Buffer, info: string | Buffer, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length))

/** The body of the request to the push service. Throws when the browser's key is no point of the curve. */
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
