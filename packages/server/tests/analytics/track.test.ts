/** Sending events: access, validation, limits. A refused request stores nothing. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { eventNamesMax } from '../../src/limits/analytics.ts'
import { createClient } from '../harness/client.ts'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { countEvents, queryEvents, readRows, type SentEvent, track } from '../harness/resources/analytics.ts'
import { describeServer } from '../harness/server.ts'

const nowMs = Date.UTC(2026, 5, 15, 12, 30)
const at = (agoMs: number): string => new Date(nowMs - agoMs).toISOString()
const dayMs = 24 * 60 * 60 * 1000
const many = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, index]))
/** Properties of exactly this many bytes as JSON, with two-byte characters because bytes are counted. */
const sized = (bytes: number): Record<string, string> => {
  const free = bytes - '{"t":""}'.length
  return { t: 'é'.repeat(Math.floor(free / 2)) + 'x'.repeat(free % 2) }
}
const named = (count: number): SentEvent[] => Array.from({ length: count }, () => ({ name: 'many' }))

/** The title, the events, and the member and code in the error. */
const refusals: readonly [string, readonly unknown[] | unknown, string, string][] = [
  ['[ANA-TRACK-3] no events', [], 'events', 'min'],
  ['[ANA-TRACK-3] 101 events', named(101), 'events', 'max'],
  ['[ANA-TRACK-3] events that are no list', { name: 'a' }, 'events', 'type'],
  ['[ANA-TRACK-3] an event that is text', ['a'], 'events[0]', 'type'],
  ['[ANA-TRACK-4] no name', [{}], 'events[0].name', 'required'],
  ['[ANA-TRACK-4] an empty name', [{ name: 'a' }, { name: '' }], 'events[1].name', 'min'],
  ['[ANA-TRACK-4] a name that is a number', [{ name: 1 }], 'events[0].name', 'type'],
  ['[ANA-TRACK-4] a name that is an object', [{ name: { $gt: '' } }], 'events[0].name', 'type'],
  ['[ANA-TRACK-4] a name of 201 characters', [{ name: 'n'.repeat(201) }], 'events[0].name', 'max'],
  ['[ANA-TRACK-4] a name with NUL', [{ name: 'a\0b' }], 'events[0].name', 'type'],
  ['[ANA-TRACK-4] a name with half a surrogate pair', [{ name: '\ud800' }], 'events[0].name', 'type'],
  ['[ANA-TRACK-5] 51 properties', [{ name: 'a', properties: many(51) }], 'events[0].properties', 'max'],
  ['[ANA-TRACK-5] 4,097 bytes', [{ name: 'a', properties: sized(4097) }], 'events[0].properties', 'max'],
  ['[ANA-TRACK-5] properties that are a list', [{ name: 'a', properties: ['x'] }], 'events[0].properties', 'type'],
  ['[ANA-TRACK-5] properties that are null', [{ name: 'a', properties: null }], 'events[0].properties', 'type'],
  ['[ANA-TRACK-5] a list inside', [{ name: 'a', properties: { x: [1] } }], 'events[0].properties.x', 'type'],
  ['[ANA-TRACK-5] an object inside', [{ name: 'a', properties: { x: { y: 1 } } }], 'events[0].properties.x', 'type'],
  ['[ANA-TRACK-5] null inside', [{ name: 'a', properties: { x: null } }], 'events[0].properties.x', 'type'],
  ['[ANA-TRACK-5] NUL inside', [{ name: 'a', properties: { x: '\0' } }], 'events[0].properties.x', 'pattern'],
  [
    '[ANA-TRACK-5] the name constructor',
    [{ name: 'a', properties: { constructor: 1 } }],
    'events[0].properties.constructor',
    'pattern',
  ],
  ['[ANA-TRACK-5] an empty property name', [{ name: 'a', properties: { '': 1 } }], 'events[0].properties.', 'pattern'],
  ['[ANA-TRACK-6] 91 days ago', [{ name: 'a', timestamp: at(91 * dayMs) }], 'events[0].timestamp', 'min'],
  ['[ANA-TRACK-6] a minute ahead', [{ name: 'a', timestamp: at(-60_000) }], 'events[0].timestamp', 'max'],
  ['[ANA-TRACK-6] no date', [{ name: 'a', timestamp: 'yesterday' }], 'events[0].timestamp', 'pattern'],
  ['[ANA-TRACK-6] 31 April', [{ name: 'a', timestamp: '2026-04-31T00:00:00Z' }], 'events[0].timestamp', 'pattern'],
  ['[ANA-TRACK-6] a negative number', [{ name: 'a', timestamp: -1 }], 'events[0].timestamp', 'min'],
  ['[ANA-TRACK-6] a list', [{ name: 'a', timestamp: [] }], 'events[0].timestamp', 'type'],
  ['[ANA-TRACK-3] an unknown member', [{ name: 'a', id: 'mine' }], 'events[0].id', 'unknown'],
]

describeServer(
  'track',
  { config: { rateLimits: { events: { requests: 100_000 } } }, clock: manualClock(nowMs) },
  (server) => {
    test('[ANA-TRACK-1] any caller may send events, and a user’s events carry their id', async () => {
      for (const [client, userId, name] of [
        [server.anonymous, null, 'anonymous event'],
        [server.as('ann'), 'ann', 'user event'],
        [server.service, null, 'server event'],
      ] as const) {
        const { status, body } = await track(client, { name }, { name, properties: { a: 'b', n: 1.5, t: true } })
        expect(status).toBe(200)
        expect(body).toEqual({ ok: true, count: 2 })
        const listed = await queryEvents(server.service, { event: name })
        expect(listed.body.events).toMatchObject([
          { userId, eventName: name, properties: { a: 'b', n: 1.5, t: true }, timestamp: at(0) },
          { userId, eventName: name, properties: {}, timestamp: at(0) },
        ])
      }
    })

    test('[ANA-TRACK-1] an invalid token or key is refused and stores nothing', async () => {
      const before = await countEvents(server)
      const bad = createClient(() => server.url, { authorization: 'Bearer nonsense' })
      expectRefusal(await track(bad, { name: 'a' }), 401, 'Invalid token')
      expectRefusal(await track(server.withKey('wrong'), { name: 'a' }), 401, 'Invalid service key')
      expect(await countEvents(server)).toBe(before)
    })

    test('[ANA-TRACK-2] only a service key may set a user id', async () => {
      expect((await track(server.service, { name: 'owned', userId: 'bob' })).status).toBe(200)
      const { body } = await queryEvents(server.service, { event: 'owned' })
      expect(body.events).toMatchObject([{ userId: 'bob' }])
      const before = await countEvents(server)
      for (const client of [server.anonymous, server.as('ann')]) {
        const refused = await track(client, { name: 'a' }, { name: 'owned', userId: 'ann' })
        expect(codesOf(expectRefusal(refused, 400).data)).toEqual({ 'events[1].userId': 'unknown' })
      }
      expect(await countEvents(server)).toBe(before)
    })

    for (const [title, events, member, code] of refusals)
      test(title, async () => {
        const before = await countEvents(server)
        const refused = await server.anonymous.post('/api/analytics/track', { events })
        expect(codesOf(expectRefusal(refused, 400).data)).toEqual({ [member]: code })
        expect(await countEvents(server)).toBe(before)
      })

    test('[ANA-TRACK-3] an invalid event refuses the request, and every invalid event is named', async () => {
      const before = await countEvents(server)
      const events = [{ name: 'good' }, { name: '' }, { name: 'good', properties: { x: [] } }]
      const { data } = expectRefusal(await track(server.service, ...events), 400)
      expect(codesOf(data)).toEqual({ 'events[1].name': 'min', 'events[2].properties.x': 'type' })
      expect(await countEvents(server)).toBe(before)
    })

    test('[ANA-TRACK-5] __proto__ and out-of-range numbers in raw JSON are refused', async () => {
      const before = await countEvents(server)
      for (const properties of ['{"__proto__":{"x":1}}', '{"__proto__":1}', '{"x":1e999}', '{"x":"\\ud800"}']) {
        const raw = `{"events":[{"name":"a","properties":${properties}}]}`
        const headers = { 'content-type': 'application/json' }
        expectRefusal(await server.anonymous.request('POST', '/api/analytics/track', { raw, headers }), 400)
      }
      expect(await countEvents(server)).toBe(before)
    })

    test('[ANA-TRACK-3, ANA-TRACK-4, ANA-TRACK-5, ANA-TRACK-6] values at the limits are accepted', async () => {
      const before = await countEvents(server)
      const events = [
        { name: 'n'.repeat(200) },
        { name: '__proto__' },
        { name: 'constructor' },
        { name: "a' OR 1=1; --" },
        { name: '🦊 renard' },
        { name: 'many', properties: many(50) },
        { name: 'large', properties: sized(4096) },
        { name: 'old', timestamp: at(90 * dayMs) },
        { name: 'number', timestamp: nowMs - 1000 },
        { name: 'offset', timestamp: '2026-06-15T14:00:00+02:00' },
        { name: 'fast', timestamp: at(-5000) },
        ...named(89),
      ]
      expect((await track(server.anonymous, ...events)).body).toEqual({ ok: true, count: 100 })
      expect(await countEvents(server)).toBe(before + 100)
      const times = Object.fromEntries(
        await Promise.all(
          ['old', 'number', 'offset', 'fast'].map(async (event) => {
            const { body } = await queryEvents(server.service, { event, range: '90d' })
            return [event, body.events[0].timestamp]
          }),
        ),
      )
      expect(times).toEqual({ old: at(90 * dayMs), number: at(1000), offset: '2026-06-15T12:00:00.000Z', fast: at(0) })
      for (const event of ['__proto__', 'constructor', "a' OR 1=1; --", '🦊 renard'])
        expect((await queryEvents(server.service, { metric: 'count', event })).body.totalEvents).toBe(1)
    })

    test('[ANA-TRACK-7] acknowledged events are in the reports immediately, even with concurrent requests', async () => {
      const before = await countEvents(server)
      const sent = await Promise.all(
        Array.from({ length: 40 }, (_, each) =>
          track(server.as(`user-${each % 8}`), ...Array.from({ length: 25 }, () => ({ name: `parallel-${each % 4}` }))),
        ),
      )
      expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 200))
      expect(await countEvents(server)).toBe(before + 1000)
      const { body } = await queryEvents(server.service, { metric: 'count', event: 'parallel-1' })
      expect(body).toEqual({ totalEvents: 250, uniqueUsers: 2 })
    })

    test('[ANA-TRACK-10] beyond 10,000 names, new ones are accepted only from service keys', async () => {
      const bomb = Array.from({ length: eventNamesMax }, (_, each) => ({ name: `bomb-${each}` }))
      let stored = 0
      while ((await track(server.anonymous, ...bomb.slice(stored, stored + 100))).status === 200) stored += 100
      // Names of earlier tests count toward the limit.
      expect(stored).toBeGreaterThan(9000)
      // The refused batch did not count toward the limit: single events fill the remainder.
      while ((await track(server.anonymous, bomb[stored] as SentEvent)).status === 200) stored += 1
      expect(await readRows(server, '_series', `series LIKE 'event:%'`)).toHaveLength(eventNamesMax)

      const before = await countEvents(server)
      const answer = await track(server.anonymous, { name: 'bomb-1' }, { name: 'late' }, { name: 'bomb-2' })
      expect(codesOf(expectRefusal(answer, 400).data)).toEqual({ 'events[1].name': 'max' })
      expect(await countEvents(server)).toBe(before)
      expect((await track(server.anonymous, { name: 'bomb-1' })).status).toBe(200)
      expect((await track(server.service, { name: 'late' })).status).toBe(200)
      expect((await track(server.anonymous, { name: 'late' })).status).toBe(200)
    })
  },
)

describeServer('rate limit of track', { config: {}, mode: 'release' }, (server) => {
  test('[ANA-TRACK-8] an address may send 100 requests per minute regardless of X-Forwarded-For; service keys are not limited', async () => {
    const answers = await Promise.all(
      Array.from({ length: 130 }, (_, each) =>
        server.anonymous.post(
          '/api/analytics/track',
          { events: [{ name: 'flood' }] },
          { 'x-forwarded-for': `10.0.0.${each}` },
        ),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(100)
    const refused = answers.find(({ status }) => status === 429)
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await countEvents(server)).toBe(100)
    expect((await track(server.service, { name: 'flood' })).status).toBe(200)
  })
})

const chosen = { analytics: { events: ['signup', 'purchase'], anonymous: false } }

describeServer('configured events', { config: chosen }, (server) => {
  test('[ANA-TRACK-9] the configuration can restrict event names and refuse anonymous callers', async () => {
    expectRefusal(await track(server.anonymous, { name: 'signup' }), 401, 'Authentication required')
    expectRefusal(await track(server.as({ id: 'guest', isAnonymous: true }), { name: 'signup' }), 403)
    const { data } = expectRefusal(await track(server.as('ann'), { name: 'signup' }, { name: 'bomb' }), 400)
    expect(codesOf(data)).toEqual({ 'events[1].name': 'unknown' })
    expect(await countEvents(server)).toBe(0)
    expect((await track(server.as('ann'), { name: 'signup' })).status).toBe(200)
    expect((await track(server.service, { name: 'bomb' })).status).toBe(200)
    await server.reload({})
    expect((await track(server.anonymous, { name: 'bomb' })).status).toBe(200)
    await server.reload(chosen)
  })
})
