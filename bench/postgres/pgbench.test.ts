/** pgbench scripts name existing rows, and pgbench logs are parsed correctly. */
import { expect, test } from 'bun:test'
import { authorAt, authorCount, idAt, newRowAt, topicAt, topicCount } from '../setup/data.ts'
import { readLogs } from './pgbench.ts'
import { pgbenchScripts } from './pgbench-scripts.ts'

const rows = 5000
const context = { rows, nowMs: Date.UTC(2026, 10, 21, 12) }

const scriptOf = (name: string) => {
  const script = pgbenchScripts[name]?.(context)
  if (!script) throw new Error(`No script ${name}`)
  return script
}

/** The first and last text that a script may draw: the prefix in its statements with the ends of `\set … random`. */
function drawnBy(name: string, variable: string): [first: string, last: string] {
  const { text } = scriptOf(name)
  const [, from, to] = new RegExp(`\\\\set ${variable} random\\((\\d+), (\\d+)\\)`).exec(text) ?? []
  const [, prefix] = new RegExp(`'([^' ]+)' \\|\\| :${variable}\\b`).exec(text.replaceAll("''", '')) ?? []
  return [`${prefix}${from}`, `${prefix}${to}`]
}

test.each([
  ['point', 'row', idAt(0), idAt(rows - 1)],
  ['update', 'row', idAt(0), idAt(rows - 1)],
  ['list', 'author', authorAt(0), authorAt(authorCount(rows) - 1)],
  ['total', 'author', authorAt(0), authorAt(authorCount(rows) - 1)],
  ['search', 'topic', topicAt(0), topicAt(topicCount(rows) - 1)],
])('%s draws exactly the seeded names', (name, variable, first, last) => {
  expect(drawnBy(name, variable)).toEqual([first, last])
})

test('an insert uses the authors of the HTTP scenario', () => {
  const [first, last] = drawnBy('insert', 'writer')
  for (let number = 0; number < 100; number++) {
    const { authorId } = newRowAt(number)
    expect(authorId >= first && authorId <= last).toBe(true)
  }
})

test('ids of new rows follow every seeded id', () => {
  const { record } = scriptOf('insert').variables
  expect(JSON.parse(record ?? '').id > idAt(rows - 1)).toBe(true)
})

test('every variable of a script is drawn or defined', () => {
  for (const name of Object.keys(pgbenchScripts)) {
    const { text, variables } = scriptOf(name)
    const drawn = [...text.matchAll(/\\set (\w+)/g)].map(([, variable]) => variable)
    const used = [...text.matchAll(/(?<![\w:]):([a-z_]\w*)/g)].map(([, variable]) => variable ?? '')
    expect(used.filter((variable) => !drawn.includes(variable) && !Object.hasOwn(variables, variable))).toEqual([])
  }
})

const line = (us: number | string, endedAtMs: number): string =>
  `0 1 ${us} 0 ${Math.floor(endedAtMs / 1000)} ${(endedAtMs % 1000) * 1000}\n`

test('only transactions that ended in the window are measured, and all are counted', () => {
  const { latencies, committed } = readLogs(
    [line(900, 1000) + line(2000, 1001) + line(2000, 1500), line(2000, 2000) + line(900, 2001)],
    1000,
    2000,
  )
  expect(committed).toBe(5)
  expect(latencies.total).toBe(3)
  expect(latencies.percentile(0.01)).toBeCloseTo(2, 1)
})

test('a failed transaction in the log throws', () => {
  expect(() => readLogs([line('failed', 1500)], 1000, 2000)).toThrow('failed')
})
