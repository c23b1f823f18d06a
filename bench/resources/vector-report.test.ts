/** Tables of the vector run. */
import { expect, test } from 'bun:test'
import { pageTable, recallOf, searchLines } from './vector-report.ts'

const result = (found: number[][]) => ({
  loadSeconds: 1,
  buildSeconds: 2,
  memoryBytes: null,
  diskBytes: 1024 * 1024,
  searches: [{ tenths: 10 as const, perSecond: 1000, p50Ms: 1, p99Ms: 2.345, found }],
})

test('recall is the share of the true results that were found', () => {
  expect(recallOf([[1, 2, 9]], [[1, 2, 3, 4]])).toBe(0.5)
  expect(recallOf([[], [5]], [[1], [5]])).toBe(0.5)
})

test('recall is relative to the first store; Plinth has a budget', () => {
  const compared = [
    { store: 'Plinth, exact' as const, result: result([[1, 2]]) },
    { store: 'Plinth' as const, result: result([[1, 3]]) },
    { store: 'sqlite-vec' as const, result: result([[2, 1]]) },
  ]
  const lines = searchLines({ shape: 'noise', count: 2, compared })
  expect(lines.map((cells) => [cells[0], cells[2], cells.at(-1)])).toEqual([
    ['Plinth, exact', '1.000', '≥ 0.95 ✓'],
    ['Plinth', '0.500', '≥ 0.95 ✗'],
    ['sqlite-vec', '1.000', ''],
  ])
})

test('the page has a line per store, with the recall in each shape', () => {
  const compared = (found: number[][]) => [
    { store: 'Plinth, exact' as const, result: result([[1, 2]]) },
    { store: 'Plinth' as const, result: result(found) },
  ]
  const shapes = [
    { shape: 'clusters' as const, count: 2, compared: compared([[1, 3]]) },
    { shape: 'noise' as const, count: 2, compared: compared([[3, 4]]) },
  ]
  expect(pageTable(shapes).split('\n').slice(2)).toEqual([
    '| Plinth, exact | 1.000 | 1,000 | 1.000 | 1,000 | 3.0 |  | 1 |',
    '| Plinth | 0.500 | 1,000 | 0.000 | 1,000 | 3.0 |  | 1 |',
  ])
})
