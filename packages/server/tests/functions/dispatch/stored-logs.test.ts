/** What a start does with instances that an earlier process has left marked: however many, a few at a time. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { silentLog } from '../../../src/base/log.ts'
import { createBacklog } from '../../../src/features/functions/dispatch/backlog.ts'
import { Dispatcher } from '../../../src/features/functions/dispatch/dispatcher.ts'
import { createPositions, type Positions } from '../../../src/features/functions/dispatch/positions.ts'
import { createJobAdmin } from '../../../src/features/functions/jobs/job-admin.ts'
import { createJobStore } from '../../../src/features/functions/jobs/job-store.ts'
import { prepareJobTables } from '../../../src/features/functions/jobs/migrations.ts'
import { dispatchersTakenUpMax } from '../../../src/limits/function-jobs.ts'
import { type Engine, engines } from '../../harness/engines.ts'
import { declare, hookOf, openNode, openStorage, type Storage } from '../../harness/functions/background-node.ts'

/** The only engine with a log per instance. */
const sqlite = engines[0] as Engine
const instances = Array.from({ length: 3 * dispatchersTakenUpMax }, (_, at) => `left-${at}`)
const hooks = declare([hookOf('task', 'team.tasks')])

describe('instances that were marked when the server ended', () => {
  const stack = new AsyncDisposableStack()
  let storage: Storage
  let positions: Positions

  const stored = async (): Promise<(string | null)[]> =>
    (await positions.page('', 1000)).map(({ instanceId }) => instanceId)

  /** Marks the instances and writes a record to each, as a server does that ends before it has dispatched them. */
  async function leave(id: string): Promise<void> {
    const node = await openNode(storage, declare([]))
    // It forgets the positions that it finds, since no function needs them.
    await node.background.finishDue()
    await Promise.all(
      instances.map(async (instanceId) => {
        const log = node.logs.changeLog({ namespace: 'team', instanceId })
        await positions.ensure(log.address, () => log.currentPosition())
        await node.send('POST', `team/${instanceId}/tables/tasks`, { id })
      }),
    )
    await node.close()
  }

  beforeAll(async () => {
    storage = await openStorage(sqlite, stack)
    const { sql, clock } = storage
    positions = createPositions(await prepareJobTables(sql), { holder: 'earlier', isSole: true, clock })
  })
  afterAll(() => stack.disposeAsync())

  test('[FN-CHANGE-5] a start reads a few of the instances at a time, and each change becomes one job', async () => {
    await leave('one')
    let most = 0
    const node = await openNode(storage, hooks, async (_, { background }) => {
      most = Math.max(most, background.parts?.dispatcher.size ?? 0)
    })
    most = Math.max(most, node.background.parts?.dispatcher.size ?? 0)
    await node.runs.count(instances.length)
    await node.background.finishDue()
    expect(await stored()).toEqual([])
    expect(node.background.parts?.dispatcher.size).toBe(0)
    await node.close()
    expect(most).toBeLessThanOrEqual(dispatchersTakenUpMax)
    const events = node.runs.jobs.map(({ input }) => JSON.parse(input).instanceId as string)
    expect(events.toSorted()).toEqual(instances.toSorted())
  })

  test('[FN-CHANGE-5] a start that ends early leaves the others to the next one', async () => {
    await leave('two')
    const first = await openNode(storage, hooks)
    await first.close()
    const second = await openNode(storage, hooks)
    await second.background.finishDue()
    await second.close()
    expect(await stored()).toEqual([])
    const events = [...first.runs.jobs, ...second.runs.jobs].map(({ input }) => JSON.parse(input).instanceId as string)
    expect(events.toSorted()).toEqual(instances.toSorted())
  })

  test('[FN-CHANGE-5] positions that no function needs any more are forgotten', async () => {
    const { clock } = storage
    for (const instanceId of instances) {
      const position = { atMs: clock.now(), from: '0' }
      await positions.ensure({ namespace: 'team', instanceId }, async () => position)
    }
    const node = await openNode(storage, declare([hookOf('order', 'shared.orders')]))
    await node.background.finishDue()
    expect(await stored()).toEqual([null])
    await node.close()
  })

  test('[FN-CHANGE-5] a dispatcher that has stopped follows none of those that it was about to', async () => {
    const { sql, clock } = storage
    const node = await openNode(storage, declare([]))
    await node.background.finishDue()
    await leave('three')
    const tables = await prepareJobTables(sql)
    const [isSought, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const dispatcher = new Dispatcher({
      logs: node.logs,
      positions: {
        ...positions,
        async find(address) {
          isSought.resolve()
          await gate.promise
          return positions.find(address)
        },
      },
      database: tables.database,
      store: createJobStore(tables, clock),
      backlog: createBacklog({ admin: createJobAdmin(tables, clock), clock, log: silentLog }),
      keepsInstancesApart: true,
      onAdded() {},
      clock,
      log: silentLog,
    })
    await dispatcher.configure({ namespaces: new Map([['team', { instance: true }]]), jobsOf: () => [] })
    await isSought.promise
    const stopping = dispatcher.stop()
    gate.resolve()
    await stopping
    await dispatcher.finishDue()
    expect((await stored()).toSorted()).toEqual(instances.toSorted())
    await node.close()
  })
})
