/** The term index in SQLite: clustered tables, filled by triggers from the column of terms. */
import type { TermIndex } from '../sql/dialect.ts'
import { ident, type SqlText, sql } from '../sql/sql-text.ts'
import { comparedMark, termsColumn, termTable, wordTable } from './term-index.ts'
import { entriesOf, isDictionaryWord } from './word-entries.ts'

/** Triggers have no parameters. */
const constant = (text: string): SqlText => ({ text: `'${text}'`, values: [] })

const triggerNames = (terms: string): readonly SqlText[] =>
  ['added', 'removed', 'modified'].map((when) => ident(`${terms}_${when}`))

/** The entries of those words of a row that no row of the term table has. */
const entriesOfUnknown = (terms: SqlText, row: SqlText): SqlText =>
  entriesOf(sql`SELECT "_entry".key AS word FROM json_each(${row}.${termsColumn}) AS "_entry"
    WHERE ${isDictionaryWord(sql`"_entry".key`)} AND NOT EXISTS (SELECT 1 FROM ${terms} WHERE term = "_entry".key)`)

export const sqliteTermIndex: TermIndex = {
  create(table, { typos }) {
    const { name } = termTable(table)
    const [target, terms, words] = [ident(table.name), ident(name), ident(wordTable(table).name)]
    const [added, removed, modified] = triggerNames(name) as [SqlText, SqlText, SqlText]
    const add = sql`INSERT INTO ${terms} (term, "key", weight)
      SELECT key, new."_seq", value FROM json_each(new.${termsColumn}) WHERE substr(key, 1, 1) <> ${constant(comparedMark)};`
    const remove = sql`DELETE FROM ${terms}
      WHERE "key" = old."_seq" AND term IN (SELECT key FROM json_each(old.${termsColumn}));`
    const none = sql``
    // Words are added before the terms of their record, and removed after them.
    const addWords = typos ? sql`INSERT INTO ${words} (entry, word) ${entriesOfUnknown(terms, sql`new`)};` : none
    const removeWords = typos
      ? sql`DELETE FROM ${words} WHERE (entry, word) IN (${entriesOfUnknown(terms, sql`old`)});`
      : none
    const dictionary = sql`CREATE TABLE ${words} (entry TEXT NOT NULL, word TEXT NOT NULL, PRIMARY KEY (entry, word))
      WITHOUT ROWID`
    return [
      sql`CREATE TABLE ${terms} (term TEXT NOT NULL, "key" INTEGER NOT NULL, weight INTEGER NOT NULL,
        PRIMARY KEY (term, "key")) WITHOUT ROWID`,
      ...(typos ? [dictionary] : []),
      sql`CREATE TRIGGER ${added} AFTER INSERT ON ${target} BEGIN ${addWords} ${add} END`,
      sql`CREATE TRIGGER ${removed} AFTER DELETE ON ${target} BEGIN ${remove} ${removeWords} END`,
      sql`CREATE TRIGGER ${modified} AFTER UPDATE OF ${termsColumn} ON ${target}
        BEGIN ${addWords} ${remove} ${add} ${removeWords} END`,
    ]
  },
  drop(table) {
    const { name } = termTable(table)
    return [
      ...triggerNames(name).map((trigger) => sql`DROP TRIGGER IF EXISTS ${trigger}`),
      sql`DROP TABLE IF EXISTS ${ident(name)}`,
      sql`DROP TABLE IF EXISTS ${ident(wordTable(table).name)}`,
    ]
  },
  wordsUnder: (from, entries, limit) =>
    sql`SELECT "_known".word AS word FROM ${from}
      WHERE "_known".entry IN (SELECT value FROM json_each(${JSON.stringify(entries)})) LIMIT ${limit}`,
  entries: (column) => ({
    from: sql`json_each(${column}) AS "_entry"`,
    term: sql`"_entry".key`,
    weight: sql`"_entry".value`,
  }),
}
