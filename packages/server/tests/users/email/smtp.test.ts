/** Delivery over SMTP to real mail servers, including faulty ones. */
import { describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { SmtpTimeouts } from '../../../src/engines/mail/transport.ts'
import { mailConnectionsMax, mailQueueMax } from '../../../src/limits/users.ts'
import { openMailbox, testCertificate } from '../../harness/users/mailbox.ts'
import {
  closeAfter,
  closeAfterEach,
  mailTo,
  open,
  openBox,
  patientTiming,
  smtpConfig,
} from '../../harness/users/mailer.ts'

closeAfterEach()

describe('mails', () => {
  test('[MAIL-1] a mail goes to one address as plain text and HTML, marked as automatic', async () => {
    const box = await openBox()
    const { mailer } = open(smtpConfig(box.port))
    expect(mailer.route).toBe('smtp')
    mailer.send(mailTo('ada@example.org'))
    const { to, subject, text, html, headers } = await box.next('ada@example.org')
    expect(to).toEqual(['ada@example.org'])
    expect(subject).toBe('Sign in to Atlas')
    expect(text).toContain('\nhttps://app.example.org/go?token=t\n')
    expect(headers.get('from')).toEqual(['Atlas <no-reply@atlas.example>'])
    expect(headers.get('to')).toEqual(['ada@example.org'])
    expect(headers.get('auto-submitted')).toEqual(['auto-generated'])
    expect(headers.get('content-type')?.[0]).toStartWith('multipart/alternative')
    expect(html).toContain('href="https://app.example.org/go?token=t"')
  })

  test('[MAIL-10] a value cannot add a header, a recipient or a line', async () => {
    const box = await openBox()
    const evil = 'x\r\nBcc: eve@example.org\r\n\r\nInstead'
    const templates = { en: { 'magic-link': { subject: '{{displayName}}', text: 'Hello {{displayName}}!' } } }
    const { mailer } = open(smtpConfig(box.port, {}, { templates }))
    mailer.send(mailTo('ada@example.org', { values: { displayName: evil } }))
    const { to, subject, text, headers } = await box.next('ada@example.org')
    expect(to).toEqual(['ada@example.org'])
    expect([...headers.keys()]).not.toContain('bcc')
    expect(subject).toBe('x Bcc: eve@example.org Instead')
    expect(text.trimEnd()).toBe('Hello x Bcc: eve@example.org Instead!')
    await mailer.idle()
    expect(box.received).toHaveLength(1)
  })

  test('[MAIL-1] a mail supports all of Unicode', async () => {
    const box = await openBox()
    const templates = { de: { 'magic-link': { subject: 'Grüße, {{displayName}} 🗺', text: '{{displayName}}: ñ 漢\n' } } }
    const { mailer } = open(smtpConfig(box.port, {}, { templates }))
    mailer.send(mailTo('ada@example.org', { locale: 'de', values: { displayName: 'Łucja' } }))
    expect(await box.next('ada@example.org')).toMatchObject({ subject: 'Grüße, Łucja 🗺', text: 'Łucja: ñ 漢\n' })
  })
})

describe('encryption', () => {
  test('[MAIL-5] with `secure`, the connection uses TLS from the first byte', async () => {
    const logins: string[] = []
    const box = await openBox({
      secure: true,
      authOptional: false,
      onAuth({ username, password }, _, done) {
        logins.push(`${username}:${password}`)
        done(null, { user: username })
      },
    })
    const { mailer } = open(smtpConfig(box.port, { secure: true, user: 'u', password: 'p', ca: testCertificate }))
    mailer.send(mailTo('ada@example.org'))
    expect((await box.next('ada@example.org')).isEncrypted).toBe(true)
    expect(logins).toEqual(['u:p'])
  })

  test('[MAIL-5] STARTTLS is used if the server offers it', async () => {
    const box = await openBox({ hideSTARTTLS: false })
    const { mailer } = open(smtpConfig(box.port, { ca: testCertificate }))
    mailer.send(mailTo('ada@example.org'))
    expect((await box.next('ada@example.org')).isEncrypted).toBe(true)
  })

  test.each([{ secure: true }, { secure: false, hideSTARTTLS: false }])(
    '[MAIL-5] nothing is sent to a server with an untrusted certificate: %p',
    async (options) => {
      const box = await openBox(options)
      const { mailer, logged } = open(smtpConfig(box.port, { secure: options.secure }))
      mailer.send(mailTo('ada@example.org'))
      await mailer.idle()
      expect(box.received).toHaveLength(0)
      expect(logged()).toContain('"event":"mail.dropped"')
    },
  )

  test('[MAIL-5] a password is not sent unencrypted to another machine', async () => {
    const logins: unknown[] = []
    const box = await openBox({
      authMethods: ['PLAIN', 'LOGIN'],
      onAuth({ username }, _, done) {
        logins.push(username)
        done(null, { user: username })
      },
    })
    // This address reaches this machine, but is not recognized as loopback.
    const { mailer } = open(smtpConfig(box.port, { host: '0.0.0.0', user: 'u', password: 'p' }))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(logins).toEqual([])
    expect(box.received).toEqual([])
  })
})

describe('faulty mail servers', () => {
  test('[MAIL-6] a rejected password is not retried and not logged', async () => {
    let logins = 0
    const box = await openBox({
      authOptional: false,
      onAuth(_, __, done) {
        logins += 1
        done(new Error('no such user'))
      },
    })
    const { mailer, logged } = open(smtpConfig(box.port, { user: 'u', password: 'sesame-open' }))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(logins).toBe(1)
    expect(box.received).toHaveLength(0)
    expect(logged()).toContain('"event":"mail.dropped"')
    expect(logged()).not.toContain('sesame')
    expect(logged()).not.toContain('token=')
  })

  const refusal = (responseCode: number): Error => Object.assign(new Error('not now'), { responseCode })

  test('[MAIL-6] a busy server gets the mail later, once', async () => {
    let attempts = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        attempts += 1
        done(attempts < 3 ? refusal(451) : null)
      },
    })
    const { mailer, logged } = open(smtpConfig(box.port))
    let composed = 0
    mailer.sendLater('magic-link', async () => {
      composed += 1
      return mailTo('ada@example.org')
    })
    await box.next('ada@example.org')
    await mailer.idle()
    expect(attempts).toBe(3)
    expect(composed).toBe(1)
    expect(box.received).toHaveLength(1)
    expect(logged().match(/"event":"mail.retrying"/g)).toHaveLength(2)
  })

  test('[MAIL-6] tokens and codes that a server quotes in an error are not logged', async () => {
    const token = 'T'.repeat(43)
    const box = await openBox({
      onData(stream, _, done) {
        stream.resume()
        stream.on('end', () => done(Object.assign(new Error(`no ?token=${token} and 123456`), { responseCode: 550 })))
      },
    })
    const { mailer, logged } = open(smtpConfig(box.port))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(logged()).toContain('no ?token=[hidden] and [hidden]')
  })

  test('[MAIL-6] a rejected recipient is not retried', async () => {
    let attempts = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        attempts += 1
        done(refusal(550))
      },
    })
    const { mailer, logged } = open(smtpConfig(box.port))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(attempts).toBe(1)
    expect(box.received).toHaveLength(0)
    expect(logged()).toContain('"event":"mail.dropped"')
  })

  /** A server that breaks the protocol, and how many connections it accepted. */
  async function openFaulty(serve: (socket: Socket) => void): Promise<{ port: number; connections: () => number }> {
    let connections = 0
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      connections += 1
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => void sockets.delete(socket))
      serve(socket)
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    closeAfter(async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    })
    return { port: (server.address() as AddressInfo).port, connections: () => connections }
  }

  test.each([
    ['closes immediately', (socket: Socket) => void socket.end()],
    ['resets', (socket: Socket) => void socket.resetAndDestroy()],
    ['closes after its greeting', (socket: Socket) => void socket.end('220 mail\r\n')],
    ['speaks HTTP', (socket: Socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['is overloaded', (socket: Socket) => void socket.end('421 too many\r\n')],
  ])('[MAIL-6] a server that %s is tried three times, then the mail is dropped', async (_, serve) => {
    const { port, connections } = await openFaulty(serve)
    const { mailer, logged } = open(smtpConfig(port))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(connections()).toBe(3)
    expect(logged().match(/"event":"mail\.(?:dropped|retrying)"/g)).toHaveLength(3)
  })

  test('[MAIL-6] an unreachable server is tried three times, then the mail is dropped', async () => {
    const closed = await openMailbox()
    await closed.close()
    const { mailer, logged } = open(smtpConfig(closed.port))
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(logged()).toMatch(/"event":"mail.dropped","template":"magic-link","attempts":3/)
  })

  const ehlo = '220 mail\r\n'
  const slowServers: readonly (readonly [string, Partial<SmtpTimeouts>, (socket: Socket) => void])[] = [
    ['never sends a greeting', { connectMs: 50 }, () => {}],
    ['sends nothing after its greeting', { silenceMs: 50 }, (socket: Socket) => void socket.write(ehlo)],
    [
      'sends its response line by line without end',
      { deliveryMs: 100 },
      (socket: Socket): void => {
        socket.write(ehlo)
        socket.once('data', () => {
          const timer = setInterval(() => void socket.write('250-more\r\n'), 10)
          socket.on('close', () => clearInterval(timer))
        })
      },
    ],
  ]
  test.each(slowServers)(
    '[MAIL-6] a mail to a server that %s is dropped after a time limit',
    async (_, timing, serve) => {
      const { port, connections } = await openFaulty(serve)
      const { mailer, logged } = open(smtpConfig(port), { timing: { ...patientTiming, retryDelaysMs: [], ...timing } })
      mailer.send(mailTo('ada@example.org'))
      await mailer.idle()
      expect(connections()).toBe(1)
      expect(logged()).toContain('"event":"mail.dropped"')
    },
  )

  test('[MAIL-7] a bounded number of mails is queued for a server that does not respond', async () => {
    const { port, connections } = await openFaulty(() => {})
    const { mailer, logged } = open(smtpConfig(port), { timing: { ...patientTiming, drainMs: 1 } })
    let composed = 0
    for (let at = 0; at < mailQueueMax + 50; at++)
      mailer.sendLater('magic-link', async () => {
        composed += 1
        return mailTo(`${at}@example.org`)
      })
    expect(logged().match(/The mail queue is full/g)).toHaveLength(50)
    await mailer.close()
    expect(composed).toBe(mailConnectionsMax)
    expect(connections()).toBeLessThanOrEqual(mailConnectionsMax)
    expect(logged()).toContain(`"event":"mail.dropped_at_close","count":${mailQueueMax}`)
  })
})

describe('closing', () => {
  test('[MAIL-7] a closing mailer sends queued and delayed mails and accepts no more', async () => {
    let attempts = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        attempts += 1
        done(attempts === 1 ? Object.assign(new Error('later'), { responseCode: 451 }) : null)
      },
    })
    const delayed = Promise.withResolvers<void>()
    const { mailer } = open(smtpConfig(box.port), { timing: { ...patientTiming, retryDelaysMs: [3_600_000] } })
    mailer.sendLater('magic-link', async () => {
      delayed.resolve()
      return mailTo('first@example.org')
    })
    await delayed.promise
    for (let at = 0; at < 30; at++) mailer.send(mailTo(`${at}@example.org`))
    await box.next('29@example.org')
    await mailer.close()
    expect(box.received).toHaveLength(31)
    mailer.send(mailTo('late@example.org'))
    await mailer.idle()
    expect(box.received).toHaveLength(31)
  })
})
