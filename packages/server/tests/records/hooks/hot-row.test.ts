/** Many writers of one row with hooks, on one node and on two. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { hookedRowWaitersMax } from '../../../src/limits/writes.ts'
import { engines, sharedEngine } from '../../harness/engines.ts'
import { openSharedStorage } from '../../harness/nodes.ts'
import { type HookedRecords, openHookedRecords } from '../../harness/records/hooked-records.ts'
import { tables } from './write-paths.ts'

const increment = { n: { $op: 'increment', value: 1 } }
const writers = 100

/** Adds a mark to what is written, after other work of the event loop has run. */
const slug = async ({ row }: { readonly row: Readonly<Record<string, unknown>> }) => {
  await new Promise<void>((resolve) => setImmediate(resolve))
  return { ...row, slug: `${row.id}-${row.n}` }
}

const update = (records: HookedRecords, body: unknown, id = 'p1') =>
  records.request('records.update', { table: 'posts', id, body })

describe.each(engines.map((engine) => [engine.name, engine] as const))('one row with hooks on %s', (_, engine) => {
  let records: HookedRecords
  beforeAll(async () => {
    records = await openHookedRecords(engine, tables)
  })
  afterAll(() => records.close())
  beforeEach(async () => {
    records.hooks.clear()
    await records.request('records.batchByFilter', { table: 'posts', body: { action: 'delete' } })
    const inserts = ['p1', 'p2', 'p3'].map((id) => ({ id, title: 'One', n: 0 }))
    expect((await records.request('records.batch', { table: 'posts', body: { inserts } })).status).toBe(200)
    records.hooks.set('posts.update', slug)
    records.events.length = 0
  })
  const read = async (id = 'p1') => (await records.request('records.get', { table: 'posts', id })).body

  test('[FN-BEFORE-12] 100 increments at once all succeed, and their hooks run once each', async () => {
    const answers = await Promise.all(Array.from({ length: writers }, () => update(records, increment)))
    expect(answers.map(({ status }) => status)).toEqual(Array(writers).fill(200))
    expect(await read()).toMatchObject({ n: writers, slug: `p1-${writers}` })
    expect(records.events.map(({ row }) => row.n)).toEqual(Array.from({ length: writers }, (_, at) => at + 1))
  })

  test('[FN-BEFORE-12] 100 patches of different fields at once all succeed', async () => {
    const bodies = Array.from({ length: writers }, (_, at) => [{ n: at }, { title: `T${at}` }, increment][at % 3])
    const answers = await Promise.all(bodies.map((body) => update(records, body)))
    expect(answers.map(({ status }) => status)).toEqual(Array(writers).fill(200))
    const { n, slug: made } = await read()
    expect(made).toBe(`p1-${n}`)
  })

  test('[FN-BEFORE-12] batches of several rows in different orders all succeed', async () => {
    const orders = [['p1', 'p2', 'p3'], ['p3', 'p2', 'p1'], ['p2'], ['p3', 'p1']]
    const requests = Array.from({ length: 40 }, (_, at) => orders[at % orders.length] as string[])
    const answers = await Promise.all(
      requests.map((ids) =>
        records.request('records.batch', {
          table: 'posts',
          body: { updates: ids.map((id) => ({ id, data: increment })) },
        }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(requests.length).fill(200))
    for (const id of ['p1', 'p2', 'p3'])
      expect((await read(id)).n).toBe(requests.filter((ids) => ids.includes(id)).length)
  })

  test('[FN-BEFORE-12] upserts of a row that is not there all succeed', async () => {
    records.hooks.set('posts.insert', slug)
    const upsert = () =>
      records.request('records.insert', {
        table: 'posts',
        query: { upsert: 'true' },
        body: { id: 'new', title: 'One', n: 1 },
      })
    const answers = await Promise.all(Array.from({ length: 20 }, upsert))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
  })

  test('[FN-BEFORE-12] a hook that fails or refuses does not keep the row from others', async () => {
    let runs = 0
    records.hooks.set('posts.update', (event) => {
      if (++runs % 2 === 0) throw new Error('broken')
      return slug(event)
    })
    const failed = (error: unknown) => error
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => update(records, increment).catch(failed as never)),
    )
    expect(answers.filter((answer) => answer instanceof Error)).toHaveLength(10)
    expect((await read()).n).toBe(10)
  })

  test('[FN-BEFORE-12] a request that is aborted stops waiting, and writes nothing', async () => {
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    records.hooks.set('posts.update', async (event) => {
      reached.resolve()
      await gate.promise
      return slug(event)
    })
    const first = update(records, increment)
    await reached.promise
    const leaving = new AbortController()
    const second = records.request('records.update', {
      table: 'posts',
      id: 'p1',
      body: increment,
      signal: leaving.signal,
    })
    const third = update(records, increment)
    leaving.abort()
    expect((await second).body.slug).toBe('client-closed-request')
    gate.resolve()
    expect([(await first).status, (await third).status]).toEqual([200, 200])
    expect((await read()).n).toBe(2)
  })

  test('[FN-BEFORE-12] a request that a hook makes does not wait for the row of that hook', async () => {
    let isFirst = true
    records.hooks.set('posts.update', async (event) => {
      if (isFirst) {
        isFirst = false
        const inner = { table: 'posts', id: 'p1', body: { title: 'Inner' }, requestId: 'fn:1:hook:outer' }
        expect((await records.request('records.update', inner)).status).toBe(200)
      }
      return slug(event)
    })
    const outer = { table: 'posts', id: 'p1', body: increment, requestId: 'outer' }
    expect((await records.request('records.update', outer)).status).toBe(200)
    expect(await read()).toMatchObject({ n: 1, title: 'Inner' })
  })

  test('[FN-BEFORE-12] beyond the bound of waiting requests a write is 503, and nothing is stored', async () => {
    const gate = Promise.withResolvers<void>()
    records.hooks.set('posts.update', async (event) => {
      await gate.promise
      return slug(event)
    })
    let refused = 0
    const all = Array.from({ length: hookedRowWaitersMax + 6 }, async () => {
      const { status, headers } = await update(records, { n: 1 })
      if (status !== 503) return
      expect(headers['Retry-After']).toBe('1')
      // One runs, the others wait.
      if (++refused === 5) gate.resolve()
    })
    await Promise.all(all)
    expect(refused).toBe(5)
  })
})

if (sharedEngine)
  test('[FN-BEFORE-4] writers of one row on two nodes lose no change, and most need no repetition', async () => {
    const { engine, remove } = await openSharedStorage(sharedEngine)
    const nodes = [await openHookedRecords(engine, tables), await openHookedRecords(engine, tables)] as const
    try {
      expect(
        (await nodes[0].request('records.insert', { table: 'posts', body: { id: 'p1', title: 'One', n: 0 } })).status,
      ).toBe(201)
      for (const { hooks } of nodes) hooks.set('posts.update', slug)
      let conflicts = 0
      const one = async (node: HookedRecords): Promise<void> => {
        while ((await update(node, increment)).status === 409) conflicts += 1
      }
      await Promise.all(nodes.flatMap((node) => Array.from({ length: 20 }, () => one(node))))
      const { body } = await nodes[0].request('records.get', { table: 'posts', id: 'p1' })
      expect(body).toMatchObject({ n: 40, slug: 'p1-40' })
      expect(conflicts).toBeLessThan(40)
    } finally {
      for (const node of nodes) await node.close()
      await remove()
    }
  })
