/** Mail requests reveal by neither response nor work whether an account exists, and cannot flood a mailbox. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ManualClock, manualClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { parseTrustProxy } from '../../../src/base/network/address.ts'
import { createMemoryCluster } from '../../../src/engines/cluster/memory.ts'
import { openMails } from '../../../src/engines/mail/mail.ts'
import { openSql } from '../../../src/engines/open.ts'
import { decorateDatabase } from '../../../src/engines/sql/decorate-database.ts'
import type { Database, Reader, Transaction } from '../../../src/engines/sql/sql.ts'
import { openUsers, type Users } from '../../../src/features/users/index.ts'
import type { Call } from '../../../src/http/endpoint.ts'
import { emptyBody } from '../../../src/http/input/request-body.ts'
import { createRateLimiter } from '../../../src/http/security/rate-limit.ts'
import { responseBytesMax } from '../../../src/limits/api.ts'
import { passwordCost } from '../../../src/limits/users.ts'
import type { Answer } from '../../harness/client.ts'
import { createTestSettings, parseTestConfig, type WrittenConfig } from '../../harness/config.ts'
import { engines, sharedEngine } from '../../harness/engines.ts'
import { openNodes } from '../../harness/nodes.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer, type TestServer, tokenSecret } from '../../harness/server.ts'
import { unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { type Mailbox, openMailbox } from '../../harness/users/mailbox.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const requests = ['signin/magic-link', 'signin/email-otp', 'request-password-reset'] as const
const password = 'a long password'

/** Everything in a response that could reveal whether an account exists. */
const visible = ({ status, text, headers }: Answer) => ({
  status,
  text,
  headers: [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
})

/** One address without an account, and one for each kind of account. */
async function addresses(server: TestServer, prefix: string): Promise<readonly string[]> {
  const make = async (email: string, changes: object): Promise<string> => {
    const { body } = await server.service.post('/api/auth/admin/users', { email, password })
    await server.service.patch(`/api/auth/admin/users/${body.user.id}`, changes)
    return email
  }
  const users = [{ email: `${prefix}-imported@example.org`, verified: true }]
  await server.service.post('/api/auth/admin/users/import', { users })
  return [
    `${prefix}-unknown@example.org`,
    await make(`${prefix}-known@example.org`, {}),
    await make(`${prefix}-disabled@example.org`, { disabled: true }),
    `${prefix}-imported@example.org`,
  ]
}

/** Configurations that differ in who gets a mail; responses must not reveal which is in effect. */
const configurations: readonly (readonly [string, WrittenConfig])[] = [
  ['with mail and sign-up', { auth: mailAuth(mailbox), rateLimits: unlimitedRates }],
  ['with mail, without sign-up', { auth: mailAuth(mailbox, { signup: false }), rateLimits: unlimitedRates }],
  ['without mail', { auth: { signup: false }, rateLimits: unlimitedRates }],
]
for (const [name, config] of configurations)
  describeServer(name, { config, mode: 'release' }, (server) => {
    for (const path of requests)
      test(`[MAIL-12, MAIL-3] ${path} gives the same response for every address`, async () => {
        const answers: Answer[] = []
        for (const email of await addresses(server, path.replaceAll(/\W/g, '-')))
          answers.push(await server.anonymous.post(`/api/auth/${path}`, { email }))
        expect(answers[0]?.body).toEqual({ ok: true })
        for (const answer of answers) expect(visible(answer)).toEqual(visible(answers[0] as Answer))
      })

    test('[MAIL-12] a wrong code gets the same response for every address', async () => {
      const all = await addresses(server, 'wrong-code')
      const guess = (email: string) => server.anonymous.post('/api/auth/verify-email-otp', { email, code: '000000' })
      const refusals = await Promise.all(all.map(guess))
      for (const answer of refusals) expect(visible(answer)).toEqual(visible(refusals[0] as Answer))
      expectRefusal(refusals[0] as Answer, 401, 'Invalid code')
    })
  })

/** Records the statements of a database in order. */
function recording(database: Database, texts: string[]): Database {
  const reader = <R extends Reader>(on: R): R['all'] =>
    ((query) => {
      texts.push(query.text)
      return on.all(query)
    }) as R['all']
  const transaction = (tx: Transaction): Transaction => ({
    all: reader(tx),
    run(query) {
      texts.push(query.text)
      return tx.run(query)
    },
    lockRow(query, against) {
      texts.push(query.text)
      return tx.lockRow(query, against)
    },
    send(query) {
      texts.push(query.text)
      tx.send(query)
    },
    append(statement) {
      texts.push(statement.text)
      tx.append(statement)
    },
    lock: (...keys) => tx.lock(...keys),
    afterCommit: (hook) => tx.afterCommit(hook),
  })
  return decorateDatabase(database, {
    all: reader(database),
    write: (work, options) => database.write((tx) => work(transaction(tx)), options),
  })
}

describe.each(engines.map((engine) => [engine.name, engine] as const))(
  'queries of mail requests on %s',
  (_, engine) => {
    /** The users feature without a server, on a database that records its queries. */
    async function openWatched(use: (watched: WatchedUsers) => Promise<void>): Promise<void> {
      const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-mail-work-'))
      const storage = await engine.openStorage()
      const { databaseUrl } = createTestSettings({ dataFolder, secret: '', serviceKey: '', ...storage.settings })
      const sql = await openSql({ databaseUrl, dataFolder, prepareInstance: async () => {}, log: silentLog })
      const clock = manualClock()
      const cluster = createMemoryCluster({ clock })
      const written = { auth: mailAuth(mailbox, { signup: false }), rateLimits: unlimitedRates }
      const config = parseTestConfig(written, 'release', 'r'.repeat(32))
      const mails = openMails({
        server: () => config.auth.mail?.smtp ?? null,
        from: () => null,
        outboxFolder: null,
        clock,
        log: silentLog,
      })
      const texts: string[] = []
      const open = (): Promise<Users> =>
        openUsers({
          sql: { ...sql, database: (address) => recording(sql.database(address), texts) },
          cluster,
          limiter: createRateLimiter(cluster, () => config.rateLimits),
          syncPublicUser: async () => {},
          appendUserEvent: async () => {},
          hooks: () => ({ beforeSignUp: null, claims: null, waitsFor: () => false }),
          config: () => config.auth,
          mails,
          secret: tokenSecret,
          responseBytes: () => responseBytesMax,
          publicUrl: () => null,
          onRevoking: () => {},
          hasDashboard: () => false,
          dashboardRoles: () => [],
          onDashboardRoleChanged: () => {},
          mayEndLastOwner: false,
          passwordCost,
          clock,
          log: silentLog,
        })
      let users = await open()
      const call = async (name: string, body: object): Promise<unknown> => {
        const found = users.endpoints.find((one) => one.name === name)
        return found?.handle({ ...callDefaults, body } as Call)
      }
      try {
        await use({
          texts,
          call,
          async finishWork() {
            await users.close()
            users = await open()
          },
        })
      } finally {
        await users.close()
        await mails.close()
        await cluster.close()
        await sql.close()
        await storage.remove()
        rmSync(dataFolder, { recursive: true })
      }
    }

    test('[MAIL-12] a request for a mail is answered before any query', () =>
      openWatched(async ({ texts, call }) => {
        await call('admin.createUser', { email: 'known@example.org', password })
        for (const name of ['users.requestMagicLink', 'users.requestEmailCode', 'users.requestPasswordReset'])
          for (const email of ['known@example.org', 'unknown@example.org']) {
            texts.length = 0
            expect(await call(name, { email })).toMatchObject({ status: 200 })
            expect(texts).toEqual([])
          }
      }))

    test('[MAIL-12] verifying a wrong code runs the same queries with and without an account', () =>
      openWatched(async ({ texts, call, finishWork }) => {
        await call('admin.createUser', { email: 'known@example.org', password })
        const emails = ['known@example.org', 'unknown@example.org']
        for (const email of emails) await call('users.requestEmailCode', { email })
        // Closing waits for the work that the requests have started.
        await finishWork()
        const queries: string[][] = []
        for (const email of emails) {
          texts.length = 0
          await expect(call('users.verifyEmailCode', { email, code: 'wrong!' })).rejects.toMatchObject({ status: 401 })
          queries.push([...texts])
        }
        expect(queries[0]?.length).toBeGreaterThan(0)
        expect(queries[1]).toEqual(queries[0] as string[])
      }))
  },
)

interface WatchedUsers {
  readonly texts: string[]
  call(name: string, body: object): Promise<unknown>
  finishWork(): Promise<void>
}

const callDefaults = {
  params: {},
  query: {},
  caller: { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] },
  headers: new Headers(),
  method: 'POST',
  path: '/',
  requestId: 'r',
  address: '127.0.0.1',
  url: '/',
  signal: new AbortController().signal,
  rawBody: emptyBody(),
} as const

const limited = {
  auth: mailAuth(mailbox),
  rateLimits: { ...unlimitedRates, mail: { requests: 3, window: '1h' } },
}

const mailsTo = (email: string): number =>
  mailbox.received.filter(({ to }: Mailbox['received'][number]) => to.includes(email)).length

async function statuses(servers: readonly TestServer[], spellings: readonly string[]): Promise<number[]> {
  const found: number[] = []
  for (const [n, email] of spellings.entries()) {
    const server = servers[n % servers.length] as TestServer
    // One source; `accounts/attempts.test.ts` covers several.
    const headers = { 'x-forwarded-for': '203.0.113.1' }
    const path = `/api/auth/${requests[n % requests.length]}`
    found.push((await server.anonymous.post(path, { email }, headers)).status)
  }
  return found
}

const limitClock: ManualClock = manualClock()
describeServer(
  'mails to one address',
  { config: limited, mode: 'release', clock: limitClock, settings: { trustProxy: parseTrustProxy('1') } },
  (server) => {
    const spell = (email: string) => [email, email.toUpperCase(), ` ${email} `, email.replace('a', 'ａ'), email]

    test('[MAIL-9] mails to an address are counted over all purposes and spellings, with or without an account', async () => {
      const [unknown = '', known = ''] = await addresses(server, `a${crypto.randomUUID()}`)
      expect(await statuses([server], spell(known))).toEqual([200, 200, 200, 429, 429])
      expect(await statuses([server], spell(unknown))).toEqual([200, 200, 200, 429, 429])
      const headers = { 'x-forwarded-for': '203.0.113.1' }
      const refused = await server.anonymous.post('/api/auth/signin/email-otp', { email: known }, headers)
      expectRefusal(refused, 429)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)
      await server.restart()
      expect(mailsTo(known)).toBe(3)
      expect(mailsTo(unknown)).toBe(2)
    })

    test('[MAIL-9] mails are sent again in the next window', async () => {
      const email = `${crypto.randomUUID()}@example.org`
      expect(await statuses([server], Array(4).fill(email))).toEqual([200, 200, 200, 429])
      await server.elapse(60 * 60 * 1000)
      expect(await statuses([server], [email])).toEqual([200])
    })

    test('[MAIL-9] mails for changes of address are counted, for the old and the new address', async () => {
      const name = crypto.randomUUID()
      const email = `${name}@example.org`
      const signedUp = await server.anonymous.post('/api/auth/signup', { email, password })
      const headers = { 'x-forwarded-for': '203.0.113.1', authorization: `Bearer ${signedUp.body.accessToken}` }
      const change = (newEmail: string) =>
        server.anonymous.post('/api/auth/change-email', { newEmail, password }, headers)
      const victim = `victim-${name}@example.org`
      for (let n = 0; n < 3; n++) expect((await change(n === 0 ? victim : `${n}-${name}@example.org`)).status).toBe(200)
      expectRefusal(await change(`4-${name}@example.org`), 429)
      expect(await statuses([server], [victim, victim, victim])).toEqual([200, 200, 429])
    })
  },
)

test('[MAIL-9] an address receives five mails an hour by default', async () => {
  const clock = manualClock()
  const { mail: _, ...others } = unlimitedRates
  const server = await startServer({ config: { auth: mailAuth(mailbox), rateLimits: others }, mode: 'release', clock })
  try {
    const email = `${crypto.randomUUID()}@example.org`
    expect(await statuses([server], Array(6).fill(email))).toEqual([200, 200, 200, 200, 200, 429])
    await server.elapse(60 * 60 * 1000 - 1)
    expect(await statuses([server], [email])).toEqual([429])
    await server.elapse(1)
    expect(await statuses([server], [email])).toEqual([200])
  } finally {
    await server.close()
  }
})

if (sharedEngine)
  test('[MAIL-9, MAIL-13] mails are counted across nodes, and a token works once across nodes', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config: limited, mode: 'release' })
    try {
      const email = `${crypto.randomUUID()}@example.org`
      expect(await statuses(nodes, Array(5).fill(email))).toEqual([200, 200, 200, 429, 429])
      const other = `${crypto.randomUUID()}@example.org`
      await nodes[0]?.anonymous.post('/api/auth/signin/magic-link', { email: other })
      const token = await mailbox.nextToken(other)
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          (nodes[n % 2] as TestServer).anonymous.post('/api/auth/verify-magic-link', { token }),
        ),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(49).fill(401)])
    } finally {
      await close()
    }
  })
