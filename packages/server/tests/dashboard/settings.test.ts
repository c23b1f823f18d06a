/** The settings of the server without its secrets, and mails with sample values. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { WrittenConfig } from '../harness/config.ts'
import { openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey, startServer, type TestServer, tokenSecret } from '../harness/server.ts'
import { mailAuth } from '../harness/users/mail-config.ts'
import { type Mailbox, openMailbox } from '../harness/users/mailbox.ts'

const unlimited = { requests: 10_000_000 }
const rateLimits = { auth: unlimited, signin: unlimited, global: unlimited }
const fieldKey = 'key-of-a-reader-0123456789'

describeServer(
  'settings',
  {
    config: {
      rateLimits: { ...rateLimits, db: { requests: 77 } },
      serviceKeys: [{ name: 'reader', key: fieldKey, scopes: ['db:table:*:read'] }],
      changes: { retention: '2d', maxSize: '5mb' },
      analytics: { requestLog: { retention: '3d' } },
      auth: {
        mail: {
          from: 'Atlas <no-reply@atlas.example>',
          smtp: { host: 'smtp.example', port: 465, user: 'mailer', password: 'the password of the mail server' },
        },
      },
    },
  },
  (server) => {
    test('[DASH-43] settings name engines, limits and retention, and contain no secret', async () => {
      const viewer = await openAdministrator(server, 'viewer')
      const { status, body, text, headers } = await viewer.client.get('/api/settings')
      expect(status).toBe(200)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(body).toMatchObject({
        mode: 'development',
        version: expect.stringMatching(/^\d/),
        engines: { mail: { kind: 'SMTP', location: 'smtp.example:465' } },
        limits: { responseBytes: 8 * 1024 * 1024 },
      })
      expect(body.limits.rateLimits).toContainEqual({ group: 'db', requests: 77, windowMs: 60_000 })
      const day = 24 * 60 * 60 * 1000
      const retention = (id: string) => body.retention.find((one: { id: string }) => one.id === id)
      expect(retention('changes')).toMatchObject({ retentionMs: 2 * day, bytesMax: 5 * 1024 * 1024, option: 'changes' })
      expect(retention('requestLog')).toMatchObject({ retentionMs: 3 * day })
      expect(retention('audit')).toMatchObject({ itemsMax: 1_000_000, option: null })
      const { databaseUrl, redisUrl, s3 } = server.settings()
      expect(body.engines.sql.kind).toBe(databaseUrl === null ? 'SQLite' : 'PostgreSQL')
      const passwords = [databaseUrl, redisUrl].flatMap((url) => (url ? [new URL(url).password] : []))
      for (const secret of [rootKey, tokenSecret, fieldKey, 'the password', s3?.secretAccessKey, s3?.accessKeyId])
        if (secret) expect(text).not.toContain(secret)
      for (const password of passwords.filter(Boolean)) expect(text).not.toContain(`:${password}@`)
    })
  },
)

describeServer(
  'service keys',
  {
    config: {
      rateLimits,
      serviceKeys: [
        { name: 'reader', key: fieldKey, scopes: ['db:table:*:read'], ipCidr: ['127.0.0.0/8'] },
        { name: 'expired', key: 'key-that-expired-0123456789', scopes: ['*'], expiresAt: '2020-01-01T00:00:00Z' },
        { name: 'unused', key: 'key-without-use-0123456789', scopes: ['push:*:*:*'] },
      ],
    },
  },
  (server) => {
    interface KeyView {
      readonly name: string
      readonly usedAt: string | null
    }
    const list = async () => {
      const viewer = await openAdministrator(server, 'viewer')
      const { status, body, text } = await viewer.client.get('/api/service-keys')
      expect(status).toBe(200)
      for (const key of [rootKey, fieldKey]) expect(text).not.toContain(key)
      return new Map((body.keys as readonly KeyView[]).map((key) => [key.name, key]))
    }

    test('[DASH-46] keys are listed with their scopes, networks, expiry and last use, and never themselves', async () => {
      const startedAt = Date.now()
      // A key that is refused is not used.
      expectRefusal(await server.withKey('key-that-expired-0123456789').get('/api/auth/admin/users'), 401)
      await server.withKey(fieldKey).get('/api/db/shared/tables/none')
      const keys = await list()
      expect([...keys.keys()]).toEqual(['root', 'reader', 'expired', 'unused'])
      expect(keys.get('root')).toMatchObject({ source: 'environment', scopes: ['*'], networks: null, expiresAt: null })
      expect(keys.get('reader')).toMatchObject({
        source: 'configuration',
        scopes: ['db:table:*:read'],
        networks: ['127.0.0.0/8'],
        isExpired: false,
      })
      expect(keys.get('expired')).toMatchObject({ isExpired: true, usedAt: null })
      expect(keys.get('unused')).toMatchObject({ expiresAt: null, usedAt: null })
      expect(Date.parse(keys.get('reader')?.usedAt ?? '')).toBeGreaterThanOrEqual(startedAt)
    })

    test('[DASH-46] the last use survives a restart', async () => {
      await server.withKey(fieldKey).get('/api/db/shared/tables/none')
      const before = (await list()).get('reader')?.usedAt
      await server.restart()
      expect(before).toBeString()
      expect((await list()).get('reader')?.usedAt).toBe(before)
    })
  },
)

describe('mails in the dashboard', () => {
  let mailbox: Mailbox
  let server: TestServer
  let owner: TestAdministrator
  const templates = {
    de: { 'magic-link': { subject: 'Anmelden bei {{appName}}', text: 'Hallo <b>{{displayName}}</b>,\n\n{{link}}\n' } },
  }
  const configWith = (mail: object, more: object = {}): WrittenConfig => ({
    rateLimits: { ...rateLimits, mail: { requests: 3 } },
    auth: { mail: { ...mailAuth(mailbox).mail, templates, ...mail } },
    ...more,
  })
  beforeAll(async () => {
    mailbox = await openMailbox()
    server = await startServer({ config: configWith({}) })
    owner = await openAdministrator(server, 'owner')
  })
  afterAll(async () => {
    await server?.close()
    await mailbox?.close()
  })
  const lastAudit = async () =>
    (await owner.client.get('/api/audit?action=dashboard.sendTestMail&limit=1')).body.items[0] ?? null

  test('[DASH-44] templates are listed with their languages', async () => {
    const { status, body } = await owner.client.get('/api/mails')
    expect(status).toBe(200)
    expect(body).toMatchObject({ route: 'smtp', from: 'Atlas <no-reply@atlas.example>', appName: 'Atlas' })
    expect(body.templates).toContainEqual({ name: 'magic-link', languages: ['en', 'de'], configured: ['de'] })
    expect(body.templates).toContainEqual({ name: 'password-changed', languages: ['en'], configured: [] })
  })

  test('[DASH-44] a preview has sample values, and its document runs nothing', async () => {
    const { status, body } = await owner.client.get('/api/mails/magic-link?locale=de')
    expect(status).toBe(200)
    expect(body.subject).toBe('Anmelden bei Atlas')
    expect(body.text).toContain('https://app.example.org/magic?token=')
    // The frame has neither the cookie nor the header of the page.
    const shown = await server.anonymous.get(body.url)
    expect(shown.status).toBe(200)
    expect(shown.text).toContain('Hallo &lt;b&gt;Ada Lovelace&lt;/b&gt;')
    expect(shown.text).not.toMatch(/<script|<b>|src=/)
    const policy = shown.headers.get('content-security-policy') ?? ''
    expect(policy).toContain('sandbox;')
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('allow-')
    const last = body.url.at(-1) === 'A' ? 'B' : 'A'
    for (const path of [`${body.url.slice(0, -1)}${last}`, '/dashboard/mail-preview/none'])
      expectRefusal(await server.anonymous.get(path), 404)
    expectRefusal(await owner.client.get('/api/mails/none'), 404)
    expectRefusal(await owner.client.get(`/api/mails/magic-link?locale=${'x'.repeat(36)}`), 400)
  })

  test('[DASH-45] a test goes to the own address, with an entry in the audit log, and is limited', async () => {
    const viewer = await openAdministrator(server, 'support')
    expectRefusal(await viewer.client.post('/api/mails/magic-link/test', {}), 403)
    expectRefusal(await owner.client.post('/api/mails/none/test', {}), 404)
    expect(await lastAudit()).toBeNull()
    const { status, body } = await owner.client.post('/api/mails/magic-link/test', { locale: 'de' })
    expect([status, body]).toEqual([200, { to: owner.email, route: 'smtp', error: null }])
    const mail = await mailbox.next(owner.email)
    expect(mail.subject).toBe('Anmelden bei Atlas')
    expect(mail.text).toContain('Hallo <b>Ada Lovelace</b>')
    expect(mail.html).toContain('Hallo &lt;b&gt;Ada Lovelace&lt;/b&gt;')
    // The token in it opens nothing.
    const token = /token=([\w-]{43})/.exec(mail.text)?.[1]
    expectRefusal(await server.anonymous.post('/api/auth/verify-magic-link', { token }), 401)
    expect(await lastAudit()).toMatchObject({
      actorName: owner.email,
      outcome: 'done',
      after: { template: 'magic-link', locale: 'de', to: owner.email, route: 'smtp', error: null },
    })
    await owner.client.post('/api/mails/email-otp/test', {})
    await owner.client.post('/api/mails/email-otp/test', {})
    const count = mailbox.received.length
    expectRefusal(await owner.client.post('/api/mails/email-otp/test', {}), 429)
    expect(mailbox.received).toHaveLength(count)
  })

  test('[DASH-45] the error of the mail server is returned, and without one there is a conflict', async () => {
    const closed = await openMailbox()
    await closed.close()
    const other = await openAdministrator(server, 'owner')
    await server.reload(configWith({ smtp: { host: '127.0.0.1', port: closed.port } }))
    const { status, body } = await other.client.post('/api/mails/magic-link/test', {})
    expect(status).toBe(200)
    expect(body.error).toContain('ECONNREFUSED')
    const release = await startServer({
      config: { rateLimits, dashboard: { requireMfa: false } },
      mode: 'release',
    })
    try {
      const one = await openAdministrator(release, 'owner')
      expect((await one.client.get('/api/mails')).body.route).toBe('none')
      expectRefusal(await one.client.post('/api/mails/magic-link/test', {}), 409)
    } finally {
      await release.close()
    }
  })
})
