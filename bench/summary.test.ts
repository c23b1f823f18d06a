/** The summary of `docs/benchmarks.md`. */
import { expect, test } from 'bun:test'
import { measuredPart, replaceMeasured } from './report.ts'
import { summaryOf } from './summary.ts'

const page = await Bun.file(new URL('../docs/benchmarks.md', import.meta.url)).text()

const cells = (markdown: string): string[][] =>
  markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.includes('---'))
    .map((line) => line.split('|').map((cell) => cell.trim()))

test('the summary on the page is that of its tables', () => {
  expect(cells(measuredPart(page, 'summary'))).toEqual(cells(summaryOf(page)))
})

const users = (line: string): string =>
  [
    '| what | per second | CPU µs | compared with | ratio | CPU ratio |',
    '| --- | ---: | ---: | ---: | ---: | ---: |',
    '| Point read | 9 | 9 | bare hash, as many at once | 1% | 1% |',
    line,
    '|  |  |  | bare hash, as many at once | 92% ✓ | 90% |',
  ].join('\n')

const sumUp = (table: string): string[][] => cells(summaryOf(replaceMeasured(page, 'users', table)))
const signIn = (rows: string[][]): string[] | undefined => rows.find(([, what]) => what === 'Sign-in with a password')

test('a line has the figure of the server, and the ratio of the baseline that it names, without marks', () => {
  const rows = sumUp(users('| Sign-in, 50 in flight | 35 | 28417.7 | another baseline | 7% | 7% |'))
  const compared = 'bare hash, as many at once'
  expect(signIn(rows)).toEqual(['', 'Sign-in with a password', '28,418 µs of CPU', compared, '0.90×', ''])
})

test('a line whose figures were not measured is left out', () => {
  const rows = sumUp(users('| Something else | 35 | 28417.7 | another baseline | 7% | 7% |'))
  expect(signIn(rows)).toBeUndefined()
  expect(rows).toHaveLength(cells(summaryOf(page)).length - 1)
})
