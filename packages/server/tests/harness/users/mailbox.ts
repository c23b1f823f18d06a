/**
 * A real SMTP server on loopback that parses and keeps the mails it receives. Tests assert who should have got them.
 */
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface ReceivedMail {
  /** Recipients of the envelope, which decide the delivery. */
  readonly to: readonly string[]
  readonly subject: string
  /** The plain text, of a mail with two forms too. */
  readonly text: string
  /** The HTML form; null without one. */
  readonly html: string | null
  /** Names in lower case to values, unfolded and decoded. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly isEncrypted: boolean
}

export interface Mailbox {
  readonly port: number
  /** All received mails, oldest first. */
  readonly received: readonly ReceivedMail[]
  /** The next mail to this address that `next` has not returned yet. */
  next(to: string): Promise<ReceivedMail>
  /** The token of the link in the next mail to this address. */
  nextToken(to: string): Promise<string>
  /** The six digits in the next mail to this address. */
  nextCode(to: string): Promise<string>
  close(): Promise<void>
}

/** Without TLS unless the options enable it. */
export async function openMailbox(options: SMTPServerOptions = {}, port = 0): Promise<Mailbox> {
  const received: ReceivedMail[] = []
  const taken = new Map<string, number>()
  let arrived: (() => void)[] = []

  const server = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: !options.secure,
    key: testKey,
    cert: testCertificate,
    closeTimeout: 100,
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk))
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        received.push({ to, isEncrypted: Boolean(session.secure), ...parseMail(Buffer.concat(chunks).toString()) })
        done()
        const listeners = arrived
        arrived = []
        for (const listener of listeners) listener()
      })
    },
    ...options,
  })
  // A connection that a test aborts is not an error of this server.
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))

  async function next(to: string): Promise<ReceivedMail> {
    for (;;) {
      const mails = received.filter((mail) => mail.to.includes(to))
      const at = taken.get(to) ?? 0
      const mail = mails[at]
      if (mail) {
        taken.set(to, at + 1)
        return mail
      }
      await new Promise<void>((resolve) => void arrived.push(resolve))
    }
  }
  const find = async (to: string, pattern: RegExp): Promise<string> => {
    const { text } = await next(to)
    const found = pattern.exec(text)?.[1]
    if (found === undefined) throw new Error(`${pattern} does not match the mail: ${text}`)
    return found
  }

  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    next,
    nextToken: (to) => find(to, /^.*[?&]token=([\w-]{43})$/m),
    nextCode: (to) => find(to, /^(\d{6})$/m),
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

function parseMail(raw: string): Pick<ReceivedMail, 'subject' | 'text' | 'html' | 'headers'> {
  const { headers, body } = parsePart(raw)
  const boundary = /^multipart\/.*boundary="([^"]+)"/.exec(headers.get('content-type')?.[0] ?? '')?.[1]
  const parts = boundary === undefined ? [{ headers, body }] : body.split(`--${boundary}`).slice(1, -1).map(parsePart)
  const find = (type: string): string | null => {
    const part = parts.find((one) => one.headers.get('content-type')?.[0]?.startsWith(type))
    if (!part) return null
    const text = decodeBody(part.body, part.headers.get('content-transfer-encoding')?.[0]).replaceAll('\r\n', '\n')
    // The line break before a boundary is part of the boundary.
    return boundary === undefined ? text : text.replace(/\n$/, '')
  }
  const subject = headers.get('subject')?.[0] ?? ''
  return { subject, text: find('text/plain') ?? '', html: find('text/html'), headers }
}

/** Headers and body of a mail or of one of its parts. */
function parsePart(raw: string): { headers: Map<string, string[]>; body: string } {
  const split = raw.indexOf('\r\n\r\n')
  const headers = new Map<string, string[]>()
  for (const line of raw
    .slice(0, split)
    .trimStart()
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), decodeWords(line.slice(colon + 1).trim())])
  }
  return { headers, body: raw.slice(split + 4) }
}

function decodeBody(body: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  return encoding === 'quoted-printable' ? decodeQuoted(body.replace(/=\r\n/g, '')) : body
}

/** Decodes quoted-printable, such as `=C3=A9`. */
const decodeQuoted = (text: string): string =>
  Buffer.from(
    text.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()

/** Decodes RFC 2047 encoded words; space between two of them is dropped. */
const decodeWords = (value: string): string =>
  value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([BQ])\?([^?]*)\?=/gi, (_, kind: string, word: string) =>
      kind.toUpperCase() === 'B' ? Buffer.from(word, 'base64').toString() : decodeQuoted(word.replaceAll('_', ' ')),
    )

/** For 127.0.0.1 and localhost: self-signed, valid for a century, used by tests only. */
export const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUMyjFI6zPgZuOzgGTCY0GHyOc3r8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE3NTczOFoYDzIxMjYxMDI4
MTc1NzM4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASvmANk+R/Bvb4EqIWrvMJC9OT0Whm1LRXibjKRGtDiZyNzQ/5l+NRC
nLFyzkjLjDTh4nnBGbOuGcMgubfcMXRbo28wbTAdBgNVHQ4EFgQUG/iBIwK16g7f
zOGl4muyFgu7LwEwHwYDVR0jBBgwFoAUG/iBIwK16g7fzOGl4muyFgu7LwEwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZI
zj0EAwIDSQAwRgIhANmOshOncLXMo/DC+c2zYh4CRQAhC4PUDGG9E5u+g776AiEA
6nqJV0AeaU+tiV/yeWBDKVUMPOdglcQjZ+qVIObyZgk=
-----END CERTIFICATE-----
`

const testKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFdZKhJoG5AgXNOed
nFei7zba56rGS1nEUyF/dATM0RShRANCAASvmANk+R/Bvb4EqIWrvMJC9OT0Whm1
LRXibjKRGtDiZyNzQ/5l+NRCnLFyzkjLjDTh4nnBGbOuGcMgubfcMXRb
-----END PRIVATE KEY-----
`
