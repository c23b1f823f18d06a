/** Nodes with real tables and the durable half of functions on one storage; tests give what runs. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuleEvaluator } from '../../../src/access/rule-evaluator.ts'
import { type ManualClock, manualClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { parseConfig } from '../../../src/config/validate.ts'
import { createMemoryCluster } from '../../../src/engines/cluster/memory.ts'
import { openSql } from '../../../src/engines/open.ts'
import { createIndexUses } from '../../../src/engines/sql/index-uses.ts'
import type { Sql } from '../../../src/engines/sql/sql.ts'
import { Background, type BackgroundFunction, type Declared } from '../../../src/features/functions/background.ts'
import type { ChangeHook } from '../../../src/features/functions/dispatch/change-hooks.ts'
import type { ClaimedJob } from '../../../src/features/functions/jobs/job.ts'
import { createRecords } from '../../../src/features/records/index.ts'
import { createSchema } from '../../../src/features/records/schema/migrator.ts'
import { createInternalRequests } from '../../../src/http/internal-request.ts'
import { createResponseLimits } from '../../../src/http/replies/large-responses.ts'
import { responseBytesMax } from '../../../src/limits/api.ts'
import type { Engine } from '../engines.ts'

const tableOf = { schema: { title: { type: 'string' }, paid: { type: 'boolean' } } }
export const { config } = parseConfig(
  {
    databases: {
      shared: { tables: { orders: tableOf, ledger: tableOf, other: tableOf } },
      team: { instance: true, tables: { tasks: tableOf } },
    },
  },
  { mode: 'release', rootKey: 'k'.repeat(32) },
)
const namespaces = () => config.namespaces
const root = { kind: 'service', auth: null, keyName: 'root', scopes: ['*'] } as const

export const hookOf = (name: string, address: string, options: Partial<ChangeHook> = {}): ChangeHook => {
  const [namespace = '', table = ''] = address.split('.')
  const on = new Set(['insert', 'update', 'delete'] as const)
  return { name, kind: 'onChange', namespace, table, on, where: null, recursive: false, ...options }
}

export const functionOf = (name: string, options: Partial<BackgroundFunction> = {}): BackgroundFunction => ({
  name,
  kind: 'onChange',
  queue: null,
  retries: 3,
  concurrency: null,
  rate: null,
  ...options,
})

export const declare = (
  hooks: readonly ChangeHook[],
  { queues = [], schedules = [] }: { queues?: readonly BackgroundFunction[]; schedules?: Declared['schedules'] } = {},
): Declared => {
  const functions = [
    ...hooks.map(({ name }) => functionOf(name)),
    ...queues,
    ...schedules.map(({ name }) => functionOf(name, { kind: 'schedule' })),
  ]
  return { hooks, userHooks: [], schedules, functions: new Map(functions.map((one) => [one.name, one])) }
}

/** The runs of functions, in order; tests wait for a number of them. */
export class Runs {
  readonly jobs: ClaimedJob[] = []
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []

  add(job: ClaimedJob): void {
    this.jobs.push(job)
    for (const { count, resolve } of this.#waiting) if (this.jobs.length >= count) resolve()
  }

  async count(count: number): Promise<readonly ClaimedJob[]> {
    if (this.jobs.length < count) await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }))
    return this.jobs
  }

  events(): { operation: string; after: Record<string, unknown> | null; previous: Record<string, unknown> | null }[] {
    return this.jobs.map(({ input }) => JSON.parse(input))
  }
}

export interface Storage {
  readonly sql: Sql
  readonly clock: ManualClock
}

/** Opens the tables of `config` on an engine, with a clock that the test moves. */
export async function openStorage(engine: Engine, stack: AsyncDisposableStack): Promise<Storage> {
  const clock = manualClock()
  const storage = await engine.openStorage()
  stack.defer(() => storage.remove())
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-background-'))
  stack.defer(() => rmSync(dataFolder, { recursive: true }))
  const schema = createSchema({ namespaces, log: silentLog })
  const sql = await openSql({
    databaseUrl: storage.settings.databaseUrl ?? null,
    dataFolder,
    prepareInstance: schema.prepareInstance,
    clock,
    log: silentLog,
  })
  stack.defer(() => sql.close())
  await schema.migrate(sql, config.namespaces, { accept: false })
  return { sql, clock }
}

let requests = 0

/** What a request of a function has beside its content. */
interface As {
  readonly requestId?: string
  readonly effectKey?: string
  readonly functionName?: string
}

/** A node: the records endpoints and the functions behind them. */
export async function openNode(
  { sql, clock }: Storage,
  declared: Declared,
  run?: (job: ClaimedJob, node: Node) => Promise<void>,
) {
  const cluster = createMemoryCluster()
  const runs = new Runs()
  const records = createRecords({
    indexUses: createIndexUses(),
    ruleEvaluator: createRuleEvaluator({ sql, namespaces }),
    sql,
    bus: cluster,
    counters: cluster,
    writeBudgetBytes: () => 2 ** 26,
    namespaces,
    storedNamespaces: namespaces,
    countInstance: () => {},
    secret: 'secret',
    jobs: {
      enter: (address) => background.enter(address),
      leave: (address) => background.leave(address),
      findReadUpTo: (address) => background.findReadUpTo(address),
      findRepeatable: (ids) => background.findRepeatable(ids),
      checkJobs: (jobs) => background.checkJobs(jobs),
    },
    hooks: null,
    changes: () => ({ retentionMs: 24 * 3_600_000, bytesMax: 1024 ** 3 }),
    limits: createResponseLimits(() => responseBytesMax),
    clock,
    log: silentLog,
  })
  const request = createInternalRequests({ endpoints: records.endpoints, socketEndpoints: [], log: silentLog })
  const served = new Map([...namespaces()].map(([name, { instance }]) => [name, { instance: instance === true }]))
  const background = new Background({
    sql,
    logs: records.feed,
    run: async (job) => {
      await run?.(job, node)
      runs.add(job)
    },
    clock,
    log: silentLog,
    random: () => 0.5,
  })
  const node = {
    runs,
    background,
    logs: records.feed,
    async send(method: string, path: string, body?: object, as: As = {}) {
      const response = await request({
        method,
        target: `/api/db/${path}`,
        headers: { 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
        caller: root,
        requestId: as.requestId ?? `test-${++requests}`,
        effectKey: as.effectKey,
        functionName: as.functionName,
      })
      const { status } = response
      return { status, body: (await response.json()) as Record<string, unknown>, headers: response.headers }
    },
    async close() {
      await background.stop()
      records.feed.close()
    },
  }
  await background.configure(declared, served)
  await background.start()
  return node
}

export type Node = Awaited<ReturnType<typeof openNode>>

/** Until no job is unfinished: a clock that jumps would end the leases of those under way. */
export async function idle({ background }: Node): Promise<void> {
  while (((await background.parts?.admin.backlog())?.jobs ?? 0) > 0)
    await new Promise((resolve) => setTimeout(resolve, 1))
}
