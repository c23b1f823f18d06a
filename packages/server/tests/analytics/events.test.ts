/** Event reports, compared with a plain list of the events sent. */
import { beforeAll, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { countEvents, queryEvents, track, trackAll } from '../harness/resources/analytics.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

const nowMs = Date.UTC(2026, 5, 15, 12, 34, 56, 789)
const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs
const rangeMs = { '1h': hourMs, '6h': 6 * hourMs, '24h': dayMs, '7d': 7 * dayMs, '30d': 30 * dayMs, '90d': 90 * dayMs }
const unitMs = { minute: 60_000, hour: hourMs, day: dayMs }
type Range = keyof typeof rangeMs
const ranges = Object.keys(rangeMs) as Range[]

interface Sent {
  readonly name: string
  readonly userId?: string
  readonly ms: number
}

/** Events in every range and at the edges of each. */
const sent: readonly Sent[] = [
  ...Array.from(
    { length: 400 },
    (_, each): Sent => ({
      name: ['view', 'view', 'buy', 'share'][each % 4] as string,
      ...(each % 5 === 0 ? {} : { userId: `user-${(each * 7) % 13}` }),
      // Cubed: most are recent, some are as old as allowed.
      ms: nowMs - Math.floor(((each + 1) / 401) ** 3 * 89.9 * dayMs),
    }),
  ),
  ...ranges.flatMap((range): Sent[] => [
    { name: 'edge', userId: 'inside', ms: nowMs - rangeMs[range] + 1 },
    ...(range === '90d' ? [] : [{ name: 'edge', userId: 'outside', ms: nowMs - rangeMs[range] - 60_000 }]),
  ]),
]

interface Filter {
  readonly event?: string
  readonly userId?: string
  readonly range?: Range
}

/** The events that match; a range starts at the beginning of its first minute. */
const within = ({ event, userId, range = '24h' }: Filter): Sent[] =>
  sent.filter(
    (one) =>
      one.ms >= Math.floor((nowMs - rangeMs[range]) / 60_000) * 60_000 &&
      (event === undefined || one.name === event) &&
      (userId === undefined || one.userId === userId),
  )

const usersOf = (events: readonly Sent[]): number => new Set(events.flatMap(({ userId }) => userId ?? [])).size

const filters: readonly Filter[] = ranges.flatMap((range) => [
  { range },
  { range, event: 'view' },
  { range, event: 'edge' },
  { range, event: 'never' },
  { range, userId: 'user-3' },
  { range, userId: 'user-3', event: 'view' },
])
const titleOf = (filter: Filter): string => Object.values(filter).join(' ')

async function fill(server: TestServer): Promise<void> {
  // Not in chronological order, as events arrive from many clients.
  const shuffled = sent.toSorted((a, b) => (a.ms % 977) - (b.ms % 977))
  await trackAll(
    server.service,
    shuffled.map(({ name, userId, ms }) => ({
      name,
      userId,
      timestamp: new Date(ms).toISOString(),
      properties: { ms },
    })),
  )
}

describeServer('event reports', { config: {}, clock: manualClock(nowMs) }, (server) => {
  beforeAll(() => fill(server))

  for (const filter of filters) {
    test(`[ANA-EVENTS-2, ANA-RANGE-1] count: ${titleOf(filter)}`, async () => {
      const { status, body } = await queryEvents(server.service, { metric: 'count', ...filter })
      const expected = within(filter)
      expect(status).toBe(200)
      expect(body).toEqual({ totalEvents: expected.length, uniqueUsers: usersOf(expected) })
    })

    test(`[ANA-EVENTS-4] topEvents: ${titleOf(filter)}`, async () => {
      const { body } = await queryEvents(server.service, { metric: 'topEvents', ...filter })
      const groups = Map.groupBy(within(filter), ({ name }) => name)
      const expected = [...groups].map(([eventName, events]) => ({
        eventName,
        count: events.length,
        uniqueUsers: usersOf(events),
      }))
      const counts = body.topEvents.map(({ count }: { count: number }) => count)
      expect(counts).toEqual(counts.toSorted((a: number, b: number) => b - a))
      const byName = (a: { eventName: string }, b: { eventName: string }) => (a.eventName < b.eventName ? -1 : 1)
      expect(body.topEvents.toSorted(byName)).toEqual(expected.toSorted(byName))
    })

    for (const groupBy of ['minute', 'hour', 'day'] as const)
      test(`[ANA-EVENTS-3] timeSeries by ${groupBy}: ${titleOf(filter)}`, async () => {
        const { body } = await queryEvents(server.service, { metric: 'timeSeries', groupBy, ...filter })
        const buckets = Map.groupBy(within(filter), ({ ms }) => Math.floor(ms / unitMs[groupBy]) * unitMs[groupBy])
        const expected = [...buckets]
          .sort(([a], [b]) => a - b)
          .map(([ms, events]) => ({ timestamp: new Date(ms).toISOString(), count: events.length }))
        expect(body.timeSeries).toEqual(expected)
      })

    test(`[ANA-EVENTS-1] list, paginated: ${titleOf(filter)}`, async () => {
      const listed: { id: string; timestamp: string; properties: { ms: number }; userId: string; eventName: string }[] =
        []
      let cursor: string | null = null
      do {
        const page = await queryEvents(server.service, { ...filter, limit: 37, ...(cursor && { cursor }) })
        expect(page.status).toBe(200)
        expect(page.body.hasMore).toBe(page.body.cursor !== null)
        expect(page.body.events.length).toBe(page.body.hasMore ? 37 : page.body.events.length)
        listed.push(...page.body.events)
        cursor = page.body.cursor
      } while (cursor !== null)
      const expected = within(filter).toSorted((a, b) => b.ms - a.ms)
      expect(listed.map(({ properties }) => properties.ms)).toEqual(expected.map(({ ms }) => ms))
      expect(listed.map(({ timestamp }) => Date.parse(timestamp))).toEqual(expected.map(({ ms }) => ms))
      expect(new Set(listed.map(({ id }) => id)).size).toBe(listed.length)
    })
  }

  test('[ANA-RANGE-1, ANA-EVENTS-1] defaults to the last 24 hours, by hour, and 50 events per page', async () => {
    expect((await queryEvents(server.service)).body).toEqual(
      (await queryEvents(server.service, { metric: 'list', range: '24h', limit: 50 })).body,
    )
    expect((await queryEvents(server.service, { metric: 'timeSeries' })).body).toEqual(
      (await queryEvents(server.service, { metric: 'timeSeries', range: '24h', groupBy: 'hour' })).body,
    )
  })

  const mistakes: readonly [Readonly<Record<string, string>>, string][] = [
    [{ metric: 'sum' }, 'metric'],
    [{ metric: '' }, 'metric'],
    [{ metric: 'constructor' }, 'metric'],
    [{ range: '2h' }, 'range'],
    [{ range: '90D' }, 'range'],
    [{ range: '' }, 'range'],
    [{ metric: 'timeSeries', groupBy: 'week' }, 'groupBy'],
    [{ metric: 'count', groupBy: '__proto__' }, 'groupBy'],
    [{ limit: '0' }, 'limit'],
    [{ limit: '-1' }, 'limit'],
    [{ limit: '1001' }, 'limit'],
    [{ limit: '1.5' }, 'limit'],
    [{ limit: '1e2' }, 'limit'],
    [{ limit: '' }, 'limit'],
    [{ event: '' }, 'event'],
    [{ event: 'x'.repeat(201) }, 'event'],
    [{ event: 'a\0' }, 'event'],
    [{ userId: '' }, 'userId'],
    [{ userId: 'x'.repeat(129) }, 'userId'],
    [{ cursor: '' }, 'cursor'],
    [{ cursor: 'nonsense' }, 'cursor'],
    [{ cursor: `${btoa('[null,null,"24h",0,""]')}.AAAAAAAAAAA` }, 'cursor'],
    [{ cursor: 'x'.repeat(13_000) }, 'cursor'],
  ]
  for (const [params, names] of mistakes)
    test(`[ANA-EVENTS-6] ${JSON.stringify(params).slice(0, 60)} is refused`, async () => {
      const { data } = expectRefusal(await queryEvents(server.service, params), 400)
      expect(Object.keys(codesOf(data))).toEqual([names])
    })

  test('[ANA-EVENTS-6] SQL in names, users and cursors is treated as text', async () => {
    for (const text of ["' OR 1=1 --", '"; DROP TABLE _events', '%', '_', "\\' UNION SELECT"]) {
      const { body } = await queryEvents(server.service, { metric: 'count', event: text, range: '90d' })
      expect(body).toEqual({ totalEvents: 0, uniqueUsers: 0 })
      expect((await queryEvents(server.service, { userId: text, range: '90d' })).body.events).toEqual([])
    }
  })

  test('[ANA-EVENTS-1, ANA-TRACK-4] the longest names and users can be queried with pagination', async () => {
    const event = '\u{1f98a}'.repeat(200)
    const userId = '\u{1f98a}'.repeat(64)
    expectRefusal(await track(server.service, { name: `${event}x` }), 400)
    await trackAll(server.service, [
      { name: event, userId },
      { name: event, userId },
    ])
    const filter = { event, userId, limit: 1 }
    const first = (await queryEvents(server.service, filter)).body
    const second = (await queryEvents(server.service, { ...filter, cursor: first.cursor })).body
    expect([...first.events, ...second.events].map(({ eventName }) => eventName)).toEqual([event, event])
    expect((await queryEvents(server.service, { metric: 'count', event })).body.totalEvents).toBe(2)
  })

  test('[ANA-EVENTS-5] a cursor is valid only for its list', async () => {
    const { cursor } = (await queryEvents(server.service, { event: 'view', range: '90d', limit: 1 })).body
    expect((await queryEvents(server.service, { event: 'view', range: '90d', limit: 5, cursor })).status).toBe(200)
    for (const other of [
      { event: 'buy', range: '90d' },
      { range: '90d' },
      { event: 'view', range: '7d' },
      { event: 'view', range: '90d', userId: 'user-3' },
    ])
      expectRefusal(await queryEvents(server.service, { ...other, cursor }), 400, 'cursor')
    const forged = `${btoa(JSON.stringify(['view', null, '90d', 0, 'z']))}.${cursor.split('.')[1]}`
    expectRefusal(await queryEvents(server.service, { event: 'view', range: '90d', cursor: forged }), 400, 'cursor')
  })

  test('[ANA-EVENTS-5] events added during pagination cause no duplicates or gaps', async () => {
    const filter = { event: 'share', range: '90d' as const, limit: 10 }
    const expected = within(filter).toSorted((a, b) => b.ms - a.ms)
    const listed: number[] = []
    let cursor: string | null = null
    do {
      const { body } = await queryEvents(server.service, { ...filter, ...(cursor && { cursor }) })
      listed.push(...body.events.map(({ properties }: { properties: { ms: number } }) => properties.ms))
      cursor = body.cursor
      await track(server.anonymous, { name: 'share', properties: { ms: 0 } })
    } while (cursor !== null)
    expect(listed).toEqual(expected.map(({ ms }) => ms))
  })

  test('[ANA-ACCESS-2] the OpenAPI document marks analytics as beta', async () => {
    const { paths } = (await server.anonymous.get('/openapi.json')).body
    const operations = Object.keys(paths).filter((path) => path.startsWith('/api/analytics/'))
    expect(operations).toHaveLength(3)
    for (const path of operations)
      for (const { description } of Object.values<{ description: string }>(paths[path]))
        expect(description).toContain('Beta')
  })

  test('[ANA-ACCESS-1] reports require a service key', async () => {
    for (const path of ['/api/analytics/events', '/api/analytics/query']) {
      expectRefusal(await server.anonymous.get(path), 401)
      expectRefusal(await server.as({ id: 'ann', role: 'admin' }).get(path), 403)
      expectRefusal(await server.withKey('wrong').get(path), 401)
    }
    expect(await countEvents(server)).toBeGreaterThan(0)
  })
})
