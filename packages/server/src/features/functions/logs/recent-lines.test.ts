import { expect, test } from 'bun:test'
import {
  recentLinesBytesMax,
  recentLinesListedBytes,
  recentLinesMax,
  recentLinesOfFunctionMax,
} from '../../../limits/functions.ts'
import { type FunctionLine, type LineFilter, RecentLines } from './recent-lines.ts'

const line = (message: string, of = 'a', level: FunctionLine['level'] = 'info'): FunctionLine => ({
  atMs: 0,
  level,
  function: of,
  message,
  data: null,
  requestId: 'r',
  location: null,
})
const all: LineFilter = {
  function: null,
  level: 'debug',
  requestId: null,
  after: null,
  limit: 1_000_000,
  bytesMax: 1e12,
}
const messages = (lines: RecentLines, filter: Partial<LineFilter> = {}) =>
  lines.find({ ...all, ...filter }).items.map(({ message }) => message)

test('[FN-LOG-1] the latest lines are found by function and level, in order', () => {
  const lines = new RecentLines()
  lines.add(line('1'))
  lines.add(line('2', 'b', 'error'))
  lines.add(line('3', 'a', 'warn'))
  expect(messages(lines)).toEqual(['1', '2', '3'])
  expect(messages(lines, { function: 'a' })).toEqual(['1', '3'])
  expect(messages(lines, { level: 'warn' })).toEqual(['2', '3'])
  expect(messages(lines, { limit: 2 })).toEqual(['2', '3'])
})

test('[FN-LOG-2] the lines after a position are each found once, in pages', () => {
  const lines = new RecentLines()
  for (let n = 1; n <= 5; n++) lines.add(line(String(n), n % 2 === 0 ? 'b' : 'a'))
  const first = lines.find({ ...all, after: 0, limit: 2 })
  expect(first.items.map(({ message }) => message)).toEqual(['1', '2'])
  const rest = lines.find({ ...all, after: first.last })
  expect(rest.items.map(({ message }) => message)).toEqual(['3', '4', '5'])
  expect(lines.find({ ...all, after: rest.last })).toEqual({ items: [], last: rest.last, hasGap: false })
  lines.add(line('6'))
  expect(messages(lines, { after: rest.last })).toEqual(['6'])
})

test('[FN-LOG-3] a function with many lines displaces its own, and lines that were dropped are a gap', () => {
  const lines = new RecentLines()
  lines.add(line('rare', 'b'))
  for (let n = 1; n <= recentLinesOfFunctionMax + 5; n++) lines.add(line(String(n)))
  expect(messages(lines, { function: 'a' })).toHaveLength(recentLinesOfFunctionMax)
  expect(messages(lines, { function: 'b' })).toEqual(['rare'])
  expect(lines.find({ ...all, after: 1 }).hasGap).toBe(true)
  expect(lines.find({ ...all, after: 6 }).hasGap).toBe(false)
})

test('[FN-LOG-3] the lines of all functions are bounded by count and bytes', () => {
  const many = new RecentLines()
  for (let n = 0; n < 2 * recentLinesMax; n++) many.add(line('x', `f${n % 100}`))
  expect(messages(many)).toHaveLength(recentLinesMax)
  const large = new RecentLines()
  for (let n = 0; n < 2000; n++) large.add(line('x'.repeat(8192), `f${n % 100}`))
  const { items } = large.find(all)
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0)
  expect(bytes).toBeLessThanOrEqual(recentLinesBytesMax)
  expect(bytes).toBeGreaterThan(recentLinesBytesMax - 20_000)
  const page = large.find({ ...all, after: 0, bytesMax: recentLinesListedBytes })
  expect(page.items.reduce((sum, item) => sum + item.bytes, 0)).toBeLessThanOrEqual(recentLinesListedBytes)
})
