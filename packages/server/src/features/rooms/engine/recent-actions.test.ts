import { expect, test } from 'bun:test'
import { recentActionsCharsMax, recentActionsMax } from '../../../limits/rooms.ts'
import type { RecentAction } from './ports.ts'
import { RecentActions } from './recent-actions.ts'

const action = (number: number, payload = '{}'): RecentAction => ({
  atMs: number,
  userId: 'ada',
  actionType: 'move',
  payload,
  durationMs: 1,
  error: null,
  sentBy: null,
})

const timesOf = (recent: RecentActions): number[] => recent.latest(Number.POSITIVE_INFINITY).map(({ atMs }) => atMs)

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at)

test('the latest actions are kept, oldest first, however many there were', () => {
  const recent = new RecentActions()
  for (let count = 1; count <= 5 * recentActionsMax; count++) {
    recent.add(action(count - 1))
    expect(timesOf(recent)).toEqual(range(Math.max(0, count - recentActionsMax), count))
  }
})

test('the characters of the latest actions are bounded', () => {
  const recent = new RecentActions()
  const payload = 'x'.repeat(recentActionsCharsMax / 4)
  for (let number = 0; number < 2 * recentActionsMax; number++) {
    recent.add(action(number, payload))
    expect(timesOf(recent)).toEqual(range(Math.max(0, number - 2), number + 1))
  }
  recent.add(action(0, 'x'.repeat(recentActionsCharsMax)))
  expect(timesOf(recent)).toEqual([])
  recent.add(action(1))
  expect(timesOf(recent)).toEqual([1])
})
