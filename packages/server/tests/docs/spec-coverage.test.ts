/** Every line of docs/spec-coverage.md names existing rules. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (name: string): string => readFileSync(join(import.meta.dir, '../../../..', 'docs', name), 'utf8')

const rules = new Set([...read('rules.md').matchAll(/^- `([A-Z]+(?:-[A-Z]+)*-\d+)` /gm)].map(([, id]) => id))
/** Table rows without the heads: a statement and its rule ids. */
const lines = [...read('spec-coverage.md').matchAll(/^\| (?!statement |topic |-)(.+?) +\| (.+?) +\|$/gm)].map(
  ([, statement, ids = '']) => ({
    statement,
    ids: ids.split(',').map((id) => id.trim()),
  }),
)

test('every line names existing rules', () => {
  expect(lines.length).toBeGreaterThan(250)
  expect(lines.filter(({ ids }) => ids.some((id) => !rules.has(id)))).toEqual([])
})

test('every group of rules is covered', () => {
  const groupOf = (id = ''): string => id.replace(/-\d+$/, '')
  const led = new Set(lines.flatMap(({ ids }) => ids.map(groupOf)))
  expect([...new Set([...rules].map(groupOf))].filter((group) => !led.has(group))).toEqual([])
})

test('a chapter contains no statement twice', () => {
  for (const chapter of read('spec-coverage.md').split('\n## ')) {
    const statements = [...chapter.matchAll(/^\| (?!statement |topic |-)(.+?) +\|/gm)].map(([, statement]) => statement)
    expect(statements.filter((statement, at) => statements.indexOf(statement) !== at)).toEqual([])
  }
})
