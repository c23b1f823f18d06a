/**
 * Reads a change log from position to position: every change once, in a stable order, regardless of the order in which
 * transactions commit. `log-follower` follows logs with it.
 */
import { fingerprint } from '../../../base/crypto/hash.ts'
import type { BatchPosition, Dialect } from '../../../engines/sql/dialect.ts'
import type { Database, DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { RecordRow } from '../rows.ts'
import { changeLog, entryBytes, entryChanges, parseRecord, readBefore } from './changes.ts'
import { changesOfEntries, createResolveReferences, type EntryChange, type FindRows } from './inserted-records.ts'

/** A batch is in order of `seq`: of two changes of a row the later one has the larger number. */
export interface LogPosition extends BatchPosition {
  /** A time, in milliseconds since 1970, when nothing beyond the position had been committed. */
  readonly atMs: number
  /** The last change up to the position, which identifies the history; null where the log was empty. */
  readonly mark: Mark | null
}

/** The number of a change, and a hash that differs for the change of the same number in another history. */
export interface Mark {
  readonly seq: number
  readonly atMs: number
  readonly hash: string
}

const markOf = ({ seq, at, request, table, storedId }: LogRow): Mark => ({
  seq: Number(seq),
  atMs: Number(at),
  hash: fingerprint(`${request}\n${table}\n${storedId}`),
})

/** How much is read at a time: rows, and bytes of the records in them; the last row may exceed these. */
export interface PageSize {
  readonly changes: number
  readonly bytes: number
}

/** The change of a row by one write, as the log stores it. Records are parsed on first access. */
export class LoggedChange {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  readonly requestId: string
  readonly atMs: number
  /** The version of the row after the change; 0 for changes from before versions. */
  readonly version: number
  /** The record as JSON, hidden fields included; null where there is none. */
  readonly afterText: string | null
  readonly #beforeText: string | null
  #parsedBefore: RecordRow | null | undefined
  #parsedAfter: RecordRow | null | undefined
  #knownPosition: LogPosition | null = null
  readonly #row: LogRow
  readonly #batch: Batch

  constructor(row: LogRow, instanceId: string | null, batch: Batch) {
    this.#row = row
    this.#batch = batch
    this.instanceId = row.owner ?? instanceId
    this.table = row.table
    this.id = row.id
    this.requestId = row.request
    this.atMs = Number(row.at)
    this.version = Number(row.version ?? 0)
    this.#beforeText = row.before
    this.afterText = row.after
  }

  /** The position after this change. */
  get position(): LogPosition {
    this.#knownPosition ??= positionAfter(this.#row, this.#batch)
    return this.#knownPosition
  }

  /** Characters that the log stores. */
  get size(): number {
    return (this.#beforeText?.length ?? 0) + (this.afterText?.length ?? 0)
  }

  get before(): RecordRow | null {
    this.#parsedBefore ??= readBefore(this.#beforeText, this.after)
    return this.#parsedBefore
  }

  get after(): RecordRow | null {
    this.#parsedAfter ??= parseRecord(this.afterText)
    return this.#parsedAfter
  }
}

export interface Page {
  readonly changes: readonly LoggedChange[]
  /** Where the next page begins. */
  readonly next: LogPosition
  /** Whether nothing followed when the page was read. */
  readonly isLast: boolean
}

/** The changes of some tables since a position. */
export interface Later {
  readonly changes: readonly LoggedChange[]
  /** The position after the last of them. */
  readonly end: LogPosition
}

export interface ChangeLogReader {
  /** The position after everything committed so far. */
  currentPosition(): Promise<LogPosition>
  /** A page of the changes after a position. */
  read(position: LogPosition, size: PageSize): Promise<Page>
  /** A page of the changes between two positions, of which the second is between batches and not before the first. */
  readUntil(position: LogPosition, end: LogPosition, size: PageSize): Promise<Page>
  /** How many changes there are between two positions, and their bytes, counted up to `max` changes. */
  measure(position: LogPosition, end: LogPosition, max: number): Promise<PageSize>
  /** The changes of these tables since a position; null where they exceed `size`. */
  changesSince(position: LogPosition, tables: readonly string[], size: PageSize): Promise<Later | null>
  /** Whether these tables have changed since a position, as a part of a statement. */
  hasChangedSince(position: LogPosition, tables: readonly string[]): SqlText
  /** Whether a position is of the log's current history. `trimmedMs`: changes before this time may be deleted. */
  isOfHistory(position: LogPosition, now: LogPosition, trimmedMs: number): Promise<boolean>
  /** Identifies the history of the log, which changes when the log is lost or restored. */
  history(): Promise<string>
}

type Batch = Omit<LogPosition, 'seq' | 'mark'>

/** The changes of entries, of which a position may be within the first. */
const changesAfter = ({ from, to, seq }: LogPosition, entries: readonly LogRow[]): EntryChange<LogRow>[] =>
  changesOfEntries(entries).filter((change) => from === to || change.seq > seq)

const positionAfter = (row: LogRow, batch: Batch): LogPosition => ({
  ...batch,
  seq: Number(row.seq),
  mark: markOf(row),
})

/** An entry of the log, or one of its changes. */
interface LogRow {
  readonly seq: number | string
  readonly owner: string | null
  readonly table: string
  readonly id: string
  /** The id in the entry: empty where it is of inserts. */
  readonly storedId: string
  readonly request: string
  readonly at: number | string
  readonly version: number | string | null
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

export interface ChangeLogReaderDeps {
  /** The database at the address. */
  readonly database: Database
  /** A `logAddress`. */
  readonly address: DatabaseAddress
  /** Whether the namespace is dynamic. */
  readonly perInstance: boolean
  readonly findRows: FindRows
  readonly nowMs: () => number
  /** Names what all logs are in. */
  readonly storage: Pick<Sql, 'origin'>
}

/** Makes changes and pages of the rows of a log. */
function createPages({ database, address: { instanceId }, findRows }: ChangeLogReaderDeps) {
  const resolve = createResolveReferences(database, findRows)

  const changesOf = async (rows: readonly EntryChange<LogRow>[], batch: Batch): Promise<LoggedChange[]> =>
    (await resolve(rows)).map((row) => new LoggedChange(row, instanceId, batch))

  /** Where a page of a batch ends: within the batch where it is full. */
  async function pageOf(
    entries: readonly LogRow[],
    batch: Batch,
    before: LogPosition,
    size: PageSize,
  ): Promise<Omit<Page, 'isLast'>> {
    const all = changesAfter(before, entries)
    const rows = all.slice(0, size.changes)
    const changes = await changesOf(rows, batch)
    const last = rows.at(-1)
    const isFull = last !== undefined && (rows.length === size.changes || last.cut !== null)
    if (isFull) return { changes, next: positionAfter(last, batch) }
    const { to, atMs } = batch
    return { changes, next: { from: to, to, seq: 0, atMs, mark: last ? markOf(last) : before.mark } }
  }

  return { changesOf, pageOf }
}

export function createChangeLogReader(deps: ChangeLogReaderDeps): ChangeLogReader {
  const { database, perInstance, nowMs, storage } = deps
  const { namespace, instanceId } = deps.address
  const { dialect } = database
  const bytesOf = entryBytes(dialect)
  const changesIn = entryChanges(dialect)
  const { logView } = dialect
  // All of it, of all instances where they share one.
  const log = changeLog({ namespace, perInstance: false })
  const from = dialect.target(log)
  const columns = columnsOf(dialect, { namespace, perInstance })

  /** Entries with as many changes, or a few more. */
  async function select(condition: SqlText, { changes, bytes }: PageSize): Promise<LogRow[]> {
    return database.all<LogRow>(
      sql`WITH found AS (SELECT seq, ${bytesOf} AS bytes, ${changesIn} AS changes FROM ${from} WHERE ${condition}
          ORDER BY seq LIMIT ${changes}),
        sums AS (SELECT seq, sum(bytes) OVER running AS bytes, sum(changes) OVER running AS changes FROM found
          WINDOW running AS (ORDER BY seq)),
        cut AS (SELECT min(seq) AS seq FROM sums WHERE bytes >= ${bytes} OR changes >= ${changes})
      SELECT ${columns}, ${logView.snapshot(log)} AS snapshot, (SELECT seq FROM cut) AS cut FROM ${from}
      WHERE ${condition} AND seq <= coalesce((SELECT seq FROM cut), 9223372036854775807) ORDER BY seq LIMIT ${changes}`,
    )
  }

  const { changesOf, pageOf } = createPages(deps)

  /** The rest of a batch whose end is known. */
  async function readBatch(position: LogPosition, size: PageSize): Promise<Page> {
    const { from, to, atMs } = position
    const rows = await select(logView.rest(position), size)
    return { ...(await pageOf(rows, { from, to, atMs }, position, size)), isLast: false }
  }

  const ofTables = (tables: readonly string[]): SqlText => dialect.inList(ident('table'), tables, 'text')

  return {
    async currentPosition() {
      const atMs = nowMs()
      const [row] = await database.all<Partial<LogRow> & { now: string }>(
        sql`SELECT ${logView.snapshot(log)} AS now, last.* FROM (SELECT 1) AS one LEFT JOIN
          (SELECT ${columns} FROM ${from} ORDER BY seq DESC LIMIT 1) AS last ON TRUE`,
      )
      const snapshot = row?.now ?? ''
      const isEmpty = row?.seq === undefined || row.seq === null
      const last = isEmpty ? undefined : changesOfEntries([row as LogRow]).at(-1)
      return { from: snapshot, to: snapshot, seq: 0, atMs, mark: last ? markOf(last) : null }
    },
    async read(position, size) {
      if (position.from !== position.to) return readBatch(position, size)
      const atMs = nowMs()
      const { from } = position
      const rows = await select(logView.beyond(from), size)
      const to = rows[0]?.snapshot
      if (to === undefined) return { changes: [], next: { ...position, atMs }, isLast: true }
      const page = await pageOf(rows, { from, to, atMs }, position, size)
      return { ...page, isLast: page.next.from === page.next.to }
    },
    async readUntil(position, end, size) {
      const isBetween = position.from === position.to
      const page = await readBatch(isBetween ? { ...position, to: end.to, atMs: end.atMs } : position, size)
      return { ...page, isLast: page.next.from === end.to }
    },
    async measure(position, end, max) {
      const [row] = await database.all<{ changes: number | string; bytes: number | string }>(
        sql`SELECT coalesce(sum(changes), 0) AS changes, coalesce(sum(bytes), 0) AS bytes FROM
          (SELECT ${bytesOf} AS bytes, ${changesIn} AS changes FROM ${from} WHERE ${logView.after(position)} AND ${logView.within(end.to)} ORDER BY seq LIMIT ${max}) AS part`,
      )
      return { changes: Number(row?.changes), bytes: Number(row?.bytes) }
    },
    async changesSince(position, tables, size) {
      const atMs = nowMs()
      const { mark } = position
      const [now] = await database.all<{ snapshot: string }>(sql`SELECT ${logView.snapshot(log)} AS snapshot`)
      const to = now?.snapshot ?? position.to
      const condition = sql`${logView.after(position)} AND ${logView.within(to)} AND ${ofTables(tables)}`
      const rows = await select(condition, size)
      const found = changesAfter(position, rows)
      if (found.length >= size.changes || (rows[0]?.cut ?? null) !== null) return null
      const changes = await changesOf(found, { from: position.from, to, atMs })
      return { changes, end: { from: to, to, seq: 0, atMs, mark } }
    },
    hasChangedSince: (position, tables) =>
      sql`EXISTS (SELECT 1 FROM ${from} WHERE ${logView.after(position)} AND ${ofTables(tables)})`,
    async isOfHistory({ to, mark }, now, trimmedMs) {
      if (logView.isAhead(to, now.to)) return false
      if (!mark) return true
      // The entry of a change has its number, or a later one where it is of several.
      const [row] = await database.all<LogRow>(
        sql`SELECT ${columns} FROM ${from} WHERE seq >= ${mark.seq} ORDER BY seq LIMIT 1`,
      )
      const found = row && changesOfEntries([row]).find(({ seq }) => seq === mark.seq)
      // A change that is deleted can only be compared by its age.
      return found ? markOf(found).hash === mark.hash : mark.atMs < trimmedMs
    },
    async history() {
      // A database that its first write creates would have another id before it than after it.
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
  return sql`seq, ${owner} AS owner, ${table} AS "table", ${id}, ${id} AS "storedId", request, at, version, before, after`
}
