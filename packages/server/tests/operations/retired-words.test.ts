/** The check for retired words: what it finds in small files, and what it leaves alone. */
import { expect, test } from 'bun:test'
import { checkRetiredWords, findRetiredWords } from '../../../../scripts/checks/retired-words.ts'

const foundIn = (text: string, path = 'src/base/a.ts'): string[] =>
  findRetiredWords(new Map([[path, text]])).map(({ found }) => found)

test.each([
  ['// Whoever asks is told of it anew.', ['Whoever', 'anew', 'told']],
  ['const turn = dialect.lock(key)', ['turn']],
  ['  ask(event: Event): void', ['ask']],
  ['feed.hold(event)', ['hold']],
  ['return toldOf(HandlerTurn)', ['toldOf', 'HandlerTurn']],
  ["throw new Error('Nobody has heard of it')", ['Nobody', 'heard']],
  ["// Rows are `uploads`'.", ["are `uploads`'"]],
  ['/** CONTRACT "Users"; SPEC\'s limit. */', ['CONTRACT', "SPEC's"]],
])('%s', (text, found) => {
  expect(foundIn(text).sort()).toEqual(found.sort())
})

test.each([
  '// Replaces the record in place; a placeholder stands for it. Look up the key.',
  '// Sorts in turn, turns it off, and tells the two kinds apart. The lock takes hold. The whole file.',
  'await Promise.allSettled(jobs)',
  'const lookUp = new Map()',
  '// A specification and a contract, in lower case. See SPEC-LIMITS-1.',
])('%s has none', (text) => {
  expect(foundIn(text)).toEqual([])
})

test('file names and documents are checked too', () => {
  expect(foundIn('', 'src/base/read-turns.ts')).toEqual(['read-turns.ts'])
  expect(foundIn('It belongs into the README.', 'docs/a.md')).toEqual(['belongs into'])
})

test('a match in any folder fails the check, except in the list itself', () => {
  const text = '# Title\n\nNobody knows.\n'
  const files = ['docs/decisions/0200-a.md', 'src/nowhere/a.ts', 'scripts/checks/retired-words.ts']
  expect(checkRetiredWords(new Map(files.map((path) => [path, text])))).toEqual([
    expect.stringMatching(/^docs\/decisions\/0200-a\.md:3: "Nobody" is a retired word; name the role: /),
    expect.stringMatching(/^src\/nowhere\/a\.ts:3: "Nobody" is a retired word; name the role: /),
  ])
})
