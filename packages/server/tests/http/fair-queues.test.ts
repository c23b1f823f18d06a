/** Queues in which one caller has many requests: another one's is served after one of them, not after all. */
import { expect, test } from 'bun:test'
import { hashesAtOnce } from '../../src/base/crypto/password-hash.ts'
import { parseTrustProxy } from '../../src/base/network/address.ts'
import { KiB } from '../../src/limits/units.ts'
import { type Answer, type Client, countStatuses } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const base = '/api/db/shared/tables'
const greedyKey = 'greedy-key-0123456789'
const modestKey = 'modest-key-0123456789'
const unlimited = { requests: 1_000_000, window: '60s' }
const config = {
  databases: {
    shared: {
      tables: {
        counters: { schema: { count: { type: 'number', default: 0 } }, access: open },
        notes: { schema: { body: { type: 'text' } }, access: open },
      },
    },
  },
  sql: { main: { timeout: '3s' } },
  serviceKeys: [
    { name: 'greedy', key: greedyKey, scopes: ['*'] },
    { name: 'modest', key: modestKey, scopes: ['*'] },
  ],
  rateLimits: { auth: unlimited, signin: unlimited, signup: unlimited },
} as const

/** Resolves once the server has begun this many requests beside the one that asks. */
async function inFlight(server: TestServer, count: number): Promise<void> {
  for (;;) {
    const { text } = await server.service.get('/metrics')
    const [, found = '0'] = /^http_requests_in_flight (\d+)$/m.exec(text) ?? []
    if (Number(found) > count) return
  }
}

/** Resolves with who sent each request, in the order of the responses, whose status must be 200. */
async function orderOf(requests: readonly (readonly [who: string, request: Promise<Answer>])[]): Promise<string[]> {
  const ended: string[] = []
  await Promise.all(
    requests.map(async ([who, request]) => {
      expect((await request).status).toBe(200)
      ended.push(who)
    }),
  )
  return ended
}

describeServer(
  'fair queues of the embedded engine',
  { config },
  (server) => {
    test('[RES-11] a write is committed after one of a caller with a hundred', async () => {
      await server.service.post(`${base}/counters`, { id: 'c' })
      const add = (client: Client): Promise<Answer> =>
        client.patch(`${base}/counters/c`, { count: { $op: 'increment', value: 1 } })
      const { body: hold } = await server.service.post('/api/backup/hold', {})
      const addFifty = () => Array.from({ length: 50 }, () => add(server.as('greedy')))
      const greedy = addFifty()
      await inFlight(server, 50)
      const modest = add(server.as('modest'))
      await inFlight(server, 51)
      // A request in flight may still wait for its body. Once fifty later ones are in flight, this one is queued.
      greedy.push(...addFifty())
      await inFlight(server, 101)
      expect((await server.service.delete(`/api/backup/hold/${hold.id}`)).status).toBe(200)
      expect((await modest).body.count).toBe(2)
      expect(countStatuses(await Promise.all(greedy))).toEqual({ 200: 100 })
    })

    test('[SQL-21] a statement runs after one of a caller with thirty', async () => {
      const exec = (key: string, query: string): Promise<Answer> =>
        server.withKey(key).post('/api/sql/main', { query, params: [] })
      const insert = (key: string): Promise<Answer> => exec(key, `INSERT INTO log (who) VALUES ('${key}')`)
      await exec(greedyKey, 'CREATE TABLE log (n INTEGER PRIMARY KEY, who TEXT)')
      const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'
      const blocking = exec(greedyKey, `${endless} INSERT INTO log (who) SELECT count(*) FROM c`)
      await inFlight(server, 1)
      const greedy = Array.from({ length: 30 }, () => insert(greedyKey))
      await inFlight(server, 31)
      expect((await insert(modestKey)).status).toBe(200)
      expect(countStatuses(await Promise.all(greedy))).toEqual({ 200: 30 })
      expect((await blocking).status).toBe(400)
      const { body } = await exec(greedyKey, 'SELECT who FROM log ORDER BY n')
      expect(body.results.findIndex(({ who }: { who: string }) => who === modestKey)).toBe(1)
    })
  },
  engines.slice(0, 1),
)

const settings = { trustProxy: parseTrustProxy('1') }
// A hash takes some 20 ms.
const passwordCost = { memoryKiB: 8 * KiB, passes: 2 }

describeServer('fair queues', { config, settings, passwordCost }, (server) => {
  test('[USER-14] a sign-in is answered before those of an address with many', async () => {
    const user = { email: 'ann@example.com', password: 'a good password' }
    expect((await server.anonymous.post('/api/auth/signup', user)).status).toBe(201)
    const signIn = (address: string): Promise<Answer> =>
      server.anonymous.post('/api/auth/signin', user, { 'X-Forwarded-For': address })
    const greedy = Array.from({ length: 4 * hashesAtOnce + 20 }, () => ['greedy', signIn('10.0.0.1')] as const)
    expect((await orderOf([...greedy, ['modest', signIn('10.0.0.2')]])).at(-1)).toBe('greedy')
  })

  test('[RES-12] a large page is answered before those of a caller with many', async () => {
    const inserts = Array.from({ length: 20 }, () => ({ body: 'word '.repeat(20_000) }))
    for (const part of [inserts.slice(0, 8), inserts.slice(8, 16), inserts.slice(16)])
      expect((await server.service.post(`${base}/notes/batch`, { inserts: part })).status).toBe(200)
    const list = (user: string): Promise<Answer> => server.as(user).get(`${base}/notes`)
    const greedy = Array.from({ length: 40 }, () => ['greedy', list('greedy')] as const)
    expect((await orderOf([...greedy, ['modest', list('modest')]])).at(-1)).toBe('greedy')
  })
})
