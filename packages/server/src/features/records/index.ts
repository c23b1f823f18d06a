/**
 * The records feature (rules DB-*). Maps endpoint calls to operations on tables: `tables.resolve` checks access,
 * `reads/` and `writes/` run the operations.
 */

import { required } from '../../access/check.ts'
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Bus, Counters } from '../../engines/cluster/cluster.ts'
import type { DatabaseAddress, Sql, Transaction } from '../../engines/sql/sql.ts'
import type { Call, Reply } from '../../http/endpoint.ts'
import type { ResponseLimits } from '../../http/replies/large-responses.ts'
import { json } from '../../http/replies/reply.ts'
import { idempotencyRetentionMs } from '../../limits/api.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Table } from '../../query/table.ts'
import type { Feature } from '../feature.ts'
import { createFeed, type Feed } from './changes/change-feed.ts'
import type { Change } from './changes/changes.ts'
import { type LogBounds, trimByTime, trimLog } from './changes/trim.ts'
import { recordsEndpoints } from './endpoints.ts'
import { list } from './reads/list.ts'
import { count, get } from './reads/read.ts'
import { search } from './reads/search.ts'
import { createTables, type Namespaces, type TableCall, type Tables, type TablesDeps } from './resolve-table.ts'
import { createTotals } from './totals/totals.ts'
import { batchShape, parseBatch, parseByFilter, runBatch, runByFilter } from './writes/batch.ts'
import { parseIdempotencyKey, type Replay, responsesTable, writeOnce } from './writes/idempotency.ts'
import { type Generated, parseInsert, parsePatch, sentBy } from './writes/input.ts'
import { createPlatformRecordWriter, type PlatformRecordWriter } from './writes/platform-record-writer.ts'
import { type ResponseShape, replayedBody } from './writes/replay.ts'
import { respondWithRecord, toResponse, type WriteResponse } from './writes/response.ts'
import { parseConflictTarget, parseUpsert, requireUpsert, upsertRecord } from './writes/upsert.ts'
import { deleteRecord, insertRecord, updateRecord } from './writes/write.ts'
import { createWriteBudget } from './writes/write-budget.ts'
import type { Write } from './writes/write-context.ts'

export interface RecordsDeps {
  readonly sql: Sql
  /** Evaluates rules over instances that query other tables. */
  readonly ruleEvaluator: RuleEvaluator
  /** Notifies the other nodes of writes. */
  readonly bus: Bus
  /** Namespaces that the API serves. */
  readonly namespaces: () => Namespaces
  /** All stored namespaces, served or not. */
  readonly storedNamespaces: () => Namespaces
  /** Authenticates cursors. */
  readonly secret: string
  readonly countInstance: TablesDeps['countInstance']
  /** Bounds of each change log. */
  readonly changes: () => LogBounds
  /** Count the bytes that callers write, across all nodes. */
  readonly counters: Counters
  /** Bytes a caller may write in a window. */
  readonly writeBudgetBytes: () => number
  readonly limits: ResponseLimits
  readonly clock: Clock
  readonly log: Log
}

export interface Records extends Feature {
  readonly feed: Feed
  /** Resolves a table for one caller; see `Tables`. */
  readonly resolve: Tables['resolve']
  /** A writer for the records of a platform table; see `PlatformRecordWriter`. */
  platformRecordWriter(table: Table): PlatformRecordWriter
}

/** Of responses without fields of records. */
const plain = (): ResponseShape => ({ kind: 'plain' })

export function createRecords(deps: RecordsDeps): Records {
  const { sql, clock, limits } = deps
  const tables = createTables(deps)
  const totals = createTotals(clock, deps.changes)
  const feed = createFeed({ ...deps, sql })
  const budget = createWriteBudget({ ...deps, bytesMax: deps.writeBudgetBytes })
  const newId = createUuid7(clock)
  /** Instances written since the last trim; cleared every few seconds. */
  const written = new Map<string, DatabaseAddress>()

  const resolve = ({ params, caller }: Call): TableCall | Promise<TableCall> =>
    tables.resolve(
      {
        namespace: params.namespace ?? '',
        instanceId: params.instanceId ?? null,
        tableName: params.table ?? '',
      },
      caller,
    )

  /** Called for each committed change of a row, in the event-loop tick of the commit. */
  const committed = (call: TableCall, change: Change): void => {
    totals.apply(call.address, change)
    feed.wake(call.address, call.database)
  }

  const generated = (): Generated => ({ id: newId, nowMs: clock.now() })

  /**
   * Runs a write in its transaction, or repeats the response that its Idempotency-Key had before; `shapeOf` gives the
   * records that the response contains.
   */
  function write(
    call: Call,
    table: TableCall,
    shapeOf: () => ResponseShape,
    work: (write: Write) => Promise<WriteResponse>,
  ): Promise<Reply> {
    const isBounded = budget.check(call.caller)
    const nowMs = clock.now()
    const { namespace, instanceId } = table.address
    if (instanceId !== null && sql.keepsInstancesApart) written.set(`${namespace}\n${instanceId}`, table.address)
    const header = call.headers.get('Idempotency-Key')
    const ifMatch = call.headers.get('If-Match')
    const key =
      header === null
        ? null
        : parseIdempotencyKey(header, {
            caller: call.caller,
            method: call.method,
            path: call.path,
            content: JSON.stringify([call.query, call.body, ...(ifMatch === null ? [] : [ifMatch])]),
          })
    const times = { nowMs, sinceMs: nowMs - idempotencyRetentionMs }
    const target = { database: table.database, namespace, table: table.table.name }
    const replay: Replay = (tx, stored) => replayedBody(tx, table, shapeOf(), stored)
    const run = (tx: Transaction): Promise<WriteResponse> => {
      const logged = { chars: 0 }
      if (isBounded) tx.afterCommit(() => budget.charge(call.caller, logged.chars))
      return work({ call: table, tx, committed, requestId: call.requestId, nowMs, at: '', logged })
    }
    return writeOnce(target, key, times, run, replay)
  }

  async function trimDatabase(address: DatabaseAddress, signal?: AbortSignal): Promise<void> {
    const database = sql.database(address)
    const { namespace } = address
    const nowMs = clock.now()
    await trimLog(database, namespace, deps.changes(), { nowMs, signal })
    const responses = responsesTable(namespace, database.dialect)
    await trimByTime(database, responses, { beforeMs: nowMs - idempotencyRetentionMs, nowMs, signal })
  }

  const endpoints = recordsEndpoints({
    list: async (call) => list(await resolve(call), call.query, { totals, limits }),
    get: async (call) => get(await resolve(call), call.params.id ?? '', call.query.fields),
    count: async (call) => json(await count(await resolve(call), call.query, totals)),
    search: async (call) => search(await resolve(call), call.query, { totals, limits }),

    async insert(call) {
      const table = await resolve(call)
      if (call.query.upsert) {
        requireUpsert(table)
        const target = parseConflictTarget(table, call.query.conflictTarget)
        const upsert = parseUpsert(table, call.body, generated(), target)
        const shapeOf = (): ResponseShape => ({ kind: 'record', sent: [...sentBy(upsert.patch)], hasAction: true })
        return write(call, table, shapeOf, async (into) => {
          const written = await upsertRecord(into, upsert)
          return respondWithRecord(into, written, written.action === 'inserted' ? 201 : 200)
        })
      }
      required(table.permissions.insert(), call.caller)
      const row = parseInsert(table.bodyView, call.body, generated())
      const sent = Object.keys(call.body)
      return write(
        call,
        table,
        () => ({ kind: 'record', sent, hasAction: false }),
        async (into) => respondWithRecord(into, { ...(await insertRecord(into, row)), sent }, 201),
      )
    },

    async update(call) {
      const table = await resolve(call)
      required(table.permissions.updateBefore(), call.caller)
      const patch = parsePatch(table.bodyView, call.body)
      const ifMatch = call.headers.get('If-Match')
      const id = call.params.id ?? ''
      const sent = [...sentBy(patch)]
      return write(
        call,
        table,
        () => ({ kind: 'record', sent, hasAction: false }),
        async (into) => respondWithRecord(into, { ...(await updateRecord(into, id, patch, ifMatch)), sent }, 200),
      )
    },

    async delete(call) {
      const table = await resolve(call)
      required(table.permissions.delete(), call.caller)
      const ifMatch = call.headers.get('If-Match')
      return write(call, table, plain, async (into) => {
        await deleteRecord(into, call.params.id ?? '', ifMatch)
        return toResponse(json({ ok: true }))
      })
    },

    async batch(call) {
      const table = await resolve(call)
      const upsert = call.query.upsert
        ? { conflictTarget: parseConflictTarget(table, call.query.conflictTarget) }
        : null
      const batch = parseBatch(table, call.body, generated(), upsert)
      return write(
        call,
        table,
        () => batchShape(batch),
        (into) => runBatch(into, batch, limits.bytesMax()),
      )
    },

    async batchByFilter(call) {
      const table = await resolve(call)
      const selection = parseByFilter(table, call.body)
      return write(call, table, plain, async (into) => toResponse(json(await runByFilter(into, selection))))
    },
  })

  /** Deletes expired changes and stored responses, of instances only if they were written since the last call. */
  async function trim(signal?: AbortSignal): Promise<void> {
    const instances = [...written.values()]
    written.clear()
    for (const [namespace, { instance }] of deps.storedNamespaces())
      if (!instance || !sql.keepsInstancesApart) await trimDatabase({ namespace, instanceId: null }, signal)
    for (const address of instances) await trimDatabase(address, signal)
  }

  return {
    name: 'records',
    endpoints,
    jobs: [{ name: 'records.trim', intervalMs: housekeepingIntervalMs, run: trim }],
    reconfigured: () => totals.clear(),
    drain: { stage: 'last', run: async () => feed.close() },
    feed,
    resolve: tables.resolve,
    platformRecordWriter(table) {
      const { dialect } = sql.database({ namespace: table.namespace, instanceId: null })
      return createPlatformRecordWriter({ table, dialect, totals, requestId: newId, nowMs: () => clock.now() })
    },
  }
}
