import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { manualClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { describeCluster } from '../contract/cluster-contract.ts'
import { createMemoryCluster } from './memory.ts'

describeCluster('a cluster of one', async () => {
  const clock = manualClock()
  const cluster = createMemoryCluster({ clock })
  return {
    one: cluster,
    other: cluster,
    elapse: async (ms) => clock.advance(ms),
    dispose: () => cluster.close(),
  }
})

describe('counters in memory', () => {
  test('return synchronously, exact to the millisecond', () => {
    const clock = manualClock()
    const cluster = createMemoryCluster({ clock })
    expect(cluster.hit('a', 1000)).toEqual({ count: 1, resetMs: 1000 })
    clock.advance(400)
    expect(cluster.hit('a', 1000)).toEqual({ count: 2, resetMs: 600 })
    clock.advance(599)
    expect(cluster.hit('a', 1000)).toEqual({ count: 3, resetMs: 1 })
    clock.advance(1)
    expect(cluster.hit('a', 1000)).toEqual({ count: 1, resetMs: 1000 })
  })

  test('lock no caller out for longer than a window when the clock jumps back', () => {
    const clock = manualClock()
    const cluster = createMemoryCluster({ clock })
    cluster.hit('a', 1000)
    clock.advance(-3_600_000)
    expect(cluster.hit('a', 1000)).toEqual({ count: 2, resetMs: 1000 })
    clock.advance(1000)
    expect(cluster.hit('a', 1000)).toMatchObject({ count: 1 })
  })

  test('forget the oldest window beyond the bound', () => {
    const clock = manualClock()
    const cluster = createMemoryCluster({ clock, keysMax: 3 })
    for (const key of ['a', 'b', 'c', 'd']) {
      cluster.hit(key, 1000)
      clock.advance(1)
    }
    expect(cluster.hit('d', 1000)).toMatchObject({ count: 2 })
    expect(cluster.hit('c', 1000)).toMatchObject({ count: 2 })
    expect(cluster.hit('a', 1000)).toMatchObject({ count: 1 })
  })

  test('agree with counting every event of the window by hand', () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(700)), { maxLength: 100 })
    fc.assert(
      fc.property(steps, (hits) => {
        const clock = manualClock()
        const cluster = createMemoryCluster({ clock })
        const started = new Map<string, { atMs: number; count: number }>()
        for (const [key, waitMs] of hits) {
          clock.advance(waitMs)
          const window = started.get(key)
          const current = window && clock.now() - window.atMs < 1000 ? window : { atMs: clock.now(), count: 0 }
          current.count++
          started.set(key, current)
          expect(cluster.hit(key, 1000)).toEqual({ count: current.count, resetMs: current.atMs + 1000 - clock.now() })
        }
      }),
    )
  })
})

describe('leases in memory', () => {
  test('do not outlive their requested time when the clock jumps back', async () => {
    const clock = manualClock()
    const cluster = createMemoryCluster({ clock })
    await cluster.acquire('room', 'a', 1000)
    clock.advance(-3_600_000)
    expect(await cluster.acquire('room', 'b', 1000)).toBeNull()
    clock.advance(1000)
    expect(await cluster.acquire('room', 'b', 1000)).not.toBeNull()
  })

  test('have fences that rise across restarts, and within one also when the clock jumps back', async () => {
    const clock = manualClock()
    const first = await createMemoryCluster({ clock }).acquire('room', 'a', 1000)
    clock.advance(1)
    const cluster = createMemoryCluster({ clock })
    const second = await cluster.acquire('room', 'a', 1000)
    await cluster.release('room', 'a')
    clock.advance(-3_600_000)
    const third = await cluster.acquire('room', 'a', 1000)
    const fences = [first, second, third].map((lease) => lease?.fence ?? 0)
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  })

  test('are rejected beyond the bound, and granted again when others have expired', async () => {
    const clock = manualClock()
    const cluster = createMemoryCluster({ clock, leasesMax: 2 })
    await cluster.acquire('a', 'x', 1000)
    await cluster.acquire('b', 'x', 2000)
    await expect(cluster.acquire('c', 'x', 1000)).rejects.toMatchObject({ kind: 'busy' })
    expect(await cluster.renew('b', 'x', 2000)).toBe(true)
    clock.advance(1000)
    expect(await cluster.acquire('c', 'x', 1000)).not.toBeNull()
    expect(await cluster.renew('b', 'x', 2000)).toBe(true)
  })
})

test('what a listener throws is logged with its channel', async () => {
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (text) => lines.push(text) })
  const cluster = createMemoryCluster({ log })
  cluster.subscribe('news', () => {
    throw new Error('out of paper')
  })
  cluster.publish('news', 'extra')
  await Promise.resolve()
  expect(lines.join('')).toContain('out of paper')
  expect(JSON.parse(lines.join(''))).toMatchObject({ level: 'error', channel: 'news' })
})
