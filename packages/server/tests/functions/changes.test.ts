/** Changes of tables become runs of functions: exactly once, in order, over restarts; on every engine. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { requestIdOf } from '../../src/features/functions/dispatch/cause.ts'
import { dispatcherLeaseMs, dispatcherRestMs, functionBackoffMs } from '../../src/limits/function-jobs.ts'
import { parseFilterGroups } from '../../src/query/filter.ts'
import type { Table } from '../../src/query/table.ts'
import { engines } from '../harness/engines.ts'
import {
  config,
  declare,
  hookOf,
  type Node,
  openNode,
  openStorage,
  type Storage,
} from '../harness/functions/background-node.ts'

for (const engine of engines)
  describe(`changes on ${engine.name}`, () => {
    const stack = new AsyncDisposableStack()
    let storage: Storage

    beforeAll(async () => {
      storage = await openStorage(engine, stack)
    })
    afterAll(() => stack.disposeAsync())

    test('[FN-CHANGE-1] each change runs its functions once, with the record before and after, in order', async () => {
      const node = await openNode(storage, declare([hookOf('audit', 'shared.orders')]))
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
      const first = await openNode(storage, hooks)
      await first.close()
      const ids = Array.from({ length: 20 }, (_, at) => `late-${at}`)
      for (const id of ids) await first.send('POST', 'shared/tables/orders', { id })
      const second = await openNode(storage, hooks)
      await second.runs.count(20)
      await second.close()
      const third = await openNode(storage, hooks)
      await third.send('POST', 'shared/tables/orders', { id: 'last' })
      await third.runs.count(1)
      await third.close()
      expect(second.runs.events().map(({ after }) => after?.id)).toEqual(ids)
      expect(third.runs.events().map(({ after }) => after?.id)).toEqual(['last'])
    })

    test('[FN-CHANGE-2] `where` and `on` select changes; what was before the function does not run it', async () => {
      const table = config.namespaces.get('shared')?.tables.get('orders') as unknown as { table: Table } & Table
      const view = { table: table.table ?? table, showsHidden: true }
      const where = parseFilterGroups(view, { filter: [['paid', '==', true]] }).condition
      const node = await openNode(
        storage,
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
        storage,
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
      const node = await openNode(storage, hooks)
      const write = (of: Node, instance: string, id: string) => of.send('POST', `team/${instance}/tables/tasks`, { id })
      await Promise.all(['i1', 'i2', 'i3'].flatMap((instance) => [1, 2].map((at) => write(node, instance, `t${at}`))))
      await node.runs.count(6)
      if (storage.sql.keepsInstancesApart) {
        // Twice: a rest begins with the second read that finds nothing.
        while (node.background.parts?.dispatcher.size !== 0) {
          storage.clock.advance(dispatcherRestMs)
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
        expect(await node.background.findReadUpTo({ namespace: 'team', instanceId: 'i1' })).toBeNull()
      }
      await write(node, 'i1', 't3')
      await node.runs.count(7)
      await node.close()
      await write(node, 'i1', 't4')
      const next = await openNode(storage, hooks)
      await next.runs.count(1)
      await next.close()
      expect(next.runs.jobs.map(({ input }) => JSON.parse(input))).toMatchObject([
        { instanceId: 'i1', after: { id: 't4' } },
      ])
    })

    test('[FN-EFFECT-1] the writes of an attempt that is repeated happen once', async () => {
      let attempts = 0
      const node = await openNode(
        storage,
        declare([hookOf('effect', 'shared.orders')]),
        async ({ id, attempt }, { send }) => {
          attempts++
          const write = (n: number, title: string) =>
            send('POST', 'shared/tables/ledger', { title }, { effectKey: `${id}:${n}` })
          const one = await write(1, 'first')
          expect(one.headers.get('idempotency-replayed')).toBe(attempt === 1 ? null : 'true')
          if (attempt < 3) throw new Error('after the first write')
          await write(2, 'second')
        },
      )
      const before = await node.send('GET', 'shared/tables/ledger/count')
      await node.send('POST', 'shared/tables/orders', { title: 'cause' })
      while (node.runs.jobs.length === 0) {
        storage.clock.advance(functionBackoffMs)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await node.close()
      const after = await node.send('GET', 'shared/tables/ledger/count')
      expect([attempts, Number(after.body.total) - Number(before.body.total)]).toEqual([3, 2])
    })

    test('[FN-EFFECT-2] an error of a write is not kept: the next attempt may succeed', async () => {
      const node = await openNode(storage, declare([]))
      const write = () => node.send('PATCH', 'shared/tables/ledger/later', { title: 'x' }, { effectKey: 'e:1' })
      expect((await write()).status).toBe(404)
      await node.send('POST', 'shared/tables/ledger', { id: 'later' })
      expect((await write()).status).toBe(200)
      await node.close()
    })

    test('[FN-NODE-1] two nodes dispatch a log once, and the second takes over', async () => {
      if (storage.sql.keepsInstancesApart) return
      const hooks = declare([hookOf('shared1', 'shared.orders')])
      const [first, second] = [await openNode(storage, hooks), await openNode(storage, hooks)]
      const ids = Array.from({ length: 30 }, (_, at) => `node-${at}`)
      await Promise.all(ids.map((id, at) => (at % 2 ? first : second).send('POST', 'shared/tables/orders', { id })))
      const seen = () => [...first.runs.events(), ...second.runs.events()].map(({ after }) => after?.id)
      while (seen().length < 30) {
        storage.clock.advance(dispatcherLeaseMs / 10)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      expect(seen().sort()).toEqual([...ids].sort())
      await first.close()
      await second.send('POST', 'shared/tables/orders', { id: 'taken-over' })
      while (!seen().includes('taken-over')) {
        storage.clock.advance(1000)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await second.close()
    })
  })
