/**
 * Reads a change log from place to place: every change once, in an order that stays, whatever order transactions commit
 * in. Knows nothing of who wants to hear of them (`feed`).
 */
import type { Dialect } from '../../engines/dialect.ts'
import type { Database, DatabaseAddress, Sql } from '../../engines/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql-text.ts'
import { changeLog, readBefore } from './changes.ts'
import type { RecordRow } from './rows.ts'

/**
 * Everything within `from`, and of what `to` adds to it, in order of `seq`, what comes up to `seq`. Where both are the
 * same snapshot, the place is between two batches. A batch is in order of `seq`, since whoever changes a row after
 * somebody else takes the number after.
 */
export interface Place {
  readonly from: string
  readonly to: string
  readonly seq: number
  /** A time, in milliseconds since 1970, at which nothing beyond the place had been committed. */
  readonly atMs: number
}

/** A row's way through one write, as the log holds it. Records are parsed when somebody looks. */
export class LoggedChange {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  readonly requestId: string
  readonly atMs: number
  /** The place just behind this change. */
  readonly place: Place
  /** The record as JSON, hidden fields included; null where there is none. */
  readonly afterText: string | null
  private readonly beforeText: string | null
  private parsedBefore: RecordRow | null | undefined
  private parsedAfter: RecordRow | null | undefined

  constructor(row: LogRow, instanceId: string | null, batch: Omit<Place, 'seq'>) {
    this.instanceId = row.owner ?? instanceId
    this.table = row.table
    this.id = row.id
    this.requestId = row.request
    this.atMs = Number(row.at)
    this.place = { ...batch, seq: Number(row.seq) }
    this.beforeText = row.before
    this.afterText = row.after
  }

  /** Characters of what the log holds. */
  get size(): number {
    return (this.beforeText?.length ?? 0) + (this.afterText?.length ?? 0)
  }

  get before(): RecordRow | null {
    this.parsedBefore ??= readBefore(this.beforeText, this.after)
    return this.parsedBefore
  }

  get after(): RecordRow | null {
    this.parsedAfter ??= parse(this.afterText)
    return this.parsedAfter
  }
}

const parse = (text: string | null): RecordRow | null => (text === null ? null : (JSON.parse(text) as RecordRow))

export interface Page {
  readonly changes: readonly LoggedChange[]
  /** Where to go on. */
  readonly next: Place
  /** Nothing more was there when the page was read. */
  readonly isLast: boolean
}

export interface FeedReader {
  /** The place behind everything committed so far. */
  here(): Promise<Place>
  /** At most `limit` changes behind a place. */
  read(place: Place, limit: number): Promise<Page>
  /** At most `limit` changes between two places, of which the second is between batches and not before the first. */
  readUntil(place: Place, end: Place, limit: number): Promise<Page>
  /** Whether a place is one this log has been at. */
  hasBeenAt(place: Place, now: Place): boolean
}

interface LogRow {
  readonly seq: number | string
  readonly owner: string | null
  readonly table: string
  readonly id: string
  readonly request: string
  readonly at: number | string
  readonly before: string | null
  readonly after: string | null
  readonly snapshot: string
}

/** The log a database's changes are in: its own, or that of all instances of its namespace together. */
export function logAddress({ namespace, instanceId }: DatabaseAddress, { keepsInstancesApart }: Sql): DatabaseAddress {
  return { namespace, instanceId: keepsInstancesApart ? instanceId : null }
}

/** `address` is a `logAddress`, `database` the one there; `perInstance` says whether the namespace is dynamic. */
export function createFeedReader(
  database: Database,
  { namespace, instanceId }: DatabaseAddress,
  perInstance: boolean,
  nowMs: () => number,
): FeedReader {
  const { dialect } = database
  const { logView } = dialect
  // Whole, of all instances where they share it.
  const log = changeLog({ namespace, perInstance: false })
  const from = dialect.target(log)
  const columns = columnsOf(dialect, { namespace, perInstance })

  async function select(condition: SqlText, limit: number): Promise<LogRow[]> {
    return database.all<LogRow>(
      sql`SELECT ${columns}, ${logView.snapshot(log)} AS snapshot FROM ${from} WHERE ${condition} ORDER BY seq LIMIT ${limit}`,
    )
  }

  /** What is left of a batch whose end is known. */
  async function readBatch({ from, to, seq, atMs }: Place, limit: number): Promise<Page> {
    const rows = await select(sql`${logView.beyond(from)} AND ${logView.within(to)} AND seq > ${seq}`, limit)
    const changes = rows.map((row) => new LoggedChange(row, instanceId, { from, to, atMs }))
    const next = rows.length === limit ? changes.at(-1)?.place : undefined
    return { changes, next: next ?? { from: to, to, seq: 0, atMs }, isLast: false }
  }

  return {
    async here() {
      const atMs = nowMs()
      const [row] = await database.all<{ snapshot: string }>(sql`SELECT ${logView.snapshot(log)} AS snapshot`)
      const snapshot = row?.snapshot ?? ''
      return { from: snapshot, to: snapshot, seq: 0, atMs }
    },
    async read(place, limit) {
      if (place.from !== place.to) return readBatch(place, limit)
      const atMs = nowMs()
      const { from } = place
      const rows = await select(logView.beyond(from), limit)
      const to = rows[0]?.snapshot
      if (to === undefined) return { changes: [], next: { ...place, atMs }, isLast: true }
      const changes = rows.map((row) => new LoggedChange(row, instanceId, { from, to, atMs }))
      const next = rows.length === limit ? changes.at(-1)?.place : undefined
      return { changes, next: next ?? { from: to, to, seq: 0, atMs }, isLast: next === undefined }
    },
    async readUntil(place, end, limit) {
      const isBetween = place.from === place.to
      const page = await readBatch(isBetween ? { ...place, to: end.to, atMs: end.atMs } : place, limit)
      return { ...page, isLast: page.next.from === end.to }
    },
    hasBeenAt: (place, now) => !logView.isAhead(place.to, now.to),
  }
}

function columnsOf(dialect: Dialect, { namespace, perInstance }: { namespace: string; perInstance: boolean }): SqlText {
  const own = dialect.own({ namespace, name: '_changes', perInstance })
  const owner = own ? own.column : sql`NULL`
  const [table, id] = [ident('table'), ident('id')]
  return sql`seq, ${owner} AS owner, ${table} AS "table", ${id}, request, at, before, after`
}
