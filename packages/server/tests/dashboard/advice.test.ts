/** What an operator should look at: each kind of advice from a server that gives reason for it. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { closeAfterEach } from '../harness/closing.ts'
import { openAdministrator } from '../harness/dashboard/administrators.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'

type Auth = { id: string } | null
const text = { type: 'string' } as const
const day = 24 * 60 * 60 * 1000
const now = Date.now()
const key = (name: string, days: number) => ({
  name,
  key: `key-of-${name}-0123456789`,
  scopes: ['db:table:*:read'],
  expiresAt: new Date(now + days * day).toISOString(),
})

const unlimited = { requests: 10_000_000 }
const config = {
  rateLimits: { auth: unlimited, signin: unlimited, global: unlimited, db: unlimited },
  serviceKeys: [key('soon', 3), key('later', 60)],
  databases: {
    shared: {
      tables: {
        guestbook: { schema: { text }, access: { read: true, insert: true } },
        news: { schema: { title: text }, access: { read: true } },
        internal: { schema: { note: text }, access: {} },
        broken: {
          schema: { ownerId: text },
          access: { read: (auth: Auth) => ({ ownerId: (auth as unknown as { team: { id: string } }).team.id }) },
        },
        orders: {
          schema: { customerId: text, status: text, at: { type: 'datetime' } },
          indexes: [{ fields: ['status'] }, { fields: ['status', 'at'] }],
          access: { read: (auth: Auth) => auth && { customerId: auth.id } },
        },
      },
    },
  },
} as const

interface Advice {
  readonly id: string
  readonly severity: string
  readonly code: string | null
  readonly why: string
}

const adviceOf = async (server: TestServer): Promise<readonly Advice[]> =>
  (await server.service.get('/api/advice')).body.items

describeServer('advice', { config }, (server) => {
  let items: readonly Advice[] = []
  const find = (id: string): Advice | undefined => items.find((one) => one.id === id)

  beforeAll(async () => {
    for (let page = 0; page < 6; page++) {
      const inserts = Array.from({ length: 200 }, (_, at) => ({ customerId: `c${at % 40}`, status: 'open' }))
      const stored = await server.service.post('/api/db/shared/tables/orders/batch', { inserts })
      expect(stored.status).toBe(200)
    }
    for (let at = 0; at < 3; at++)
      expect((await server.as('c1').get('/api/db/shared/tables/orders?sort=at:desc')).status).toBe(200)
    items = await adviceOf(server)
  })

  test('[SYS-27] open rules, tables without rules and rules that fail are named', () => {
    expect(find('open-write:shared.guestbook')).toMatchObject({
      severity: 'high',
      where: 'shared.guestbook',
      code: expect.stringContaining('insert:'),
      link: '/rules/matrix?search=guestbook',
    })
    expect(find('open-read:shared.news')).toMatchObject({ severity: 'low' })
    expect(find('no-rules:shared.internal')).toMatchObject({ severity: 'low' })
    expect(find('failing-rule:shared.broken')).toMatchObject({ severity: 'medium' })
    expect(items.filter(({ id }) => id.endsWith('shared.orders') && id.startsWith('open'))).toEqual([])
  })

  test('[SYS-28] an index is advised for sampled lists whose plan reads or sorts a large table', () => {
    expect(find('missing-index:shared.orders:customerId,at')).toMatchObject({
      code: "indexes: [{ fields: ['customerId', 'at'] }],",
      why: expect.stringContaining('3 sampled lists'),
    })
    // Small tables need none.
    expect(items.filter(({ id }) => id.startsWith('missing-index:'))).toHaveLength(1)
    expect(find('redundant-index:shared.orders:status')).toMatchObject({ severity: 'low' })
    expect(JSON.stringify(items)).not.toContain('c1"')
  })

  test('[SYS-29] keys that expire within two weeks are named, the most severe advice first', () => {
    expect(find('key-expiry:soon')).toMatchObject({ severity: 'high', title: 'A service key expires in 2 days' })
    expect(find('key-expiry:later')).toBeUndefined()
    const order = ['high', 'medium', 'low']
    const ranks = items.map(({ severity }) => order.indexOf(severity))
    expect(ranks).toEqual(ranks.toSorted())
  })

  test('[SYS-30] it is computed at most once a minute, and for administrators too', async () => {
    const first = (await server.service.get('/api/advice')).body.checkedAt
    expect((await server.service.get('/api/advice')).body.checkedAt).toBe(first)
    const viewer = await openAdministrator(server, 'viewer')
    expect((await viewer.client.get('/api/advice')).body.checkedAt).toBe(first)
  })
})

describe('in release mode', () => {
  const closing = closeAfterEach()

  test('[SYS-29] settings and backups of a server in use', async () => {
    const release = { ...config, dashboard: { requireMfa: false } }
    const server = closing(await startServer({ config: release, mode: 'release' }), ({ close }) => close())
    const ids = (await adviceOf(server)).map(({ id }) => id)
    expect(ids).toContain('mail')
    expect(ids).toContain('second-factor')
  })
})
