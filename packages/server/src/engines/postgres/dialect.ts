/**
 * The PostgreSQL dialect. A namespace is a schema. A dynamic namespace is one set of tables whose keys all start with
 * `_instance`; statements contain a placeholder for the instance that the adapter binds, so their text does not depend
 * on it.
 */
import type { Dialect, ManyColumn, Period, TableRef } from '../sql/dialect.ts'
import { ident, instanceToken, join, type SqlText, sql } from '../sql/sql-text.ts'
import { postgresTableStorage } from '../table-storage/postgres.ts'
import { postgresTermIndex } from '../term-index/postgres.ts'
import { isAhead, isBeyond, isWithin, visibleIn } from './snapshots.ts'
import { arrayHeadBytes } from './wire/array-parameter.ts'

export const instanceColumn = ident('_instance')
const searchColumnName = ident('_search')

export const qualified = ({ namespace, name }: Pick<TableRef, 'namespace' | 'name'>): SqlText =>
  sql`${ident(namespace)}.${ident(name)}`

const jsonTypes = { string: sql`'string'`, number: sql`'number'`, boolean: sql`'boolean'` } as const
const sqlTypes = { string: sql`text`, number: sql`float8`, boolean: sql`boolean` } as const
const listTypes = { text: sql`text[]`, number: sql`float8[]`, boolean: sql`boolean[]`, json: sql`text[]` } as const

/** A JSON column, or one of its members. JSON is stored as text, in the order it was written. */
const jsonOf = (column: SqlText, name: string | null): SqlText =>
  name === null ? sql`${column}::jsonb` : sql`(${column}::jsonb -> ${name}::text)`

/** Text of a JSON scalar, without quotes. */
const textOf = (json: SqlText): SqlText => sql`(${json} #>> '{}')`

/** A word of at most 255 code points as a lexeme: quoted, so that nothing the caller types is query syntax. */
const lexeme = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`

/** Limits of a tsvector: positions up to 16,383, 255 positions per lexeme, below 1,048,576 bytes in total. */
const positionMax = 16_383
const positionsPerWordMax = 255
const vectorBytesMax = 1_000_000

/** Words in order as the text of a tsvector, each with its positions, since frequent words rank higher. */
function vectorOf(words: readonly string[]): string {
  const positions = new Map<string, number[]>()
  let bytes = 0
  for (const [at, word] of words.entries()) {
    const found = positions.get(word)
    if (found && found.length >= positionsPerWordMax) continue
    bytes += found ? 2 : Buffer.byteLength(word) + 6
    if (bytes > vectorBytesMax) break
    const position = Math.min(at + 1, positionMax)
    if (found) found.push(position)
    else positions.set(word, [position])
  }
  return [...positions].map(([word, at]) => `${lexeme(word)}:${at.join(',')}`).join(' ')
}

/** Column types of a bulk insert: as the values are sent, and as they are stored. */
const manyTypes = {
  text: ['text', 'text'],
  number: ['float8', 'float8'],
  boolean: ['boolean', 'boolean'],
  json: ['text', 'json'],
  integer: ['float8', 'int8'],
  words: ['text', 'tsvector'],
} as const

/** The values of a column in a bulk insert: in the list of columns, the server reads its arrays row by row. */
function storedMany({ type, isShared = false }: ManyColumn): string {
  const [sent, stored] = manyTypes[type]
  const value = isShared ? `?::${sent}` : `unnest(?::${sent}[])`
  return sent === stored ? value : `${value}::${stored}`
}

/** The elements of a `real[]` in binary form, as little-endian floats. */
function floatsOf(array: unknown): Uint8Array {
  const sent = array as Uint8Array
  const count = Math.max(0, sent.length - arrayHeadBytes) / 8
  const from = new DataView(sent.buffer, sent.byteOffset)
  const floats = new DataView(new ArrayBuffer(4 * count))
  for (let at = 0; at < count; at++) floats.setUint32(4 * at, from.getUint32(arrayHeadBytes + 8 * at + 4), true)
  return new Uint8Array(floats.buffer)
}

const byteOrder = (text: SqlText): SqlText => sql`(${text}) COLLATE "C"`

const periodFormats: Readonly<Record<Period, SqlText>> = {
  hour: sql`'YYYY-MM-DD"T"HH24'`,
  day: sql`'YYYY-MM-DD'`,
  week: sql`'YYYY-MM-DD'`,
  month: sql`'YYYY-MM'`,
  year: sql`'YYYY'`,
}

export const postgresDialect: Dialect = {
  columnTypes: { text: 'TEXT COLLATE "C"', number: 'DOUBLE PRECISION', boolean: 'BOOLEAN', json: 'JSON' },
  from(table, alias) {
    if (!table.perInstance) return sql`${qualified(table)} AS ${alias}`
    return sql`(SELECT * FROM ${qualified(table)} WHERE ${instanceColumn} = ${instanceToken}) AS ${alias}`
  },
  target: qualified,
  own: ({ perInstance }) => (perInstance ? { column: instanceColumn, value: instanceToken } : null),
  prepareNamespace: (namespace) => [sql`CREATE SCHEMA IF NOT EXISTS ${ident(namespace)}`],
  tableHead: ({ perInstance }) =>
    perInstance
      ? [
          sql`${instanceColumn} TEXT COLLATE "C" NOT NULL`,
          sql`"id" TEXT COLLATE "C" NOT NULL`,
          sql`PRIMARY KEY (${instanceColumn}, "id")`,
        ]
      : [sql`"id" TEXT COLLATE "C" PRIMARY KEY`],
  hasColumn: ({ namespace, name: table }, name) => sql`SELECT 1 FROM information_schema.columns
    WHERE table_schema = ${namespace} AND table_name = ${table} AND column_name = ${name}`,
  // Numbers are assigned before the commit; readers rely on the transaction id and the snapshot, never on gaps.
  logHead: [
    sql`seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY`,
    sql`xid XID8 NOT NULL DEFAULT pg_current_xact_id()`,
  ],
  clustered: sql``,
  indexLog(log) {
    const columns = log.perInstance ? sql`${instanceColumn}, "table", xid` : sql`"table", xid`
    return [
      sql`CREATE INDEX IF NOT EXISTS "_changes_xid" ON ${qualified(log)} (${columns})`,
      sql`CREATE INDEX IF NOT EXISTS "_changes_order" ON ${qualified(log)} (xid, seq)`,
    ]
  },
  logView: {
    snapshot: () => sql`pg_current_snapshot()::text`,
    isAhead,
    within: (snapshot) => sql`pg_visible_in_snapshot(xid, ${snapshot}::text::pg_snapshot)`,
    // The first condition finds its rows in the index, the second is exact.
    beyond(snapshot) {
      const then = sql`${snapshot}::text::pg_snapshot`
      return sql`xid >= pg_snapshot_xmin(${then}) AND NOT pg_visible_in_snapshot(xid, ${then})`
    },
    rest({ from, to, seq }) {
      const { beyond, within } = postgresDialect.logView
      return sql`${beyond(from)} AND ${within(to)} AND seq > ${seq}`
    },
    after(position) {
      const { beyond, rest } = postgresDialect.logView
      const { from, to } = position
      return from === to ? beyond(from) : sql`((${rest(position)}) OR (${beyond(to)}))`
    },
    position: sql`xid::text::bigint`,
    isBeyond,
  },
  logRefersToRows: false,
  follow: {
    changesSince(log, table, snapshot, { limit, bytesMax }) {
      const unseen = postgresDialect.logView.beyond(snapshot)
      const changes = sql`SELECT before, after, ${postgresDialect.logView.position} AS position FROM ${log}
        WHERE "table" = ${table} AND ${unseen} LIMIT ${limit}`
      // Lengths are known without the texts, which are not read if they exceed the bound.
      const bytes = sql`coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)`
      return sql`WITH unseen AS (${changes}), size AS (SELECT coalesce(sum(${bytes}), 0) <= ${bytesMax} AS fits FROM unseen)
        SELECT pg_current_snapshot()::text AS snapshot, fits,
          (SELECT json_agg(json_build_array(before, after, position)) FROM unseen WHERE fits) AS changes FROM size`
    },
    isWithin,
    visibleIn,
  },
  indexColumn: (column) => sql`${column} NULLS FIRST`,
  // An update of a field in an index writes to all indexes of the table, and a scan visits the rows anyway.
  coversBooleans: false,
  indexNames: ({ namespace, name: table }) =>
    sql`SELECT indexname AS name FROM pg_indexes WHERE schemaname = ${namespace} AND tablename = ${table}`,
  indexName: ({ namespace }, name) => sql`${ident(namespace)}.${ident(name)}`,
  rowKey: null,
  fromBoolean: (value) => value,
  toBoolean: (stored) => stored === true,
  forUpdate: sql` FOR UPDATE`,
  skipLocked: sql` FOR UPDATE SKIP LOCKED`,
  forReference: sql` FOR KEY SHARE`,
  lockTable(table, keepsOut) {
    // The mode conflicts with itself: of two transactions that check and then write a table, one waits for the other.
    const mode = keepsOut ? sql`SHARE ROW EXCLUSIVE` : sql`ROW EXCLUSIVE`
    return sql`LOCK TABLE ${postgresDialect.target(table)} IN ${mode} MODE`
  },
  insertMany(table, columns) {
    const own = postgresDialect.own(table)
    const into = join(
      own ? [own.column, ...columns.map(({ column }) => column)] : columns.map(({ column }) => column),
      ', ',
    )
    const stored = columns.map((column) => storedMany(column)).join(', ')
    const head = sql`INSERT INTO ${qualified(table)} (${into}) SELECT ${own ? sql`${own.value}, ` : sql``}`.text
    const statement = head + stored
    return (values) => ({ text: statement, values })
  },
  ascending: (column) => sql`${column} ASC NULLS FIRST`,
  descending: (column) => sql`${column} DESC NULLS LAST`,
  contains: (column, value) => sql`strpos(${column}, ${value}) > 0`,
  inList: (column, values, type) => sql`${column} = ANY (${values}::${listTypes[type]})`,
  keysPerText({ from, key, texts, rowsOf }) {
    const first = sql`SELECT ${key} AS "_key" FROM ${from}${rowsOf(sql`"_texts"."value"`)}`
    return sql`SELECT "_first"."_key" FROM unnest(${texts}::text[]) AS "_texts"("value") CROSS JOIN LATERAL (${first}) AS "_first"`
  },
  objectOf: (name, value) => sql`json_object_agg(${name}, ${value})::text`,
  memberAs(column, name, type) {
    const json = jsonOf(column, name)
    const typed = sql`${textOf(json)}::${sqlTypes[type]}`
    const value = sql`CASE WHEN jsonb_typeof(${json}) = ${jsonTypes[type]} THEN ${typed} END`
    return type === 'string' ? byteOrder(value) : value
  },
  memberJson: (column, name) => sql`(${column} -> ${name}::text)`,
  memberIsNull: (column, name) => sql`coalesce(jsonb_typeof(${jsonOf(column, name)}), 'null') = 'null'`,
  memberOrder(column, name) {
    const json = jsonOf(column, name)
    const type = sql`coalesce(jsonb_typeof(${json}), 'null')`
    // JSON as written: the order of arrays and objects on every engine.
    const written = sql`(${column} -> ${name}::text)`
    return [
      sql`CASE ${type} WHEN 'null' THEN 0 WHEN 'number' THEN 1 WHEN 'boolean' THEN 1 ELSE 2 END`,
      sql`CASE ${type} WHEN 'number' THEN ${textOf(json)}::float8 WHEN 'boolean' THEN ${textOf(json)}::boolean::int::float8 ELSE 0 END`,
      byteOrder(
        sql`CASE ${type} WHEN 'string' THEN ${textOf(json)} WHEN 'array' THEN ${written}::text WHEN 'object' THEN ${written}::text ELSE '' END`,
      ),
    ]
  },
  arrayHas(column, name, value) {
    const json = jsonOf(column, name)
    const type = typeof value as keyof typeof jsonTypes
    const elements = sql`jsonb_array_elements(CASE WHEN jsonb_typeof(${json}) = 'array' THEN ${json} END) AS element`
    // In a sub-select of CASEs, so that no text is ever parsed as a number.
    const typed = sql`CASE WHEN jsonb_typeof(element) = ${jsonTypes[type]} THEN (element #>> '{}')::${sqlTypes[type]} END`
    return sql`EXISTS (SELECT 1 FROM ${elements} WHERE ${typed} = ${value})`
  },
  searchIndex({ name }, words) {
    const column = sql`${ident(name)}.${searchColumnName}`
    const query = words.map(({ folded, isPrefix }) => lexeme(folded) + (isPrefix ? ':*' : '')).join(' & ')
    return {
      joins: sql``,
      matches: sql`${column} @@ ${query}::text::tsquery`,
      // Divided by the logarithm of the length: a word counts for more in a short text.
      rank: sql`-ts_rank(${column}, ${query}::text::tsquery, 1)`,
      frequency: null,
    }
  },
  createSearch: (table) => [
    sql`ALTER TABLE ${qualified(table)} ADD COLUMN IF NOT EXISTS ${searchColumnName} TSVECTOR`,
    sql`CREATE INDEX IF NOT EXISTS ${ident(`_fts_${table.name}`)} ON ${qualified(table)} USING GIN (${searchColumnName})`,
  ],
  dropSearch: (table) => [sql`ALTER TABLE ${qualified(table)} DROP COLUMN IF EXISTS ${searchColumnName}`],
  searchColumn: { column: searchColumnName, textOf: vectorOf, bind: (text) => sql`${text}::text::tsvector` },
  termIndex: postgresTermIndex,
  tableStorage: postgresTableStorage,
  // The counts of a server that crashed begin again.
  countedUses: (namespace) => sql`SELECT "_index".indexrelname::text AS name, "_index".idx_scan::float8 AS uses,
      (extract(epoch FROM greatest(pg_postmaster_start_time(), "_all".stats_reset)) * 1000)::float8 AS "sinceMs"
    FROM pg_stat_user_indexes AS "_index", pg_stat_database AS "_all"
    WHERE "_index".schemaname = ${namespace} AND "_all".datname = current_database()`,
  floats: {
    columnType: 'REAL[]',
    bind: (values) => sql`${`{${values.join(',')}}`}::text::real[]`,
    select: (column) => sql`array_send(${column})`,
    toBytes: floatsOf,
  },
  calendar: {
    shift: (seconds) => sql`${`${seconds} seconds`}::text::interval`,
    local(datetime, shift, period) {
      const moved = sql`(${datetime}::timestamp + ${shift})`
      const start = period === 'week' ? sql`date_trunc('week', ${moved})` : moved
      return byteOrder(sql`to_char(${start}, ${periodFormats[period]})`)
    },
  },
  findExtension: (name) => sql`SELECT default_version AS available, installed_version AS installed
    FROM pg_available_extensions WHERE name = ${name}`,
}
