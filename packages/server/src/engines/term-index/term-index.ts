/**
 * An index of the terms of records, for searches that both engines rank alike. A table has a column with the terms of
 * each row and their weights, as a JSON object; triggers keep one row per term and record in the term table, which
 * searches read. Where searches correct typos, the triggers also keep a dictionary.
 */
import type { TableRef } from '../sql/dialect.ts'
import { ident, type SqlText } from '../sql/sql-text.ts'

/** The column of a table with the terms of a row: JSON text, `{"paris": 4, "city": 1}`. */
export const termsColumnName = '_terms'
export const termsColumn: SqlText = ident(termsColumnName)

/** The term table of a table; no declared name starts with an underscore. */
export const termTable = ({ namespace, name, perInstance }: TableRef): TableRef => ({
  namespace,
  name: `_terms_${name}`,
  perInstance,
})

/**
 * The dictionary of a term table: the words of at least one record that searches may correct, by their entries
 * (`word-entries.ts`); no declared name starts with an underscore.
 */
export const wordTable = ({ namespace, name, perInstance }: TableRef): TableRef => ({
  namespace,
  name: `_words_${name}`,
  perInstance,
})

/** First character of terms that are parts of words. */
export const partMark = '*'

/**
 * First character of entries of the column that are no terms: what searches compare with the rows that they have found.
 */
export const comparedMark = '='

/** Sorts after every character of a term. */
export const lastCharacter = '\u{10ffff}'
