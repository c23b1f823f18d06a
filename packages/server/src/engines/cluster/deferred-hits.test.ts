import { expect, test } from 'bun:test'
import { deferredHitsShare, knownHitsMs } from '../../limits/redis.ts'
import { createDeferredHits } from './deferred-hits.ts'

const limit = 1000
/** What a node may have uncounted. */
const share = limit * deferredHitsShare

/** A counter that other nodes use too. */
function openCounter() {
  const state = { total: 0, nowMs: 0, isAvailable: true }
  const sent: number[] = []
  const timers: (() => void)[] = []
  const hit = createDeferredHits({
    async count(_key, _windowMs, by) {
      if (!state.isAvailable) throw new Error('unavailable')
      sent.push(by)
      state.total += by
      return { count: state.total, resetMs: 60_000 }
    },
    isAvailable: () => state.isAvailable,
    later: (run) => void timers.push(run),
    now: () => state.nowMs,
  })
  return {
    state,
    sent,
    hit: () => hit('a', 60_000, 1, limit),
    exactHit: () => hit('a', 60_000),
    async runTimers() {
      for (const run of timers.splice(0)) run()
      await new Promise(setImmediate)
    },
  }
}

test('hits far below the limit are counted later, together', async () => {
  const counter = openCounter()
  expect(await counter.hit()).toEqual({ count: 1, resetMs: 60_000 })
  counter.state.nowMs += 10
  const later = Array.from({ length: share }, () => counter.hit())
  expect(later).toEqual(later.map((_, at) => ({ count: at + 2, resetMs: 59_990 })))
  expect(counter.sent).toEqual([1])
  counter.state.total += 7
  await counter.runTimers()
  expect(counter.sent).toEqual([1, share])
  expect(counter.hit()).toMatchObject({ count: share + 9 })
})

test('a hit waits for its count beyond the share of the node, and counts those before it', async () => {
  const counter = openCounter()
  await counter.hit()
  for (let n = 0; n < share; n++) expect(counter.hit()).not.toBeInstanceOf(Promise)
  expect(await (counter.hit() as Promise<unknown>)).toMatchObject({ count: share + 2 })
  expect(counter.sent).toEqual([1, share + 1])
  await counter.runTimers()
  expect(counter.sent).toEqual([1, share + 1])
})

test('a hit waits for its count from half of the limit on, after a while, and without a limit', async () => {
  const counter = openCounter()
  expect(counter.hit()).toBeInstanceOf(Promise)
  await counter.exactHit()
  expect(counter.hit()).not.toBeInstanceOf(Promise)
  expect(counter.exactHit()).toBeInstanceOf(Promise)
  counter.state.nowMs += knownHitsMs
  await (counter.hit() as Promise<unknown>)
  expect(counter.hit()).not.toBeInstanceOf(Promise)
  counter.state.total += limit / 2
  await counter.runTimers()
  expect(counter.hit()).toBeInstanceOf(Promise)
})

test('a hit fails once the counter is known to be unavailable', async () => {
  const counter = openCounter()
  await counter.hit()
  expect(counter.hit()).not.toBeInstanceOf(Promise)
  counter.state.isAvailable = false
  await expect(Promise.resolve(counter.hit())).rejects.toThrow('unavailable')
  counter.state.isAvailable = true
  expect(counter.hit()).toBeInstanceOf(Promise)
})
