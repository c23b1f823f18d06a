/** The request log: counts of all requests, reports, and the contents of its rows. */
import { beforeAll, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { watch } from '../harness/records/live.ts'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { countEvents, queryRequests, readRows, track } from '../harness/resources/analytics.ts'
import { describeServer, startServer, type TestServer } from '../harness/server.ts'
import { watchedEngine } from '../harness/users/user-rows.ts'

const config = {
  databases: { shared: { tables: { items: { schema: { title: { type: 'string' } }, access: open } } } },
  rateLimits: { events: { requests: 100_000 } },
}
const items = '/api/db/shared/tables/items'
const startMs = Date.UTC(2026, 5, 15, 10, 58, 30)
const minuteMs = 60_000

interface Summary {
  readonly totalRequests: number
  readonly totalErrors: number
  readonly uniqueUsers: number
}

const summaryOf = async (server: TestServer, params: Record<string, string> = {}): Promise<Summary> =>
  (await queryRequests(server.service, params)).body.summary

const clock = manualClock(startMs)

describeServer('request log', { config, clock }, (server) => {
  beforeAll(() => clock.set(startMs))

  /** Returns the difference between a report before and one after the work, without the report request itself. */
  async function added(work: () => Promise<unknown>, params: Record<string, string> = {}): Promise<Summary> {
    const before = await summaryOf(server, params)
    await work()
    const after = await summaryOf(server, params)
    const own = params.category === undefined || params.category === 'analytics' ? 1 : 0
    return {
      totalRequests: after.totalRequests - before.totalRequests - own,
      totalErrors: after.totalErrors - before.totalErrors,
      uniqueUsers: after.uniqueUsers - before.uniqueUsers,
    }
  }

  test('[ANA-LOG-1, ANA-LOG-2] every request is counted immediately, including refused, unknown and concurrent ones', async () => {
    const total = await added(async () => {
      await Promise.all(Array.from({ length: 50 }, () => server.anonymous.get(items)))
      await server.anonymous.get('/api/nowhere')
      await server.anonymous.get('/api/db/shared/tables/none')
      await server.anonymous.request('PUT', items)
      await server.anonymous.get('/api/health')
      await server.anonymous.post(items, { unknown: 1 })
    })
    expect(total).toEqual({ totalRequests: 55, totalErrors: 4, uniqueUsers: 0 })
  })

  test('[ANA-LOG-1] a WebSocket upgrade counts as a request', async () => {
    const work = async () => void (await (await watch(server.url, { channel: 'dblive:shared:items' })).close())
    expect((await added(work, { category: 'db' })).totalRequests).toBe(1)
  })

  test('[ANA-QUERY-2] a category counts its requests and each user once', async () => {
    const work = async (): Promise<void> => {
      for (const user of ['ann', 'bob', 'ann']) await server.as(user).get(items)
      await server.as('ann').get('/api/auth/me')
    }
    expect(await added(work, { category: 'db' })).toMatchObject({ totalRequests: 3, uniqueUsers: 2 })
    expect(await added(() => server.as('ann').get('/api/auth/me'), { category: 'auth' })).toMatchObject({
      totalRequests: 1,
      uniqueUsers: 0,
    })
    expect((await added(() => server.anonymous.get('/x'), { category: 'other' })).totalRequests).toBe(1)
    expect((await added(() => server.anonymous.get('/api/health'), { category: 'system' })).totalRequests).toBe(1)
  })

  for (const [category, path] of [
    ['storage', '/api/storage/files'],
    ['rooms', '/api/room/summary?namespace=game&id=a'],
    ['kv', '/api/kv/cache'],
    ['sql', '/api/sql/main'],
    ['vector', '/api/vector/docs'],
    ['push', '/api/push/logs'],
    ['analytics', '/api/analytics/events'],
  ] as const)
    test(`[ANA-QUERY-2] requests of the category ${category}`, async () => {
      const method = /kv|sql|vector/.test(category) ? 'POST' : 'GET'
      const work = () => server.anonymous.request(method, path, method === 'POST' ? { body: {} } : {})
      expect(await added(work, { category })).toEqual({ totalRequests: 1, totalErrors: 1, uniqueUsers: 0 })
      expect((await added(work, { category: 'other' })).totalRequests).toBe(0)
    })

  test('[ANA-QUERY-1] an overview contains every part, another metric its own part and the summary', async () => {
    const { status, body } = await queryRequests(server.service)
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['summary', 'timeSeries', 'breakdown', 'topItems'])
    const { summary, timeSeries, breakdown, topItems } = body
    expect(Object.keys(summary)).toEqual(['totalRequests', 'totalErrors', 'avgLatency', 'uniqueUsers'])
    expect(summary.avgLatency).toBeGreaterThan(0)
    const sum = (rows: Record<string, number>[], member: string): number =>
      rows.reduce((total, row) => total + (row[member] as number), 0)
    expect(sum(timeSeries, 'requests')).toEqual(summary.totalRequests)
    expect(sum(timeSeries, 'errors')).toEqual(summary.totalErrors)
    expect(sum(breakdown, 'count')).toBe(summary.totalRequests)
    expect(Math.round(sum(breakdown, 'percentage'))).toBe(100)
    expect(sum(topItems, 'count')).toBe(summary.totalRequests)
    expect(Object.keys(topItems[0])).toEqual(['label', 'count', 'avgLatency', 'errorRate'])
    const stray = topItems.find(({ label }: { label: string }) => label === 'stray')
    expect(stray.errorRate).toBe(1)
    for (const [metric, member] of [
      ['timeSeries', 'timeSeries'],
      ['breakdown', 'breakdown'],
      ['topEndpoints', 'topItems'],
    ] as const) {
      const part = (await queryRequests(server.service, { metric })).body
      expect(part.summary.totalRequests).toBeGreaterThan(summary.totalRequests)
      for (const name of ['timeSeries', 'breakdown', 'topItems'])
        expect([metric, name, part[name].length > 0]).toEqual([metric, name, name === member])
    }
  })

  test('[ANA-QUERY-3] a report on a category contains its endpoints', async () => {
    const { body } = await queryRequests(server.service, { metric: 'breakdown', category: 'db' })
    const labels = body.breakdown.map(({ label }: { label: string }) => label)
    expect(labels).toContain('records.list')
    expect(labels).toContain('subscriptions.subscribe')
    expect(labels).not.toContain('stray')
    const limited = await queryRequests(server.service, { metric: 'topEndpoints', limit: 1 })
    expect(limited.body.topItems.map(({ label }: { label: string }) => label)).toEqual(['records.list'])
  })

  const mistakes: readonly [Record<string, string>, string][] = [
    [{ metric: 'list' }, 'metric'],
    [{ metric: '__proto__' }, 'metric'],
    [{ range: '1d' }, 'range'],
    [{ groupBy: 'month' }, 'groupBy'],
    [{ category: 'users' }, 'category'],
    [{ category: '' }, 'category'],
    [{ limit: '1001' }, 'limit'],
  ]
  for (const [params, name] of mistakes)
    test(`[ANA-QUERY-4] ${JSON.stringify(params)} is refused`, async () => {
      const { data } = expectRefusal(await queryRequests(server.service, params), 400)
      expect(codesOf(data)).toEqual({ [name]: name === 'limit' ? 'max' : 'enum' })
    })

  test('[ANA-LOG-3] a row contains only method, endpoint, category, status, time and user', async () => {
    await server.as('eve').get(`${items}/secret-id?fields=id`)
    await server.withKey('secret-key').get(items)
    await queryRequests(server.service)
    const rows = await readRows(server, '_logs')
    expect(rows.length).toBeGreaterThan(50)
    expect(Object.keys(rows[0] as object).sort()).toEqual([
      'category',
      'endpoint',
      'id',
      'method',
      'status',
      'us',
      'user_id',
    ])
    expect(rows.filter(({ user_id }) => user_id === 'eve')).toMatchObject([
      { method: 'GET', endpoint: 'records.get', category: 'db', status: 404 },
    ])
    expect(JSON.stringify(rows)).not.toContain('secret')
    expect(JSON.stringify(rows)).not.toContain('127.0.0.1')
  })

  test('[ANA-QUERY-5] users are counted once per minute, hour and day', async () => {
    const visit = async (...users: string[]): Promise<void> => {
      for (const user of users) await server.as(user).get('/api/auth/me')
      await queryRequests(server.service)
    }
    clock.set(startMs + 10 * minuteMs)
    const category = 'auth'
    const before = await queryRequests(server.service, { metric: 'timeSeries', groupBy: 'minute', category })
    const from = before.body.timeSeries.length
    // 11:08, 11:09, 12:00 and the next day, 00:10.
    await visit('kim', 'lee', 'kim')
    clock.advance(minuteMs)
    await visit('kim')
    clock.set(Date.UTC(2026, 5, 15, 12, 0, 5))
    await visit('kim', 'mia')
    clock.set(Date.UTC(2026, 5, 16, 0, 10))
    await visit('lee', 'mia', 'mia')
    const seriesOf = async (groupBy: string): Promise<[string, number, number][]> => {
      const { body } = await queryRequests(server.service, { metric: 'timeSeries', groupBy, category })
      return body.timeSeries.map((point: { timestamp: string; requests: number; uniqueUsers: number }) => [
        point.timestamp.slice(8, 16),
        point.requests,
        point.uniqueUsers,
      ])
    }
    expect((await seriesOf('minute')).slice(from)).toEqual([
      ['15T11:08', 3, 2],
      ['15T11:09', 1, 1],
      ['15T12:00', 2, 2],
      ['16T00:10', 3, 2],
    ])
    expect((await seriesOf('hour')).slice(-3)).toEqual([
      ['15T11:00', 4, 2],
      ['15T12:00', 2, 2],
      ['16T00:00', 3, 2],
    ])
    expect((await seriesOf('day')).at(-1)).toEqual(['16T00:00', 3, 2])
    expect(await summaryOf(server, { category, range: '1h' })).toMatchObject({ totalRequests: 3, uniqueUsers: 2 })
  })

  test('[ANA-LOG-6] nothing is counted when the log is disabled', async () => {
    await server.reload({ ...config, analytics: { requestLog: false } })
    const before = await summaryOf(server)
    await server.anonymous.get(items)
    await track(server.anonymous, { name: 'still stored' })
    expect(await summaryOf(server)).toEqual(before)
    await server.reload(config)
  })

  test('[ANA-LOG-5] pending rows are written at shutdown', async () => {
    const before = await summaryOf(server)
    for (let each = 0; each < 7; each++) await server.anonymous.get(items)
    await server.restart()
    expect((await summaryOf(server)).totalRequests).toBe(before.totalRequests + 8)
  })
})

for (const engine of engines)
  test(`[ANA-LOG-4] 2,000 requests in one burst are all counted, with rows for a sample, on ${engine.name}`, async () => {
    const server = await startServer({ config }, engine)
    try {
      for (let round = 0; round < 20; round++)
        await Promise.all(Array.from({ length: 100 }, () => server.anonymous.get('/api/health')))
      const { body } = await queryRequests(server.service, { category: 'system' })
      expect(body.summary.totalRequests).toBe(2000)
      const rows = await readRows(server, '_logs', `endpoint = 'system.health'`)
      const metrics = (await server.service.get('/metrics')).text
      const dropped = Number(/^analytics_requests_dropped_total (\d+)$/m.exec(metrics)?.[1])
      expect(rows.length + dropped).toBe(2000)
    } finally {
      await server.close()
    }
  })

const endMs = Date.UTC(2026, 8, 20, 12, 30)
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const later = manualClock(startMs)

describeServer('ranges of request reports', { config, clock: later }, (server) => {
  test('[ANA-RANGE-1] a report covers its range from the start of a minute, and defaults to 24 hours by hour', async () => {
    // Before and after the start of every range.
    const edges = {
      '1h': hourMs,
      '6h': 6 * hourMs,
      '24h': dayMs,
      '7d': 7 * dayMs,
      '30d': 30 * dayMs,
      '90d': 90 * dayMs,
    }
    const moments = Object.values(edges).flatMap((edge) => [edge + minuteMs, edge])
    for (const agoMs of moments.sort((a, b) => b - a)) {
      later.set(endMs - agoMs)
      await server.as('ann').get(items)
      await queryRequests(server.service)
    }
    later.set(endMs)
    const category = 'db'
    for (const [at, range] of Object.keys(edges).entries())
      expect([range, (await summaryOf(server, { range, category })).totalRequests]).toEqual([range, 2 * at + 1])
    const usual = (await queryRequests(server.service, { category })).body
    expect(usual).toEqual((await queryRequests(server.service, { category, range: '24h', groupBy: 'hour' })).body)
    // Two of the five are in one hour, and two in another.
    expect(usual.timeSeries).toHaveLength(3)
  })
})

test('[ANA-LOG-2, ANA-LOG-7, ANA-TRACK-7] counts of several nodes are combined automatically', async () => {
  const engine = engines.find(({ name }) => name.startsWith('postgres'))
  if (!engine) return
  const watched = watchedEngine(engine)
  const one = await startServer({ config }, watched.engine)
  const other = await startServer({ config, settings: watched.storage().settings }, engines[0])
  try {
    for (const node of [one, other]) for (let each = 0; each < 5; each++) await node.as('ann').get(items)
    for (let each = 1; each <= 5; each++) {
      expect((await track(one.as('ann'), { name: 'seen' })).status).toBe(200)
      expect(await countEvents(other)).toBe(each)
    }
    // A report flushes the counts of its own node; the other node flushes on its own.
    const summary = () => summaryOf(other, { category: 'db' })
    while ((await summary()).totalRequests < 10) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await summary()).toMatchObject({ totalRequests: 10, uniqueUsers: 1 })
  } finally {
    await other.close()
    await one.close()
  }
})
