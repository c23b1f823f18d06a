/**
 * Statements that SQLite plans once instead of before each run. It looks at the values of parameters while it plans,
 * and plans such a statement again whenever one is bound. `confined` notices that; here is what may take its place.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { wordsOf } from '../statement.ts'
import { tokenize } from '../tokenizer.ts'

/** Plans that depend on values, whatever the three below show: a partial index, and a prefix in a view. */
const valueDependent = `SELECT 1 FROM sqlite_schema WHERE type = 'index' AND sql LIKE '%where%'
  OR type = 'view' AND (sql LIKE '%like%' OR sql LIKE '%glob%') LIMIT 1`

/** SQLite estimates -1, 0 and 1 otherwise than other values, and a `LIMIT` by its size. */
const extremes: readonly bigint[] = [1n, 1_000_000n]

const planOf = (database: DatabaseSync, query: string, values: readonly SQLInputValue[]): string =>
  database
    .prepare(`EXPLAIN QUERY PLAN ${query}`)
    .all(...values)
    .map(({ detail }) => detail)
    .join('\n')

const namesOf = (statement: StatementSync): string => JSON.stringify(statement.columns().map(({ name }) => name))

/**
 * The statement with `+?` for each `?`, an unknown value to the planner; null where that would change the names of its
 * columns, or might change its plan.
 */
export function findStable(
  database: DatabaseSync,
  { query, statement, values }: { query: string; statement: StatementSync; values: readonly SQLInputValue[] },
): StatementSync | null {
  const tokens = tokenize(query, 'sqlite')
  if (wordsOf(tokens).some((word) => word === 'like' || word === 'glob')) return null
  const text = tokens.map((token) => (token.kind === 'parameter' ? `+${token.text}` : token.text)).join('')
  const stable = prepared(database, text)
  if (stable === null || namesOf(stable) !== namesOf(statement)) return null
  if (database.prepare(valueDependent).get() !== undefined) return null
  const plan = planOf(database, text, values)
  const others = [values, ...extremes.map((value) => values.map(() => value))]
  return others.every((bound) => planOf(database, query, bound) === plan) ? stable : null
}

/** Null for a text at a limit of SQLite, which is now longer and deeper. */
function prepared(database: DatabaseSync, text: string): StatementSync | null {
  try {
    return database.prepare(text)
  } catch {
    return null
  }
}
