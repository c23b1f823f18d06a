import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { rulePatch } from '../../src/areas/rules/shadow/rule-patch.ts'
import { changedParts, diffLines, patchText } from '../../src/design/patch/line-diff.ts'

const marked = (before: string, after: string): string[] =>
  diffLines(before, after).map(({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`)

test('lines are kept, removed and added in their order', () => {
  expect(marked('a\nb\nc', 'a\nx\nc\nd')).toEqual([' a', '-b', '+x', ' c', '+d'])
  expect(marked('a', 'a')).toEqual([' a'])
})

test('the lines without the added ones are the text before, without the removed ones the text after', () => {
  const texts = fc
    .array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 12 })
    .map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const lines = diffLines(before, after)
      const without = (kind: string): string =>
        lines.flatMap((line) => (line.kind === kind ? [] : [line.text])).join('\n')
      expect(without('added')).toBe(before)
      expect(without('removed')).toBe(after)
    }),
  )
})

test('texts of very many lines are replaced as a whole', () => {
  const many = Array.from({ length: 700 }, (_, at) => String(at)).join('\n')
  expect(diffLines(many, many)).toHaveLength(1400)
})

test('a patch names the place of the rule', () => {
  const patchOf = (path: string): string => patchText(path, [rulePatch(path, 'true', 'false')])
  expect(patchOf('databases.shared.tables.posts.access.read').split('\n')).toEqual([
    '--- plinth.config.ts',
    '+++ plinth.config.ts',
    '@@ databases.shared.tables.posts.access.read @@',
    '-read: true,',
    '+read: false,',
  ])
  expect(patchOf('databases.shared.tables.posts.access.update.before')).toContain('+before: false,')
})

test('of a long text the changed lines are kept with those beside them', () => {
  const before = Array.from({ length: 40 }, (_, at) => String(at))
  const after = before.toSpliced(20, 1).toSpliced(3, 0, 'new').toSpliced(36, 1)
  const parts = changedParts(diffLines(before.join('\n'), after.join('\n')))
  expect(patchText('p', parts).split('\n').slice(2)).toEqual([
    ...['@@ p @@', ' 1', ' 2', '+new', ' 3', ' 4'],
    ...['@@ p @@', ' 18', ' 19', '-20', ' 21', ' 22'],
    ...['@@ p @@', ' 34', ' 35', '-36', ' 37', ' 38'],
  ])
  expect(changedParts(diffLines('a\nb', 'a\nb'))).toEqual([])
})
