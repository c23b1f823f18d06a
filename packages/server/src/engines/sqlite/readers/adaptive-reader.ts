/**
 * Moves slow reads to threads. A statement that scans a large file runs in a thread from its first run, and so does a
 * full-text search of a large file for frequent words. Other slow statements are learned: one that repeatedly takes
 * long on the main thread moves to a thread.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import { type RunTime, runTime, type Start } from '../../../base/concurrency/run-time.ts'
import {
  fileSizeCheckMs,
  quickReadBytes,
  quickSkipsMax,
  quickVisitsMax,
  slowReadBytes,
  slowReadMs,
  slowReadRunsPerPlanCheck,
  statementCacheEntriesMax,
} from '../../../limits/sqlite.ts'
import { type PageQuery, type PageRows, plainPage, windowOf } from '../../sql/page-query.ts'
import type { SqlRow } from '../../sql/sql.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import type { Connection } from '../connection.ts'
import type { ReaderThreads } from './reader-threads.ts'
import { createWordFrequencies } from './word-frequencies.ts'

/** Statistics of one statement. */
interface Pace {
  isSlow: boolean
  /** Whether it sorts: it then sorts keys instead of rows. */
  isSorted: boolean
  /** Whether its plan has been classified, which happens once the file is large. */
  isPlanned: boolean
  runs: number
  /**
   * Rises with slow runs and decays with fast ones: a single slow run may be caused by a cold disk, several are the
   * statement's. Time in which other processes occupy the processor does not count.
   */
  strikes: number
}

const strikesMax = 3
const strikesForgivenPerRun = 0.05
/** A run this many times longer than a slow one counts as all strikes at once. */
const verySlowFactor = 10

/** A full scan with a condition, or a sort of everything: its cost grows with the table. */
const growsWithTable = /^SCAN (?!CONSTANT|json_each)|USE TEMP B-TREE FOR ORDER BY/
/** The rows of a sub-select that is computed beforehand. */
const computes = /^(?:CO-ROUTINE|MATERIALIZE) (\S+)/
const scans = /^SCAN (?!CONSTANT)(\S+)/
const sorts = /USE TEMP B-TREE FOR (?:ORDER BY|LAST \d+ TERMS? OF ORDER BY|LAST TERM OF ORDER BY)/

/** Whether a plan scans a table: not the list of a parameter, and not the rows of a sub-select. */
function scansTable(plan: readonly string[]): boolean {
  const computed = new Set(plan.map((step) => computes.exec(step)?.[1]))
  return plan.some((step) => {
    const scanned = scans.exec(step)?.[1]
    return scanned !== undefined && !computed.has(scanned) && !step.includes('VIRTUAL TABLE')
  })
}

const fileBytes: SqlText = {
  text: 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
  values: [],
}

/** Reads through one connection, and in threads what is known or has proved to be slow. */
export interface AdaptiveReader {
  /** `onRead` is called only if the rows are read on the main thread. */
  all(query: SqlText, onRead?: (rows: SqlRow[]) => void, caller?: string): SqlRow[] | Promise<SqlRow[]>
  /** Null if the page exceeds `quickReadBytes` or `slowReadMs`. See `Database.readPage`. */
  page(query: PageQuery): PageRows<SqlRow> | null | Promise<PageRows<SqlRow> | null>
  /** Reads in a thread. */
  largePage(query: PageQuery, bytesMax: number): Promise<PageRows<SqlRow>>
}

/** The page by row keys: sorts keys, not complete rows. */
function keyedPage(query: PageQuery): SqlText {
  const { key, list, source } = query
  if (!key) return plainPage(query)
  const keys = sql`SELECT ${key.column} AS "_key"${source}${windowOf(query)}`
  return sql`SELECT ${list.text} FROM (${keys}) AS "_page" CROSS JOIN ${key.from} ON ${key.column} = "_page"."_key"`
}

const selectScalar = (scalar: SqlText): SqlText => sql`SELECT (${scalar}) AS value`

/** The value of a page's `scalar`. */
export const readScalar = (connection: Connection, scalar: SqlText): unknown =>
  connection.all(selectScalar(scalar))[0]?.value

export function createAdaptiveReader(
  connection: Connection,
  path: string,
  threads: Pick<ReaderThreads, 'read'>,
  time: RunTime = runTime,
): AdaptiveReader {
  const paces = createLru<string, Pace>(statementCacheEntriesMax)
  const frequencies = createWordFrequencies(connection)
  let isLarge = false
  let sizedAtMs = Number.NEGATIVE_INFINITY

  /** Whether the file is large. Checked at most every `fileSizeCheckMs`; a large file stays large. */
  function isLargeFile(nowMs: number): boolean {
    if (isLarge || nowMs - sizedAtMs < fileSizeCheckMs) return isLarge
    sizedAtMs = nowMs
    isLarge = Number(connection.all(fileBytes)[0]?.bytes) >= slowReadBytes
    return isLarge
  }

  /** `isBounded`: the number of rows that it visits is checked for each run, unless it scans a table. */
  function classify(pace: Pace, query: SqlText, isBounded: boolean): void {
    const isFiltered = query.text.includes(' WHERE ')
    const plan = connection.plan(query).map(({ detail }) => detail)
    pace.isPlanned = true
    pace.isSorted = plan.some((step) => sorts.test(step))
    if (isBounded) {
      pace.isSlow = scansTable(plan)
      return
    }
    // The cost of a full-text search depends on its words, which are checked per search.
    if (plan.some((step) => step.includes('VIRTUAL TABLE'))) return
    // Without a condition an index scan stops at its LIMIT.
    pace.isSlow = plan.some((step) => growsWithTable.test(step) && (isFiltered || !step.includes('USING')))
  }

  function paceOf(query: SqlText, nowMs: number, isBounded = false): Pace {
    let pace = paces.get(query.text)
    if (!pace) {
      pace = { isSlow: false, isSorted: false, isPlanned: false, runs: 0, strikes: 0 }
      paces.set(query.text, pace)
    }
    const isDue = ++pace.runs % slowReadRunsPerPlanCheck === 0
    // The table may have grown, or an index may have been added.
    if (isDue) pace.isSlow = false
    if ((isDue || !pace.isPlanned) && isLargeFile(nowMs)) classify(pace, query, isBounded)
    return pace
  }

  /** Whether a statement visits more rows of a large file than the main thread may. */
  function visitsMany(visited: SqlText, nowMs: number): boolean {
    if (!isLargeFile(nowMs)) return false
    const some = sql`SELECT count(*) AS "rows" FROM (${visited} LIMIT ${quickVisitsMax + 1})`
    return Number(connection.all(some)[0]?.rows) > quickVisitsMax
  }

  function learn(pace: Pace, start: Start): void {
    if (time.exceeds(start, slowReadMs))
      pace.strikes += time.ranMs(start) > slowReadMs * verySlowFactor ? strikesMax : 1
    else pace.strikes = Math.max(0, pace.strikes - strikesForgivenPerRun)
    if (pace.strikes >= strikesMax) pace.isSlow = true
  }

  function largePage(query: PageQuery, bytesMax: number): Promise<PageRows<SqlRow>> {
    const pace = paceOf(plainPage(query), performance.now(), Boolean(query.visited))
    const { scalar = null, caller, limit, keyChars = 0 } = query
    const page = pace.isSorted ? keyedPage(query) : plainPage(query)
    return threads.read(path, { query: page, bytesMax: bytesMax + limit * keyChars, scalar }, caller)
  }

  return {
    all(query, onRead, caller) {
      const start = time.start()
      const pace = paceOf(query, start.atMs)
      if (pace.isSlow)
        return threads.read(path, { query, bytesMax: Infinity, scalar: null }, caller).then(({ rows }) => rows)
      const rows = connection.all(query)
      learn(pace, start)
      onRead?.(rows)
      return rows
    },
    page(query) {
      const start = time.start()
      const { atMs } = start
      const { onRead, scalar, frequency, visited, offset } = query
      const plain = plainPage(query)
      const pace = paceOf(plain, atMs, Boolean(visited))
      const scalarQuery = scalar && !onRead ? selectScalar(scalar) : null
      const scalarPace = scalarQuery && paceOf(scalarQuery, atMs, Boolean(visited))
      const isSlow = pace.isSlow || scalarPace?.isSlow || (visited && visitsMany(visited, atMs))
      // Skipping is one step of the statement, which the time limit of a page cannot interrupt.
      const skipsMany = offset > quickSkipsMax && isLargeFile(atMs)
      if (isSlow || skipsMany || (frequency && isLargeFile(atMs) && frequencies.isFrequent(frequency, atMs)))
        return largePage(query, quickReadBytes).then((page) => (page.isCut ? null : page))
      // Each page has its own time limit: statements with ever-changing text are never learned.
      const some = connection.some(pace.isSorted ? keyedPage(query) : plain, quickReadBytes, () =>
        time.exceeds(start, slowReadMs),
      )
      learn(pace, start)
      if (some.isCut) return null
      onRead?.(some)
      if (!scalarQuery || !scalarPace) return { ...some, scalar: null }
      const scalarStart = time.start()
      const value = connection.all(scalarQuery)[0]?.value
      learn(scalarPace, scalarStart)
      return { ...some, scalar: value }
    },
    largePage,
  }
}
