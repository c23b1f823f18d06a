/** Delivery over SMTP to real mail servers, including faulty ones. */
import { describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { MailTiming } from '../../../src/features/users/email/mailer.ts'
import { mailConnectionsMax, mailQueueMax } from '../../../src/limits/users.ts'
import { openMailbox, testCertificate } from '../../harness/users/mailbox.ts'
import { closeAfter, closeAfterEach, open, openBox, order, patient, through } from '../../harness/users/mailer.ts'

closeAfterEach()

describe('a mail', () => {
  test('[MAIL-1] goes to one address, as plain text that nobody answers', async () => {
    const box = await openBox()
    const { mailer } = open(through(box.port))
    expect(mailer.isConfigured).toBe(true)
    mailer.send(order('ada@example.org'))
    const { to, subject, text, headers } = await box.next('ada@example.org')
    expect(to).toEqual(['ada@example.org'])
    expect(subject).toBe('Sign in to Atlas')
    expect(text).toContain('\nhttps://app.example.org/go?token=t\n')
    expect(headers.get('from')).toEqual(['Atlas <no-reply@atlas.example>'])
    expect(headers.get('to')).toEqual(['ada@example.org'])
    expect(headers.get('auto-submitted')).toEqual(['auto-generated'])
    expect(headers.get('content-type')?.[0]).toStartWith('text/plain')
  })

  test('[MAIL-10] cannot be given further headers, recipients or lines by what goes into it', async () => {
    const box = await openBox()
    const evil = 'x\r\nBcc: eve@example.org\r\n\r\nInstead'
    const templates = { en: { 'magic-link': { subject: '{{displayName}}', text: 'Hello {{displayName}}!' } } }
    const { mailer } = open(through(box.port, {}, { templates }))
    mailer.send(order('ada@example.org', { values: { displayName: evil } }))
    const { to, subject, text, headers } = await box.next('ada@example.org')
    expect(to).toEqual(['ada@example.org'])
    expect([...headers.keys()]).not.toContain('bcc')
    expect(subject).toBe('x Bcc: eve@example.org Instead')
    expect(text.trimEnd()).toBe('Hello x Bcc: eve@example.org Instead!')
    await mailer.idle()
    expect(box.received).toHaveLength(1)
  })

  test('[MAIL-1] keeps letters of every language', async () => {
    const box = await openBox()
    const templates = { de: { 'magic-link': { subject: 'Grüße, {{displayName}} 🗺', text: '{{displayName}}: ñ 漢\n' } } }
    const { mailer } = open(through(box.port, {}, { templates }))
    mailer.send(order('ada@example.org', { locale: 'de', values: { displayName: 'Łucja' } }))
    expect(await box.next('ada@example.org')).toMatchObject({ subject: 'Grüße, Łucja 🗺', text: 'Łucja: ñ 漢\n' })
  })
})

describe('encryption', () => {
  test('[MAIL-5] from the first byte, with the password, where configured', async () => {
    const logins: string[] = []
    const box = await openBox({
      secure: true,
      authOptional: false,
      onAuth({ username, password }, _, done) {
        logins.push(`${username}:${password}`)
        done(null, { user: username })
      },
    })
    const { mailer } = open(through(box.port, { secure: true, user: 'u', password: 'p', ca: testCertificate }))
    mailer.send(order('ada@example.org'))
    expect((await box.next('ada@example.org')).isEncrypted).toBe(true)
    expect(logins).toEqual(['u:p'])
  })

  test('[MAIL-5] is taken where it is offered', async () => {
    const box = await openBox({ hideSTARTTLS: false })
    const { mailer } = open(through(box.port, { ca: testCertificate }))
    mailer.send(order('ada@example.org'))
    expect((await box.next('ada@example.org')).isEncrypted).toBe(true)
  })

  test.each([{ secure: true }, { secure: false, hideSTARTTLS: false }])(
    '[MAIL-5] with a certificate that nobody vouches for nothing is sent: %p',
    async (options) => {
      const box = await openBox(options)
      const { mailer, logged } = open(through(box.port, { secure: options.secure }))
      mailer.send(order('ada@example.org'))
      await mailer.idle()
      expect(box.received).toHaveLength(0)
      expect(logged()).toContain('"event":"mail.dropped"')
    },
  )

  test('[MAIL-5] a password is not sent without it to another machine', async () => {
    const logins: unknown[] = []
    const box = await openBox({
      authMethods: ['PLAIN', 'LOGIN'],
      onAuth({ username }, _, done) {
        logins.push(username)
        done(null, { user: username })
      },
    })
    // This address is this machine too, but not known to be.
    const { mailer } = open(through(box.port, { host: '0.0.0.0', user: 'u', password: 'p' }))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect([logins, box.received]).toEqual([[], []])
  })
})

describe('a server that', () => {
  test('[MAIL-6] refuses the password is not tried again, and the password is in no log', async () => {
    let logins = 0
    const box = await openBox({
      authOptional: false,
      onAuth(_, __, done) {
        logins += 1
        done(new Error('no such user'))
      },
    })
    const { mailer, logged } = open(through(box.port, { user: 'u', password: 'sesame-open' }))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect([logins, box.received.length]).toEqual([1, 0])
    expect(logged()).toContain('"event":"mail.dropped"')
    expect(logged()).not.toContain('sesame')
    expect(logged()).not.toContain('token=')
  })

  const refusal = (responseCode: number): Error => Object.assign(new Error('not now'), { responseCode })

  test('[MAIL-6] is busy gets the mail later, once', async () => {
    let asked = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        asked += 1
        done(asked < 3 ? refusal(451) : null)
      },
    })
    const { mailer, logged } = open(through(box.port))
    let composed = 0
    mailer.sendLater('magic-link', async () => {
      composed += 1
      return order('ada@example.org')
    })
    await box.next('ada@example.org')
    await mailer.idle()
    expect([asked, composed, box.received.length]).toEqual([3, 1, 1])
    expect(logged().match(/"event":"mail.retrying"/g)).toHaveLength(2)
  })

  test('[MAIL-6] quotes what it refuses has no secret of it in the log', async () => {
    const token = 'T'.repeat(43)
    const box = await openBox({
      onData(stream, _, done) {
        stream.resume()
        stream.on('end', () => done(Object.assign(new Error(`no ?token=${token} and 123456`), { responseCode: 550 })))
      },
    })
    const { mailer, logged } = open(through(box.port))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect(logged()).toContain('no ?token=[hidden] and [hidden]')
  })

  test('[MAIL-6] knows no such recipient is asked once', async () => {
    let asked = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        asked += 1
        done(refusal(550))
      },
    })
    const { mailer, logged } = open(through(box.port))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect([asked, box.received.length]).toEqual([1, 0])
    expect(logged()).toContain('"event":"mail.dropped"')
  })

  /** A server without manners; gives how often somebody came. */
  async function openRude(serve: (socket: Socket) => void): Promise<{ port: number; visits: () => number }> {
    let visits = 0
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      visits += 1
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
    return { port: (server.address() as AddressInfo).port, visits: () => visits }
  }

  test.each([
    ['closes at once', (socket: Socket) => void socket.end()],
    ['resets', (socket: Socket) => void socket.resetAndDestroy()],
    ['closes after its greeting', (socket: Socket) => void socket.end('220 mail\r\n')],
    ['speaks another language', (socket: Socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['is overloaded', (socket: Socket) => void socket.end('421 too many\r\n')],
  ])('[MAIL-6] %s is tried three times, and then the mail is lost', async (_, serve) => {
    const { port, visits } = await openRude(serve)
    const { mailer, logged } = open(through(port))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect(visits()).toBe(3)
    expect(logged().match(/"event":"mail\.(?:dropped|retrying)"/g)).toHaveLength(3)
  })

  test('[MAIL-6] is not there is tried three times, and then the mail is lost', async () => {
    const gone = await openMailbox()
    await gone.close()
    const { mailer, logged } = open(through(gone.port))
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect(logged()).toMatch(/"event":"mail.dropped","template":"magic-link","attempts":3/)
  })

  const ehlo = '220 mail\r\n'
  const tiring: readonly (readonly [string, Partial<MailTiming>, (socket: Socket) => void])[] = [
    ['never says a word', { connectMs: 50 }, () => {}],
    ['falls silent', { silenceMs: 50 }, (socket: Socket) => void socket.write(ehlo)],
    [
      'trickles',
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
  test.each(tiring)('[MAIL-6] %s is given up', async (_, timing, serve) => {
    const { port, visits } = await openRude(serve)
    const { mailer, logged } = open(through(port), { timing: { ...patient, retryDelaysMs: [], ...timing } })
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect(visits()).toBe(1)
    expect(logged()).toContain('"event":"mail.dropped"')
  })

  test('[MAIL-7] hangs queues a bounded number of mails', async () => {
    const { port, visits } = await openRude(() => {})
    const { mailer, logged } = open(through(port), { timing: { ...patient, drainMs: 1 } })
    let composed = 0
    for (let at = 0; at < mailQueueMax + 50; at++)
      mailer.sendLater('magic-link', async () => {
        composed += 1
        return order(`${at}@example.org`)
      })
    expect(logged().match(/The mail queue is full/g)).toHaveLength(50)
    await mailer.close()
    expect(composed).toBe(mailConnectionsMax)
    expect(visits()).toBeLessThanOrEqual(mailConnectionsMax)
    expect(logged()).toContain(`"event":"mail.dropped_at_close","count":${mailQueueMax}`)
  })
})

describe('stopping', () => {
  test('[MAIL-7] sends what is queued, also what pauses, and takes nothing more', async () => {
    let asked = 0
    const box = await openBox({
      onRcptTo(_, __, done) {
        asked += 1
        done(asked === 1 ? Object.assign(new Error('later'), { responseCode: 451 }) : null)
      },
    })
    const delayed = Promise.withResolvers<void>()
    const { mailer } = open(through(box.port), { timing: { ...patient, retryDelaysMs: [3_600_000] } })
    mailer.sendLater('magic-link', async () => {
      delayed.resolve()
      return order('first@example.org')
    })
    await delayed.promise
    for (let at = 0; at < 30; at++) mailer.send(order(`${at}@example.org`))
    await box.next('29@example.org')
    await mailer.close()
    expect(box.received).toHaveLength(31)
    mailer.send(order('late@example.org'))
    await mailer.idle()
    expect(box.received).toHaveLength(31)
  })
})
