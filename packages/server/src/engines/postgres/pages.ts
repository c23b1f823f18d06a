/**
 * Pages of rows of unbounded size on PostgreSQL. The server knows the length of a long value without reading it, so it
 * decides which rows of a page are sent.
 */
import { postgresQuickPageBytes } from '../../limits/postgres.ts'
import type { EncodedRow } from '../sql/encoded-rows.ts'
import {
  type PageQuery,
  type PageRows,
  plainPage,
  type SelectColumn,
  type SelectList,
  windowOf,
} from '../sql/page-query.ts'
import type { Database } from '../sql/sql.ts'
import { ident, join, type SqlText, sql } from '../sql/sql-text.ts'
import type { DataRow } from './wire/data-row.ts'

/** Columns added to the selected ones, last so that removing them is cheap. */
interface Beside {
  _bytes?: number | null
  _count?: string
  _scalar?: unknown
}

interface Lengths {
  /** Bytes of a row's long columns. */
  readonly bytes: SqlText
  /** The columns of a page; long ones are null in rows larger than the bound, which follows as a parameter. */
  readonly guarded: (rowBytesMax: number) => SqlText
  readonly names: SqlText
}

const known = new WeakMap<SelectList, Lengths>()

/** JSON is stored as text, but `octet_length` needs a cast. */
const lengthOf = ({ column, kind }: SelectColumn): SqlText =>
  kind === 'json' ? sql`coalesce(octet_length(${column}::text), 0)` : sql`coalesce(octet_length(${column}), 0)`

function lengthsOf(list: SelectList): Lengths {
  let lengths = known.get(list)
  if (!lengths) {
    const long = list.columns.filter(({ kind }) => kind !== 'short')
    const sum = long.map(lengthOf).reduce((left, right) => sql`${left} + ${right}`, sql`0`)
    const names = list.columns.map(({ name }) => ident(name))
    const guard = join(
      list.columns.map(({ name, kind }) => {
        const column = ident(name)
        return kind === 'short' ? column : sql`CASE WHEN "_bytes" <= ${0} THEN ${column} END AS ${column}`
      }),
      ', ',
    )
    const guarded = (rowBytesMax: number): SqlText => ({ text: guard.text, values: long.map(() => rowBytesMax) })
    lengths = { bytes: sum, guarded, names: join(names, ', ') }
    known.set(list, lengths)
  }
  return lengths
}

/** The rows of a page with their lengths, in order. */
const measuredPage = (query: PageQuery): SqlText =>
  sql`SELECT ${query.list.text}, ${lengthsOf(query.list).bytes} AS "_bytes"${query.source}${windowOf(query)}`

/** No row sends more than its share, so the page sends at most `postgresQuickPageBytes`. */
function quickPage(query: PageQuery, rowBytesMax: number): SqlText {
  return sql`SELECT ${lengthsOf(query.list).guarded(rowBytesMax)}, "_bytes" FROM (${measuredPage(query)}) AS "_page"`
}

/** The rows that fit into `bytesMax` together, at least the first. */
function largePage(query: PageQuery, bytesMax: number): SqlText {
  const sums = sql`SELECT *, sum("_bytes") OVER (ROWS UNBOUNDED PRECEDING) AS "_sum", count(*) OVER () AS "_count",
    row_number() OVER () AS "_at" FROM (${measuredPage(query)}) AS "_page"`
  return sql`SELECT ${lengthsOf(query.list).names}, "_bytes", "_count" FROM (${sums}) AS "_sums"
    WHERE "_sum" <= ${bytesMax} OR "_at" = 1 ORDER BY "_at"`
}

/** The page and a scalar of the same snapshot: at least one row, whose `_bytes` is null if the page is empty. */
const withScalar = (page: SqlText, scalar: SqlText): SqlText =>
  sql`SELECT "_rows".*, "_one"."_scalar" FROM (SELECT (${scalar}) AS "_scalar") AS "_one"
    LEFT JOIN (${page}) AS "_rows" ON TRUE`

/** Removes the added columns from the rows. */
function pageOf<Row>(found: (Row & Beside)[]): PageRows<Row> {
  const scalar = found[0]?._scalar ?? null
  const count = Number(found[0]?._count ?? found.length)
  const rows = found.length === 1 && found[0]?._bytes === null ? [] : found
  let bytes = 0
  for (const row of rows) {
    bytes += row._bytes ?? 0
    delete row._scalar
    delete row._count
    delete row._bytes
  }
  return { rows, bytes, isCut: rows.length > 0 && rows.length < count, scalar }
}

/** A page of rows that stay as they were received; null if a row is too long to be read in one step. */
function encodedPageOf(found: readonly DataRow[], query: PageQuery, rowBytesMax: number): PageRows<EncodedRow> | null {
  const bytesAt = query.list.columns.length
  const [first] = found
  const scalar = query.scalar ? (first?.column(bytesAt + 1) ?? null) : null
  if (found.length === 1 && first?.column(bytesAt) === null) return { rows: [], bytes: 0, isCut: false, scalar }
  let bytes = 0
  for (const row of found) {
    const rowBytes = row.column(bytesAt) as number
    if (rowBytes > rowBytesMax) return null
    bytes += rowBytes
  }
  return { rows: [...found], bytes, isCut: false, scalar }
}

const rowBytesMaxOf = ({ limit }: PageQuery): number => Math.floor(postgresQuickPageBytes / limit)

const pageWithScalar = ({ scalar }: PageQuery, page: SqlText): SqlText => (scalar ? withScalar(page, scalar) : page)

export interface ReadRows {
  readonly all: Database['all']
  /** The rows of a statement as they were received. */
  received(query: SqlText): Promise<DataRow[]>
}

type Pages = Required<Pick<Database, 'readPage' | 'readEncodedPage' | 'readLargePage'>>

/** Reads pages, each in one statement. */
export const createPostgresPages = ({ all, received }: ReadRows): Pages => ({
  async readPage<Row>(query: PageQuery) {
    const hasLong = query.list.columns.some(({ kind }) => kind !== 'short')
    if (!hasLong && !query.scalar) return pageOf<Row>(await all<Row & Beside>(plainPage(query)))
    const rowBytesMax = rowBytesMaxOf(query)
    const found = await all<Row & Beside>(pageWithScalar(query, quickPage(query, rowBytesMax)))
    return found.some(({ _bytes }) => (_bytes ?? 0) > rowBytesMax) ? null : pageOf<Row>(found)
  },
  async readEncodedPage(query) {
    const rowBytesMax = rowBytesMaxOf(query)
    return encodedPageOf(await received(pageWithScalar(query, quickPage(query, rowBytesMax))), query, rowBytesMax)
  },
  async readLargePage<Row>(query: PageQuery, bytesMax: number) {
    return pageOf<Row>(await all<Row & Beside>(pageWithScalar(query, largePage(query, bytesMax))))
  },
})
