import { expect, test } from 'bun:test'
import { availableMs, type ProgressSample, sampleProgress } from './progress.ts'

const sample = (part: Partial<ProgressSample>): ProgressSample => ({
  atMs: 0,
  processorMs: 0,
  waitedMs: 0,
  isRunnable: false,
  ...part,
})

test.each<[what: string, to: Partial<ProgressSample>, expected: number]>([
  ['runs', { atMs: 100, processorMs: 90, isRunnable: true }, 90],
  ['waits for a processor all the time', { atMs: 100, isRunnable: true }, 0],
  ['waited and runs', { atMs: 100, processorMs: 10, waitedMs: 85, isRunnable: true }, 10],
  ['sleeps', { atMs: 100 }, 100],
  ['waited and sleeps', { atMs: 100, processorMs: 5, waitedMs: 60 }, 40],
])('[FN-HOST-10] a process that %s', (_, to, expected) => {
  expect(availableMs(sample({}), sample(to))).toBe(expected)
})

test.skipIf(process.platform !== 'linux')('[FN-HOST-10] the system reports the time of a process', () => {
  const before = sampleProgress(process.pid)
  const until = before.processorMs + 50
  let now = before
  while (now.processorMs < until) now = sampleProgress(process.pid)
  expect(now.isRunnable).toBe(true)
  expect(availableMs(before, now)).toBeGreaterThanOrEqual(50)
})

test('[FN-HOST-10] of a process that is not there the time that has passed counts', () => {
  const before = sampleProgress(2 ** 30)
  const after = sampleProgress(2 ** 30)
  expect(availableMs(before, after)).toBeCloseTo(after.atMs - before.atMs)
})
