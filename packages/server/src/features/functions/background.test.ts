/** Changes of real tables become runs of functions: exactly once, in order, over restarts; on every engine. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engines } from '../../../tests/harness/engines.ts'
import { createRuleEvaluator } from '../../access/rule-evaluator.ts'
import { type ManualClock, manualClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { parseConfig } from '../../config/validate.ts'
import { createMemoryCluster } from '../../engines/cluster/memory.ts'
import { openSql } from '../../engines/open.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { createInternalRequests } from '../../http/internal-request.ts'
import { createResponseLimits } from '../../http/replies/large-responses.ts'
import { responseBytesMax } from '../../limits/api.ts'
import { dispatcherLeaseMs, dispatcherRestMs, functionBackoffMs } from '../../limits/function-jobs.ts'
import { parseFilterGroups } from '../../query/filter.ts'
import type { Table } from '../../query/table.ts'
import { createRecords } from '../records/index.ts'
import { createSchema } from '../records/schema/migrator.ts'
import { Background, type BackgroundFunction, type Declared } from './background.ts'
import { requestIdOf } from './dispatch/cause.ts'
import type { ChangeHook } from './dispatch/change-hooks.ts'
import type { ClaimedJob } from './jobs/job.ts'
import { JobError } from './jobs/job-error.ts'

const tableOf = { schema: { title: { type: 'string' }, paid: { type: 'boolean' } } }
const { config } = parseConfig(
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

const hookOf = (name: string, address: string, options: Partial<ChangeHook> = {}): ChangeHook => {
  const [namespace = '', table = ''] = address.split('.')
  const on = new Set(['insert', 'update', 'delete'] as const)
  return { name, kind: 'onChange', namespace, table, on, where: null, recursive: false, ...options }
}

const functionOf = (name: string, options: Partial<BackgroundFunction> = {}): BackgroundFunction => ({
  name,
  kind: 'onChange',
  queue: null,
  retries: 3,
  concurrency: null,
  rate: null,
  ...options,
})

const declare = (
  hooks: readonly ChangeHook[],
  { queues = [], schedules = [] }: { queues?: readonly BackgroundFunction[]; schedules?: Declared['schedules'] } = {},
): Declared => {
  const functions = [
    ...hooks.map(({ name }) => functionOf(name)),
    ...queues,
    ...schedules.map(({ name }) => functionOf(name, { kind: 'schedule' })),
  ]
  return { hooks, schedules, functions: new Map(functions.map((one) => [one.name, one])) }
}

/** The runs of functions, in order; tests wait for a number of them. */
class Runs {
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

for (const engine of engines)
  describe(`functions in the background on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    const clock: ManualClock = manualClock()
    let sql: Sql
    let requests = 0

    beforeAll(async () => {
      const storage = await engine.openStorage()
      stack.defer(() => storage.remove())
      const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-background-'))
      stack.defer(() => rmSync(dataFolder, { recursive: true }))
      const schema = createSchema({ namespaces, log: silentLog })
      sql = await openSql({
        databaseUrl: storage.settings.databaseUrl ?? null,
        dataFolder,
        prepareInstance: schema.prepareInstance,
        clock,
        log: silentLog,
      })
      stack.defer(() => sql.close())
      await schema.migrate(sql, config.namespaces, { accept: false })
    })
    afterAll(() => stack.disposeAsync())

    /** A node: the records endpoints and the functions behind them. */
    async function openNode(declared: Declared, run?: (job: ClaimedJob, node: Node) => Promise<void>) {
      const cluster = createMemoryCluster()
      const runs = new Runs()
      const records = createRecords({
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
        },
        changes: () => ({ retentionMs: 24 * 3_600_000, bytesMax: 1024 ** 3 }),
        limits: createResponseLimits(() => responseBytesMax),
        clock,
        log: silentLog,
      })
      const request = createInternalRequests({ endpoints: records.endpoints, socketEndpoints: [], log: silentLog })
      const background = new Background({
        sql,
        logs: records.feed,
        namespaces: () =>
          new Map([...namespaces()].map(([name, { instance }]) => [name, { instance: instance === true }])),
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
        async send(method: string, path: string, body?: object, as: { requestId?: string; effectKey?: string } = {}) {
          const response = await request({
            method,
            target: `/api/db/${path}`,
            headers: { 'content-type': 'application/json' },
            body: body === undefined ? null : JSON.stringify(body),
            caller: root,
            requestId: as.requestId ?? `test-${++requests}`,
            effectKey: as.effectKey,
          })
          const { status } = response
          return { status, body: (await response.json()) as Record<string, unknown>, headers: response.headers }
        },
        async close() {
          await background.stop()
          records.feed.close()
        },
      }
      await background.configure(declared)
      await background.start()
      return node
    }
    type Node = Awaited<ReturnType<typeof openNode>>

    /** Until no job is unfinished: a clock that jumps would end the leases of those under way. */
    async function idle({ background }: Node): Promise<void> {
      while (((await background.parts?.admin.backlog())?.jobs ?? 0) > 0)
        await new Promise((resolve) => setTimeout(resolve, 1))
    }

    test('[FN-CHANGE-1] each change runs its functions once, with the record before and after, in order', async () => {
      const node = await openNode(declare([hookOf('audit', 'shared.orders')]))
      await node.send('POST', 'shared/tables/orders', { id: 'a', title: 'one' })
      await node.send('PATCH', 'shared/tables/orders/a', { title: 'two' })
      await node.send('POST', 'shared/tables/other', { id: 'x' })
      await node.send('DELETE', 'shared/tables/orders/a')
      await node.runs.count(3)
      expect(
        node.runs.events().map(({ operation, after, previous }) => [operation, after?.title, previous?.title]),
      ).toEqual([
        ['insert', 'one', undefined],
        ['update', 'two', 'one'],
        ['delete', undefined, 'two'],
      ])
      await node.close()
      expect(node.runs.jobs).toHaveLength(3)
    })

    test('[FN-CHANGE-1] changes that are made while no function runs are dispatched at the next start, once', async () => {
      const hooks = declare([hookOf('audit', 'shared.orders')])
      const first = await openNode(hooks)
      await first.close()
      const ids = Array.from({ length: 20 }, (_, at) => `late-${at}`)
      for (const id of ids) await first.send('POST', 'shared/tables/orders', { id })
      const second = await openNode(hooks)
      await second.runs.count(20)
      await second.close()
      const third = await openNode(hooks)
      await third.send('POST', 'shared/tables/orders', { id: 'last' })
      await third.runs.count(1)
      await third.close()
      expect(second.runs.events().map(({ after }) => after?.id)).toEqual(ids)
      expect(third.runs.events().map(({ after }) => after?.id)).toEqual(['last'])
    })

    test('[FN-CHANGE-2] `where` and `on` select changes; what was before the function does not run it', async () => {
      const table = config.namespaces.get('shared')?.tables.get('orders') as unknown as { table: Table } & Table
      const view = { table: table.table ?? table, showsHidden: true }
      const where = parseFilterGroups(view, { filter: [['paid', '==', true]] })
      const node = await openNode(
        declare([
          hookOf('paid', 'shared.orders', { where }),
          hookOf('removed', 'shared.orders', { on: new Set(['delete']) }),
        ]),
      )
      await node.send('POST', 'shared/tables/orders', { id: 'w1', paid: false })
      await node.send('PATCH', 'shared/tables/orders/w1', { paid: true })
      await node.send('DELETE', 'shared/tables/orders/w1')
      await node.runs.count(3)
      await node.close()
      expect(node.runs.jobs.map(({ function: name, input }) => [name, JSON.parse(input).operation]).sort()).toEqual([
        ['paid', 'delete'],
        ['paid', 'update'],
        ['removed', 'delete'],
      ])
    })

    test('[FN-CHANGE-3] a function is not run by its own changes, unless it is recursive; chains end at depth 8', async () => {
      const node = await openNode(
        declare([
          hookOf('plain', 'shared.orders'),
          hookOf('again', 'shared.ledger', { recursive: true }),
          hookOf('marker', 'shared.other'),
        ]),
        async ({ function: name, depth, id }, { send }) => {
          const requestId = requestIdOf({ function: name, depth }, `${id}-x`)
          if (name === 'plain') await send('POST', 'shared/tables/orders', { title: 'own' }, { requestId })
          if (name === 'again') await send('POST', 'shared/tables/ledger', { title: String(depth) }, { requestId })
        },
      )
      await node.send('POST', 'shared/tables/orders', { id: 'loop' })
      await node.send('POST', 'shared/tables/ledger', { id: 'loop' })
      await node.runs.count(9)
      await node.send('POST', 'shared/tables/other', { id: 'end' })
      await node.runs.count(10)
      await node.close()
      const depths = (name: string) => node.runs.jobs.filter((job) => job.function === name).map(({ depth }) => depth)
      expect(depths('plain')).toEqual([1])
      expect(depths('again')).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    })

    test('[FN-CHANGE-4] the changes of instances are dispatched, also after a rest and a restart', async () => {
      const hooks = declare([hookOf('task', 'team.tasks')])
      const node = await openNode(hooks)
      const write = (of: Node, instance: string, id: string) => of.send('POST', `team/${instance}/tables/tasks`, { id })
      await Promise.all(['i1', 'i2', 'i3'].flatMap((instance) => [1, 2].map((at) => write(node, instance, `t${at}`))))
      await node.runs.count(6)
      if (sql.keepsInstancesApart) {
        // Twice: a rest begins with the second read that finds nothing.
        while (node.background.parts?.dispatcher.size !== 0) {
          clock.advance(dispatcherRestMs)
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
        expect(await node.background.findReadUpTo({ namespace: 'team', instanceId: 'i1' })).toBeNull()
      }
      await write(node, 'i1', 't3')
      await node.runs.count(7)
      await node.close()
      await write(node, 'i1', 't4')
      const next = await openNode(hooks)
      await next.runs.count(1)
      await next.close()
      expect(next.runs.jobs.map(({ input }) => JSON.parse(input))).toMatchObject([
        { instanceId: 'i1', after: { id: 't4' } },
      ])
    })

    test('[FN-EFFECT-1] the writes of an attempt that is repeated happen once', async () => {
      let attempts = 0
      const node = await openNode(declare([hookOf('effect', 'shared.orders')]), async ({ id, attempt }, { send }) => {
        attempts++
        const write = (n: number, title: string) =>
          send('POST', 'shared/tables/ledger', { title }, { effectKey: `${id}:${n}` })
        const one = await write(1, 'first')
        expect(one.headers.get('idempotency-replayed')).toBe(attempt === 1 ? null : 'true')
        if (attempt < 3) throw new Error('after the first write')
        await write(2, 'second')
      })
      const before = await node.send('GET', 'shared/tables/ledger/count')
      await node.send('POST', 'shared/tables/orders', { title: 'cause' })
      while (node.runs.jobs.length === 0) {
        clock.advance(functionBackoffMs)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await node.close()
      const after = await node.send('GET', 'shared/tables/ledger/count')
      expect([attempts, Number(after.body.total) - Number(before.body.total)]).toEqual([3, 2])
    })

    test('[FN-EFFECT-2] an error of a write is not kept: the next attempt may succeed', async () => {
      const node = await openNode(declare([]))
      const write = () => node.send('PATCH', 'shared/tables/ledger/later', { title: 'x' }, { effectKey: 'e:1' })
      expect((await write()).status).toBe(404)
      await node.send('POST', 'shared/tables/ledger', { id: 'later' })
      expect((await write()).status).toBe(200)
      await node.close()
    })

    test('[FN-JOB-1] a job that cannot succeed is dead at once, one that finds no host costs no attempt', async () => {
      const kinds: JobError['kind'][] = ['busy', 'final']
      const seen: number[] = []
      const queue = functionOf('work', { kind: 'queue', queue: 'work' })
      const node = await openNode(declare([], { queues: [queue] }), async ({ attempt }) => {
        seen.push(attempt)
        throw new JobError(kinds.shift() ?? 'failed', 'refused')
      })
      await node.background.enqueue({
        id: 'job-final',
        function: 'work',
        kind: 'queue',
        key: null,
        uniqueKey: null,
        input: '{}',
        runAtMs: clock.now(),
        depth: 1,
      })
      const admin = node.background.parts?.admin
      while ((await admin?.find('job-final'))?.status !== 'dead') {
        clock.advance(300)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await node.close()
      expect(seen).toEqual([1, 1])
      expect(await admin?.find('job-final')).toMatchObject({ attempt: 1, error: 'refused' })
    })

    test('[FN-SCHEDULE-1] a schedule runs at each of its times, and once for what was missed', async () => {
      clock.set(Math.ceil(clock.now() / 3_600_000) * 3_600_000 + 1)
      const schedules = (['run-once', 'skip'] as const).map((missed) => ({
        name: missed === 'skip' ? 'skipping' : 'catching',
        cron: '0 * * * *',
        tz: null,
        missed,
      }))
      const declared = declare([], { schedules })
      const node = await openNode(declared)
      for (let hour = 1; hour <= 2; hour++) {
        clock.advance(3_600_000)
        await node.runs.count(hour * 2)
        await idle(node)
      }
      await node.close()
      clock.advance(5 * 3_600_000)
      const next = await openNode(declared)
      await next.runs.count(1)
      await idle(next)
      clock.advance(3_600_000)
      await next.runs.count(3)
      await next.close()
      const timesOf = (node: Node, name: string) =>
        node.runs.jobs
          .filter((job) => job.function === name)
          .map(({ input }) => new Date(JSON.parse(input).scheduledAt).getUTCHours())
      const [firstHour = 0] = timesOf(node, 'catching')
      const hours = (...offsets: number[]) => offsets.map((offset) => (firstHour + offset) % 24)
      expect(timesOf(node, 'catching')).toEqual(hours(0, 1))
      expect(timesOf(node, 'skipping')).toEqual(hours(0, 1))
      expect(timesOf(next, 'catching')).toEqual(hours(6, 7))
      expect(timesOf(next, 'skipping')).toEqual(hours(7))
    })

    test('[FN-NODE-1] two nodes dispatch a log once, and the second takes over', async () => {
      if (sql.keepsInstancesApart) return
      const hooks = declare([hookOf('shared1', 'shared.orders')])
      const [first, second] = [await openNode(hooks), await openNode(hooks)]
      const ids = Array.from({ length: 30 }, (_, at) => `node-${at}`)
      await Promise.all(ids.map((id, at) => (at % 2 ? first : second).send('POST', 'shared/tables/orders', { id })))
      const seen = () => [...first.runs.events(), ...second.runs.events()].map(({ after }) => after?.id)
      while (seen().length < 30) {
        clock.advance(dispatcherLeaseMs / 10)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      expect(seen().sort()).toEqual([...ids].sort())
      await first.close()
      await second.send('POST', 'shared/tables/orders', { id: 'taken-over' })
      while (!seen().includes('taken-over')) {
        clock.advance(1000)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await second.close()
    })
  })
