/**
 * Storage of tables in SQLite, by the virtual table `dbstat`, which visits the pages of one B-tree after the other. A
 * tree with more pages than the bound is estimated by the rows that the visited ones have.
 */
import type { TableStorage } from '../sql/dialect.ts'
import type { SqlRow } from '../sql/sql.ts'
import { ident, join, type SqlText, sql } from '../sql/sql-text.ts'
import { termTable, wordTable } from '../term-index/term-index.ts'
import { atLeast, estimate, exact, type Measure, type StoredIndex } from './table-storage.ts'

/** The tables in which FTS5 keeps an index of another table. */
const searchParts = ['data', 'idx', 'docsize', 'config'] as const

/** A B-tree: the visited pages with their bytes, and the entries on them. */
interface Tree {
  readonly name: string
  readonly table: string
  readonly pages: number
  readonly bytes: number
  readonly entries: number
  /** Of the table itself: the first and the last row key, and the key that ends the sample at either end. */
  readonly keys: string | null
}

const keysOf = (table: SqlText, rows: number): SqlText => sql`json_array(
  (SELECT min("_seq") FROM ${table}), (SELECT max("_seq") FROM ${table}),
  (SELECT max("_seq") FROM (SELECT "_seq" FROM ${table} ORDER BY "_seq" LIMIT ${rows})),
  (SELECT min("_seq") FROM (SELECT "_seq" FROM ${table} ORDER BY "_seq" DESC LIMIT ${rows})))`

/** Rows by the share of row keys in use among the first and the last ones. */
function estimateRows(keys: string, sampled: number): number {
  const [first, last, ofFirst, ofLast] = JSON.parse(keys) as [number, number, number, number]
  const share = (2 * sampled) / (ofFirst - first + 1 + (last - ofLast + 1))
  return Math.min(1, share) * (last - first + 1)
}

export const sqliteTableStorage: TableStorage = {
  query(table, bounds) {
    const { name } = table
    const search = [...searchParts.map((part) => `_fts_${name}_${part}`), termTable(table).name, wordTable(table).name]
    const names = join(
      [name, ...search].map((one) => sql`${one}`),
      ', ',
    )
    // An index has entries on its inner pages too.
    const isEntry = sql`(pagetype = 'leaf' OR (pagetype = 'internal' AND "_tree".type = 'index'))`
    const visited = sql`SELECT pgsize, CASE WHEN ${isEntry} THEN ncell ELSE 0 END AS entries
      FROM dbstat WHERE name = "_tree".name LIMIT ${bounds.pages}`
    return sql`SELECT "_tree".name AS name, "_tree".tbl_name AS "table",
        (SELECT json_array(count(*), coalesce(sum(pgsize), 0), coalesce(sum(entries), 0)) FROM (${visited})) AS visited,
        CASE WHEN "_tree".name = ${name} THEN ${keysOf(ident(name), bounds.rows)} END AS keys
      FROM sqlite_schema AS "_tree" WHERE "_tree".rootpage > 0 AND "_tree".tbl_name IN (${names})`
  },
  read(rows, { name }, bounds) {
    const trees = rows.map(treeOf)
    const table = trees.find((tree) => tree.name === name)
    if (!table) throw new Error(`${name} has no tree`)
    const isVisited = ({ pages }: Tree): boolean => pages < bounds.pages
    const count = isVisited(table) ? exact(table.entries) : estimate(estimateRows(table.keys ?? '[]', bounds.rows))
    const bytesOf = (tree: Tree): Measure => {
      if (isVisited(tree)) return exact(tree.bytes)
      // The entries of a search index are not those of the rows.
      if (tree.table !== name || tree.entries === 0) return atLeast(tree.bytes)
      return estimate(Math.max(1, count.value / tree.entries) * tree.bytes)
    }
    const kindOf = (tree: Tree): StoredIndex['kind'] =>
      tree.table !== name ? 'search' : tree.name.startsWith('sqlite_autoindex_') ? 'key' : 'index'
    return {
      rows: count,
      bytes: bytesOf(table),
      indexes: trees
        .filter((tree) => tree !== table)
        .map((tree) => ({ name: tree.name, kind: kindOf(tree), bytes: bytesOf(tree) })),
    }
  },
}

function treeOf(row: SqlRow): Tree {
  const [pages = 0, bytes = 0, entries = 0] = JSON.parse(String(row.visited)) as number[]
  const keys = row.keys === null ? null : String(row.keys)
  return { name: String(row.name), table: String(row.table), pages, bytes, entries, keys }
}
