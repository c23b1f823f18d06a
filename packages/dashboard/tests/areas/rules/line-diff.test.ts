import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { diffLines, patchOf } from '../../../src/areas/rules/shadow/line-diff.ts'

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
  expect(patchOf('databases.shared.tables.posts.access.read', 'true', 'false').split('\n')).toEqual([
    '--- plinth.config.ts',
    '+++ plinth.config.ts',
    '@@ databases.shared.tables.posts.access.read @@',
    '-read: true,',
    '+read: false,',
  ])
  expect(patchOf('databases.shared.tables.posts.access.update.before', 'true', 'false')).toContain('+before: false,')
})
