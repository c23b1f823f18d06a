/** Rate limits: the number of requests, by whom they are counted, and which callers are exempt. Uses a manual clock. */
import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { parseTrustProxy } from '../../src/base/network/address.ts'
import type { Client } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const base = '/api/db/shared/tables/items'
const databases = {
  shared: {
    tables: {
      items: { schema: { title: { type: 'string' } }, access: open },
      closed: { schema: { title: { type: 'string' } } },
    },
  },
} as const
const clock = manualClock()

/** Like `describeServer`, with reset counters at the start of each test. */
const describeLimited: typeof describeServer = (title, options, body) =>
  describeServer(title, options, (server) => {
    afterEach(() => server.elapse(120_000))
    body(server)
  })

/** The number of consecutive requests that are served, of at most `most`. */
async function served(most: number, send: (n: number) => ReturnType<Client['get']>): Promise<number> {
  for (let n = 0; n < most; n++) if ((await send(n)).status === 429) return n
  return most
}

describeLimited(
  'default limits in release',
  { config: { databases, rateLimits: {} }, mode: 'release', clock },
  (server) => {
    test('[RATE-1, RATE-2] the 1001st request in a minute is refused', async () => {
      const answers = []
      for (let part = 0; part < 10; part++)
        answers.push(...(await Promise.all(Array.from({ length: 100 }, () => server.anonymous.get(`${base}/x`)))))
      expect(answers.filter(({ status }) => status !== 404)).toEqual([])
      const refused = await server.anonymous.get(base)
      expect(expectRefusal(refused, 429)).toMatchObject({ slug: 'rate-limited', message: 'Rate limit exceeded' })
      const seconds = Number(refused.headers.get('retry-after'))
      expect(seconds).toBeInteger()
      expect(seconds).toBeWithin(1, 61)
      await server.elapse(seconds * 1000)
      expect((await server.anonymous.get(base)).status).toBe(200)
    })

    test('[RATE-2, RULE-13] a refused write changes nothing', async () => {
      expect(await served(1100, () => server.anonymous.get(`${base}/x`))).toBe(1000)
      expectRefusal(await server.anonymous.post(base, { id: 'refused' }), 429)
      expect((await server.service.get(`${base}/refused`)).status).toBe(404)
    })
  },
)

describeLimited('default limits in development', { config: { databases, rateLimits: {} }, clock }, (server) => {
  test('[RATE-11] 1,500 requests in a minute are served', async () => {
    expect(await served(1500, () => server.anonymous.get(`${base}/x`))).toBe(1500)
  })
})

const small = {
  db: { requests: 5, window: '10s' },
  auth: { requests: 3 },
  global: { requests: 4 },
  push: { requests: 6 },
  events: { requests: 7 },
} as const

const keys = { items: 'items-key-0123456789', users: 'users-key-0123456789' }
const serviceKeys = [
  { name: 'items', key: keys.items, scopes: ['db:table:items:read'] },
  { name: 'users', key: keys.users, scopes: ['auth:admin:*:*'] },
]
const declared = { databases, serviceKeys, rateLimits: small }

describeLimited('declared limits', { config: declared, mode: 'release', clock }, (server) => {
  test('[RATE-3] the configuration sets the number of requests and the window', async () => {
    expect(await served(9, () => server.anonymous.get(base))).toBe(5)
    const seconds = Number((await server.anonymous.get(base)).headers.get('retry-after'))
    expect(seconds >= 1 && seconds <= 10).toBe(true)
    await server.elapse(10_000)
    expect(await served(9, () => server.anonymous.get(base))).toBe(5)
  })

  test('[RATE-4] a valid service key is exempt, a wrong one is not', async () => {
    expect(await served(9, () => server.anonymous.get(base))).toBe(5)
    for (let n = 0; n < 20; n++) expect((await server.service.get(base)).status).toBe(200)
    expectRefusal(await server.withKey('wrong-key').get(base), 429)
    await server.elapse(10_000)
    expect(await served(9, () => server.withKey('wrong-key').get(base))).toBe(5)
  })

  test('[RATE-15] a limited key is exempt only from the limits of the areas in its scopes', async () => {
    const wrong = { email: 'ada@example.com', password: 'wrong horse' }
    const signIn = (client: Client) => served(9, () => client.post('/api/auth/signin', wrong))
    const readsItems = server.withKey(keys.items)
    for (let n = 0; n < 20; n++) expect((await readsItems.get(base)).status).toBe(200)
    // Its refused requests count, so the key cannot be used to probe other areas.
    expect(await served(9, () => readsItems.post(base, { title: 'x' }))).toBe(5)
    expect(await signIn(readsItems)).toBeLessThanOrEqual(4)
    await server.elapse(10_000)
    expect(await signIn(server.withKey(keys.users))).toBe(9)
    expect(await signIn(server.service)).toBe(9)
    expect(await served(20, () => server.withKey(keys.users).get('/api/config'))).toBe(20)
  })

  test('[RATE-4] requests with a wrong key are limited on unlimited endpoints too', async () => {
    expect(await served(9, () => server.withKey('wrong-key').get('/api/auth/jwks.json'))).toBeLessThanOrEqual(5)
  })

  test('[RATE-5] groups are counted separately', async () => {
    expect(await served(9, () => server.anonymous.get(base))).toBe(5)
    expect(await served(9, () => server.anonymous.get('/api/config'))).toBe(4)
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
  })

  test('[RATE-14] analytics events and push requests have separate groups', async () => {
    const event = { events: [{ name: 'x' }] }
    expect(await served(12, () => server.anonymous.post('/api/analytics/track', event))).toBe(7)
    // Reports are in the default group, with all endpoints without a separate group.
    const reports = ['/api/analytics/query', '/api/analytics/events', '/api/config'] as const
    expect(await served(12, (n) => server.anonymous.get(reports[n % 3] as string))).toBe(4)
    const push = ['register', 'unregister', 'topic/subscribe', 'topic/unsubscribe', 'send', 'broadcast'] as const
    const ann = server.as('ann')
    expect(await served(12, (n) => ann.post(`/api/push/${push[n % push.length]}`, {}))).toBe(6)
    for (const path of [...push, 'send-many', 'send-to-token', 'send-to-topic'])
      expectRefusal(await ann.post(`/api/push/${path}`, {}), 429)
    expectRefusal(await ann.get('/api/push/logs'), 429)
    expectRefusal(await ann.get('/api/push/tokens?userId=ann'), 429)
    expectRefusal(await ann.patch('/api/push/tokens', {}), 429)
    expect((await server.anonymous.get(base)).status).toBe(200)
  })

  test('[RATE-10] refused requests are counted', async () => {
    const refusedRequests: readonly ((n: number) => ReturnType<Client['get']>)[] = [
      () => server.anonymous.get(`${base}/nope`),
      () => server.anonymous.get(`${base}?limit=0`),
      () => server.anonymous.get('/api/db/shared/tables/closed'),
      () => server.anonymous.get('/api/db/shared/tables/undeclared'),
      () => server.anonymous.get(base, { authorization: 'Bearer nonsense' }),
      () => server.anonymous.request('POST', base, { raw: '{', headers: { 'content-type': 'application/json' } }),
      () => server.anonymous.request('POST', base, { raw: 'x', headers: { 'content-type': 'text/plain' } }),
      (n) => server.anonymous.post(`${base}/batch`, { deletes: [`x${n}`] }),
    ]
    for (const send of refusedRequests) {
      expect(await served(9, send)).toBe(5)
      await server.elapse(10_000)
    }
  })

  test('[RATE-1] other spellings of a path do not bypass the limit', async () => {
    expect(await served(9, () => server.anonymous.get(base))).toBe(5)
    for (const path of [
      `${base}?x=1`,
      `${base}#x`,
      '/api/db/shared/tables/%69tems',
      '/api/db/shared/x/tables/items',
      `${base}/count`,
    ])
      expectRefusal(await server.anonymous.get(path), 429)
    expect((await server.anonymous.request('HEAD', base)).status).toBe(429)
  })

  test('[RATE-1] users of one IP address share its limit', async () => {
    expect(await served(9, (n) => server.as(`user-${n}`).get(base))).toBe(5)
  })

  test('[RATE-6] without a trusted proxy X-Forwarded-For is ignored', async () => {
    expect(await served(9, (n) => server.anonymous.get(base, { 'x-forwarded-for': `203.0.113.${n}` }))).toBe(5)
    for (const header of ['x-real-ip', 'forwarded', 'cf-connecting-ip', 'true-client-ip', 'x-client-ip'])
      expectRefusal(await server.anonymous.get(base, { [header]: '198.51.100.7' }), 429)
  })
})

const behind = (trust: string) => ({
  config: { databases, rateLimits: small },
  mode: 'release' as const,
  clock,
  settings: { trustProxy: parseTrustProxy(trust) },
})

describe('behind proxies', () => {
  const from = (server: { anonymous: Client }, forwarded: string) => () =>
    server.anonymous.get(base, { 'x-forwarded-for': forwarded })

  describeLimited('one hop', behind('1'), (server) => {
    test('[RATE-7] the last entry is the client; earlier entries are ignored', async () => {
      expect(await served(9, from(server, '203.0.113.1'))).toBe(5)
      expect(await served(9, (n) => from(server, `198.51.100.${n}, 203.0.113.1`)())).toBe(0)
      expect(await served(9, from(server, '203.0.113.1, 203.0.113.2'))).toBe(5)
    })

    test('[RATE-9] an IPv6 /64 network is one client', async () => {
      expect(await served(9, (n) => from(server, `2001:db8:1:1::${n + 1}`)())).toBe(5)
      expect(await served(9, from(server, '2001:DB8:1:1:ffff::'))).toBe(0)
      expect(await served(9, from(server, '2001:db8:1:2::1'))).toBe(5)
    })

    test('[RATE-9] an IPv4 address and its mapped form are one client', async () => {
      expect(await served(9, from(server, '203.0.113.9'))).toBe(5)
      for (const address of ['::ffff:203.0.113.9', '::FFFF:cb00:7109', '0:0:0:0:0:ffff:203.0.113.9'])
        expect(await served(9, from(server, address))).toBe(0)
    })

    test('[RATE-7] entries that are not addresses share one limit', async () => {
      expect(await served(9, (n) => from(server, `nonsense-${n}`)())).toBeLessThanOrEqual(5)
    })
  })

  describeLimited('two hops', behind('2'), (server) => {
    test('[RATE-7] the second entry from the right is the client', async () => {
      expect(await served(9, (n) => from(server, `192.0.2.${n}, 203.0.113.1, 10.0.0.${n}`)())).toBe(5)
      expect(await served(9, from(server, '203.0.113.2, 10.0.0.1'))).toBe(5)
    })
  })

  describeLimited('trusted networks', behind('127.0.0.0/8, ::1, 10.0.0.0/8'), (server) => {
    test('[RATE-8] the rightmost entry outside the networks is the client', async () => {
      expect(await served(9, (n) => from(server, `192.0.2.${n}, 203.0.113.1, 10.0.0.${n}, 10.1.1.1`)())).toBe(5)
      expect(await served(9, from(server, '203.0.113.2'))).toBe(5)
    })
  })

  describeLimited('trusted networks without this peer', behind('10.0.0.0/8'), (server) => {
    test('[RATE-8] X-Forwarded-For of an untrusted peer is ignored', async () => {
      expect(await served(9, (n) => from(server, `203.0.113.${n}`)())).toBe(5)
    })
  })
})
