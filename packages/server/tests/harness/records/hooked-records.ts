/** The records feature on an engine with hooks in this process, for tests that act while a hook runs. */

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
import { createIndexUses } from '../../../src/engines/sql/index-uses.ts'
import { sql } from '../../../src/engines/sql/sql-text.ts'
import { ApiError } from '../../../src/errors.ts'
import {
  type HookEvent,
  type HookOperation,
  HookRefusal,
  type NamespaceHooks,
} from '../../../src/features/before-hooks.ts'
import { HookResult } from '../../../src/features/functions/hooks/hook-result.ts'
import { createRecords } from '../../../src/features/records/index.ts'
import { createSchema } from '../../../src/features/records/schema/migrator.ts'
import { resultOf } from '../../../src/host/before.ts'
import { emptyBody } from '../../../src/http/input/request-body.ts'
import { createParameterReader, validate } from '../../../src/http/input/validate.ts'
import { createResponseLimits } from '../../../src/http/replies/large-responses.ts'
import { textOf } from '../../../src/http/replies/reply.ts'
import { responseBytesMax } from '../../../src/limits/api.ts'
import type { Engine } from '../engines.ts'

export type Row = Record<string, unknown>

/** A hook: returns the row to write, nothing for an unchanged one, or throws. */
export type Hook = (event: HookEvent) => unknown

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the test knows the shape.
  readonly body: any
  readonly headers: Readonly<Record<string, string>>
}

export interface HookedRecords {
  /** The hooks by `table.operation`. */
  readonly hooks: Map<string, Hook>
  /** Every event that a hook was called with, in order; cleared by the test. */
  readonly events: HookEvent[]
  /** Number of calls of the port, each with the events of one request. */
  readonly calls: () => number
  request(name: string, request: HookedRequest): Promise<Answer>
  /** Rows, change logs and stored responses of all tables. */
  dump(): Promise<unknown>
  close(): Promise<void>
}

export interface HookedRequest {
  readonly table?: string
  readonly id?: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly caller?: Caller
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly requestId?: string
}

export const service: Caller = { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] }
export const anonymous: Caller = { kind: 'anonymous', auth: null, address: '127.0.0.1' }

function createHooks(hooks: Map<string, Hook>, events: HookEvent[], count: () => void): NamespaceHooks {
  const hookOf = ({ table, operation }: { table: string; operation: HookOperation }): Hook | undefined =>
    hooks.get(`${table}.${operation}`)
  return {
    covers: (table, operation) => hookOf({ table, operation }) !== undefined,
    async run(some) {
      count()
      const results = []
      for (const [index, event] of some.entries()) {
        const copy = structuredClone(event)
        events.push(copy)
        try {
          const row = await hookOf(event)?.(copy)
          const fail = (_: string, problem: string): ApiError => new ApiError(500, 'hook-failed', problem)
          const result = row === undefined ? null : JSON.parse(JSON.stringify(resultOf('hook', event.row, row)))
          results.push(result && new HookResult(result, event, fail))
        } catch (error) {
          throw error instanceof ApiError ? new HookRefusal(index, error) : error
        }
      }
      return results
    },
  }
}

const keyOf = (params: HookedRequest): string => `/api/db/main/${params.table ?? 'transaction'}/${params.id ?? ''}`

/** `tables` are those of the namespace `main`. */
export async function openHookedRecords(engine: Engine, tables: Record<string, unknown>): Promise<HookedRecords> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-hooks-'))
  const { config } = parseConfig({ databases: { main: { tables } } } as Parameters<typeof parseConfig>[0], {
    mode: 'release',
    rootKey: 'k'.repeat(32),
  })
  const namespaces = () => config.namespaces
  const schema = createSchema({ namespaces, log: silentLog })
  const storage = await engine.openStorage()
  const { databaseUrl = null } = storage.settings
  const store = await openSql({
    databaseUrl,
    dataFolder: folder,
    prepareInstance: schema.prepareInstance,
    log: silentLog,
  })
  await schema.migrate(store, config.namespaces, { accept: false })
  const hooks = new Map<string, Hook>()
  const events: HookEvent[] = []
  let calls = 0
  const found = createHooks(hooks, events, () => {
    calls += 1
  })
  const records = createRecords({
    indexUses: createIndexUses(),
    ruleEvaluator: createRuleEvaluator({ sql: store, namespaces }),
    sql: store,
    bus: createMemoryCluster(),
    counters: createMemoryCluster(),
    writeBudgetBytes: () => 2 ** 26,
    namespaces,
    storedNamespaces: namespaces,
    countInstance: () => {},
    hooks: { of: (namespace) => (namespace === 'main' && hooks.size > 0 ? found : null) },
    secret: 'secret',
    changes: () => ({ retentionMs: 1000, bytesMax: 1024 ** 3 }),
    limits: createResponseLimits(() => responseBytesMax),
    clock: systemClock,
    log: silentLog,
  })
  const endpoints = new Map(records.endpoints.map((endpoint) => [endpoint.name, endpoint]))

  async function request(name: string, params: HookedRequest): Promise<Answer> {
    const endpoint = endpoints.get(name)
    if (!endpoint) throw new Error(`no endpoint ${name}`)
    const { table, id, query = {}, body, caller = service, headers = {}, signal, requestId = 'request' } = params
    try {
      const reply = await endpoint.handle({
        params: { namespace: 'main', ...(table ? { table } : {}), ...(id ? { id } : {}) },
        query: endpoint.query ? createParameterReader(endpoint.query)(query) : undefined,
        body: endpoint.body ? validate(endpoint.body, body) : undefined,
        caller,
        headers: new Headers(headers),
        method: endpoint.method,
        path: keyOf(params),
        requestId,
        address: '127.0.0.1',
        url: '/',
        signal: signal ?? new AbortController().signal,
        rawBody: emptyBody(),
      })
      return { status: reply.status, body: JSON.parse(textOf(reply) ?? 'null'), headers: reply.headers ?? {} }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { status: error.status, body: error.body(), headers: error.headers }
    }
  }

  return {
    hooks,
    events,
    calls: () => calls,
    request,
    async dump() {
      const database = store.database({ namespace: 'main', instanceId: null })
      const of = (name: string) => database.dialect.target({ namespace: 'main', name, perInstance: false })
      const found: Record<string, unknown> = {}
      for (const name of [...Object.keys(tables), '_changes', '_idempotency'])
        found[name] = await database.all(sql`SELECT * FROM ${of(name)} ORDER BY 1, 2`)
      return found
    },
    async close() {
      await store.close()
      await storage.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
