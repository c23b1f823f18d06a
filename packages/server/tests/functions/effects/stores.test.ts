/**
 * What jobs write to key-value stores and vector indexes happens once, although their attempts are repeated, and other
 * writers come in between.
 */
import { afterAll, expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { effectKeptMinMs } from '../../../src/limits/writes.ts'
import { openFunctionProject } from '../../harness/functions.ts'
import { countRows } from '../../harness/records/row-counts.ts'
import { openStore } from '../../harness/resources/kv.ts'
import { perform } from '../../harness/resources/vector.ts'
import { describeServer } from '../../harness/server.ts'

const project = openFunctionProject(`
export const stores = queue('stores', { retries: 3 }, async (input, ctx) => {
  const [cache, slow, docs] = [ctx.kv('cache'), ctx.kv('slow'), ctx.vector('docs')]
  // What only reads has no part in the order of writes.
  if (ctx.attempt > 1) {
    await cache.get('kept')
    await cache.list({})
    await docs.search({ vector: [1, 0] })
    await docs.getByIds(['a'])
  }
  await cache.set('kept', 'first')
  await cache.set('kept', 'of the job', { ttl: '1h' })
  await cache.delete('gone')
  await slow.set('once a minute', 1)
  await slow.delete('never there')
  const results = [
    await docs.upsert([{ id: 'a', values: [1, 0] }, { id: 'b', values: [0, 1] }]),
    await docs.insert([{ id: 'new', values: [1, 1] }]),
    await docs.delete(['old', 'unknown']),
    await docs.delete(['unknown']),
  ]
  if (ctx.attempt <= input.failures) throw new Error('after the writes')
  await ctx.service.db('shared').results.insert({ text: JSON.stringify(results) })
})
export const varied = queue('varied', { retries: 3 }, async (_, ctx) => {
  const cache = ctx.kv('cache')
  await cache.set(ctx.attempt === 1 ? 'x' : 'y', ctx.attempt)
  if (ctx.attempt === 1) throw new Error('after one write')
  await cache.set('z', ctx.attempt)
})
export const refused = queue('refused', { retries: 3 }, async (_, ctx) => {
  await ctx.kv('slow').set('busy', 'of the job')
  await ctx.vector('docs').insert([{ id: 'taken', values: [1, 0] }])
})
export const dies = queue('dies', { retries: 0 }, async (_, ctx) => {
  await ctx.kv('cache').set('dead', 'of the job')
  await ctx.vector('docs').upsert([{ id: 'dead', values: [1, 0] }])
  if (await ctx.kv('cache').get('alive') === null) throw new Error('dead')
})
`)
afterAll(() => project.remove())

const config = {
  databases: { shared: { tables: { results: { schema: { text: { type: 'string' } } } } } },
  kv: { cache: { writeInterval: 0 }, slow: { writeInterval: 60_000 } },
  vector: { docs: { dimensions: 2, metric: 'euclidean' } },
} as const

const clock = manualClock()

describeServer('effects', { config, clock, settings: { projectFolder: project.folder } }, (server) => {
  const [cache, slow] = [openStore(server.service, 'cache'), openStore(server.service, 'slow')]
  const entryOf = async (key: string) => (await cache.get(key)).body.value
  const vectorsOf = async (...ids: string[]) =>
    (await perform(server.service, 'docs', 'getByIds', { ids })).body.vectors.map(
      ({ id, values }: { id: string; values: number[] }) => [id, ...values],
    )
  const jobOf = async (queue: string) => (await server.service.get(`/api/functions/jobs?queue=${queue}`)).body.items[0]
  const add = async (queue: string, input: object = {}): Promise<void> => {
    expect((await server.service.post('/api/functions/jobs', { queue, input })).status).toBe(201)
    await server.finishDue()
  }
  /** Runs the next attempt, whose pause ends within this time. */
  const again = async (ms = 10_000): Promise<void> => {
    await server.elapse(ms)
    await server.finishDue()
  }
  const stored = async () => [
    await countRows(server, '_kv', '_idempotency'),
    await countRows(server, '_vector', '_idempotency'),
  ]

  test('[FN-EFFECT-1] entries and vectors are written once, and each call gets the result of the first attempt', async () => {
    await cache.set('gone', 'of another writer')
    await perform(server.service, 'docs', 'upsert', { vectors: [{ id: 'old', values: [2, 2] }] })
    await add('stores', { failures: 2 })
    expect(await jobOf('stores')).toMatchObject({ status: 'failed', attempt: 1, error: 'after the writes' })
    expect([await entryOf('kept'), await entryOf('gone')]).toEqual(['of the job', null])
    expect(await vectorsOf('a', 'b', 'new', 'old')).toEqual([
      ['a', 1, 0],
      ['b', 0, 1],
      ['new', 1, 1],
    ])

    await cache.set('kept', 'of another writer')
    await cache.set('gone', 'again')
    await perform(server.service, 'docs', 'delete', { ids: ['a', 'new'] })
    await perform(server.service, 'docs', 'upsert', {
      vectors: [
        { id: 'b', values: [5, 5] },
        { id: 'old', values: [6, 6] },
      ],
    })
    await again()
    expect(await jobOf('stores')).toMatchObject({ status: 'failed', attempt: 2, error: 'after the writes' })
    await again()
    expect(await jobOf('stores')).toMatchObject({ status: 'done', attempt: 3 })
    expect([await entryOf('kept'), await entryOf('gone')]).toEqual(['of another writer', 'again'])
    expect(await vectorsOf('a', 'b', 'new', 'old')).toEqual([
      ['b', 5, 5],
      ['old', 6, 6],
    ])
    const { items } = (await server.service.get('/api/db/shared/tables/results')).body
    expect(items.map(({ text }: { text: string }) => JSON.parse(text))).toEqual([
      [
        { ok: true, count: 2, ids: ['a', 'b'] },
        { ok: true, count: 1, ids: ['new'] },
        { ok: true, count: 1, ids: ['old'] },
        { ok: true, count: 0, ids: [] },
      ],
    ])
  })

  test('[FN-EFFECT-1] a call is known by its number alone: another key in the same place is not written', async () => {
    await add('varied')
    await again()
    expect(await jobOf('varied')).toMatchObject({ status: 'done', attempt: 2 })
    expect([await entryOf('x'), await entryOf('y'), await entryOf('z')]).toEqual([1, null, 2])
  })

  test('[FN-EFFECT-2] a refused write is made again by the next attempt', async () => {
    expect((await slow.set('busy', 'of another writer')).status).toBe(200)
    await perform(server.service, 'docs', 'insert', { vectors: [{ id: 'taken', values: [9, 9] }] })
    await add('refused')
    expect(await jobOf('refused')).toMatchObject({ status: 'failed', attempt: 1 })
    expect((await slow.get('busy')).body.value).toBe('of another writer')
    await again(60_001)
    expect(await jobOf('refused')).toMatchObject({ status: 'failed', attempt: 2 })
    expect((await slow.get('busy')).body.value).toBe('of the job')
    await perform(server.service, 'docs', 'delete', { ids: ['taken'] })
    await again(60_001)
    expect(await jobOf('refused')).toMatchObject({ status: 'done', attempt: 3 })
    expect(await vectorsOf('taken')).toEqual([['taken', 1, 0]])
  })

  test('[FN-EFFECT-4] results are kept while their job may run again, and removed afterwards', async () => {
    await add('dies')
    expect(await jobOf('dies')).toMatchObject({ status: 'dead' })
    await server.tidy()
    const [entries = 0, vectors = 0] = await stored()
    expect([entries > 1, vectors > 1]).toEqual([true, true])
    await server.elapse(effectKeptMinMs + 1)
    await server.tidy()
    expect(await stored()).toEqual([1, 1])
    await cache.set('dead', 'of another writer')
    await cache.set('alive', true)
    await perform(server.service, 'docs', 'delete', { ids: ['dead'] })
    const { id } = await jobOf('dies')
    expect((await server.service.post(`/api/functions/jobs/${id}/retry`, undefined)).status).toBe(200)
    await server.finishDue()
    expect(await jobOf('dies')).toMatchObject({ status: 'done' })
    expect([await entryOf('dead'), await vectorsOf('dead')]).toEqual(['of another writer', []])
    await server.tidy()
    expect(await stored()).toEqual([0, 0])
  })

  test('[FN-EFFECT-1] other writers store no results', async () => {
    await cache.set('plain', 1)
    await cache.delete('plain')
    await perform(server.service, 'docs', 'upsert', { vectors: [{ id: 'plain', values: [1, 2] }] })
    expect(await stored()).toEqual([0, 0])
  })
})
