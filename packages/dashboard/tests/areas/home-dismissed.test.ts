import { expect, test } from 'bun:test'
import { shownAdvice, withDismissed } from '../../src/areas/home/dismissed.ts'
import type { Advice } from '../../src/areas/home/requests.ts'

const advice = (id: string): Advice => ({
  id,
  severity: 'low',
  title: '',
  where: '',
  why: '',
  fix: '',
  code: null,
  link: null,
})

const day = 24 * 60 * 60 * 1000

test('advice is hidden for seven days, and forgotten afterwards', () => {
  const items = [advice('a'), advice('b')]
  const dismissed = withDismissed({}, 'a', 0)
  expect(shownAdvice(items, dismissed, 7 * day - 1).map(({ id }) => id)).toEqual(['b'])
  expect(shownAdvice(items, dismissed, 7 * day)).toHaveLength(2)
  expect(Object.keys(withDismissed(dismissed, 'b', 7 * day))).toEqual(['b'])
  expect(Object.keys(withDismissed(dismissed, 'b', day))).toEqual(['a', 'b'])
})
