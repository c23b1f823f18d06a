/** Which texts are times. */
import { expect, test } from 'bun:test'
import { parseTimeText } from '../../src/text/parse-time.ts'

test('texts that the server accepts, and those with a space, are times', () => {
  for (const [text, time] of [
    ['2026-11-24T09:30:00Z', '2026-11-24T09:30:00.000Z'],
    [' 2026-11-24T09:30:00+02:00 ', '2026-11-24T07:30:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ] as const)
    expect(parseTimeText(text)?.toISOString()).toBe(time)
  expect(parseTimeText('2026-11-24 09:30:00')).toEqual(new Date(2026, 10, 24, 9, 30))
})

test('a day that its month does not have, and other texts, are none', () => {
  for (const text of [
    '2026-02-30',
    '2026-02-29T10:00:00Z',
    '2026-04-31 10:00',
    '2026-13-01',
    '',
    'yesterday',
    '٢٠٢٦-٠١-٠١',
  ])
    expect(parseTimeText(text)).toBeNull()
})
