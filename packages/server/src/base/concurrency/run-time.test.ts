import { expect, test } from 'bun:test'
import { runTime } from './run-time.ts'

test('time in which the thread runs counts, and never more than has passed', () => {
  const start = runTime.start()
  expect(runTime.exceeds(start, 60_000)).toBe(false)
  // Ends once the thread itself has run for a millisecond, however busy the machine is.
  while (!runTime.exceeds(start, 1));
  const ranMs = runTime.ranMs(start)
  expect(ranMs).toBeLessThanOrEqual(performance.now() - start.atMs)
})
