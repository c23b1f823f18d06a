/**
 * Reads a change log from place to place: every change once, in an order that stays, whatever order transactions commit
 * in. Knows nothing of who wants to hear of them (`feed`).
 */

import { fingerprint } from '../../../base/crypto/hash.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Database, DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { RecordRow } from '../rows.ts'
import { changeBytes, changeLog, readBefore } from './changes.ts'

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
  /** The last change up to the place, by which another history is recognized; null where the log was empty. */
  readonly mark: Mark | null
}

/** A change of a log by its number, and enough of it to tell it from the one of the same number in another history. */
export interface Mark {
  readonly seq: number
  readonly atMs: number
  readonly hash: string
}

const markOf = ({ seq, at, request, table, id }: Pick<LogRow, 'seq' | 'at' | 'request' | 'table' | 'id'>): Mark => ({
  seq: Number(seq),
  atMs: Number(at),
  hash: fingerprint(`${request}\n${table}\n${id}`),
})

/** How much is read at a time: rows, and bytes of the records in them; the last row may exceed these. */
export interface PageSize {
  readonly changes: number
  readonly bytes: number
}

/** A row's way through one write, as the log holds it. Records are parsed when somebody looks. */
export class LoggedChange {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  readonly requestId: string
  readonly atMs: number
  /** The record as JSON, hidden fields included; null where there is none. */
  readonly afterText: string | null
  private readonly beforeText: string | null
  private parsedBefore: RecordRow | null | undefined
  private parsedAfter: RecordRow | null | undefined

  private knownPlace: Place | null = null

  constructor(
    private readonly row: LogRow,
    instanceId: string | null,
    private readonly batch: Batch,
  ) {
    this.instanceId = row.owner ?? instanceId
    this.table = row.table
    this.id = row.id
    this.requestId = row.request
    this.atMs = Number(row.at)
    this.beforeText = row.before
    this.afterText = row.after
  }

  /** The place just behind this change. */
  get place(): Place {
    this.knownPlace ??= { ...this.batch, seq: Number(this.row.seq), mark: markOf(this.row) }
    return this.knownPlace
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

/** What becomes of a table since a place. */
export interface Later {
  readonly changes: readonly LoggedChange[]
  /** The place behind the last of them. */
  readonly end: Place
}

export interface FeedReader {
  /** The place behind everything committed so far. */
  here(): Promise<Place>
  /** The changes behind a place, a page of them. */
  read(place: Place, size: PageSize): Promise<Page>
  /** A page of the changes between two places, of which the second is between batches and not before the first. */
  readUntil(place: Place, end: Place, size: PageSize): Promise<Page>
  /** How many changes there are between two places, and their bytes, counted up to `max` changes. */
  measure(place: Place, end: Place, max: number): Promise<PageSize>
  /** What has become of these tables since a place; null where that is more than `size`. */
  since(place: Place, tables: readonly string[], size: PageSize): Promise<Later | null>
  /** Whether anything has become of these tables since a place, as a part of a statement. */
  hasMoved(place: Place, tables: readonly string[]): SqlText
  /** Whether a place is of the history that the log has now. `trimmedMs`: older changes may be gone. */
  knows(place: Place, now: Place, trimmedMs: number): Promise<boolean>
  /** Names the history of the log: another one after it was lost or put back. */
  history(): Promise<string>
}

type Batch = Omit<Place, 'seq' | 'mark'>

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
  /** Number of the last row that the page has room for; null where all fit. */
  readonly cut: number | string | null
}

/** The log a database's changes are in: its own, or that of all instances of its namespace together. */
export function logAddress({ namespace, instanceId }: DatabaseAddress, { keepsInstancesApart }: Sql): DatabaseAddress {
  return { namespace, instanceId: keepsInstancesApart ? instanceId : null }
}

/**
 * `address` is a `logAddress`, `database` the one there; `perInstance` says whether the namespace is dynamic, `storage`
 * names what all logs are in.
 */
export function createFeedReader(
  database: Database,
  { namespace, instanceId }: DatabaseAddress,
  perInstance: boolean,
  nowMs: () => number,
  storage: Pick<Sql, 'origin'>,
): FeedReader {
  const { dialect } = database
  const { logView } = dialect
  // Whole, of all instances where they share it.
  const log = changeLog({ namespace, perInstance: false })
  const from = dialect.target(log)
  const columns = columnsOf(dialect, { namespace, perInstance })

  async function select(condition: SqlText, { changes, bytes }: PageSize): Promise<LogRow[]> {
    return database.all<LogRow>(
      sql`WITH found AS (SELECT seq, ${changeBytes} AS bytes FROM ${from} WHERE ${condition} ORDER BY seq LIMIT ${changes}),
        sums AS (SELECT seq, sum(bytes) OVER (ORDER BY seq) AS total FROM found),
        cut AS (SELECT min(seq) AS seq FROM sums WHERE total >= ${bytes})
      SELECT ${columns}, ${logView.snapshot(log)} AS snapshot, (SELECT seq FROM cut) AS cut FROM ${from}
      WHERE ${condition} AND seq <= coalesce((SELECT seq FROM cut), 9223372036854775807) ORDER BY seq LIMIT ${changes}`,
    )
  }

  /** Where a page of a batch ends: within the batch where it is full. */
  function pageOf(rows: readonly LogRow[], batch: Batch, before: Place, size: PageSize): Omit<Page, 'isLast'> {
    const changes = rows.map((row) => new LoggedChange(row, instanceId, batch))
    const last = rows.at(-1)
    const isFull = last !== undefined && (rows.length === size.changes || last.cut !== null)
    const end = changes.at(-1)?.place
    if (isFull && end) return { changes, next: end }
    const { to, atMs } = batch
    return { changes, next: { from: to, to, seq: 0, atMs, mark: end?.mark ?? before.mark } }
  }

  /** What is left of a batch whose end is known. */
  async function readBatch(place: Place, size: PageSize): Promise<Page> {
    const { from, to, seq, atMs } = place
    const rows = await select(sql`${logView.beyond(from)} AND ${logView.within(to)} AND seq > ${seq}`, size)
    return { ...pageOf(rows, { from, to, atMs }, place, size), isLast: false }
  }

  const ofTables = (tables: readonly string[]): SqlText => dialect.inList(ident('table'), tables, 'text')

  /** Everything behind a place, also one within a batch. */
  const behind = ({ from, to, seq }: Place): SqlText =>
    from === to
      ? logView.beyond(from)
      : sql`((${logView.beyond(from)} AND ${logView.within(to)} AND seq > ${seq}) OR (${logView.beyond(to)}))`

  return {
    async here() {
      const atMs = nowMs()
      const [row] = await database.all<Partial<LogRow> & { now: string }>(
        sql`SELECT ${logView.snapshot(log)} AS now, last.* FROM (SELECT 1) AS one LEFT JOIN
          (SELECT ${columns} FROM ${from} ORDER BY seq DESC LIMIT 1) AS last ON TRUE`,
      )
      const snapshot = row?.now ?? ''
      const mark = row?.seq === undefined || row.seq === null ? null : markOf(row as LogRow)
      return { from: snapshot, to: snapshot, seq: 0, atMs, mark }
    },
    async read(place, size) {
      if (place.from !== place.to) return readBatch(place, size)
      const atMs = nowMs()
      const { from } = place
      const rows = await select(logView.beyond(from), size)
      const to = rows[0]?.snapshot
      if (to === undefined) return { changes: [], next: { ...place, atMs }, isLast: true }
      const page = pageOf(rows, { from, to, atMs }, place, size)
      return { ...page, isLast: page.next.from === page.next.to }
    },
    async readUntil(place, end, size) {
      const isBetween = place.from === place.to
      const page = await readBatch(isBetween ? { ...place, to: end.to, atMs: end.atMs } : place, size)
      return { ...page, isLast: page.next.from === end.to }
    },
    async measure(place, end, max) {
      const [row] = await database.all<{ changes: number | string; bytes: number | string }>(
        sql`SELECT count(*) AS changes, coalesce(sum(bytes), 0) AS bytes FROM
          (SELECT ${changeBytes} AS bytes FROM ${from} WHERE ${behind(place)} AND ${logView.within(end.to)} ORDER BY seq LIMIT ${max}) AS part`,
      )
      return { changes: Number(row?.changes), bytes: Number(row?.bytes) }
    },
    async since(place, tables, size) {
      const atMs = nowMs()
      const { mark } = place
      const [now] = await database.all<{ snapshot: string }>(sql`SELECT ${logView.snapshot(log)} AS snapshot`)
      const to = now?.snapshot ?? place.to
      const condition = sql`${behind(place)} AND ${logView.within(to)} AND ${ofTables(tables)}`
      const rows = await select(condition, size)
      if (rows.length === size.changes || (rows[0]?.cut ?? null) !== null) return null
      const changes = rows.map((row) => new LoggedChange(row, instanceId, { from: place.from, to, atMs }))
      return { changes, end: { from: to, to, seq: 0, atMs, mark } }
    },
    hasMoved: (place, tables) => sql`EXISTS (SELECT 1 FROM ${from} WHERE ${behind(place)} AND ${ofTables(tables)})`,
    async knows({ to, mark }, now, trimmedMs) {
      if (logView.isAhead(to, now.to)) return false
      if (!mark) return true
      const [row] = await database.all<LogRow>(sql`SELECT ${columns} FROM ${from} WHERE seq = ${mark.seq}`)
      // A change that is gone can only be compared by its age.
      return row ? markOf(row).hash === mark.hash : mark.atMs < trimmedMs
    },
    async history() {
      // A database made by its first write would have another name before it than after it.
      if (instanceId !== null) return storage.origin()
      const histories = dialect.target({ namespace, name: '_history', perInstance: false })
      const [origin, [row]] = await Promise.all([
        storage.origin(),
        database.all<{ id: string }>(sql`SELECT id FROM ${histories}`),
      ])
      return row ? `${origin} ${row.id}` : origin
    },
  }
}

function columnsOf(dialect: Dialect, { namespace, perInstance }: { namespace: string; perInstance: boolean }): SqlText {
  const own = dialect.own({ namespace, name: '_changes', perInstance })
  const owner = own ? own.column : sql`NULL`
  const [table, id] = [ident('table'), ident('id')]
  return sql`seq, ${owner} AS owner, ${table} AS "table", ${id}, request, at, before, after`
}
