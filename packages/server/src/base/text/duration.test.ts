import { expect, test } from 'bun:test'
import { parseDuration } from './duration.ts'

test.each([
  ['1s', 1000],
  ['30m', 1_800_000],
  ['24h', 86_400_000],
  ['90d', 7_776_000_000],
  ['99999999d', 8_639_999_913_600_000],
])('%s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each([
  '',
  '0s',
  '00m',
  's',
  '5',
  '5 m',
  ' 5m',
  '5m ',
  '-5m',
  '+5m',
  '1.5h',
  '1e3s',
  '5M',
  '5ms',
  '5m\n',
  '٣m',
  '999999999d',
])('refuses %p', (text) => {
  expect(() => parseDuration(text)).toThrow('must be a duration such as')
})

test('refuses a very long text', () => {
  expect(() => parseDuration('9'.repeat(100_000))).toThrow('must be a duration such as')
})
