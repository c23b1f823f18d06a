/** Lists of keys: order, prefixes, pages and cursors, and a property test against a map. */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../src/base/clock.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { openStore } from '../harness/resources/kv.ts'
import { describeServer } from '../harness/server.ts'

const free = { writeInterval: 0 }
const config = { kv: { ordered: free, many: free, storm: free, other: free } }
const byCodePoint = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

const keys = [
  'a',
  'a%',
  'a_',
  'a\\',
  'a*',
  'a1',
  'aa',
  'ab',
  'A',
  'B',
  '%',
  '_',
  'a\u0001',
  'z',
  '\u00e9',
  'e\u0301',
  '\ud7ff',
  '\ud7ffx',
  '\ue000',
  '\uffff',
  '\uffffx',
  '\u{10000}',
  '\u{10ffff}',
  '\u{10ffff}\u{10ffff}',
  '\u{10ffff}x',
].sort(byCodePoint)

describeServer('key-value lists', { config }, (server) => {
  const ordered = openStore(server.service, 'ordered')
  const many = openStore(server.service, 'many')
  const storm = openStore(server.service, 'storm')
  const other = openStore(server.service, 'other')
  beforeAll(async () => {
    for (const key of keys) expect((await ordered.set(key, key)).status).toBe(200)
  })

  test('[KV-14] a list contains all keys in code point order', async () => {
    const { status, body } = await ordered.list()
    expect(status).toBe(200)
    expect(body).toEqual({ keys, cursor: null })
    for (const none of [{ prefix: '' }, { cursor: null }, { limit: 1000 }])
      expect((await ordered.list(none)).body.keys).toEqual(keys)
  })

  for (const prefix of [
    ...keys,
    'a%b',
    '%%',
    'nothing',
    "'",
    '\u{10fffe}',
    '\u{10ffff}\u{10ffff}\u{10ffff}',
    '__proto__',
    'x'.repeat(512),
  ])
    test(`[KV-14] the prefix ${JSON.stringify(prefix).slice(0, 30)} is matched literally`, async () => {
      const expected = keys.filter((key) => key.startsWith(prefix))
      expect((await ordered.list({ prefix })).body).toEqual({ keys: expected, cursor: null })
    })

  test('[KV-15] a page has 1,000 keys by default and at most', async () => {
    const names = Array.from({ length: 1005 }, (_, at) => `n${String(at).padStart(4, '0')}`)
    for (let at = 0; at < names.length; at += 100)
      await Promise.all(names.slice(at, at + 100).map((name) => many.set(name, at)))
    for (const options of [{}, { limit: 1000 }, { limit: 1001 }, { limit: 9_007_199_254_740_991 }]) {
      const { keys: page, cursor } = (await many.list(options)).body
      expect(page).toEqual(names.slice(0, 1000))
      expect((await many.list({ ...options, cursor })).body).toEqual({ keys: names.slice(1000), cursor: null })
    }
    expect((await many.list({ limit: 1 })).body.keys).toEqual(names.slice(0, 1))
  })

  for (const limit of [0, -1, 1.5, 1e300, null, true])
    test(`[KV-15] a limit of ${JSON.stringify(limit)} is refused`, async () => {
      expectRefusal(await ordered.list({ limit }), 400, 'limit')
    })

  test('[KV-16] pages of any size return all keys with a prefix', async () => {
    for (const prefix of ['', 'a', '\u{10ffff}'])
      for (const limit of [1, 2, 3, 7, keys.length]) {
        const seen: string[] = []
        for (let cursor: string | null = null, more = true; more; more = cursor !== null) {
          const { body } = await ordered.list({ prefix, limit, cursor })
          seen.push(...body.keys)
          expect(body.keys.length).toBeLessThanOrEqual(limit)
          if (body.cursor !== null) expect(body.keys).toHaveLength(limit)
          cursor = body.cursor
        }
        expect(seen).toEqual(keys.filter((key) => key.startsWith(prefix)))
      }
  })

  test('[KV-16] a cursor stays valid when the key at its position is deleted', async () => {
    for (const key of ['a', 'b', 'c', 'd']) await other.set(key, 1)
    const { cursor } = (await other.list({ limit: 2 })).body
    await other.delete('b')
    await other.set('aa', 1)
    await other.set('bb', 1)
    expect((await other.list({ limit: 2, cursor })).body.keys).toEqual(['bb', 'c'])
    for (const key of ['a', 'aa', 'bb', 'c', 'd']) await other.delete(key)
    expect((await other.list({ cursor })).body).toEqual({ keys: [], cursor: null })
  })

  test('[KV-16] pages return every lasting key exactly once while others are set and deleted', async () => {
    const lasting = Array.from({ length: 60 }, (_, at) => `k${String(at).padStart(2, '0')}`)
    await Promise.all(lasting.map((key) => storm.set(key, 1)))
    let running = true
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; running; n++) {
        const key = `k${String((n * 7 + writer) % 60).padStart(2, '0')}-${writer}`
        expect((await (n % 2 ? storm.delete(key) : storm.set(key, n))).status).toBe(200)
      }
    })
    for (let round = 0; round < 5; round++) {
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const { body } = await storm.list({ prefix: 'k', limit: 7, cursor })
        seen.push(...body.keys)
        cursor = body.cursor
      } while (cursor !== null)
      expect(seen.filter((key) => !key.includes('-'))).toEqual(lasting)
      expect(seen).toEqual([...new Set(seen)].sort())
    }
    running = false
    await Promise.all(writers)
  })

  test('[KV-17] a cursor of another list and a forged cursor are refused', async () => {
    const { cursor } = (await ordered.list({ limit: 1 })).body as { cursor: string }
    const [content = '', seal = ''] = cursor.split('.')
    const forged = (parts: unknown) => `${Buffer.from(JSON.stringify(parts)).toString('base64url')}.${seal}`
    for (const wrong of [
      '',
      'x',
      '0',
      `${cursor}x`,
      cursor.slice(0, -1),
      content,
      `${content}.`,
      `.${seal}`,
      forged(['ordered', '', 'b']),
      forged(['ordered', 'b']),
      forged('ordered'),
      `${content}.${seal.toLowerCase() === seal ? seal.toUpperCase() : seal.toLowerCase()}`,
      'x'.repeat(20_000),
      '\ud800',
      'a\0',
    ])
      expectRefusal(await ordered.list({ cursor: wrong }), 400, 'cursor')
    expectRefusal(await ordered.list({ cursor, prefix: 'a' }), 400, 'cursor')
    expectRefusal(await many.list({ cursor }), 400, 'cursor')
    expect((await ordered.list({ cursor })).body.keys).toEqual(keys.slice(1))
    // Another page size is the same list.
    expect((await ordered.list({ cursor, limit: 1 })).body.keys).toEqual(keys.slice(1, 2))
  })
})

const clock = manualClock()

describeServer('key-value property test', { config: { kv: { model: free } }, clock }, (server) => {
  const store = openStore(server.service, 'model')
  const key = fc.string({
    unit: fc.constantFrom('a', 'B', '%', '_', '\u00e9', '\uffff', '\u{10ffff}'),
    minLength: 1,
    maxLength: 3,
  })
  const command = fc.oneof(
    fc.record({
      kind: fc.constant('set' as const),
      key,
      value: fc.jsonValue({ depthSize: 'small' }),
      ttl: fc.constantFrom(null, 60, 100),
    }),
    fc.record({ kind: fc.constant('delete' as const), key }),
    fc.record({
      kind: fc.constant('list' as const),
      prefix: fc.oneof(fc.constant(''), key),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
    fc.record({ kind: fc.constant('wait' as const), seconds: fc.constantFrom(1, 59, 60) }),
    fc.record({ kind: fc.constant('sweep' as const) }),
  )

  test('[KV-4, KV-5, KV-6, KV-10, KV-14, KV-16, KV-20] random commands have the same results as on a map', () =>
    fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 25 }), async (commands) => {
        const model = new Map<string, { value: string; untilMs: number }>()
        const isThere = (name: string): boolean => (model.get(name)?.untilMs ?? 0) > clock.now()
        for (const one of commands) {
          if (one.kind === 'wait') clock.advance(one.seconds * 1000)
          else if (one.kind === 'sweep') await server.tidy()
          else if (one.kind === 'delete') {
            expect((await store.delete(one.key)).status).toBe(200)
            model.delete(one.key)
          } else if (one.kind === 'set') {
            const { ttl } = one
            expect((await store.set(one.key, one.value, ttl === null ? {} : { ttl })).status).toBe(200)
            const untilMs = ttl === null ? Number.POSITIVE_INFINITY : clock.now() + ttl * 1000
            model.set(one.key, { value: JSON.stringify(one.value), untilMs })
            expect((await store.get(one.key)).text).toBe(`{"value":${JSON.stringify(one.value)}}`)
          } else {
            const expected = [...model.keys()].filter((name) => isThere(name) && name.startsWith(one.prefix))
            const { body } = await store.list({ prefix: one.prefix, limit: one.limit })
            expect(body.keys).toEqual(expected.sort(byCodePoint).slice(0, one.limit))
            expect(body.cursor === null).toBe(expected.length <= one.limit)
          }
        }
        for (const [name, { value }] of model)
          expect((await store.get(name)).text).toBe(`{"value":${isThere(name) ? value : 'null'}}`)
        for (const name of model.keys()) await store.delete(name)
      }),
      { numRuns: 60 },
    ))
})
