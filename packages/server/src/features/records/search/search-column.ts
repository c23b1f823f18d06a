/** The column in which a table stores what its searches find, if it has one. */
import type { Dialect, ManyColumn } from '../../../engines/sql/dialect.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { termsColumn } from '../../../engines/term-index/term-index.ts'
import type { Table } from '../../../query/table.ts'
import { createTermsText } from './terms.ts'
import { tokenize } from './words.ts'

export interface SearchColumn {
  readonly column: SqlText
  readonly type: ManyColumn['type']
  /** The stored form for a record, of which only the searched fields matter. */
  textOf(record: Readonly<Record<string, unknown>>): string
  /** The stored form as a bound value. */
  bind(text: string): SqlText
}

/** Null for a table without search, and for a full-text index that tokenizes the fields itself. */
export function searchColumnOf(table: Table, dialect: Dialect): SearchColumn | null {
  if (table.search.length === 0) return null
  if (table.ranking)
    return {
      column: termsColumn,
      type: 'json',
      textOf: createTermsText(table, table.ranking),
      bind: (text) => sql`${text}`,
    }
  const { searchColumn } = dialect
  if (!searchColumn) return null
  return {
    ...searchColumn,
    type: 'words',
    textOf: (record) => searchColumn.textOf(table.search.flatMap((field) => tokenize(record[field]))),
  }
}
