import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { startAdaptively } from './adaptive-batch.ts'

/** Runs rounds that add `arrivals` items each and last `roundMs`; the round in which the batch starts, and its size. */
function simulate(
  arrivals: readonly number[],
  { sizeMax = 100, waitMs = 1000, roundMs = 1, first = 1 } = {},
): { round: number; size: number } | null {
  let [size, nowMs] = [first, 0]
  let started: { round: number; size: number } | null = null
  let pending: (() => void) | null = null
  const nextRound = (then: () => void): void => {
    pending = then
  }
  let round = 0
  startAdaptively({ size: () => size, sizeMax, waitMs, elapsedMs: () => nowMs, nextRound }, () => {
    started = { round, size }
  })
  for (const arrived of arrivals) {
    round += 1
    size += arrived
    nowMs += roundMs
    const check = pending as (() => void) | null
    pending = null
    check?.()
  }
  return started
}

test('a lone item starts in the next round', () => {
  expect(simulate([0, 0, 0])).toEqual({ round: 1, size: 1 })
})

test('a batch waits as long as each round adds to it', () => {
  expect(simulate([3, 1, 1, 0, 5])).toEqual({ round: 4, size: 6 })
})

test('a full batch does not wait', () => {
  expect(simulate([3, 4, 1, 1], { sizeMax: 8 })).toEqual({ round: 2, size: 8 })
})

test('a batch that keeps growing starts after its time', () => {
  expect(simulate(Array(50).fill(1), { waitMs: 6, roundMs: 2 })).toEqual({ round: 3, size: 4 })
})

test('a batch starts once, within its time or the first round without an arrival', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3), { minLength: 30, maxLength: 30 }),
      fc.integer({ min: 1, max: 20 }),
      (list, waitMs) => {
        const started = simulate(list, { waitMs })
        const firstQuiet = list.indexOf(0) + 1
        const bounds = [waitMs, ...(firstQuiet > 0 ? [firstQuiet] : [])]
        expect(started?.round).toBe(Math.min(...bounds))
      },
    ),
  )
})
