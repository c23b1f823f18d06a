/** Retention: after 90 days each day is summarized exactly once, across nodes and repetitions. */
import { afterEach, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { engines } from '../harness/engines.ts'
import { countEvents, queryEvents, queryRequests, readRows, track, trackAll } from '../harness/resources/analytics.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { watchedEngine } from '../harness/users/user-rows.ts'

const dayMs = 24 * 60 * 60 * 1000
const firstDay = Date.UTC(2026, 0, 10)
const config = { rateLimits: { events: { requests: 100_000 } } }

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

interface Sent {
  readonly name: string
  readonly userId?: string
  readonly ms: number
}

/** Events over several days; users appear on several days, under several names, or not at all. */
const eventsOf = (days: number): Sent[] =>
  Array.from({ length: days * 60 }, (_, each) => ({
    name: each % 3 === 0 ? 'buy' : 'view',
    ...(each % 4 === 0 ? {} : { userId: `user-${(each * 5) % 17}` }),
    ms: firstDay + Math.floor(((each + 0.5) / 60) * dayMs),
  }))

type Summary = readonly [series: string, day: string, count: number, users: number | null]

/** The expected daily summaries. */
function summariesOf(sent: readonly Sent[], closedBefore: number): Summary[] {
  const grouped = new Map<string, Sent[]>()
  for (const one of sent)
    for (const series of ['events', `event:${one.name}`]) {
      const key = `${series} ${new Date(one.ms).toISOString().slice(0, 10)}`
      grouped.set(key, [...(grouped.get(key) ?? []), one])
    }
  return [...grouped]
    .map(([key, events]): Summary => {
      const [series = '', day = ''] = key.split(' ')
      const users = new Set(events.flatMap(({ userId }) => userId ?? [])).size
      return [series, day, events.length, Date.parse(day) < closedBefore ? users : null]
    })
    .sort()
}

const readSummaries = async (server: TestServer): Promise<Summary[]> =>
  (await readRows(server, '_events_daily', `series LIKE 'event%'`))
    .map(
      ({ series, day, count, users }): Summary => [String(series), String(day), Number(count), users as number | null],
    )
    .sort()

const send = async (server: TestServer, events: readonly Sent[]): Promise<void> =>
  trackAll(
    server.service,
    events.map(({ name, userId, ms }) => ({ name, userId, timestamp: new Date(ms).toISOString() })),
  )

for (const engine of engines) {
  test(`[ANA-KEEP-1, ANA-KEEP-2] after 90 days only daily summaries with exact user counts are kept, on ${engine.name}`, async () => {
    const clock = manualClock(firstDay + 5 * dayMs)
    const server = await startServer({ config, clock }, engine)
    opened.push(server.close)
    const sent = eventsOf(5)
    await send(server, sent)
    await server.as('ann').get('/api/auth/me')
    await queryRequests(server.service)
    await server.tidy()
    expect(await readSummaries(server)).toEqual(summariesOf(sent, 0))
    expect(await readRows(server, '_events')).toHaveLength(sent.length)

    // The third day is past 90 days except for the margin: two days are summarized, three are unchanged.
    clock.set(firstDay + 93 * dayMs + 30 * 60_000)
    const later: Sent = { name: 'view', userId: 'late', ms: clock.now() }
    await send(server, [later])
    await server.tidy()
    const all = [...sent, later]
    expect(await readSummaries(server)).toEqual(summariesOf(all, firstDay + 2 * dayMs))
    const left = all.filter(({ ms }) => ms >= firstDay + 2 * dayMs)
    expect(await readRows(server, '_events')).toHaveLength(left.length)
    const inRange = all.filter(({ ms }) => ms >= clock.now() - 90 * dayMs)
    expect(await countEvents(server)).toBe(inRange.length)
    expect(await readRows(server, '_logs', `user_id = 'ann'`)).toEqual([])

    clock.set(firstDay + 300 * dayMs)
    await server.tidy()
    expect(await readSummaries(server)).toEqual(summariesOf(all, clock.now()))
    for (const table of ['_events', '_seen']) expect(await readRows(server, table)).toEqual([])
    expect(await readRows(server, '_counts', `series LIKE 'event%'`)).toEqual([])
    expect(await readRows(server, '_logs', `user_id = 'ann'`)).toEqual([])
    expect(await readRows(server, '_series', `series LIKE 'event:%'`)).toEqual([])
    expect(await readRows(server, '_events_daily', `series = 'requests' AND day = '2026-01-15'`)).toMatchObject([
      { users: 1 },
    ])
    expect(await countEvents(server)).toBe(0)

    // Removed names can be used again.
    expect((await track(server.anonymous, { name: 'view' })).status).toBe(200)
    expect((await queryEvents(server.service, { metric: 'topEvents' })).body.topEvents).toHaveLength(1)
  })

  test(`[ANA-KEEP-3] repeated or concurrent roll-ups count nothing twice, on ${engine.name}`, async () => {
    const clock = manualClock(firstDay + 4 * dayMs)
    const server = await startServer({ config, clock }, engine)
    opened.push(server.close)
    const sent = eventsOf(4)
    await send(server, sent)
    clock.set(firstDay + 92 * dayMs + 2 * 60 * 60_000)
    await Promise.all(Array.from({ length: 10 }, () => server.tidy()))
    await server.tidy()
    expect(await readSummaries(server)).toEqual(summariesOf(sent, firstDay + 2 * dayMs))
    expect(await readRows(server, '_events')).toHaveLength(120)
  })
}

test('[ANA-KEEP-3] concurrent roll-ups on two nodes count nothing twice', async () => {
  const engine = engines.find(({ name }) => name.startsWith('postgres'))
  if (!engine) return
  const watched = watchedEngine(engine)
  const clock = manualClock(firstDay + 4 * dayMs)
  const one = await startServer({ config, clock }, watched.engine)
  opened.push(one.close)
  // Without a shared Redis the nodes have no lease, only the database.
  const { databaseUrl = null } = watched.storage().settings
  const other = await startServer({ config, clock, settings: { databaseUrl } }, engines[0])
  opened.push(other.close)
  const sent = eventsOf(4)
  await Promise.all([send(one, sent.slice(0, 120)), send(other, sent.slice(120))])
  clock.set(firstDay + 93 * dayMs + 2 * 60 * 60_000)
  await Promise.all([one.tidy(), other.tidy(), one.tidy(), other.tidy()])
  expect(await readSummaries(one)).toEqual(summariesOf(sent, firstDay + 3 * dayMs))
  expect(await readRows(one, '_events')).toHaveLength(60)
})
