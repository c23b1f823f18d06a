/** Key-value stores on nodes that share a PostgreSQL. */
import { afterEach, expect, test } from 'bun:test'
import { type ManualClock, manualClock } from '../../src/base/clock.ts'
import { createDatabase } from '../harness/databases.ts'
import { openStore, type Store } from '../harness/resources/kv.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const config = { kv: { cache: {}, free: { writeInterval: 0 } } }

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

interface Node {
  readonly server: TestServer
  readonly cache: Store
  readonly free: Store
}

/** Nodes on one new database, each with its clock. */
async function startNodes(clocks: readonly ManualClock[]): Promise<readonly Node[]> {
  const database = await createDatabase(process.env.PLINTH_TEST_DATABASE_URL as string)
  opened.push(database.drop)
  // Started concurrently, as in a deployment.
  return Promise.all(
    clocks.map(async (clock) => {
      const server = await startServer({ config, clock, settings: { databaseUrl: database.url } })
      opened.push(server.close)
      return { server, cache: openStore(server.service, 'cache'), free: openStore(server.service, 'free') }
    }),
  )
}

if (process.env.PLINTH_TEST_DATABASE_URL) {
  test('[KV-11] of 50 concurrent writes on three nodes one succeeds, and all nodes return it', async () => {
    const clock = manualClock()
    const nodes = await startNodes([clock, clock, clock])
    for (const kind of ['new', 'there', 'deleted']) {
      const write = (at: number) => {
        const { cache } = nodes[at % nodes.length] as Node
        return kind === 'deleted' && at % 2 ? cache.delete('key') : cache.set('key', `${kind}-${at}`)
      }
      const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => write(at)))
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(49)
      const won = answers.findIndex(({ status }) => status === 200)
      const expected = kind === 'deleted' && won % 2 ? null : `${kind}-${won}`
      for (const { cache } of nodes) expect((await cache.get('key')).body.value).toBe(expected)
      clock.advance(1000)
    }
  })

  test('[KV-11, KV-13] nodes whose clocks differ by more than the interval can still write', async () => {
    const [early, late] = [manualClock(), manualClock()]
    late.advance(10_000)
    const [one, other] = (await startNodes([early, late])) as [Node, Node]
    for (const [at, { cache }] of [other, one, other, one].entries()) {
      expect((await cache.set('key', at)).status).toBe(200)
      expect((await cache.set('key', 'too soon')).status).toBe(429)
      for (const clock of [early, late]) clock.advance(1000)
    }
    expect((await other.cache.get('key')).body.value).toBe(3)
  })

  test('[KV-16, KV-17] a cursor of one node continues on another', async () => {
    const clock = manualClock()
    const [one, other] = (await startNodes([clock, clock])) as [Node, Node]
    for (const key of ['a', 'b', 'c']) await one.free.set(key, key)
    const { keys, cursor } = (await one.free.list({ limit: 2 })).body
    expect(keys).toEqual(['a', 'b'])
    expect((await other.free.list({ cursor })).body).toEqual({ keys: ['c'], cursor: null })
  })

  test('[KV-20] concurrent sweeps on two nodes keep keys that are set again meanwhile', async () => {
    const clock = manualClock()
    const nodes = await startNodes([clock, clock])
    const [{ free }] = nodes as [Node]
    const names = Array.from({ length: 200 }, (_, at) => `k${at}`)
    for (let round = 0; round < 3; round++) {
      await Promise.all(names.map((name) => free.set(name, 'old', { ttl: 60 })))
      clock.advance(60_000)
      const writing = Promise.all(names.filter((_, at) => at % 2).map((name) => free.set(name, 'new', { ttl: 60 })))
      await Promise.all(nodes.map(({ server }) => server.tidy()))
      for (const { status } of await writing) expect(status).toBe(200)
      expect((await free.list()).body.keys).toEqual(names.filter((_, at) => at % 2).sort())
    }
  })
}
