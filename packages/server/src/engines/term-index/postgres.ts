/** The term index in PostgreSQL: tables per declared table, filled by a trigger from the column of terms. */
import type { TableRef, TermIndex } from '../sql/dialect.ts'
import { ident, type SqlText, sql } from '../sql/sql-text.ts'
import { comparedMark, termsColumn, termTable, wordTable } from './term-index.ts'
import { entriesOf, firstEntriesOf, isDictionaryWord } from './word-entries.ts'

const instanceColumn = ident('_instance')

const qualified = ({ namespace, name }: TableRef): SqlText => sql`${ident(namespace)}.${ident(name)}`

const triggerOf = ({ name }: TableRef): SqlText => ident(`${name}_kept`)

const none = sql``

/** The body of a function as a literal; it has no parameters. */
const quoted = ({ text }: SqlText): SqlText => ({ text: `'${text.replaceAll("'", "''")}'`, values: [] })

const mark: SqlText = { text: `'${comparedMark}'`, values: [] }

/** A term table with its dictionary, in the function of its trigger. */
interface Tables {
  readonly terms: SqlText
  readonly words: SqlText
  /** `_instance, ` in a list of columns, and the condition that rows are of the instance of a row; or empty. */
  readonly owner: SqlText
  ownerOf(row: SqlText): SqlText
  isOwn(alias: SqlText, row: SqlText): SqlText
}

function tablesOf(table: TableRef): Tables {
  const { perInstance } = table
  return {
    terms: qualified(termTable(table)),
    words: qualified(wordTable(table)),
    owner: perInstance ? sql`${instanceColumn}, ` : none,
    ownerOf: (row) => (perInstance ? sql`${row}.${instanceColumn}, ` : none),
    isOwn: (alias, row) => (perInstance ? sql`${alias}.${instanceColumn} = ${row}.${instanceColumn} AND ` : none),
  }
}

/** The words of a row, with a condition. */
const wordsOf = (row: SqlText, condition = none): SqlText =>
  sql`SELECT entry.key COLLATE "C" AS word FROM json_each_text(${row}.${termsColumn}) AS entry
    WHERE ${isDictionaryWord(sql`entry.key`)} ${condition}`

/** The rows of the dictionary with the first entries of words: these rows are locked. */
const known = ({ words, isOwn }: Tables, row: SqlText, searched: SqlText): SqlText =>
  sql`(${firstEntriesOf(searched)}) AS "_first" JOIN ${words} AS "_known"
    ON ${isOwn(sql`"_known"`, row)}"_known".entry = "_first".entry AND "_known".word = "_first".word`

/**
 * Adds words that are missing, and locks the others, so that no transaction removes them before this one ends. Waits
 * for none: a word that another transaction adds or may be removing is added once more, as a copy of this transaction.
 */
const addWords = (tables: Tables): SqlText => sql`
  WITH held AS (
    SELECT "_known".word FROM ${known(tables, sql`NEW`, wordsOf(sql`NEW`))} FOR KEY SHARE OF "_known" SKIP LOCKED
  )
  INSERT INTO ${tables.words} (${tables.owner}entry, word)
    SELECT ${tables.ownerOf(sql`NEW`)}entry, word FROM (${entriesOf(wordsOf(sql`NEW`))}) AS "_added"
    WHERE word NOT IN (SELECT held.word FROM held);`

/** Whether no record has a word. */
const isUnused = ({ terms, isOwn }: Tables, word: SqlText): SqlText =>
  sql`NOT EXISTS (SELECT FROM ${terms} AS "_of" WHERE ${isOwn(sql`"_of"`, sql`OLD`)}"_of".term = ${word})`

/**
 * Removes the words that no record has. Those that another transaction has locked stay, since a record of it may have
 * them. The second statement sees what was committed before the locks were taken.
 */
const removeWords = (tables: Tables): SqlText => sql`
  SELECT array_agg(free.word), array_agg(free.copy) INTO free_words, free_copies FROM (
    SELECT "_known".word, "_known".copy
    FROM ${known(tables, sql`OLD`, wordsOf(sql`OLD`, sql`AND ${isUnused(tables, sql`entry.key`)}`))}
    FOR UPDATE OF "_known" SKIP LOCKED
  ) AS free;
  IF free_words IS NOT NULL THEN
    DELETE FROM ${tables.words} AS "_known" USING (${entriesOf(sql`SELECT DISTINCT free.word COLLATE "C" AS word
      FROM unnest(free_words) AS free(word) WHERE ${isUnused(tables, sql`free.word`)}`)}) AS gone
    WHERE ${tables.isOwn(sql`"_known"`, sql`OLD`)}"_known".entry = gone.entry AND "_known".word = gone.word
      AND ("_known".word, "_known".copy) IN (SELECT * FROM unnest(free_words, free_copies));
  END IF;`

/** Words are added before the terms of their record, and removed after them. */
function createFunction(table: TableRef, typos: boolean): SqlText {
  const tables = tablesOf(table)
  const { terms, owner, ownerOf, isOwn } = tables
  const body = sql`
    DECLARE
      free_words TEXT[];
      free_copies BIGINT[];
    BEGIN
      IF TG_OP <> 'DELETE' THEN ${typos ? addWords(tables) : sql`NULL;`} END IF;
      IF TG_OP <> 'INSERT' THEN
        DELETE FROM ${terms} AS "_of" WHERE ${isOwn(sql`"_of"`, sql`OLD`)}"_of"."key" = OLD."id"
          AND "_of".term IN (SELECT entry.key FROM json_each_text(OLD.${termsColumn}) AS entry);
      END IF;
      IF TG_OP <> 'DELETE' THEN
        INSERT INTO ${terms} (${owner}term, "key", weight)
          SELECT ${ownerOf(sql`NEW`)}entry.key, NEW."id", entry.value::int
          FROM json_each_text(NEW.${termsColumn}) AS entry WHERE left(entry.key, 1) <> ${mark};
      END IF;
      IF TG_OP <> 'INSERT' THEN ${typos ? removeWords(tables) : sql`NULL;`} END IF;
      RETURN NULL;
    END`
  return sql`CREATE FUNCTION ${terms}() RETURNS trigger LANGUAGE plpgsql AS ${quoted(body)}`
}

/** A copy of a word is that of the transaction that added it. */
function createDictionary(table: TableRef): SqlText {
  const { words, owner } = tablesOf(table)
  const column = table.perInstance ? sql`${instanceColumn} TEXT COLLATE "C" NOT NULL, ` : none
  return sql`CREATE TABLE ${words} (${column}entry TEXT COLLATE "C" NOT NULL, word TEXT COLLATE "C" NOT NULL,
    copy BIGINT NOT NULL DEFAULT txid_current(), PRIMARY KEY (${owner}entry, word, copy))`
}

export const postgresTermIndex: TermIndex = {
  create(table, { typos }) {
    const terms = termTable(table)
    const [owner, key] = terms.perInstance
      ? [sql`${instanceColumn} TEXT COLLATE "C" NOT NULL, `, sql`${instanceColumn}, term, "key"`]
      : [none, sql`term, "key"`]
    return [
      sql`CREATE TABLE ${qualified(terms)} (${owner}term TEXT COLLATE "C" NOT NULL, "key" TEXT COLLATE "C" NOT NULL,
        weight INTEGER NOT NULL, PRIMARY KEY (${key}))`,
      ...(typos ? [createDictionary(table)] : []),
      createFunction(table, typos),
      sql`CREATE TRIGGER ${triggerOf(terms)} AFTER INSERT OR DELETE OR UPDATE OF ${termsColumn} ON ${qualified(table)}
        FOR EACH ROW EXECUTE FUNCTION ${qualified(terms)}()`,
    ]
  },
  drop(table) {
    const terms = termTable(table)
    return [
      sql`DROP TRIGGER IF EXISTS ${triggerOf(terms)} ON ${qualified(table)}`,
      sql`DROP FUNCTION IF EXISTS ${qualified(terms)}()`,
      sql`DROP TABLE IF EXISTS ${qualified(terms)}`,
      sql`DROP TABLE IF EXISTS ${qualified(wordTable(table))}`,
    ]
  },
  // Looks up each entry: with a list of entries, the planner may read the whole table.
  wordsUnder: (from, entries, limit) =>
    sql`SELECT "_found".word FROM unnest(${entries}::text[]) AS "_looked"(entry) CROSS JOIN LATERAL (
        SELECT "_known".word FROM ${from} WHERE "_known".entry = "_looked".entry COLLATE "C"
        ORDER BY "_known".word LIMIT ${limit}
      ) AS "_found" LIMIT ${limit}`,
  entries: (column) => ({
    from: sql`json_each_text(${column}) AS "_entry"(term, weight)`,
    term: sql`"_entry".term COLLATE "C"`,
    weight: sql`"_entry".weight::int`,
  }),
}
