/**
 * Storage of tables in PostgreSQL. Sizes are those of the files, at any size; rows are counted up to the bound, and
 * beyond it estimated by the pages that so many of them take.
 */
import type { TableStorage } from '../sql/dialect.ts'
import { ident, join, type SqlText, sql } from '../sql/sql-text.ts'
import { termTable, wordTable } from '../term-index/term-index.ts'
import { estimate, exact, type StoredIndexKind } from './table-storage.ts'

interface StoredRow {
  readonly name: string
  readonly kind: StoredIndexKind | 'table'
  readonly bytes: unknown
  /** Of the table: its pages, and of the first rows their number and that of their pages. */
  readonly pages: unknown
  readonly counted: unknown
  readonly countedPages: unknown
}

const nameOf = (namespace: string, name: string): SqlText => sql`to_regclass(${`"${namespace}"."${name}"`}::text)`

export const postgresTableStorage: TableStorage = {
  query(table, bounds) {
    const { namespace, name } = table
    const first = sql`SELECT (ctid::text::point)[0] AS page FROM ${ident(namespace)}.${ident(name)} LIMIT ${bounds.rows + 1}`
    const others = [termTable(table).name, wordTable(table).name].map(
      (one) => sql`SELECT ${one}::text AS name, 'search' AS kind, pg_total_relation_size(found) AS bytes,
          NULL::float8 AS pages, NULL::float8 AS counted, NULL::float8 AS "countedPages"
        FROM ${nameOf(namespace, one)} AS found WHERE found IS NOT NULL`,
    )
    return join(
      [
        sql`SELECT ${name}::text AS name, 'table' AS kind, pg_table_size(found) AS bytes,
            pg_relation_size(found)::float8 / current_setting('block_size')::float8 AS pages,
            "_first".counted::float8 AS counted, "_first".pages::float8 AS "countedPages"
          FROM ${nameOf(namespace, name)} AS found,
            (SELECT count(*) AS counted, count(DISTINCT page) AS pages FROM (${first}) AS "_rows") AS "_first"`,
        sql`SELECT "_class".relname::text AS name,
            CASE WHEN "_index".indisprimary THEN 'key' WHEN "_class".relname = ${`_fts_${name}`}::text THEN 'search'
              ELSE 'index' END AS kind,
            pg_relation_size("_class".oid) AS bytes, NULL::float8, NULL::float8, NULL::float8
          FROM pg_index AS "_index" JOIN pg_class AS "_class" ON "_class".oid = "_index".indexrelid
          WHERE "_index".indrelid = ${nameOf(namespace, name)}`,
        ...others,
      ],
      ' UNION ALL ',
    )
  },
  read(rows, { name }, bounds) {
    const stored = rows as unknown as readonly StoredRow[]
    const table = stored.find(({ kind }) => kind === 'table')
    if (!table) throw new Error(`${name} has no size`)
    const [pages, counted, countedPages] = [table.pages, table.counted, table.countedPages].map(Number) as [
      number,
      number,
      number,
    ]
    return {
      rows: counted <= bounds.rows ? exact(counted) : estimate(Math.max(counted, (counted / countedPages) * pages)),
      bytes: exact(Number(table.bytes)),
      indexes: stored.flatMap(({ name, kind, bytes }) =>
        kind === 'table' ? [] : [{ name, kind, bytes: exact(Number(bytes)) }],
      ),
    }
  },
}
