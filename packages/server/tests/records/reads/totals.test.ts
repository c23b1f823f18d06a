/** Totals under concurrent writes: scans, caching, and the consistency of a page with its total. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller } from '../../../src/access/caller.ts'
import { createRuleEvaluator } from '../../../src/access/rule-evaluator.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { parseConfig } from '../../../src/config/validate.ts'
import { createMemoryCluster } from '../../../src/engines/cluster/memory.ts'
import { openSql } from '../../../src/engines/open.ts'
import { decorateDatabase } from '../../../src/engines/sql/decorate-database.ts'
import { createIndexUses } from '../../../src/engines/sql/index-uses.ts'
import type { PageQuery } from '../../../src/engines/sql/page-query.ts'
import type { Database, Sql } from '../../../src/engines/sql/sql.ts'
import type { SqlText } from '../../../src/engines/sql/sql-text.ts'
import { createRecords } from '../../../src/features/records/index.ts'
import { list } from '../../../src/features/records/reads/list.ts'
import type { TableCall } from '../../../src/features/records/resolve-table.ts'
import { createSchema } from '../../../src/features/records/schema/migrator.ts'
import { createTotals, type Totals } from '../../../src/features/records/totals/totals.ts'
import { insertRecord } from '../../../src/features/records/writes/insert.ts'
import { createRemovalBounds } from '../../../src/features/records/writes/removal-bounds.ts'
import type { Write } from '../../../src/features/records/writes/write-context.ts'
import { createResponseLimits } from '../../../src/http/replies/large-responses.ts'
import { textOf } from '../../../src/http/replies/reply.ts'
import { responseBytesMax } from '../../../src/limits/api.ts'
import { slowReadBytes } from '../../../src/limits/sqlite.ts'
import { complete } from '../../../src/query/computed/computed-fields.ts'
import { engines } from '../../harness/engines.ts'

const access = { read: true, insert: true, update: true, delete: true }
const schema = { n: { type: 'number' }, label: { type: 'text' } } as const
const { config } = parseConfig(
  { databases: { main: { tables: { items: { schema, indexes: [{ fields: ['n'] }], access } } } } },
  { mode: 'release', rootKey: 'k'.repeat(32) },
)
const service: Caller = { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] } as unknown as Caller
const bounds = { retentionMs: 60 * 60 * 1000, bytesMax: 1024 ** 3 }
const namespaces = () => config.namespaces
const nowText = '2026-01-31T12:00:00.000Z'

/** More rows than are scanned on the main thread. */
const rowsAtFirst = Math.ceil(slowReadBytes / 1000)

describe.each(engines.map((engine) => [engine.name, engine] as const))('totals on %s', (_, engine) => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-totals-'))
  const limits = createResponseLimits(() => responseBytesMax)
  let storage: Awaited<ReturnType<typeof engine.openStorage>>
  let sql: Sql
  let call: TableCall
  let totals: Totals
  let scans = 0
  /** Page reads of the table, without those of its change log. */
  let pages = 0
  /** Reads of the changes since a snapshot. */
  let logReads = 0
  let lastId = 0

  const watched = (database: Database): Database => {
    const note = <T extends SqlText>(query: T): T => {
      if (/count\(\*\)/.test(query.text)) scans += 1
      if (/"_changes".* LIMIT/s.test(query.text)) logReads += 1
      return query
    }
    const notePage = (query: PageQuery): PageQuery => {
      if (query.scalar) note(query.scalar)
      if (!query.source.text.includes('_changes')) pages += 1
      return query
    }
    const { readEncodedPage } = database
    return decorateDatabase(database, {
      all: (query, onRead) => database.all(note(query), onRead),
      readPage: (query) => database.readPage(notePage(query)),
      readEncodedPage: readEncodedPage && ((query) => readEncodedPage(notePage(query))),
    })
  }

  /** Inserts rows in one transaction; matching rows come in pairs, so that their number is always even. */
  const insert = (count: number, n = 1): Promise<void> =>
    call.database.write(async (tx) => {
      const write: Write = {
        call,
        tx,
        committed: ({ address }, change) => totals.apply(address, change),
        requestId: 'request',
        nowMs: Date.now(),
        at: '',
        hooks: null,
        isRehearsal: false,
        logged: { chars: 0 },
        removals: createRemovalBounds(),
      }
      for (let i = 0; i < count; i++) {
        const id = `i${String(++lastId).padStart(8, '0')}`
        const row = { id, n, label: 'x'.repeat(1000), createdAt: nowText, updatedAt: nowText }
        await insertRecord(write, { row: complete(call.table, row), hasOwnId: true })
      }
    })

  beforeAll(async () => {
    storage = await engine.openStorage()
    const parts = createSchema({ namespaces, log: silentLog })
    const { databaseUrl = null } = storage.settings
    sql = await openSql({ databaseUrl, dataFolder: folder, prepareInstance: parts.prepareInstance, log: silentLog })
    await parts.migrate(sql, config.namespaces, { accept: false })
    const records = createRecords({
      indexUses: createIndexUses(),
      sql: { ...sql, database: (address) => watched(sql.database(address)) },
      bus: createMemoryCluster(),
      namespaces,
      storedNamespaces: namespaces,
      secret: 'secret',
      changes: () => bounds,
      countInstance: () => {},
      ruleEvaluator: createRuleEvaluator({ sql, namespaces }),
      counters: createMemoryCluster(),
      writeBudgetBytes: () => Number.POSITIVE_INFINITY,
      limits,
      hooks: null,
      clock: systemClock,
      log: silentLog,
    })
    call = await records.resolve({ namespace: 'main', instanceId: null, tableName: 'items' }, service)
    totals = createTotals(systemClock, () => bounds)
    for (let at = 0; at < rowsAtFirst; at += 500) await insert(500, 0)
  })

  afterAll(async () => {
    await sql.close()
    await storage.remove()
    rmSync(folder, { recursive: true })
  })

  const request = async (filter: unknown, limit = 1000): Promise<{ items: unknown[]; total: number }> => {
    const query = { filter: JSON.stringify(filter), limit, page: 1 }
    return JSON.parse(textOf(await list(call, query, { totals, limits })) ?? '')
  }

  /** Commits transactions of two rows one after the other until the returned function is awaited. */
  function keepWriting(): () => Promise<void> {
    let isOver = false
    const written = (async () => {
      while (!isOver) await insert(2)
    })()
    return async () => {
      isOver = true
      await written
    }
  }

  for (const [how, filter] of [
    ['by an index', [['n', '==', 1]]],
    [
      'by a scan',
      [
        ['label', 'contains', 'x'],
        ['n', '==', 1],
      ],
    ],
  ] as const)
    test(`[DB-LIST-19] a numbered page found ${how} and its total are consistent under concurrent writes`, async () => {
      const stop = keepWriting()
      for (let round = 0; round < 20; round++) {
        const pages = await Promise.all([request(filter), request(filter), request(filter)])
        for (const { items, total } of pages) {
          expect(total % 2).toBe(0)
          expect(items.length).toBe(Math.min(total, 1000))
        }
      }
      await stop()
      const { total } = await request(filter)
      expect(await totals.count(call, call.permissions.read())).toBe(lastId)
      totals.clear()
      expect((await request(filter)).total).toBe(total)
    })

  test('[DB-COUNT-2] concurrent requests for a new total share one scan, and concurrent writes do not discard it', async () => {
    const filter = [['label', 'contains', 'xx']]
    const stop = keepWriting()
    await insert(2)
    scans = 0
    const answers = await Promise.all(Array.from({ length: 200 }, () => request(filter, 3)))
    expect(scans).toBe(1)
    for (const { total } of answers) expect(total).toBeGreaterThan(rowsAtFirst)
    await request(filter, 3)
    await stop()
    expect((await request(filter, 3)).total).toBe(lastId)
    expect(scans).toBe(1)
  })

  test('[DB-COUNT-2] a page with a new total is read once', async () => {
    for (const [filter, expected] of [
      [[['id', '==', 'i00000001']], 1],
      [[['label', 'contains', 'xxx']], lastId],
    ] as const) {
      pages = 0
      scans = 0
      expect((await request(filter, 3)).total).toBe(expected)
      expect(pages).toBe(1)
      expect(scans).toBe(1)
    }
  })

  test('[DB-COUNT-2] the totals of a table follow its writes together', async () => {
    const numbers = Array.from({ length: 100 }, (_, at) => -at)
    const totalsOf = async (): Promise<number[]> => {
      const pages = await Promise.all(numbers.map((n) => request([['n', '==', n]], 1)))
      return pages.map(({ total }) => total)
    }
    /** Writes that concern one of the totals; returns how often the log is read for all of them. */
    const follow = async (count: number): Promise<number> => {
      const before = await totalsOf()
      await insert(count, numbers[7])
      logReads = 0
      expect(await totalsOf()).toEqual(before.map((total, at) => (at === 7 ? total + count : total)))
      return logReads
    }
    expect(await follow(2)).toBeLessThan(numbers.length / 2)
    // More than is followed: they are counted again.
    await follow(1500)
    expect(await follow(2)).toBeLessThan(numbers.length / 2)
  })

  test('[DB-COUNT-2] a failed count is retried by the next request', async () => {
    const filter = [['n', '<', 7]]
    const { database } = call
    const broken = {
      ...call,
      database: decorateDatabase(database, { all: () => Promise.reject(new Error('unavailable')) }),
    }
    const query = { filter: JSON.stringify(filter), page: 1 }
    const failed = await Promise.allSettled([1, 2].map(() => list(broken, query, { totals, limits })))
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect((await request(filter, 3)).total).toBe(lastId)
  })
})
