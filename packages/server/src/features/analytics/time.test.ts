/** Minutes, days, ranges and ids. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createEventId, dayOf, dayStart, idBound, minuteOf, msOfId, nextDayStart, rangeStart } from './time.ts'

const instants = fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) })
const sequences = fc.integer({ min: 0, max: 4095 })

test('an id is a UUID v7, contains the time of its event, and sorts by time and sequence number', () => {
  fc.assert(
    fc.property(instants, sequences, instants, sequences, (ms, sequence, otherMs, otherSequence) => {
      const id = createEventId(ms, sequence)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(msOfId(id)).toBe(ms)
      expect(id > idBound(ms)).toBe(true)
      expect(id < idBound(ms + 1)).toBe(true)
      const other = createEventId(otherMs, otherSequence)
      if (ms !== otherMs) expect(id < other).toBe(ms < otherMs)
      else if (sequence !== otherSequence) expect(id < other).toBe(sequence < otherSequence)
    }),
  )
})

test('ids with equal time and sequence number differ', () => {
  expect(new Set(Array.from({ length: 1000 }, () => createEventId(1, 1))).size).toBe(1000)
})

test('minutes, days and ranges are computed in UTC', () => {
  const ms = Date.UTC(2026, 0, 31, 12, 34, 56, 789)
  expect(dayOf(minuteOf(ms))).toBe('2026-01-31')
  expect(dayStart(ms)).toBe(minuteOf(Date.UTC(2026, 0, 31)))
  expect(nextDayStart(minuteOf(ms))).toBe(minuteOf(Date.UTC(2026, 1, 1)))
  expect(nextDayStart(dayStart(ms))).toBe(dayStart(ms))
  expect(rangeStart('1h', ms)).toBe(minuteOf(Date.UTC(2026, 0, 31, 11, 34)))
  expect(rangeStart('90d', ms)).toBe(minuteOf(Date.UTC(2025, 10, 2, 12, 34)))
})
