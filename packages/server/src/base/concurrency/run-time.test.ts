import { expect, test } from 'bun:test'
import { RunTime, runTime } from './run-time.ts'

test('time in which the thread runs counts, and never more than has passed', () => {
  const start = runTime.start()
  expect(runTime.exceeds(start, 60_000)).toBe(false)
  // Ends once the thread itself has run for a millisecond, however busy the machine is.
  while (!runTime.exceeds(start, 1));
  const ranMs = runTime.ranMs(start)
  expect(ranMs).toBeLessThanOrEqual(performance.now() - start.atMs)
})

test('time in which other processes occupied the processor does not count', () => {
  const clock = { nowMs: 0, waitedMs: 0 }
  const time = new RunTime(
    () => clock.nowMs,
    () => clock.waitedMs,
  )
  const start = time.start()
  Object.assign(clock, { nowMs: 100, waitedMs: 90 })
  expect(time.ranMs(start)).toBe(10)
  expect(time.exceeds(start, 20)).toBe(false)
  Object.assign(clock, { nowMs: 111 })
  expect(time.exceeds(start, 20)).toBe(true)
})
