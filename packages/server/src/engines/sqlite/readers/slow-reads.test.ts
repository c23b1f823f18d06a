import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { slowReadBytes } from '../../../limits/sqlite.ts'
import { EngineError } from '../../sql/error.ts'
import { type PageQuery, plainPage, selectList } from '../../sql/page-query.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import { type Connection, openConnection } from '../connection.ts'
import { openReaderThreads } from './reader-threads.ts'
import { createPacedReader } from './slow-reads.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-reads-'))
const path = join(folder, 'large.sqlite')
const small = join(folder, 'small.sqlite')
let writer: Connection

beforeAll(() => {
  for (const [file, rows] of [
    [path, Math.ceil(slowReadBytes / 500)],
    [small, 10],
  ] as const) {
    writer = openConnection(file)
    writer.exec('CREATE TABLE items (id TEXT PRIMARY KEY, n REAL, label TEXT)')
    writer.exec(`WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < ${rows})
      INSERT INTO items SELECT printf('%08d', i), i, printf('%0600d', i) FROM seq`)
    writer.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
})

afterAll(() => {
  writer.close()
  rmSync(folder, { recursive: true })
})

const whole = (query: SqlText) => ({ query, bytesMax: Number.POSITIVE_INFINITY, alongside: null })

const scan = sql`SELECT id FROM items WHERE instr(label, ${'77'}) > 0 ORDER BY id LIMIT 5`

describe('slow reads', () => {
  test('a filtered scan of a large file runs in a thread with the same answer; a look-up and a first page do not', async () => {
    const threads = openReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createPacedReader(connection, path, threads)
    const scanned = read(scan)
    expect(scanned).toBeInstanceOf(Promise)
    expect(await scanned).toEqual(connection.all(scan))
    expect(read(sql`SELECT id FROM items WHERE id = ${'00000007'}`)).toEqual([{ id: '00000007' }])
    expect(read(sql`SELECT id FROM items ORDER BY id LIMIT 2`)).toHaveLength(2)
    connection.close()
    threads.close()
  })

  test('looking at a plan does not pin the connection to what it saw', () => {
    const threads = openReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createPacedReader(connection, path, threads)
    const count = sql`SELECT id FROM items WHERE id = ${'new'}`
    expect(read(count)).toEqual([])
    const other = openConnection(path)
    other.run(sql`INSERT INTO items (id, n) VALUES (${'new'}, 1)`)
    expect(read(count)).toEqual([{ id: 'new' }])
    other.run(sql`DELETE FROM items WHERE id = ${'new'}`)
    other.close()
    connection.close()
    threads.close()
  })

  test('a small file is scanned where the caller is', () => {
    const threads = openReaderThreads()
    const connection = openConnection(small, { readonly: true })
    expect(createPacedReader(connection, small, threads).all(scan)).toEqual([])
    connection.close()
    threads.close()
  })

  test('an indexed statement that keeps taking long moves to a thread', async () => {
    const threads = openReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createPacedReader(connection, path, threads)
    // An index range, but over every row: the plan says nothing against it.
    const long = sql`SELECT count(*) AS total FROM items, json_each('[1,2,3,4,5,6,7,8,9]') AS times WHERE items.id > ${''} AND instr(label, times.value || ${'9'}) >= 0`
    const answers: unknown[] = []
    let moved = false
    for (let run = 0; run < 200 && !moved; run++) {
      const rows = read(long)
      moved = rows instanceof Promise
      answers.push(await rows)
    }
    expect(moved).toBe(true)
    expect(new Set(answers.map((rows) => JSON.stringify(rows))).size).toBe(1)
    connection.close()
    threads.close()
  })

  test('rows that take long one by one move to a thread the first time', async () => {
    const threads = openReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { page, largePage } = createPacedReader(connection, path, threads)
    const slow = sql`length(hex(zeroblob(16000000 + items.n)))`
    const query: PageQuery = {
      list: selectList([{ column: slow, name: 'n', kind: 'short' }]),
      source: sql` FROM items`,
      order: sql` ORDER BY id`,
      limit: 20,
      offset: 0,
      key: null,
    }
    expect(page(query)).toBeNull()
    expect((await largePage(query, slowReadBytes)).rows).toEqual(connection.all(plainPage(query)))
    connection.close()
    threads.close()
  })

  test('a thread sorts in a file what its cache does not hold', async () => {
    const threads = openReaderThreads()
    const { rows } = await threads.read(path, whole(sql`SELECT temp_store FROM pragma_temp_store`))
    expect(rows).toEqual([{ temp_store: 1 }])
    const sorted = await threads.read(path, whole(sql`SELECT id FROM items ORDER BY label DESC, id LIMIT 10000`))
    expect(sorted.rows[0]).toEqual({ id: String(Math.ceil(slowReadBytes / 500)).padStart(8, '0') })
    threads.close()
  })

  test('a mistake in a thread is an error of its own read only', async () => {
    const threads = openReaderThreads()
    await expect(threads.read(path, whole(sql`SELECT missing FROM items`))).rejects.toThrow('no such column')
    expect((await threads.read(path, whole(sql`SELECT 1 AS one`))).rows).toEqual([{ one: 1 }])
    threads.close()
  })

  test('a read beyond the time limit is refused and the next one is served', async () => {
    const threads = openReaderThreads(50)
    const long = sql`WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < 3000000) SELECT count(*) FROM seq`
    await expect(threads.read(path, whole(long))).rejects.toBeInstanceOf(EngineError)
    threads.close()
  })

  test('equal reads that wait are done once, and each caller has rows of its own', async () => {
    const threads = openReaderThreads()
    const callers = Array.from({ length: 1000 }, () => threads.read(path, whole(scan)))
    const pages = await Promise.all(callers)
    const [first] = pages
    expect(first?.rows.length).toBe(5)
    for (const { rows } of pages) expect(rows).toEqual(first?.rows ?? [])
    expect(new Set(pages.map(({ rows }) => rows[0])).size).toBe(1000)
    const others = Array.from({ length: 1000 }, (_, n) => threads.read(path, whole(sql`SELECT ${n} AS n`)))
    const settled = await Promise.allSettled(others)
    expect(settled.some(({ status }) => status === 'rejected')).toBe(true)
    threads.close()
  })

  test('closing refuses what still waits', async () => {
    const threads = openReaderThreads()
    const waiting = threads.read(path, whole(scan))
    threads.close()
    await expect(waiting).rejects.toBeInstanceOf(EngineError)
  })
})
