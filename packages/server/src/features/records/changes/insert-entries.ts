/**
 * Appends to a log that refers to rows (`addLogRow`). An entry of inserts is of the rows that a request inserts in
 * succession, or of the single rows that several requests insert in succession, in one commit and one millisecond.
 */
import type { Dialect, TableRef } from '../../../engines/sql/dialect.ts'
import type { Append } from '../../../engines/sql/sql.ts'
import { ident, type SqlScalar, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { sharedEntryChangesMax, sharedEntryCharsMax } from '../../../limits/sqlite.ts'
import { isInsertVersion } from '../version.ts'
import { type Change, changeLog, createAppendChange, isReferable, valuesOf } from './changes.ts'

/** Appends inserts of one version, whose rows have successive keys. */
export type AppendInserts = (inserts: readonly Change[], requestId: string, nowMs: number) => Append

/** The statements that append to the log of a table. */
interface Statements {
  readonly table: string
  /** An insert with the next number, and several with the number of the last. */
  readonly one: string
  readonly many: string
  /** The last number of the log. */
  readonly number: SqlText
}

/** Ids of requests are sent in headers and have no spaces. */
const separator = ' '

/** What the ids of the requests to one process have in common. */
const prefixOf = (requestId: string): string => requestId.slice(0, requestId.lastIndexOf('-') + 1)

/** The requests of the changes of an entry: one for all, or one for each, of which only the first has the prefix. */
export function readRequests(text: string, changes: number): readonly string[] {
  const [first = '', ...others] = text.split(separator)
  if (changes === 1 || others.length + 1 < changes) return Array.from({ length: changes }, () => text)
  return [first, ...others.map((other) => prefixOf(first) + other)]
}

class InsertEntry implements Append {
  readonly #statements: Statements
  readonly #first: Change
  readonly #requestId: string
  readonly #nowMs: number
  /** Only the inserts of requests that insert one each share an entry. */
  readonly #isSharable: boolean
  readonly #sizes: number[]
  #chars: number
  #requests: string

  constructor(statements: Statements, inserts: readonly Change[], requestId: string, nowMs: number) {
    this.#statements = statements
    this.#first = inserts[0] as Change
    this.#requestId = requestId
    this.#nowMs = nowMs
    this.#isSharable = inserts.length === 1
    this.#sizes = inserts.map(({ afterText }) => (afterText as string).length)
    this.#chars = this.#sizes.reduce((sum, size) => sum + size, 0)
    this.#requests = requestId
  }

  takeOver(next: Append): boolean {
    if (!(next instanceof InsertEntry) || !this.#canTake(next)) return false
    this.#sizes.push(...next.#sizes)
    this.#chars += next.#chars
    this.#requests += separator + next.#requestId.slice(prefixOf(this.#requestId).length)
    return true
  }

  #canTake(next: InsertEntry): boolean {
    return (
      this.#isSharable &&
      next.#isSharable &&
      this.#statements === next.#statements &&
      this.#nowMs === next.#nowMs &&
      this.#first.version === next.#first.version &&
      prefixOf(this.#requestId) === prefixOf(next.#requestId) &&
      this.#sizes.length < sharedEntryChangesMax &&
      this.#chars + next.#chars <= sharedEntryCharsMax
    )
  }

  get text(): string {
    return this.#sizes.length === 1 ? this.#statements.one : this.#statements.many
  }

  get values(): SqlScalar[] {
    const { table, number } = this.#statements
    const sizes = `[${this.#sizes.join()}]`
    const values = [this.#nowMs, this.#requests, table, this.#first.version, sizes, this.#first.id]
    return this.#sizes.length === 1 ? values : [...(number.values as string[]), this.#sizes.length, ...values]
  }
}

/** The parts of all statements: before the columns of the log, and the key of the row with an id, up to that. */
function createParts(table: TableRef, dialect: Dialect): { readonly head: string; readonly key: string } {
  return {
    head: sql`INSERT INTO ${dialect.target(changeLog(table))} `.text,
    key: sql`(SELECT ${dialect.rowKey ?? ident('id')} FROM ${dialect.target(table)} WHERE "id" = `.text,
  }
}

function createAppendInserts(table: TableRef, dialect: Dialect): AppendInserts {
  const log = changeLog(table)
  const { head, key } = createParts(table, dialect)
  const number = sql`CAST(${dialect.logView.snapshot(log)} AS INTEGER)`
  const statementOf = (columns: string, values: string): string =>
    // The id of the entry stays empty: it is in the row.
    `${head}(${columns}at, request, "table", id, version, after, "row")
      VALUES (${values}?, ?, ?, '', ?, ?, ${key}?))`
  const statements: Statements = {
    table: table.name,
    one: statementOf('', ''),
    many: statementOf('seq, ', `${number.text} + ?, `),
    number,
  }
  return (inserts, requestId, nowMs) => new InsertEntry(statements, inserts, requestId, nowMs)
}

/** The statements of a table whose log refers to rows (`Dialect.logRefersToRows`). */
export interface ReferringAppends {
  /** To be run after an insert or an update, and before a removal, since it looks up the key of the row. */
  readonly change: (change: Change, requestId: string, nowMs: number) => Append
  readonly inserts: AppendInserts
}

export function createReferringAppends(table: TableRef, dialect: Dialect): ReferringAppends {
  const complete = createAppendChange(table, dialect)
  const inserts = createAppendInserts(table, dialect)
  const { head, key } = createParts(table, dialect)
  const first = `${head}(at, request, "table", id, version, before, after, "row") VALUES (?, ?, ?, ?, ?, ?, ?, ${key}?))`
  return {
    inserts,
    change(change, requestId, nowMs) {
      if (isReferable(change)) return inserts([change], requestId, nowMs)
      const isFirst = change.before !== null && isInsertVersion(change.versionBefore)
      if (!isFirst) return complete(change, requestId, nowMs)
      return { text: first, values: [...valuesOf(change, table, requestId, nowMs), change.id] }
    },
  }
}
