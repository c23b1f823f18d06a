import { expect, test } from 'bun:test'
import { eventLoopSliceMs } from '../../limits/writes.ts'
import { createSlices, startSlice } from './slices.ts'

test('a slice lasts its time, and the next one begins after the event loop had its chance', async () => {
  let nowMs = 0
  const next = createSlices({ elapsedMs: () => nowMs })
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

test('work that ends with its slice learns when it is over', () => {
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
