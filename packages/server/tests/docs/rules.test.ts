/**
 * docs/rules.md and the tests speak of the same rules: every rule is cited by a test, and every id a test cites is a
 * rule.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../../../..')
const ruleId = /[A-Z]+(?:-[A-Z]+)*-\d+/g

/** Every test file with its text. */
function* testFiles(): Generator<{ name: string; text: string }> {
  for (const folder of ['packages/server/tests', 'packages/server/src'])
    for (const entry of readdirSync(join(root, folder), { recursive: true }))
      if (String(entry).endsWith('.test.ts')) {
        const name = join(folder, String(entry))
        if (name !== join('packages/server/tests/docs/rules.test.ts'))
          yield { name, text: readFileSync(join(root, name), 'utf8') }
      }
}

/** Ids in brackets, such as `[DB-LIST-3, DB-LIST-4]`, and as the first member of a table's row. */
function* citations(text: string): Generator<string> {
  for (const [, ids = ''] of text.matchAll(/\[((?:[A-Z]+(?:-[A-Z]+)*-\d+)(?:, [A-Z]+(?:-[A-Z]+)*-\d+)*)\]/g))
    yield* ids.match(ruleId) ?? []
  for (const [, ids = ''] of text.matchAll(/[[(]'((?:[A-Z]+(?:-[A-Z]+)*-\d+)(?:, [A-Z]+(?:-[A-Z]+)*-\d+)*)'/g))
    yield* ids.match(ruleId) ?? []
}

const rules = [...readFileSync(join(root, 'docs/rules.md'), 'utf8').matchAll(/^- `([A-Z]+(?:-[A-Z]+)*-\d+)` /gm)].map(
  ([, id = '']) => id,
)
const cited = new Map<string, Set<string>>()
for (const { name, text } of testFiles())
  for (const id of citations(text)) cited.set(id, (cited.get(id) ?? new Set()).add(name))

test('the rules are numbered, each once', () => {
  expect(rules.length).toBeGreaterThan(100)
  expect(rules.filter((id, at) => rules.indexOf(id) !== at)).toEqual([])
})

test('every rule is cited by a test', () => {
  expect(rules.filter((id) => !cited.has(id))).toEqual([])
})

test('every id that a test cites is a rule', () => {
  const known = new Set(rules)
  expect([...cited].filter(([id]) => !known.has(id)).map(([id, names]) => `${id} in ${[...names]}`)).toEqual([])
})

/** Files of the API's chapters; the others test the repository and the command line. */
const chapters = /^packages\/server\/tests\/(?:http\/|records\/|storage\/|operations\/(?:faults\/crash|reload))/
const outside = /\/storage\/(?:blobs\/blobs-s3|images\/images-process)/

test('every test of a chapter cites a rule', () => {
  // Titles made in loops begin with the interpolated rule; those written out begin with the bracket.
  const silent: string[] = []
  for (const { name, text } of testFiles()) {
    const titles = [...text.matchAll(/^\s*test\(\s*['`]([^'`\n]*)/gm)].map(([, title = '']) => title)
    if (chapters.test(name) && !outside.test(name))
      silent.push(...titles.filter((title) => !/^\[|^\$\{/.test(title)).map((title) => `${name}: ${title}`))
  }
  expect(silent).toEqual([])
})
