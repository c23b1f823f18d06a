/** The SQLite dialect. A database is a file, so tables are unqualified and rows have no owner column. */
import { quickSearchOccurrences } from '../../limits/sqlite.ts'
import type { BatchPosition, Dialect, Period, SearchWord, WordFrequency } from '../sql/dialect.ts'
import { ident, join, type SqlText, sql } from '../sql/sql-text.ts'
import { sqliteTableStorage } from '../table-storage/sqlite.ts'
import { sqliteTermIndex } from '../term-index/sqlite.ts'
import { lastCharacter } from '../term-index/term-index.ts'

/** JSON paths are parameters, so a member's name never becomes SQL; it is quoted as JSON. */
const memberPath = (name: string | null): string => (name === null ? '$' : `$.${JSON.stringify(name)}`)

const jsonTypes = {
  string: sql`'text'`,
  number: sql`'integer', 'real'`,
  boolean: sql`'true', 'false'`,
} as const

/** SQLite reads JSON integers beyond 2^53 as exact 64-bit integers; values are doubles. */
const asDouble = (value: SqlText): SqlText => sql`CAST(${value} AS REAL)`

/** No declared name starts with an underscore. */
const searchTable = (tableName: string): string => `_fts_${tableName}`

/** Counts occurrences in the index's own list of terms, up to `quickSearchOccurrences` of each word. */
function frequencyOf(index: string, words: readonly SearchWord[]): WordFrequency {
  const source = `${index}_terms`
  const table = sql`temp.${ident(source)}`
  const isFrequent = words.map(({ folded, isPrefix }) => {
    const isWord = isPrefix ? sql`term >= ${folded} AND term < ${folded + lastCharacter}` : sql`term = ${folded}`
    return sql`EXISTS (SELECT 1 FROM ${table} WHERE ${isWord} LIMIT 1 OFFSET ${quickSearchOccurrences})`
  })
  return {
    source,
    create: sql`CREATE VIRTUAL TABLE IF NOT EXISTS ${table} USING fts5vocab('main', ${ident(index)}, 'instance')`,
    query: sql`SELECT 1 WHERE ${join(isFrequent, ' OR ')}`,
  }
}

const periodFormats: Readonly<Record<Period, SqlText>> = {
  hour: sql`'%Y-%m-%dT%H'`,
  day: sql`'%Y-%m-%d'`,
  week: sql`'%Y-%m-%d'`,
  month: sql`'%Y-%m'`,
  year: sql`'%Y'`,
}

/** One bound, since SQLite searches by the first of several and reads all rows from there. */
const afterPosition = ({ from, seq }: BatchPosition): SqlText => sql`seq > max(CAST(${from} AS INTEGER), ${seq})`

export const sqliteDialect: Dialect = {
  columnTypes: { text: 'TEXT', number: 'REAL', boolean: 'INTEGER', json: 'TEXT' },
  from: ({ name }, alias) => (alias.text === ident(name).text ? alias : sql`${ident(name)} AS ${alias}`),
  target: ({ name }) => ident(name),
  own: () => null,
  prepareNamespace: () => [],
  tableHead: () => [sql`"_seq" INTEGER PRIMARY KEY`, sql`"id" TEXT NOT NULL UNIQUE`],
  hasColumn: (table, name) => sql`SELECT 1 FROM pragma_table_info(${table.name}) WHERE name = ${name}`,
  logHead: [sql`seq INTEGER PRIMARY KEY AUTOINCREMENT`],
  clustered: sql` WITHOUT ROWID`,
  indexLog: () => [],
  // Commits are serialized, so the highest number ever assigned identifies a snapshot.
  logView: {
    snapshot: ({ name }) => sql`(SELECT CAST(coalesce(max(seq), 0) AS TEXT) FROM sqlite_sequence WHERE name = ${name})`,
    isAhead: (snapshot, of) => Number(snapshot) > Number(of),
    within: (snapshot) => sql`seq <= CAST(${snapshot} AS INTEGER)`,
    beyond: (snapshot) => sql`seq > CAST(${snapshot} AS INTEGER)`,
    rest: (position) => sql`${afterPosition(position)} AND seq <= CAST(${position.to} AS INTEGER)`,
    after: afterPosition,
    position: sql`seq`,
    isBeyond: (position, snapshot) => position > Number(snapshot),
  },
  logRefersToRows: true,
  follow: null,
  indexColumn: (column) => column,
  coversBooleans: true,
  indexNames: (table) => sql`SELECT name FROM pragma_index_list(${table.name})`,
  indexName: (_, name) => ident(name),
  rowKey: ident('_seq'),
  fromBoolean: (value) => (value ? 1 : 0),
  toBoolean: (stored) => stored === 1,
  forUpdate: sql``,
  skipLocked: sql``,
  forReference: sql``,
  lockTable: null,
  insertMany: null,
  ascending: (column) => sql`${column} ASC`,
  descending: (column) => sql`${column} DESC`,
  contains: (column, value) => sql`instr(${column}, ${value}) > 0`,
  inList(column, values, type) {
    const value = type === 'number' ? asDouble(sql`value`) : sql`value`
    return sql`${column} IN (SELECT ${value} FROM json_each(${JSON.stringify(values)}))`
  },
  // Without LATERAL: for each text, the rows of an IN that refers to it, by their keys.
  keysPerText({ from, key, texts, rowsOf }) {
    const first = sql`SELECT ${key} FROM ${from}${rowsOf(sql`"_texts"."value"`)}`
    const each = sql`json_each(${JSON.stringify(texts)}) AS "_texts"`
    return sql`SELECT ${key} FROM ${each} CROSS JOIN ${from} ON ${key} IN (${first})`
  },
  objectOf: (name, value) => sql`json_group_object(${name}, ${value})`,
  memberAs(column, name, type) {
    const value = sql`json_extract(${column}, ${memberPath(name)})`
    const typed = type === 'number' ? asDouble(value) : value
    return sql`CASE WHEN json_type(${column}, ${memberPath(name)}) IN (${jsonTypes[type]}) THEN ${typed} END`
  },
  memberJson: (column, name) => sql`${column} -> ${memberPath(name)}`,
  memberIsNull: (column, name) => sql`coalesce(json_type(${column}, ${memberPath(name)}), 'null') = 'null'`,
  memberOrder(column, name) {
    const path = memberPath(name)
    const isNumber = sql`json_type(${column}, ${path}) IN (${jsonTypes.number}, ${jsonTypes.boolean})`
    const isNull = sqliteDialect.memberIsNull(column, name)
    const value = sql`json_extract(${column}, ${path})`
    return [
      sql`CASE WHEN ${isNull} THEN 0 WHEN ${isNumber} THEN 1 ELSE 2 END`,
      sql`CASE WHEN ${isNumber} THEN ${asDouble(value)} ELSE 0.0 END`,
      sql`CASE WHEN ${isNull} OR ${isNumber} THEN '' ELSE ${value} END`,
    ]
  },
  arrayHas(column, name, value) {
    const path = memberPath(name)
    const types = jsonTypes[typeof value as keyof typeof jsonTypes]
    const element = typeof value === 'number' ? asDouble(sql`value`) : sql`value`
    const stored = typeof value === 'boolean' ? Number(value) : value
    const elements = sql`SELECT 1 FROM json_each(${column}, ${path}) WHERE type IN (${types}) AND ${element} = ${stored}`
    return sql`(json_type(${column}, ${path}) = 'array' AND EXISTS (${elements}))`
  },
  searchIndex({ name }, words) {
    const index = ident(searchTable(name))
    // Words are quoted: nothing the caller types is query syntax.
    const query = words.map(({ text, isPrefix }) => `"${text.replaceAll('"', '""')}"${isPrefix ? '*' : ''}`).join(' ')
    return {
      joins: sql` JOIN ${index} ON ${index}."rowid" = ${ident(name)}."_seq"`,
      matches: sql`${index} MATCH ${query}`,
      rank: sql`${index}."rank"`,
      frequency: frequencyOf(searchTable(name), words),
    }
  },
  createSearch({ name }, fields) {
    const table = ident(name)
    const index = ident(searchTable(name))
    const names = join(fields.map(ident), ', ')
    const of = (row: 'new' | 'old'): SqlText =>
      join(
        fields.map((field) => sql`${ident(row)}.${ident(field)}`),
        ', ',
      )
    const add = sql`INSERT INTO ${index} (rowid, ${names}) VALUES (new."_seq", ${of('new')})`
    const remove = sql`INSERT INTO ${index} (${index}, rowid, ${names}) VALUES ('delete', old."_seq", ${of('old')})`
    const trigger = (when: string): SqlText => ident(`${searchTable(name)}_${when}`)
    const options = `content='${name}', content_rowid='_seq', tokenize='unicode61 remove_diacritics 2', prefix='2 3'`
    return [
      sql`CREATE VIRTUAL TABLE ${index} USING fts5(${names}, ${{ text: options, values: [] }})`,
      sql`CREATE TRIGGER ${trigger('added')} AFTER INSERT ON ${table} BEGIN ${add}; END`,
      sql`CREATE TRIGGER ${trigger('removed')} AFTER DELETE ON ${table} BEGIN ${remove}; END`,
      sql`CREATE TRIGGER ${trigger('modified')} AFTER UPDATE OF ${names} ON ${table} BEGIN ${remove}; ${add}; END`,
      sql`INSERT INTO ${index} (${index}) VALUES ('rebuild')`,
    ]
  },
  dropSearch({ name }) {
    const index = searchTable(name)
    return [
      ...['added', 'removed', 'modified'].map((when) => sql`DROP TRIGGER IF EXISTS ${ident(`${index}_${when}`)}`),
      sql`DROP TABLE IF EXISTS ${ident(index)}`,
    ]
  },
  searchColumn: null,
  termIndex: sqliteTermIndex,
  tableStorage: sqliteTableStorage,
  countedUses: null,
  floats: {
    columnType: 'BLOB',
    bind: ({ buffer, byteOffset, byteLength }) => sql`${new Uint8Array(buffer, byteOffset, byteLength)}`,
    select: (column) => column,
    toBytes: (selected) => selected as Uint8Array,
  },
  calendar: {
    shift: (seconds) => sql`${`${seconds < 0 ? '' : '+'}${seconds} seconds`}`,
    local(datetime, shift, period) {
      // The next Monday after the day six days before.
      const monday = period === 'week' ? sql`, '-6 days', 'weekday 1'` : sql``
      return sql`strftime(${periodFormats[period]}, ${datetime}, ${shift}${monday})`
    },
  },
  findExtension: null,
}
