/** Batches under an engine that fails: whatever call fails, nothing of the batch is applied, logged or counted. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuleEvaluator } from '../../../access/rule-evaluator.ts'
import { manualClock } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { parseConfig } from '../../../config/validate.ts'
import { createMemoryCluster } from '../../../engines/cluster/memory.ts'
import { openSql } from '../../../engines/open.ts'
import { decorateDatabase } from '../../../engines/sql/decorate-database.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { createIndexUses } from '../../../engines/sql/index-uses.ts'
import type { Database, Sql, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { Call } from '../../../http/endpoint.ts'
import { emptyBody } from '../../../http/input/request-body.ts'
import { createResponseLimits } from '../../../http/replies/large-responses.ts'
import { responseBytesMax } from '../../../limits/api.ts'
import { createRecords, type Records } from '../index.ts'
import { createSchema } from '../schema/migrator.ts'

const access = { read: true, insert: true, update: true, delete: true }
const { config } = parseConfig(
  {
    databases: {
      main: {
        tables: { items: { schema: { n: { type: 'number' }, label: { type: 'text' } }, search: ['label'], access } },
      },
    },
  },
  { mode: 'release', rootKey: 'k'.repeat(32) },
)

const folder = mkdtempSync(join(tmpdir(), 'plinth-faults-'))
const namespaces = () => config.namespaces
let engine: Sql
let records: Records
/** Statements of a transaction still to succeed before one fails; infinite when none should. */
let untilFailure = Number.POSITIVE_INFINITY

const step = (): void => {
  if (--untilFailure < 0) throw new EngineError('unavailable', 'injected')
}

const failing = (tx: Transaction): Transaction => ({
  all: async (query) => {
    step()
    return tx.all(query)
  },
  run: async (query) => {
    step()
    return tx.run(query)
  },
  lockRow: async (query, against) => {
    step()
    return tx.lockRow(query, against)
  },
  send(query, explain) {
    step()
    tx.send(query, explain)
  },
  append(statement) {
    step()
    tx.append(statement)
  },
  lock: (...keys) => tx.lock(...keys),
  afterCommit: (hook) => tx.afterCommit(hook),
})

const failingDatabase = (database: Database): Database =>
  decorateDatabase(database, { write: (work, options) => database.write((tx) => work(failing(tx)), options) })

beforeAll(async () => {
  const schema = createSchema({ namespaces, log: silentLog })
  engine = await openSql({
    databaseUrl: null,
    dataFolder: folder,
    prepareInstance: schema.prepareInstance,
    log: silentLog,
  })
  await schema.migrate(engine, config.namespaces, { accept: false })
  records = createRecords({
    indexUses: createIndexUses(),
    ruleEvaluator: createRuleEvaluator({ sql: engine, namespaces }),
    sql: { ...engine, database: (address) => failingDatabase(engine.database(address)) },
    bus: createMemoryCluster(),
    counters: createMemoryCluster(),
    writeBudgetBytes: () => 2 ** 26,
    namespaces,
    storedNamespaces: namespaces,
    countInstance: () => {},
    hooks: null,
    secret: 'secret',
    changes: () => ({ retentionMs: 1000, bytesMax: 1024 ** 3 }),
    limits: createResponseLimits(() => responseBytesMax),
    clock: manualClock(),
    log: silentLog,
  })
})

afterAll(async () => {
  await engine.close()
  rmSync(folder, { recursive: true })
})

function request(name: string, body: unknown): unknown {
  const endpoint = records.endpoints.find((one) => one.name === name)
  const call: Call = {
    params: { namespace: 'main', table: 'items' },
    query: {},
    body,
    caller: { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] },
    headers: new Headers(),
    method: 'POST',
    path: '/',
    requestId: 'r',
    address: '127.0.0.1',
    url: '/',
    signal: new AbortController().signal,
    rawBody: emptyBody(),
  }
  return endpoint?.handle(call)
}

/** Everything a batch may touch: rows, the log, the search index and the remembered total. */
async function dump(): Promise<unknown> {
  const database = engine.database({ namespace: 'main', instanceId: null })
  const counted = (await request('records.count', undefined)) as { text: string }
  return {
    rows: await database.all(sql`SELECT * FROM items ORDER BY id`),
    changes: await database.all(sql`SELECT * FROM _changes ORDER BY seq`),
    found: await database.all(sql`SELECT rowid FROM _fts_items WHERE _fts_items MATCH 'word*' ORDER BY rowid`),
    total: counted.text,
  }
}

describe('a batch on a failing engine', () => {
  test('[DB-BATCH-9] leaves nothing behind, whichever call fails', async () => {
    await request('records.batch', {
      inserts: [
        { id: 'a', n: 1, label: 'word' },
        { id: 'b', n: 2, label: 'words' },
      ],
    })
    const before = await dump()
    const batch = {
      inserts: [
        { id: 'c', label: 'wordy' },
        { id: 'd', label: 'word' },
      ],
      updates: [{ id: 'a', data: { n: { $op: 'increment', value: 5 }, label: 'none' } }],
      deletes: ['b'],
    }
    let failures = 0
    for (let nth = 0; ; nth++) {
      untilFailure = nth
      const outcome = await Promise.allSettled([request('records.batch', batch)])
      const survived = untilFailure >= 0
      untilFailure = Number.POSITIVE_INFINITY
      if (survived) break
      expect(outcome[0].status).toBe('rejected')
      expect(await dump()).toEqual(before)
      failures += 1
    }
    // Two statements per insert, three per update and delete at least.
    expect(failures).toBeGreaterThan(9)
    expect(await dump()).not.toEqual(before)
  })
})
