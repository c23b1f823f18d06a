/** docs/spec-coverage.md leads from the specification to the rules: every line to some, and to none that is not. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (name: string): string => readFileSync(join(import.meta.dir, '../../../..', 'docs', name), 'utf8')

const rules = new Set([...read('rules.md').matchAll(/^- `([A-Z]+(?:-[A-Z]+)*-\d+)` /gm)].map(([, id]) => id))
/** Lines of tables but their heads: what is said, and the ids behind it. */
const lines = [...read('spec-coverage.md').matchAll(/^\| (?!says|about|-)(.+?) +\| (.+?) +\|$/gm)].map(
  ([, says, ids = '']) => ({
    says,
    ids: ids.split(',').map((id) => id.trim()),
  }),
)

test('every line leads to rules', () => {
  expect(lines.length).toBeGreaterThan(250)
  expect(lines.filter(({ ids }) => ids.some((id) => !rules.has(id)))).toEqual([])
})

test('no group of rules is left out', () => {
  const groupOf = (id = ''): string => id.replace(/-\d+$/, '')
  const led = new Set(lines.flatMap(({ ids }) => ids.map(groupOf)))
  expect([...new Set([...rules].map(groupOf))].filter((group) => !led.has(group))).toEqual([])
})

test('nothing is said twice in a chapter', () => {
  for (const chapter of read('spec-coverage.md').split('\n## ')) {
    const said = [...chapter.matchAll(/^\| (?!says|about|-)(.+?) +\|/gm)].map(([, says]) => says)
    expect(said.filter((says, at) => said.indexOf(says) !== at)).toEqual([])
  }
})
