import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunTime } from '../../../base/concurrency/run-time.ts'
import {
  quickSearchOccurrences,
  quickSkipsMax,
  quickVisitsMax,
  readerThreadNiceness,
  slowReadBytes,
  slowReadMs,
  slowReadsWaitingMax,
  slowReadsWaitingPerCallerMax,
} from '../../../limits/sqlite.ts'
import type { TableRef } from '../../sql/dialect.ts'
import { EngineError } from '../../sql/error.ts'
import { type PageQuery, plainPage, selectList } from '../../sql/page-query.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import { type Connection, openConnection } from '../connection.ts'
import { sqliteDialect } from '../dialect.ts'
import { createAdaptiveReader } from './adaptive-reader.ts'
import { ReaderThreads } from './reader-threads.ts'

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

const unbounded = (query: SqlText) => ({ query, bytesMax: Number.POSITIVE_INFINITY, scalar: null })

const scan = sql`SELECT id FROM items WHERE instr(label, ${'77'}) > 0 ORDER BY id LIMIT 5`

describe('slow reads', () => {
  test('a filtered scan of a large file runs in a thread with the same result; a lookup by key and a first page do not', async () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createAdaptiveReader(connection, path, threads)
    const scanned = read(scan)
    expect(scanned).toBeInstanceOf(Promise)
    expect(await scanned).toEqual(connection.all(scan))
    expect(read(sql`SELECT id FROM items WHERE id = ${'00000007'}`)).toEqual([{ id: '00000007' }])
    expect(read(sql`SELECT id FROM items ORDER BY id LIMIT 2`)).toHaveLength(2)
    connection.close()
    threads.close()
  })

  test('reading a query plan does not pin the connection to a snapshot', () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createAdaptiveReader(connection, path, threads)
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

  test('a small file is scanned on the main thread', () => {
    const threads = new ReaderThreads()
    const connection = openConnection(small, { readonly: true })
    expect(createAdaptiveReader(connection, small, threads).all(scan)).toEqual([])
    connection.close()
    threads.close()
  })

  test('an indexed statement that is repeatedly slow moves to a thread', async () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { all: read } = createAdaptiveReader(connection, path, threads)
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

  test.each([
    ['ran', 0, true],
    ['waited for a processor that others occupied', slowReadMs * 2, false],
  ])('a statement is slow by the time in which the thread %s: %p ms of waits', async (_, waitMs, isMoved) => {
    const clock = { nowMs: 0, waitedMs: 0 }
    const time = new RunTime(
      () => clock.nowMs,
      () => clock.waitedMs,
    )
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const taking: Connection = {
      ...connection,
      all(query) {
        clock.nowMs += slowReadMs * 2
        clock.waitedMs += waitMs
        return connection.all(query)
      },
    }
    const { all: read } = createAdaptiveReader(taking, path, threads, time)
    let moved = false
    for (let run = 0; run < 10; run++) {
      const rows = read(sql`SELECT id FROM items WHERE id = ${'00000007'}`)
      moved ||= rows instanceof Promise
      expect(await rows).toEqual([{ id: '00000007' }])
    }
    expect(moved).toBe(isMoved)
    connection.close()
    threads.close()
  })

  test('a page whose single rows are slow moves to a thread on its first run', async () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { page, largePage } = createAdaptiveReader(connection, path, threads)
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

  test('a page that visits a bounded number of rows of a large file is read on the main thread', async () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { page } = createAdaptiveReader(connection, path, threads)
    const last = (count: number): string => String(count).padStart(8, '0')
    const firstOf = (where: SqlText): PageQuery => ({
      list: selectList([{ column: sql`items.id`, name: 'id', kind: 'short' }]),
      source: sql` FROM items WHERE items.rowid IN (SELECT items.rowid FROM items${where} ORDER BY n DESC LIMIT 3)`,
      order: sql` ORDER BY n DESC`,
      limit: 3,
      offset: 0,
      key: null,
      visited: sql`SELECT 1 FROM items${where}`,
    })
    const few = firstOf(sql` WHERE id <= ${last(quickVisitsMax)}`)
    expect(page(few)).toMatchObject({ rows: [{ id: last(quickVisitsMax) }, {}, {}] })
    const many = page(firstOf(sql` WHERE id <= ${last(quickVisitsMax + 1)}`))
    expect(many).toBeInstanceOf(Promise)
    expect(await many).toMatchObject({ rows: [{ id: last(quickVisitsMax + 1) }, {}, {}] })
    // A condition without an index visits every row to find the few.
    expect(page(firstOf(sql` WHERE label = ${'x'}`))).toBeInstanceOf(Promise)
    await threads.read(path, unbounded(sql`SELECT 1`))
    connection.close()
    threads.close()
  })

  test('a page far from the start of a large file is read in a thread', async () => {
    const threads = new ReaderThreads()
    const connection = openConnection(path, { readonly: true })
    const { page } = createAdaptiveReader(connection, path, threads)
    const at = (offset: number): PageQuery => ({
      list: selectList([{ column: sql`items.id`, name: 'id', kind: 'short' }]),
      source: sql` FROM items`,
      order: sql` ORDER BY id`,
      limit: 1,
      offset,
      key: null,
    })
    expect(page(at(quickSkipsMax))).toMatchObject({ rows: [{ id: '00010001' }] })
    const far = page(at(quickSkipsMax + 1))
    expect(far).toBeInstanceOf(Promise)
    expect(await far).toMatchObject({ rows: [{ id: '00010002' }] })
    connection.close()
    threads.close()
  })

  test.skipIf(process.platform !== 'linux')('a thread has a lower priority than the event loop', async () => {
    const nicenessOf = (thread: string): number => {
      const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1')
      // The 19th field, after a name in brackets that may contain spaces.
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
    }
    const own = nicenessOf(String(process.pid))
    const threads = new ReaderThreads()
    await threads.read(path, unbounded(sql`SELECT 1`))
    expect(readdirSync('/proc/self/task').map(nicenessOf)).toContain(readerThreadNiceness)
    expect(nicenessOf(String(process.pid))).toBe(own)
    threads.close()
  })

  test('a thread spills a sort beyond its cache to a file', async () => {
    const threads = new ReaderThreads()
    const { rows } = await threads.read(path, unbounded(sql`SELECT temp_store FROM pragma_temp_store`))
    expect(rows).toEqual([{ temp_store: 1 }])
    const sorted = await threads.read(path, unbounded(sql`SELECT id FROM items ORDER BY label DESC, id LIMIT 10000`))
    expect(sorted.rows[0]).toEqual({ id: String(Math.ceil(slowReadBytes / 500)).padStart(8, '0') })
    threads.close()
  })

  test('a mistake in a thread is an error of its own read only', async () => {
    const threads = new ReaderThreads()
    await expect(threads.read(path, unbounded(sql`SELECT missing FROM items`))).rejects.toThrow('no such column')
    expect((await threads.read(path, unbounded(sql`SELECT 1 AS one`))).rows).toEqual([{ one: 1 }])
    threads.close()
  })

  test('a read beyond the time limit is refused and the next one is served', async () => {
    const threads = new ReaderThreads(50)
    const long = sql`WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < 3000000) SELECT count(*) FROM seq`
    await expect(threads.read(path, unbounded(long))).rejects.toBeInstanceOf(EngineError)
    threads.close()
  })

  test('equal reads that wait are done once, and each caller has rows of its own', async () => {
    const threads = new ReaderThreads()
    const callers = Array.from({ length: 1000 }, () => threads.read(path, unbounded(scan)))
    const pages = await Promise.all(callers)
    const [first] = pages
    expect(first?.rows.length).toBe(5)
    for (const { rows } of pages) expect(rows).toEqual(first?.rows ?? [])
    expect(new Set(pages.map(({ rows }) => rows[0])).size).toBe(1000)
    const others = Array.from({ length: 1000 }, (_, n) => threads.read(path, unbounded(sql`SELECT ${n} AS n`)))
    const outcomes = await Promise.allSettled(others)
    expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true)
    threads.close()
  })

  test('[RES-10] a search of a large file for a frequent word starts in a thread, whatever its wording', async () => {
    const threads = new ReaderThreads()
    const docs = { name: 'docs', namespace: 'main' } as unknown as TableRef
    writer = openConnection(path)
    writer.exec('CREATE TABLE docs (_seq INTEGER PRIMARY KEY, id TEXT, body TEXT)')
    for (const statement of sqliteDialect.createSearch(docs, ['body'])) writer.run(statement)
    const often = `${'Often '.repeat(quickSearchOccurrences / 2)}seldom`
    for (const n of [1, 2, 3]) writer.run(sql`INSERT INTO docs (id, body) VALUES (${n}, ${often})`)
    const connection = openConnection(path, { readonly: true })
    const { page } = createAdaptiveReader(connection, path, threads)
    const search = (words: readonly string[], wording: SqlText, isPrefix = false) => {
      const index = sqliteDialect.searchIndex(
        docs,
        words.map((folded) => ({ text: folded, folded, isPrefix })),
      )
      return page({
        list: selectList([{ column: sql`docs.id`, name: 'id', kind: 'short' }]),
        source: sql` FROM "docs"${index.joins} WHERE ${index.matches} AND ${wording}`,
        order: sql` ORDER BY docs.id`,
        limit: 2,
        offset: 0,
        key: null,
        frequency: index.frequency,
      })
    }
    const rows = [{ id: '1' }, { id: '2' }]
    for (const found of [
      search(['often'], sql`1 = 1`),
      search(['often'], sql`2 = 2`),
      search(['seldom', 'often'], sql`3 = 3`),
      search(['oft'], sql`4 = 4`, true),
    ]) {
      expect(found).toBeInstanceOf(Promise)
      expect(await found).toMatchObject({ rows })
    }
    expect(search(['seldom'], sql`1 = 1`)).toMatchObject({ rows })
    expect(search(['sel'], sql`1 = 1`, true)).toMatchObject({ rows })
    expect(search(['never'], sql`1 = 1`)).toMatchObject({ rows: [] })
    // The list of terms follows the index.
    for (const n of [4, 5, 6]) writer.run(sql`INSERT INTO docs (id, body) VALUES (${n}, ${'later '.repeat(300)})`)
    const later = search(['later'], sql`1 = 1`)
    expect(later).toBeInstanceOf(Promise)
    expect(await later).toMatchObject({ rows: [{ id: '4' }, { id: '5' }] })
    connection.close()
    threads.close()
  })

  describe('callers share the threads', () => {
    const read = (n: number) => unbounded(sql`SELECT ${n} AS n`)

    /** Threads that are one, and the order in which reads ended. */
    function open() {
      const threads = new ReaderThreads(undefined, 1)
      const ended: string[] = []
      const request = (caller: string, n: number): Promise<void> =>
        threads.read(path, read(n), caller).then(
          ({ rows }) => void ended.push(`${caller}${rows[0]?.n}`),
          (error: EngineError) => void ended.push(`${caller} ${error.kind}`),
        )
      return { threads, ended, request }
    }

    test('one that asks for much delays another by one read', async () => {
      const { threads, ended, request } = open()
      const all = Array.from({ length: 20 }, (_, n) => request('a', n))
      await Promise.all([...all, request('b', 100), request('b', 101)])
      expect(ended.slice(0, 5)).toEqual(['a0', 'a1', 'b100', 'a2', 'b101'])
      expect(ended).toHaveLength(22)
      threads.close()
    })

    test('one that asks for too much is refused, and others are not', async () => {
      const { threads, ended, request } = open()
      const all = Array.from({ length: 200 }, (_, n) => request('a', n))
      await Promise.all([...all, request('b', 300)])
      expect(ended.filter((one) => one === 'a crowded')).toHaveLength(200 - 1 - slowReadsWaitingPerCallerMax)
      expect(ended.indexOf('b300')).toBeLessThan(ended.indexOf('a2'))
      threads.close()
    })

    test('a read that another caller waits for as well begins with the first round of either', async () => {
      const { threads, ended, request } = open()
      const all = Array.from({ length: 20 }, (_, n) => request('a', n))
      await Promise.all([...all, request('b', 19)])
      expect(ended.slice(0, 4)).toEqual(['a0', 'a1', 'a19', 'b19'])
      expect(ended).toHaveLength(21)
      threads.close()
    })

    test('all together wait within a bound', async () => {
      const { threads, ended, request } = open()
      await Promise.all(Array.from({ length: 2 * slowReadsWaitingMax }, (_, n) => request(`c${n}-`, n)))
      expect(ended.filter((one) => one.endsWith('busy'))).toHaveLength(slowReadsWaitingMax - 1)
      threads.close()
    })
  })

  test('closing refuses what still waits', async () => {
    const threads = new ReaderThreads()
    const waiting = threads.read(path, unbounded(scan))
    threads.close()
    await expect(waiting).rejects.toBeInstanceOf(EngineError)
  })
})
