import { expect, test } from 'bun:test'
import { eventLoopSliceMs } from '../../limits/writes.ts'
import { createSlices, SliceScheduler, startSlice } from './slices.ts'

test('a slice lasts its duration, and the next one starts after the event loop has run', async () => {
  let nowMs = 0
  const next = createSlices({ scheduler: new SliceScheduler(() => nowMs) })
  expect(next()).toBeUndefined()
  nowMs = eventLoopSliceMs - 1
  expect(next()).toBeUndefined()
  nowMs = eventLoopSliceMs
  const order: string[] = []
  setImmediate(() => order.push('other'))
  const pause = next()
  expect(pause).toBeInstanceOf(Promise)
  await pause
  order.push('this')
  expect(order).toEqual(['other', 'this'])
  expect(next()).toBeUndefined()
  nowMs += eventLoopSliceMs
  expect(next()).toBeInstanceOf(Promise)
})

test('all work shares the slices: one runs per iteration of the event loop, in the order of pausing', async () => {
  let nowMs = 0
  let round = 0
  const scheduler = new SliceScheduler(() => nowMs)
  const ran: string[] = []
  const work = async (name: string, units: number): Promise<void> => {
    const next = createSlices({ scheduler })
    for (let unit = 0; unit < units; unit++) {
      ran.push(`${name} in ${round}`)
      nowMs += eventLoopSliceMs / 2
      const pause = next()
      if (pause) await pause
    }
  }
  const countRounds = (): void => {
    round += 1
    if (round < 20) setImmediate(countRounds)
  }
  setImmediate(countRounds)
  await Promise.all([work('a', 6), work('b', 4), work('c', 1)])
  const rounds = ran.map((one) => Number(one.split(' ')[2]))
  expect(ran.filter((one) => one.startsWith('a'))).toHaveLength(6)
  // The works begin in one round; from then on, no round has more than two units, which are a slice.
  for (let at = 1; at < 20; at++) expect(rounds.filter((one) => one === at).length).toBeLessThanOrEqual(2)
  const names = ran.filter((one) => !one.endsWith(' 0')).map((one) => one.charAt(0))
  expect(names.indexOf('a')).toBeLessThan(names.indexOf('b'))
  expect(names.lastIndexOf('a')).toBeGreaterThan(names.indexOf('b'))
})

test('work with another slice length has separate slices', async () => {
  let nowMs = 0
  const next = createSlices({ sliceMs: 2, elapsedMs: () => nowMs })
  nowMs = 1
  expect(next()).toBeUndefined()
  nowMs = 2
  await next()
  nowMs = 3
  expect(next()).toBeUndefined()
})

test('work that ends with its slice is notified of the end', () => {
  let nowMs = 5
  const isOver = startSlice({ elapsedMs: () => nowMs })
  nowMs += eventLoopSliceMs - 1
  expect(isOver()).toBe(false)
  nowMs += 1
  expect(isOver()).toBe(true)
})

test('a slice may be shorter or longer than the default', () => {
  let nowMs = 0
  const next = createSlices({ sliceMs: 3, elapsedMs: () => nowMs })
  nowMs = 2
  expect(next()).toBeUndefined()
  nowMs = 3
  expect(next()).toBeInstanceOf(Promise)
})
