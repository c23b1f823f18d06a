/** Mail transports: the configured server, the outbox, or none. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { outboxMailsMax } from '../../../src/limits/users.ts'
import { startServer, type TestServer } from '../../harness/server.ts'
import { closeAfter, closeAfterEach, open, openBox, order, through } from '../../harness/users/mailer.ts'

closeAfterEach()

describe('the configuration', () => {
  test('[MAIL-4] may change: the next mail goes to the other server', async () => {
    const [one, other] = [await openBox(), await openBox()]
    const { mailer, state } = open(through(one.port))
    mailer.send(order('ada@example.org'))
    await one.next('ada@example.org')
    state.config = through(other.port)
    mailer.send(order('ada@example.org'))
    await other.next('ada@example.org')
    expect([one.received.length, other.received.length]).toEqual([1, 1])
  })

  test('[MAIL-3] without a mail server nothing is prepared or sent in release mode', async () => {
    const { mailer, outbox, logged } = open(null)
    expect(mailer.isConfigured).toBe(false)
    let composed = 0
    mailer.sendLater('magic-link', async () => {
      composed += 1
      return order('ada@example.org')
    })
    mailer.send(order('ada@example.org'))
    await mailer.idle()
    expect([composed, logged()]).toEqual([0, ''])
    expect(() => readdirSync(outbox)).toThrow('ENOENT')
  })
})

describe('the outbox of development mode', () => {
  test('[MAIL-2] has the mail as a file that only its owner reads, and the log has it too', async () => {
    const { mailer, outbox, logged } = open(null, { mode: 'development' })
    mailer.send(order('ada@example.org'))
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

  test('[MAIL-2] keeps the newest mails only', async () => {
    const { mailer, outbox } = open(null, { mode: 'development' })
    for (let at = 0; at < outboxMailsMax + 20; at++) mailer.send(order(`${at}@example.org`))
    await mailer.idle()
    const kept = readdirSync(outbox).map((name) => readFileSync(join(outbox, name), 'utf8'))
    expect(kept).toHaveLength(outboxMailsMax)
    expect(kept.some((text) => text.includes('To: 0@example.org\n'))).toBe(false)
    expect(kept.some((text) => text.includes(`To: ${outboxMailsMax + 19}@example.org\n`))).toBe(true)
  })

  test('[MAIL-2] is not used where a mail server is configured', async () => {
    const box = await openBox()
    const { mailer, outbox, logged } = open(through(box.port), { mode: 'development' })
    mailer.send(order('ada@example.org'))
    await box.next('ada@example.org')
    await mailer.idle()
    expect(() => readdirSync(outbox)).toThrow('ENOENT')
    expect(logged()).not.toContain('token=')
  })
})

describe('a server without a mail server', () => {
  const ask = (server: TestServer) => server.anonymous.post('/api/auth/signin/magic-link', { email: 'ada@example.org' })

  test('[MAIL-2] shows the mails of development mode in its data folder, and their links work', async () => {
    const server = await startServer({ config: {} })
    closeAfter(server.close)
    expect((await ask(server)).body).toEqual({ ok: true })
    // Stopping finishes what the request has started.
    await server.restart()
    const [name = ''] = readdirSync(join(server.dataFolder, 'outbox'))
    const mail = readFileSync(join(server.dataFolder, 'outbox', name), 'utf8')
    const token = /token=([\w-]{43})$/m.exec(mail)?.[1]
    expect(server.logged()).toContain(`token=${token}`)
    const signedIn = await server.anonymous.post('/api/auth/verify-magic-link', { token })
    expect(signedIn.body.user.email).toBe('ada@example.org')
  })

  test('[MAIL-3] has none in release mode', async () => {
    const server = await startServer({ config: {}, mode: 'release' })
    closeAfter(server.close)
    expect((await ask(server)).body).toEqual({ ok: true })
    await server.restart()
    expect(existsSync(join(server.dataFolder, 'outbox'))).toBe(false)
    expect(server.logged()).not.toContain('token=')
  })
})
