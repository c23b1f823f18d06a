/** The columns of a view in its address. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatColumns, parseColumns } from '../../../src/areas/data/table/columns-text.ts'

const names = Array.from({ length: 500 }, (_, at) => `a_column_with_a_name_of_its_own_${at}`)

test('columns in any order, with any of them hidden, are read as they were written', () => {
  const some = names.slice(0, 12)
  fc.assert(
    fc.property(fc.shuffledSubarray(some, { minLength: 1 }), (shown) => {
      expect(parseColumns(formatColumns(shown, some), some)).toEqual(shown)
    }),
  )
})

test('one hidden or moved column of 500 leaves a short address', () => {
  const hidden = names.toSpliced(250, 1)
  const moved = hidden.toSpliced(3, 0, names[250] as string)
  for (const shown of [names, hidden, moved]) {
    const text = formatColumns(shown, names)
    expect(text.length).toBeLessThan(300)
    expect(parseColumns(text, names)).toEqual(shown)
  }
})

test('names that are not declared, also with dots, stay as they are', () => {
  expect(parseColumns('b,x..y,a..c,a', ['a', 'b', 'c', 'x..y'])).toEqual(['b', 'x..y', 'a', 'c'])
  expect(parseColumns('a..gone,,a', ['a'])).toEqual(['a..gone', '', 'a'])
})
