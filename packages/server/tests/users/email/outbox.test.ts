/** Mail transports: the configured server, the outbox, or none. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { outboxMailsMax } from '../../../src/limits/users.ts'
import { startServer, type TestServer } from '../../harness/server.ts'
import { closeAfter, closeAfterEach, mailTo, open, openBox, smtpConfig } from '../../harness/users/mailer.ts'

closeAfterEach()

describe('the mail configuration', () => {
  test('[MAIL-4] a changed mail server applies from the next mail', async () => {
    const [one, other] = [await openBox(), await openBox()]
    const { mailer, state } = open(smtpConfig(one.port))
    mailer.send(mailTo('ada@example.org'))
    await one.next('ada@example.org')
    state.config = smtpConfig(other.port)
    mailer.send(mailTo('ada@example.org'))
    await other.next('ada@example.org')
    expect(one.received).toHaveLength(1)
    expect(other.received).toHaveLength(1)
  })

  test('[MAIL-3] without a mail server nothing is prepared or sent in release mode', async () => {
    const { mailer, outbox, logged } = open(null)
    expect(mailer.route).toBe('none')
    let composed = 0
    mailer.sendLater('magic-link', async () => {
      composed += 1
      return mailTo('ada@example.org')
    })
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    expect(composed).toBe(0)
    expect(logged()).toBe('')
    expect(() => readdirSync(outbox)).toThrow('ENOENT')
  })
})

describe('the outbox of development mode', () => {
  test('[MAIL-2] a mail is saved to a file that only its owner can read, and logged', async () => {
    const { mailer, outbox, logged } = open(null, { hasOutbox: true })
    mailer.send(mailTo('ada@example.org'))
    await mailer.idle()
    const [name = '', ...more] = readdirSync(outbox)
    expect(more).toEqual([])
    expect(name).toEndWith('.eml')
    const text = readFileSync(join(outbox, name), 'utf8')
    expect(text).toStartWith('From: Plinth <no-reply@localhost>\nTo: ada@example.org\nSubject: Sign in to Plinth\n')
    expect(text).toContain('\n\nSign in to Plinth as ada@example.org:\n\nhttps://app.example.org/go?token=t\n')
    expect(statSync(join(outbox, name)).mode & 0o777).toBe(0o600)
    expect(logged()).toContain('https://app.example.org/go?token=t')
  })

  test('[MAIL-2] only the newest mails are kept', async () => {
    const { mailer, outbox } = open(null, { hasOutbox: true })
    for (let at = 0; at < outboxMailsMax + 20; at++) mailer.send(mailTo(`${at}@example.org`))
    await mailer.idle()
    const kept = readdirSync(outbox).map((name) => readFileSync(join(outbox, name), 'utf8'))
    expect(kept).toHaveLength(outboxMailsMax)
    expect(kept.some((text) => text.includes('To: 0@example.org\n'))).toBe(false)
    expect(kept.some((text) => text.includes(`To: ${outboxMailsMax + 19}@example.org\n`))).toBe(true)
  })

  test('[MAIL-2] the outbox is not used if a mail server is configured', async () => {
    const box = await openBox()
    const { mailer, outbox, logged } = open(smtpConfig(box.port), { hasOutbox: true })
    mailer.send(mailTo('ada@example.org'))
    await box.next('ada@example.org')
    await mailer.idle()
    expect(() => readdirSync(outbox)).toThrow('ENOENT')
    expect(logged()).not.toContain('token=')
  })
})

describe('a server without a mail server', () => {
  const requestLink = (server: TestServer) =>
    server.anonymous.post('/api/auth/signin/magic-link', { email: 'ada@example.org' })

  test('[MAIL-2] in development mode mails are in the outbox of the data folder, and their links work', async () => {
    const server = await startServer({ config: {} })
    closeAfter(server.close)
    expect((await requestLink(server)).body).toEqual({ ok: true })
    // A stopping server sends all queued mails.
    await server.restart()
    const [name = ''] = readdirSync(join(server.dataFolder, 'outbox'))
    const mail = readFileSync(join(server.dataFolder, 'outbox', name), 'utf8')
    const token = /token=([\w-]{43})$/m.exec(mail)?.[1]
    expect(server.logged()).toContain(`token=${token}`)
    const signedIn = await server.anonymous.post('/api/auth/verify-magic-link', { token })
    expect(signedIn.body.user.email).toBe('ada@example.org')
  })

  test('[MAIL-3] in release mode there is no outbox', async () => {
    const server = await startServer({ config: {}, mode: 'release' })
    closeAfter(server.close)
    expect((await requestLink(server)).body).toEqual({ ok: true })
    await server.restart()
    expect(existsSync(join(server.dataFolder, 'outbox'))).toBe(false)
    expect(server.logged()).not.toContain('token=')
  })
})
