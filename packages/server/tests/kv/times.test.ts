/** Expiry of keys, the write interval, and sweeps. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { openStore, type Store } from '../harness/resources/kv.ts'
import { describeServer } from '../harness/server.ts'

const clock = manualClock()
const kv = { usual: {}, slow: { writeInterval: 30_000 }, free: { writeInterval: 0 } }
const config = { kv }

let keys = 0
/** A key that no other test uses. */
const newKey = (): string => `key-${++keys}`

describeServer('key-value expiry and intervals', { config, clock }, (server) => {
  const [usual, slow, free] = ['usual', 'slow', 'free'].map((name) => openStore(server.service, name)) as [
    Store,
    Store,
    Store,
  ]

  test('[KV-10, KV-9] a key exists for exactly its ttl', async () => {
    const [short, long, ever] = [newKey(), newKey(), newKey()]
    await free.set(short, 's', { ttl: 60 })
    await free.set(long, 'l', { ttl: 315_360_000 })
    await free.set(ever, 'e')
    clock.advance(59_999)
    expect((await free.get(short)).body.value).toBe('s')
    expect((await free.list()).body.keys).toEqual([short, long, ever].sort())
    clock.advance(1)
    expect((await free.get(short)).body.value).toBeNull()
    expect((await free.list()).body.keys).toEqual([long, ever].sort())
    clock.advance(315_360_000_000 - 60_001)
    expect((await free.get(long)).body.value).toBe('l')
    clock.advance(1)
    expect(await free.dump()).toEqual({ [ever]: 'e' })
    await free.delete(ever)
  })

  test('[KV-5, KV-10] a set replaces the ttl, and an expired key can be set again', async () => {
    const key = newKey()
    await free.set(key, 1, { ttl: 60 })
    await free.set(key, 2)
    clock.advance(100_000)
    expect((await free.get(key)).body.value).toBe(2)
    await free.set(key, 3, { ttl: 60 })
    clock.advance(60_000)
    expect((await free.get(key)).body.value).toBeNull()
    await free.set(key, 4, { ttl: 120 })
    clock.advance(119_999)
    expect((await free.get(key)).body.value).toBe(4)
    await free.delete(key)
  })

  for (const ttl of [59, 0, -1, -60, 60.5, 1e12, 315_360_001, 1e300, null, true, [60]])
    test(`[KV-9] a ttl of ${JSON.stringify(ttl)} is refused`, async () => {
      const key = newKey()
      await free.set(key, 'before')
      expectRefusal(await free.set(key, 'after', { ttl }), 400, 'ttl')
      expect((await free.get(key)).body.value).toBe('before')
      await free.delete(key)
    })

  test('[KV-11] a key accepts one write a second, sets and deletes alike', async () => {
    const key = newKey()
    expect((await usual.set(key, 1)).status).toBe(200)
    for (const answer of [await usual.set(key, 2), await usual.delete(key), await usual.set(key, 2, { ttl: 60 })]) {
      expect(expectRefusal(answer, 429)).toMatchObject({ slug: 'rate-limited' })
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    clock.advance(999)
    expectRefusal(await usual.set(key, 2), 429)
    expect((await usual.get(key)).body.value).toBe(1)
    // A refused write does not extend the interval.
    clock.advance(1)
    expect((await usual.delete(key)).status).toBe(200)
    expect((await usual.get(key)).body.value).toBeNull()
    expectRefusal(await usual.set(key, 3), 429)
    expectRefusal(await usual.delete(key), 429)
    expect((await usual.list({ prefix: key })).body.keys).toEqual([])
    clock.advance(1000)
    expect((await usual.set(key, 3)).status).toBe(200)
    expect((await usual.get(key)).body.value).toBe(3)
  })

  test('[KV-11] deleting a missing key counts as a write', async () => {
    const key = newKey()
    expect((await usual.delete(key)).status).toBe(200)
    expectRefusal(await usual.set(key, 1), 429)
    expect((await usual.get(key)).body.value).toBeNull()
    clock.advance(1000)
    expect((await usual.set(key, 1)).status).toBe(200)
  })

  test('[KV-11] of 50 concurrent writes one succeeds', async () => {
    const key = newKey()
    for (const before of [null, 'there']) {
      if (before !== null) clock.advance(1000)
      const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => usual.set(key, at)))
      const won = answers.flatMap(({ status }, at) => (status === 200 ? [at] : []))
      expect(won).toHaveLength(1)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(49)
      expect((await usual.get(key)).body.value).toBe(won[0] as number)
    }
    clock.advance(1000)
    const mixed = await Promise.all(
      Array.from({ length: 50 }, (_, at) => (at % 2 ? usual.delete(key) : usual.set(key, `m${at}`))),
    )
    const [won, ...others] = mixed.flatMap(({ status }, at) => (status === 200 ? [at] : []))
    expect(others).toEqual([])
    expect((await usual.get(key)).body.value).toBe(Number(won) % 2 ? null : `m${won}`)
  })

  test('[KV-12] the interval is per key and configurable per namespace', async () => {
    const [one, other] = [newKey(), newKey()]
    expect((await slow.set(one, 1)).status).toBe(200)
    expect((await slow.set(other, 1)).status).toBe(200)
    expect((await usual.set(one, 1)).status).toBe(200)
    clock.advance(10_000)
    const refused = await slow.set(one, 2)
    expectRefusal(refused, 429)
    expect(refused.headers.get('retry-after')).toBe('20')
    clock.advance(20_000)
    expect((await slow.set(one, 2)).status).toBe(200)
  })

  test('[KV-12] without an interval every write is accepted', async () => {
    const key = newKey()
    const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => free.set(key, at)))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    for (const command of [() => free.delete(key), () => free.set(key, 'x'), () => free.delete(key)])
      expect((await command()).status).toBe(200)
    expect((await free.get(key)).body.value).toBeNull()
  })

  test('[KV-13] a key stays writable after the clock was set back', async () => {
    const key = newKey()
    await usual.set(key, 1)
    clock.advance(-500)
    expectRefusal(await usual.set(key, 2), 429)
    clock.advance(-100_000)
    expect((await usual.set(key, 2)).status).toBe(200)
    expectRefusal(await usual.set(key, 3), 429)
    expect((await usual.get(key)).body.value).toBe(2)
  })

  test('[KV-20] a sweep removes expired keys and intervals, and nothing else', async () => {
    // A longer interval reveals whether the last write is still stored.
    const [deleted, expired, live, ever] = [newKey(), newKey(), newKey(), newKey()]
    await usual.set(live, 'l', { ttl: 120 })
    await usual.set(ever, 'e')
    await usual.set(expired, 'x', { ttl: 60 })
    clock.advance(59_000)
    await usual.delete(deleted)
    clock.advance(999)
    await server.tidy()
    const longerInterval = { kv: { ...kv, usual: { writeInterval: 60_000 } } }
    await server.reload(longerInterval)
    for (const key of [deleted, expired]) expectRefusal(await usual.set(key, 'new'), 429)
    clock.advance(1)
    expectRefusal(await usual.set(deleted, 'new'), 429)
    await server.tidy()
    expect((await usual.set(deleted, 'new')).status).toBe(200)
    expect((await usual.get(live)).body.value).toBe('l')
    expect((await usual.get(ever)).body.value).toBe('e')
    await server.reload(config)
  })

  test('[KV-20] a sweep removes more keys than one batch', async () => {
    const count = 1100
    const names = Array.from({ length: count }, (_, at) => `many-${at}`)
    for (let at = 0; at < count; at += 100)
      await Promise.all(names.slice(at, at + 100).map((name) => usual.set(name, 1, { ttl: 60 })))
    clock.advance(60_000)
    expect((await usual.list({ prefix: 'many-' })).body.keys).toEqual([])
    await server.tidy()
    // With the clock set back, remaining keys would be listed.
    clock.advance(-30_000)
    expect((await usual.list({ prefix: 'many-' })).body.keys).toEqual([])
    clock.advance(30_000)
  })

  test('[KV-19] a namespace that is removed and declared again keeps its keys', async () => {
    const key = newKey()
    await usual.set(key, 'kept')
    await server.reload({ kv: { free: kv.free } })
    expectRefusal(await usual.get(key), 404)
    await server.reload({})
    expectRefusal(await free.get(key), 404)
    await server.reload(config)
    expect((await usual.get(key)).body.value).toBe('kept')
    expectRefusal(await usual.set(key, 'again'), 429)
  })
})

describeServer('key-value namespaces added by a reload', { config: {} }, (server) => {
  test('[KV-1] are served immediately', async () => {
    const later = openStore(server.service, 'later')
    expectRefusal(await later.get('a'), 404)
    await server.tidy()
    await server.reload({ kv: { later: {} } })
    expect((await later.set('a', 1)).status).toBe(200)
    expect(await later.dump()).toEqual({ a: 1 })
  })
})
