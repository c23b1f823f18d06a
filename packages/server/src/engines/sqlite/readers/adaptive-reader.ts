/**
 * Reads that are slow run in threads. A statement that scans a large file starts in a thread, and so does a full-text
 * search of one for words that are frequent there. Which others are slow is learned: a statement that keeps taking long
 * on the main thread moves to a thread.
 */
import { createLru } from '../../../base/concurrency/lru.ts'
import {
  fileSizeCheckMs,
  quickReadBytes,
  slowReadBytes,
  slowReadMs,
  slowReadRunsPerPlanCheck,
  statementCacheEntriesMax,
  wordFrequenciesMax,
  wordFrequencyMs,
} from '../../../limits/sqlite.ts'
import type { WordFrequency } from '../../sql/dialect.ts'
import { type PageQuery, type PageRows, plainPage, windowOf } from '../../sql/page-query.ts'
import type { SqlRow } from '../../sql/sql.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import type { Connection } from '../connection.ts'
import type { ReaderThreads } from './reader-threads.ts'

/** What was learned of one statement. */
interface Pace {
  isSlow: boolean
  /** Whether it sorts: what is sorted is then kept short. */
  isSorted: boolean
  /** Whether its plan was looked at, as it is once the file is large. */
  isPlanned: boolean
  runs: number
  /**
   * Rises with a long run and falls slowly with short ones: one long run may have been the machine's doing, several are
   * the statement's.
   */
  strikes: number
}

const strikesMax = 3
const strikesForgivenPerRun = 0.05
/** A run this many times as long as a slow one is no accident of the machine. */
const verySlowFactor = 10

/** A full pass over a table or index with a condition to test, or a sort of everything: what grows with the table. */
const growsWithTable = /^SCAN (?!CONSTANT|json_each)|USE TEMP B-TREE FOR ORDER BY/
const sorts = /USE TEMP B-TREE FOR (?:ORDER BY|LAST \d+ TERMS? OF ORDER BY|LAST TERM OF ORDER BY)/

const fileBytes: SqlText = {
  text: 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
  values: [],
}

/** Reads through one connection, and in threads what is or has proved slow. */
export interface AdaptiveReader {
  /** `onRead` is called only where the rows are read here. */
  all(query: SqlText, onRead?: (rows: SqlRow[]) => void, caller?: string): SqlRow[] | Promise<SqlRow[]>
  /** Null where the page has more than `quickReadBytes`, or takes longer than `slowReadMs`. See `Database.readPage`. */
  page(query: PageQuery): PageRows<SqlRow> | null | Promise<PageRows<SqlRow> | null>
  /** In a thread. */
  largePage(query: PageQuery, bytesMax: number): Promise<PageRows<SqlRow>>
}

/** The page by the keys of its rows: what is sorted are keys, not whole rows. */
function keyedPage(query: PageQuery): SqlText {
  const { key, list, source } = query
  if (!key) return plainPage(query)
  const keys = sql`SELECT ${key.column} AS "_key"${source}${windowOf(query)}`
  return sql`SELECT ${list.text} FROM (${keys}) AS "_page" CROSS JOIN ${key.from} ON ${key.column} = "_page"."_key"`
}

const scalarOf = (alongside: SqlText): SqlText => sql`SELECT (${alongside}) AS value`

/** What a page says beside its rows. */
export const readScalar = (connection: Connection, alongside: SqlText): unknown =>
  connection.all(scalarOf(alongside))[0]?.value

export function createAdaptiveReader(connection: Connection, path: string, threads: ReaderThreads): AdaptiveReader {
  const paces = createLru<string, Pace>(statementCacheEntriesMax)
  /** Lists of terms that this connection has. */
  const listed = new Set<string>()
  const frequencies = createLru<string, { readonly isFrequent: boolean; readonly countedAtMs: number }>(
    wordFrequenciesMax,
  )
  let isLarge = false
  let sizedAtMs = Number.NEGATIVE_INFINITY

  /** Small files are asked for their size now and then; a large one stays large. */
  function isLargeFile(nowMs: number): boolean {
    if (isLarge || nowMs - sizedAtMs < fileSizeCheckMs) return isLarge
    sizedAtMs = nowMs
    isLarge = Number(connection.all(fileBytes)[0]?.bytes) >= slowReadBytes
    return isLarge
  }

  function classify(pace: Pace, query: SqlText): void {
    const isFiltered = query.text.includes(' WHERE ')
    const plan = connection.plan(query)
    pace.isPlanned = true
    pace.isSorted = plan.some((step) => sorts.test(step))
    // What a full-text search costs depends on its words, which are counted for each search.
    if (plan.some((step) => step.includes('VIRTUAL TABLE'))) return
    // Without a condition an index walk stops at its LIMIT.
    pace.isSlow = plan.some((step) => growsWithTable.test(step) && (isFiltered || !step.includes('USING')))
  }

  function paceOf(query: SqlText, nowMs: number): Pace {
    let pace = paces.get(query.text)
    if (!pace) {
      pace = { isSlow: false, isSorted: false, isPlanned: false, runs: 0, strikes: 0 }
      paces.set(query.text, pace)
    }
    const isDue = ++pace.runs % slowReadRunsPerPlanCheck === 0
    // The table may have grown, or an index may have come.
    if (isDue) pace.isSlow = false
    if ((isDue || !pace.isPlanned) && isLargeFile(nowMs)) classify(pace, query)
    return pace
  }

  /**
   * Whether a full-text search of a large file is for words that are frequent there. Counting takes longer than finding
   * a rare word, so the result is reused for `wordFrequencyMs`: a word does not become frequent in a moment.
   */
  function isFrequent({ source, create, query }: WordFrequency, nowMs: number): boolean {
    const words = `${source} ${query.values.join(' ')}`
    const known = frequencies.get(words)
    if (known && nowMs - known.countedAtMs < wordFrequencyMs) return known.isFrequent
    if (!listed.has(source)) {
      connection.run(create)
      listed.add(source)
    }
    const isFrequent = connection.all(query).length > 0
    frequencies.set(words, { isFrequent, countedAtMs: nowMs })
    return isFrequent
  }

  function learn(pace: Pace, startMs: number): void {
    const tookMs = performance.now() - startMs
    if (tookMs > slowReadMs) pace.strikes += tookMs > slowReadMs * verySlowFactor ? strikesMax : 1
    else pace.strikes = Math.max(0, pace.strikes - strikesForgivenPerRun)
    if (pace.strikes >= strikesMax) pace.isSlow = true
  }

  function largePage(query: PageQuery, bytesMax: number): Promise<PageRows<SqlRow>> {
    const pace = paceOf(plainPage(query), performance.now())
    const { alongside = null, caller, limit, keyChars = 0 } = query
    const page = pace.isSorted ? keyedPage(query) : plainPage(query)
    return threads.read(path, { query: page, bytesMax: bytesMax + limit * keyChars, alongside }, caller)
  }

  return {
    all(query, onRead, caller) {
      const startMs = performance.now()
      const pace = paceOf(query, startMs)
      if (pace.isSlow)
        return threads.read(path, { query, bytesMax: Infinity, alongside: null }, caller).then(({ rows }) => rows)
      const rows = connection.all(query)
      learn(pace, startMs)
      onRead?.(rows)
      return rows
    },
    page(query) {
      const startMs = performance.now()
      const { here, alongside } = query
      const plain = plainPage(query)
      const pace = paceOf(plain, startMs)
      const beside = alongside && !here ? scalarOf(alongside) : null
      const besidePace = beside && paceOf(beside, startMs)
      const isSlowSearch = query.frequency && isLargeFile(startMs) && isFrequent(query.frequency, startMs)
      if (pace.isSlow || besidePace?.isSlow || isSlowSearch)
        return largePage(query, quickReadBytes).then((page) => (page.isCut ? null : page))
      // A time of its own for every page: statements that are worded differently each time are never learned.
      const some = connection.some(pace.isSorted ? keyedPage(query) : plain, quickReadBytes, startMs + slowReadMs)
      learn(pace, startMs)
      if (some.isCut) return null
      here?.(some.rows)
      if (!beside || !besidePace) return { ...some, alongside: null }
      const besideMs = performance.now()
      const value = connection.all(beside)[0]?.value
      learn(besidePace, besideMs)
      return { ...some, alongside: value }
    },
    largePage,
  }
}
