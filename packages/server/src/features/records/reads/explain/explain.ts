/**
 * `explain=1`: runs a read as usual, and adds its statements to the response, with their plans, their duration and an
 * index that would help. For service keys, which may read every row, so that nothing is revealed.
 */
import { callerKey } from '../../../../access/caller.ts'
import { decorateDatabase } from '../../../../engines/sql/decorate-database.ts'
import { plainPage } from '../../../../engines/sql/page-query.ts'
import type { Database } from '../../../../engines/sql/sql.ts'
import { type SqlText, type SqlValue, sql } from '../../../../engines/sql/sql-text.ts'
import { accessDenied } from '../../../../errors.ts'
import type { Reply } from '../../../../http/endpoint.ts'
import { withMember } from '../../../../http/replies/reply.ts'
import { explainedStatementsMax } from '../../../../limits/api.ts'
import { allOf } from '../../../../query/expr.ts'
import { type FilterGroups, parseFilterTexts } from '../../../../query/filter.ts'
import { defaultSort, parseSort } from '../../../../query/sort.ts'
import type { TableCall } from '../../resolve-table.ts'
import { indexesOf } from '../../schema/migration-plan.ts'
import { suggestIndex } from './suggest-index.ts'

/** The parameters of a read that determine its rows and their order. */
export interface ExplainedQuery extends FilterGroups<string> {
  readonly explain?: boolean | undefined
  readonly sort?: string | undefined
}

/** One statement, its plan, and its duration. */
interface ExplainedStatement {
  readonly sql: string
  readonly parameters: readonly SqlValue[]
  readonly plan: readonly string[]
  /** Where the engine counts them. */
  readonly rowsScanned?: number
  /** Until its rows were read, with the wait for a connection. */
  readonly ms: number
}

export interface Explanation extends ExplainedStatement {
  /** An index that would spare a scan of the table or a sort. */
  readonly suggestion?: { readonly fields: readonly string[] }
  /** Where there are several: all statements in their order, of which the first that reads a page is shown above. */
  readonly statements?: readonly ExplainedStatement[]
}

interface Recorded {
  readonly query: SqlText
  readonly isPage: boolean
  readonly ms: number
}

/** The same database; what it reads is added to `recorded`. Totals read pages of the change log, which are no pages. */
function recording({ database, rows }: TableCall, recorded: Recorded[]): Database {
  const timed = async <T>(query: SqlText, isPage: boolean, read: () => Promise<T>): Promise<T> => {
    const start = performance.now()
    const result = await read()
    recorded.push({ query, isPage: isPage && query.text.includes(rows.name.text), ms: performance.now() - start })
    return result
  }
  return decorateDatabase(database, {
    all: (query, onRead, caller) => timed(query, false, () => database.all(query, onRead, caller)),
    scan: (query, options) => timed(query, true, () => database.scan(query, options)),
    readPage: (query) => timed(plainPage(query), true, () => database.readPage(query)),
    readEncodedPage: null,
    readLargePage: (query, bytesMax) => timed(plainPage(query), true, () => database.readLargePage(query, bytesMax)),
  })
}

/** The name of the table in its queries. */
const aliasOf = ({ rows }: TableCall): string => rows.name.text.replaceAll('"', '')

interface Analyzed extends ExplainedStatement {
  readonly isSlow: boolean
}

async function analyze(call: TableCall, { query, ms }: Recorded): Promise<Analyzed> {
  const { database, rows, caller } = call
  const plan = await database.explain(query)
  const readsAll = plan.scans.has(aliasOf(call))
  let { rowsScanned } = plan
  // SQLite does not count rows. A scan that is sorted or counted ends at the last row.
  if (rowsScanned === null && readsAll && (plan.sorts || /^SELECT \(?(SELECT )?count/.test(query.text))) {
    const [row] = await database.all<{ n: unknown }>(
      sql`SELECT count(*) AS n FROM ${rows.from}`,
      undefined,
      callerKey(caller),
    )
    rowsScanned = Number(row?.n ?? 0)
  }
  return {
    sql: query.text,
    parameters: query.values,
    plan: plan.lines,
    ...(rowsScanned === null ? {} : { rowsScanned }),
    ms: Math.round(ms * 100) / 100,
    isSlow: readsAll || plan.sorts,
  }
}

const shown = ({ isSlow: _, ...statement }: Analyzed): ExplainedStatement => statement

/** The fields of an index that would help; null if the plan needs none. */
function suggestionOf(call: TableCall, query: ExplainedQuery): readonly string[] | null {
  const { condition: filter, nearby } = parseFilterTexts(call.view, query)
  const condition = allOf([call.permissions.read(), filter])
  const sort = query.sort === undefined ? defaultSort : parseSort(call.view, query.sort, nearby)
  const present = indexesOf(call.table).map(({ fields }) => fields)
  return suggestIndex(call.table, { condition, sort }, present)
}

async function explain(call: TableCall, query: ExplainedQuery, recorded: readonly Recorded[]): Promise<Explanation> {
  const statements: Analyzed[] = []
  for (const one of recorded.slice(0, explainedStatementsMax)) statements.push(await analyze(call, one))
  const at = Math.max(
    0,
    recorded.findIndex(({ isPage }) => isPage),
  )
  const main = statements[at] ?? { sql: '', parameters: [], plan: [], ms: 0, isSlow: false }
  const fields = main.isSlow ? suggestionOf(call, query) : null
  return {
    ...shown(main),
    ...(fields && { suggestion: { fields } }),
    ...(statements.length > 1 && { statements: statements.map(shown) }),
  }
}

/**
 * Responds as `read` does; with `explain` the response has the member `explain`, and no entity tag. Throws 403 without
 * a service key.
 */
export function explained(
  call: TableCall,
  query: ExplainedQuery,
  read: (call: TableCall) => Promise<Reply>,
): Promise<Reply> {
  return query.explain ? withExplanation(call, query, read) : read(call)
}

async function withExplanation(
  call: TableCall,
  query: ExplainedQuery,
  read: (call: TableCall) => Promise<Reply>,
): Promise<Reply> {
  if (call.caller.kind !== 'service') throw accessDenied('explain needs a service key')
  const recorder = recordStatements(call)
  const reply = await read(recorder.call)
  return withMember(reply, 'explain', await recorder.explain(query))
}

/** A call whose reads are recorded, and the explanation of those so far. */
export interface StatementRecorder {
  readonly call: TableCall
  /** Of no statement it is empty. */
  explain(query: ExplainedQuery): Promise<Explanation>
}

export function recordStatements(call: TableCall): StatementRecorder {
  const recorded: Recorded[] = []
  return { call: call.on(recording(call, recorded)), explain: (query) => explain(call, query, recorded) }
}
