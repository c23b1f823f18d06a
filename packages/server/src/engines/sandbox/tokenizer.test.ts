import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isBlank, type TokenRules, tokenize } from './tokenizer.ts'

const kindsOf = (query: string, rules: TokenRules): string[] =>
  tokenize(query, rules)
    .filter(({ kind }) => kind !== 'blank')
    .map(({ kind, text }) => `${kind} ${text}`)

const piece = fc.oneof(
  fc.constantFrom(
    "'",
    '"',
    '`',
    '[',
    ']',
    '--',
    '\n',
    '/*',
    '*/',
    '$$',
    '$a$',
    '?',
    '?1',
    '??',
    ':a',
    '\\',
    "E'",
    ';',
    ' ',
  ),
  fc.string({ maxLength: 3 }),
)

for (const rules of ['sqlite', 'postgres'] as const)
  test(`tokens of ${rules} joined are the query, for any query`, () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const query = pieces.join('')
        expect(
          tokenize(query, rules)
            .map(({ text }) => text)
            .join(''),
        ).toBe(query)
      }),
    )
  })

test('question marks within strings, names and comments are not parameters', () => {
  const sqlite = `? '?' "?" \`?\` [?] ?2 -- ?\n/* ? */ x'?' 'it''s ?'`
  expect(kindsOf(sqlite, 'sqlite').filter((token) => token.startsWith('parameter'))).toEqual([
    'parameter ?',
    'parameter ?2',
  ])
  const postgres = `? '?' "?" $$ ? $$ $a$ $$ ? $a$ E'\\' ?' ?2 /* /* ? */ ? */ -- ?\n ?? a[?]`
  expect(kindsOf(postgres, 'postgres').filter((token) => token.startsWith('parameter'))).toEqual([
    'parameter ?',
    'parameter ?2',
    'parameter ?',
  ])
})

test('a backslash has no meaning in a plain string, and escapes in an E string', () => {
  expect(kindsOf("'\\' ?", 'sqlite')).toEqual(["text '\\'", 'parameter ?'])
  expect(kindsOf("'\\' ?", 'postgres')).toEqual(["text '\\'", 'parameter ?'])
  expect(kindsOf("E'\\' ?'", 'postgres')).toEqual(["text E'\\' ?'"])
})

test('a carriage return ends a comment in PostgreSQL but not in SQLite', () => {
  expect(kindsOf('-- \r?', 'postgres')).toEqual(['parameter ?'])
  expect(kindsOf('-- \r?', 'sqlite')).toEqual([])
})

test('white space, comments and semicolons are blank', () => {
  for (const query of ['', ' ;\n', '-- x', '/* x */;', '/* no end'])
    expect(isBlank(tokenize(query, 'sqlite'))).toBe(true)
  for (const query of ['x', "''", '?', '/* a */ 1']) expect(isBlank(tokenize(query, 'sqlite'))).toBe(false)
  // Comments nest there: this one is unterminated, so not blank.
  expect(isBlank(tokenize('/* /* */', 'postgres'))).toBe(false)
})

test('a hundred thousand characters of any kind are split in linear time', () => {
  for (const rules of ['sqlite', 'postgres'] as const)
    for (const unit of [
      "'",
      '"',
      "''",
      '/*',
      '*/',
      '--',
      '$',
      '$a',
      '$$',
      '?',
      '[',
      '`',
      '\\',
      "E'",
      '(',
      'a',
      '1',
      "'a",
    ]) {
      const query = unit.repeat(100_000 / unit.length)
      const tokens = tokenize(query, rules)
      expect(tokens.reduce((sum, { text }) => sum + text.length, 0)).toBe(query.length)
    }
})
