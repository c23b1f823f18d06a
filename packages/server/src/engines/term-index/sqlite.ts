/** The term index in SQLite: a clustered table, filled by triggers from the column of terms. */
import type { TermIndex } from '../sql/dialect.ts'
import { ident, type SqlText, sql } from '../sql/sql-text.ts'
import { comparedMark, termsColumn, termTable } from './term-index.ts'

/** Triggers have no parameters. */
const constant = (text: string): SqlText => ({ text: `'${text}'`, values: [] })

const triggerNames = (terms: string): readonly SqlText[] =>
  ['added', 'removed', 'modified'].map((when) => ident(`${terms}_${when}`))

export const sqliteTermIndex: TermIndex = {
  create(table) {
    const { name } = termTable(table)
    const [target, terms] = [ident(table.name), ident(name)]
    const [added, removed, modified] = triggerNames(name) as [SqlText, SqlText, SqlText]
    const add = sql`INSERT INTO ${terms} (term, "key", weight)
      SELECT key, new."_seq", value FROM json_each(new.${termsColumn}) WHERE substr(key, 1, 1) <> ${constant(comparedMark)}`
    const remove = sql`DELETE FROM ${terms}
      WHERE "key" = old."_seq" AND term IN (SELECT key FROM json_each(old.${termsColumn}))`
    return [
      sql`CREATE TABLE ${terms} (term TEXT NOT NULL, "key" INTEGER NOT NULL, weight INTEGER NOT NULL,
        PRIMARY KEY (term, "key")) WITHOUT ROWID`,
      sql`CREATE TRIGGER ${added} AFTER INSERT ON ${target} BEGIN ${add}; END`,
      sql`CREATE TRIGGER ${removed} AFTER DELETE ON ${target} BEGIN ${remove}; END`,
      sql`CREATE TRIGGER ${modified} AFTER UPDATE OF ${termsColumn} ON ${target} BEGIN ${remove}; ${add}; END`,
    ]
  },
  drop(table) {
    const { name } = termTable(table)
    return [
      ...triggerNames(name).map((trigger) => sql`DROP TRIGGER IF EXISTS ${trigger}`),
      sql`DROP TABLE IF EXISTS ${ident(name)}`,
    ]
  },
  entries: (column) => ({
    from: sql`json_each(${column}) AS "_entry"`,
    term: sql`"_entry".key`,
    weight: sql`"_entry".value`,
  }),
}
