/**
 * The minimum SQLite work for each scenario: hand-written statements on a copy of the server's data file with its
 * tables, indexes, triggers and change log. Without rules, validation or conversion of rows.
 */
import { Database, type Statement } from 'bun:sqlite'
import { fdatasyncSync, openSync } from 'node:fs'
import { join } from 'node:path'

type Row = Record<string, unknown>

export type BaselineTable = 'posts' | 'notes'

export interface BaselineStore {
  get(table: BaselineTable, id: string): unknown
  list(author: string): unknown
  listWithTotal(author: string): unknown
  /** The first page of the whole table with a freshly counted total. */
  listAll(): unknown
  search(word: string): unknown
  /** One transaction; `logged` also writes the change log. On disk only after a sync of the write-ahead log. */
  insert(table: BaselineTable, rows: readonly object[], logged: boolean): Row[]
  /** Changes one field of each note in one transaction, with the change log. */
  update(ids: readonly string[], views: number): void
  sync(): void
  /** File descriptor of the write-ahead log, for a sync off the main thread. */
  readonly walDescriptor: number
}

/** The server's setting (`sqliteCacheKiB`). */
const cacheKiB = 64 * 1024
/**
 * The server checkpoints its log in a thread; here SQLite does it, at the same size of 16 MiB.
 */
const checkpointPages = 4096

/** Opens the database of a data folder that a stopped server has filled. */
export function openBaselineStore(folder: string): BaselineStore {
  const path = join(folder, 'databases', 'shared.sqlite')
  const writing = openDatabase(path, false)
  const reading = openDatabase(path, true)
  const walDescriptor = openSync(`${path}-wal`, 'r')
  const inserts = { posts: prepareInsert(writing, 'posts'), notes: prepareInsert(writing, 'notes') }
  const log = writing.prepare(
    'INSERT INTO _changes (at, request, "table", id, before, after) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const begin = writing.prepare('BEGIN IMMEDIATE')
  const commit = writing.prepare('COMMIT')
  const noteById = writing.prepare(`SELECT ${columnsOf(writing, 'notes').join(', ')} FROM notes WHERE id = ?`)
  const setViews = writing.prepare('UPDATE notes SET views = ?, updatedAt = ? WHERE id = ?')

  return {
    ...prepareReads(reading),
    insert(table, rows, logged) {
      begin.run()
      const stored = rows.map((row) => {
        const record = newRecord(row)
        inserts[table](record)
        // Like the server, which serializes the record for its response and logs the size of it.
        if (logged) log.run(Date.now(), record.id, table, record.id, null, String(JSON.stringify(record).length))
        return record
      })
      commit.run()
      return stored
    },
    update(ids, views) {
      begin.run()
      for (const id of ids) {
        const before = noteById.get(id) as Row
        const after = { ...before, views, updatedAt: new Date().toISOString() }
        setViews.run(views, after.updatedAt, id)
        const difference = [{ views: before.views, updatedAt: before.updatedAt }, []]
        log.run(Date.now(), id, 'notes', id, JSON.stringify(difference), JSON.stringify(after))
      }
      commit.run()
    },
    sync: () => fdatasyncSync(walDescriptor),
    walDescriptor,
  }
}

/** Opens a database with the server's settings, except that SQLite checkpoints the log. */
export function openDatabase(path: string, readonly: boolean): Database {
  const db = new Database(path, readonly ? { readonly } : { readwrite: true })
  if (!readonly) {
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = NORMAL')
    db.run(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
    // The log exists only after a first write.
    db.run('BEGIN IMMEDIATE')
    db.run('DELETE FROM _changes WHERE FALSE')
    db.run('COMMIT')
  }
  db.run(`PRAGMA cache_size = -${cacheKiB}`)
  db.run('PRAGMA temp_store = MEMORY')
  return db
}

function newRecord(row: object): Row & { id: string } {
  const now = new Date().toISOString()
  return { id: Bun.randomUUIDv7(), ...row, createdAt: now, updatedAt: now }
}

function prepareInsert(db: Database, table: BaselineTable): (record: Row) => void {
  const columns = columnsOf(db, table)
  const names = columns.map((name) => `"${name}"`).join(', ')
  const statement: Statement = db.prepare(
    `INSERT INTO ${table} (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  return (record) => {
    statement.run(...columns.map((name) => toStored(record[name])))
  }
}

/** The fields of a record; internal columns begin with `_`. */
const columnsOf = (db: Database, table: BaselineTable): string[] =>
  (db.query(`PRAGMA table_info(${table})`).all() as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('_'))

const toStored = (value: unknown): string | number | null => {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  return (value ?? null) as string | number | null
}

function prepareReads(db: Database): Pick<BaselineStore, 'get' | 'list' | 'listWithTotal' | 'listAll' | 'search'> {
  const columns = columnsOf(db, 'posts')
    .map((name) => `posts."${name}"`)
    .join(', ')
  // `+?` as in the server: with `?` SQLite would plan sorted statements again before each run.
  const where = 'WHERE authorId = +? AND published = 1'
  const gets = {
    posts: db.prepare(`SELECT ${columns} FROM posts WHERE id = ?`),
    notes: db.prepare(`SELECT ${columns.replaceAll('posts.', 'notes.')} FROM notes WHERE id = ?`),
  }
  const page = db.prepare(`SELECT ${columns} FROM posts ${where} ORDER BY createdAt DESC, id DESC LIMIT 30`)
  const cursorPage = db.prepare(`SELECT ${columns} FROM posts ${where} ORDER BY createdAt DESC, id DESC LIMIT 31`)
  const count = db.prepare(`SELECT count(*) AS total FROM posts ${where}`)
  const first = db.prepare(`SELECT ${columns} FROM posts ORDER BY id LIMIT 30`)
  const countAll = db.prepare('SELECT count(*) AS total FROM posts')
  const { found, countFound } = prepareSearch(db, columns)
  const totalOf = (row: unknown): number => (row as { total: number }).total

  return {
    get: (table, id) => gets[table].get(id),
    list: (author) => ({ items: cursorPage.all(author), total: null, page: null, perPage: null, hasMore: true }),
    listWithTotal: (author) => ({ items: page.all(author), total: totalOf(count.get(author)), page: 1, perPage: 30 }),
    listAll: () => ({ items: first.all(), total: totalOf(countAll.get()), page: 1, perPage: 30 }),
    search: (word) => ({ items: found.all(`"${word}"*`), total: totalOf(countFound.get(`"${word}"*`)) }),
  }
}

/** FTS5's own `highlight` stands in for the server's highlights. */
function prepareSearch(db: Database, columns: string): { found: Statement; countFound: Statement } {
  const source = '_fts_posts JOIN posts ON posts._seq = _fts_posts.rowid WHERE _fts_posts MATCH +?'
  const highlights = [0, 1].map((column) => `highlight(_fts_posts, ${column}, '<mark>', '</mark>')`).join(', ')
  return {
    found: db.prepare(`SELECT ${columns}, ${highlights} FROM ${source} ORDER BY _fts_posts.rank, posts.id LIMIT 20`),
    countFound: db.prepare(`SELECT count(*) AS total FROM ${source}`),
  }
}
