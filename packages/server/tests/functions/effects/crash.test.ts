/**
 * What jobs write to key-value stores and vector indexes over kills of the server. `PLINTH_EFFECT_KILLS` and
 * `PLINTH_EFFECT_JOBS` make the second test larger.
 */
import { describe, expect, test } from 'bun:test'
import { type Engine, engines } from '../../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { openStore } from '../../harness/resources/kv.ts'
import { perform } from '../../harness/resources/vector.ts'
import { times } from '../../harness/times.ts'

const killsMax = Number(process.env.PLINTH_EFFECT_KILLS ?? 3)
const jobsMax = Number(process.env.PLINTH_EFFECT_JOBS ?? 120)

const configText = `export default {
  databases: { shared: { tables: { results: { schema: { text: { type: 'string' } } } } } },
  kv: { cache: { writeInterval: 0 }, marks: { writeInterval: 60_000 } },
  vector: { docs: { dimensions: 2, metric: 'euclidean' } },
}`

/**
 * `paused` waits between its effects and its end. `once` makes writes of which each second execution is refused or has
 * another result, and records that.
 */
const functionsText = `import { functionsFor } from 'plinth/functions'
const { queue } = functionsFor()
const { stringify } = JSON
export const paused = queue('paused', { retries: 50, timeout: '10m' }, async (_, ctx) => {
  const [cache, docs, results] = [ctx.kv('cache'), ctx.vector('docs'), ctx.service.db('shared').results]
  await cache.set('kept', 'of the job')
  await cache.delete('gone')
  const written = [
    await docs.upsert([{ id: 'a', values: [1, 0] }]),
    await docs.insert([{ id: 'new', values: [1, 1] }]),
    await docs.delete(['old', 'unknown']),
  ]
  await cache.set('reached', true)
  while ((await cache.get('open')) === null) await new Promise((resolve) => setTimeout(resolve, 20))
  await results.insert({ id: 'paused', text: stringify(written) })
})
export const once = queue('once', { retries: 50 }, async ({ id }, ctx) => {
  const [marks, docs, results] = [ctx.kv('marks'), ctx.vector('docs'), ctx.service.db('shared').results]
  try {
    await marks.set('s' + id, id)
    await docs.insert([{ id: 'n' + id, values: [1, id] }])
    await marks.delete('d' + id)
    const { ids } = await docs.delete(['o' + id])
    if (ids.length !== 1) throw Object.assign(new Error('deleted before'), { status: 409 })
  } catch (error) {
    if (error.status === 409 || error.status === 429)
      await results.insert({ id: 'twice-' + id + '-' + ctx.attempt, text: String(error) })
    throw error
  }
  await results.insert({ id: 'once-' + id, text: '' })
})
`

const spawn = (engine: Engine): Promise<SpawnedServer> =>
  spawnServer(configText, engine, { files: { 'functions/index.ts': functionsText } })

const enqueue = ({ service }: SpawnedServer, queue: string, input: object) =>
  service.post('/api/functions/jobs', { queue, input })

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

const unfinished = async ({ service }: SpawnedServer): Promise<number> => {
  const counts = await Promise.all(
    ['waiting', 'running', 'failed'].map(
      async (status) => (await service.get(`/api/functions/jobs?status=${status}`)).body.items.length as number,
    ),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

async function expectPaused(server: SpawnedServer): Promise<void> {
  const { service } = server
  const cache = openStore(service, 'cache')
  const act = (action: string, rest: object) => perform(service, 'docs', action, rest)
  await cache.set('gone', 'of another writer')
  await act('upsert', { vectors: [{ id: 'old', values: [2, 2] }] })
  expect((await enqueue(server, 'paused', {})).status).toBe(201)
  while ((await cache.get('reached')).body.value !== true) await pause()
  expect((await cache.get('gone')).body.value).toBe(null)
  // Other writers come before the attempt is repeated.
  await cache.set('kept', 'of another writer')
  await cache.set('gone', 'again')
  await act('delete', { ids: ['new'] })
  await act('upsert', {
    vectors: [
      { id: 'a', values: [5, 5] },
      { id: 'old', values: [6, 6] },
    ],
  })
  await cache.set('reached', false)
  await server.kill()
  await server.start()
  await cache.set('open', true)
  const result = () => service.get('/api/db/shared/tables/results/paused')
  while ((await result()).status !== 200) await pause()
  while ((await unfinished(server)) > 0) await pause()
  expect(JSON.parse((await result()).body.text)).toEqual([
    { ok: true, count: 1, ids: ['a'] },
    { ok: true, count: 1, ids: ['new'] },
    { ok: true, count: 1, ids: ['old'] },
  ])
  expect(await cache.dump()).toEqual({ kept: 'of another writer', gone: 'again', reached: false, open: true })
  const { vectors } = (await act('getByIds', { ids: ['a', 'new', 'old'] })).body
  expect(vectors.map(({ id, values }: { id: string; values: number[] }) => [id, ...values])).toEqual([
    ['a', 5, 5],
    ['old', 6, 6],
  ])
  const { items } = (await service.get('/api/functions/jobs?queue=paused')).body
  expect(items).toMatchObject([{ status: 'done' }])
  expect(items[0].attempt).toBeGreaterThan(1)
}

/** Adds jobs from several clients, and kills the server when some more of them are done. */
async function expectOnce(server: SpawnedServer): Promise<void> {
  const { service } = server
  for (let at = 0; at < jobsMax; at += 500)
    await perform(service, 'docs', 'insert', {
      vectors: times(Math.min(500, jobsMax - at), (n) => ({ id: `o${at + n}`, values: [0, at + n] })),
    })
  const ids = async (prefix: string): Promise<string[]> => {
    const found: string[] = []
    for (let after = ''; ; ) {
      const page = `limit=100&sort=id:asc&after=${encodeURIComponent(after)}`
      const { body } = await service.get(`/api/db/shared/tables/results?${page}`)
      found.push(...body.items.map(({ id }: { id: string }) => id).filter((id: string) => id.startsWith(prefix)))
      if (!body.hasMore) return found
      after = body.cursor
    }
  }
  const added: number[] = []
  for (let kills = 0; kills <= killsMax; kills++) {
    const until = Math.ceil((jobsMax * (kills + 1)) / (killsMax + 1))
    let next = Math.ceil((jobsMax * kills) / (killsMax + 1))
    await Promise.all(
      times(8, async () => {
        while (next < until) {
          const id = next++
          expect((await enqueue(server, 'once', { id })).status).toBe(201)
          added.push(id)
        }
      }),
    )
    if (kills === killsMax) break
    // At another point of the jobs each time.
    const some = (await ids('once-')).length + 1 + (kills % 4)
    while ((await ids('once-')).length < Math.min(some, added.length)) await pause()
    await server.kill()
    await server.start()
  }
  while ((await ids('once-')).length < added.length) await pause()
  while ((await unfinished(server)) > 0) await pause()
  expect(await ids('twice-')).toEqual([])
  expect((await ids('once-')).length).toBe(jobsMax)
  expect((await perform(service, 'docs', 'describe')).body.vectorCount).toBe(jobsMax)
  const marks = await openStore(service, 'marks').dump()
  expect(marks).toEqual(Object.fromEntries(times(jobsMax, (id) => [`s${id}`, id])))
}

const timeoutMs = killsMax * 60_000 + jobsMax * 1000 + 120_000

for (const engine of engines)
  describe(`effects on ${engine.name}`, () => {
    test(
      '[FN-EFFECT-1] a job that is killed after its effects does not have them again',
      async () => {
        const server = await spawn(engine)
        try {
          await expectPaused(server)
        } finally {
          await server.remove()
        }
      },
      timeoutMs,
    )

    test(
      '[FN-EFFECT-1] no entry and no vector is written twice, whenever the server is killed',
      async () => {
        const server = await spawn(engine)
        try {
          await expectOnce(server)
        } finally {
          await server.remove()
        }
      },
      timeoutMs,
    )
  })
