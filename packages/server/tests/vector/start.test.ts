/** Vector indexes after changed declarations and restarts, and the choice of the search engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { openPostgres } from '../../../../scripts/servers/postgres.ts'
import { type PostgresPrograms, providePostgres } from '../../../../scripts/servers/programs.ts'
import { ConfigError } from '../../src/config/issues.ts'
import { vectorBatchMax, vectorDeletionsKept } from '../../src/limits/resources.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { dumpIndex, onKind, perform, use, vectorKinds } from '../harness/resources/vector.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

const docs = { dimensions: 2, metric: 'euclidean', metadataIndexes: ['lang'] } as const
const vectors = [
  { id: 'a', values: [1, 0], metadata: { lang: 'en', year: 2001 } },
  { id: 'b', values: [2, 0], metadata: { lang: 'de', year: 2010 }, namespace: 'x' },
]
const idsOf = ({ matches }: { matches: readonly { id: string }[] }): string[] => matches.map(({ id }) => id)

/** Polls until the index is served again. */
async function untilServed(server: TestServer): Promise<void> {
  for (let attempts = 0; attempts < 600; attempts++) {
    if ((await perform(server.service, 'docs', 'describe')).status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the index was not served again')
}

/** The message of the configuration error. */
async function configErrorOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
  throw new Error('expected a configuration error')
}

for (const kind of vectorKinds)
  describe(`vector indexes on ${kind.name}`, () => {
    async function start(indexes: Parameters<typeof onKind>[1]): Promise<TestServer> {
      const server = await startServer({ config: onKind(kind, indexes) }, kind.storage)
      opened.push(server.close)
      return server
    }
    const search = async (server: TestServer, rest: object = {}) =>
      idsOf(await use(server, 'docs', 'search', { vector: [0, 0], ...rest }))

    // Only copies in memory have to follow changes.
    const testCopies = kind.engine === 'pgvector' ? () => {} : test
    testCopies('[VEC-22] after a restart vectors older than a hundred thousand changes are found', async () => {
      const server = await start({ docs })
      const some = (of: string, count: number) =>
        Array.from({ length: count }, (_, at) => ({ id: `${of}${at}`, values: [at + 1, 0] }))
      await use(server, 'docs', 'upsert', { vectors: some('old', 1000) })
      await use(server, 'docs', 'upsert', { vectors: [...some('new', 900), ...some('gone', 100)] })
      await use(server, 'docs', 'delete', { ids: ['gone0'] })
      for (let times = 0; times < vectorDeletionsKept / vectorBatchMax; times++)
        await use(server, 'docs', 'upsert', { vectors: some('new', vectorBatchMax) })
      await use(server, 'docs', 'delete', { ids: ['gone1'] })
      await server.restart()
      expect(await search(server, { topK: 2 })).toEqual(['old0', 'new0'])
    })

    test('[VEC-22] vectors are kept over a restart, and can be searched and written', async () => {
      const server = await start({ docs })
      await use(server, 'docs', 'upsert', { vectors })
      await use(server, 'docs', 'delete', { ids: ['a'] })
      const before = await dumpIndex(server, 'docs', ['a', 'b'])
      await server.restart()
      expect(await dumpIndex(server, 'docs', ['a', 'b'])).toEqual(before)
      expect(await search(server)).toEqual(['b'])
      await use(server, 'docs', 'insert', { vectors: [{ id: 'c', values: [1, 1] }] })
      expect(await search(server)).toEqual(['c', 'b'])
    })

    test('[VEC-23] a declaration that is incompatible with stored vectors is a configuration error with a remedy', async () => {
      const server = await start({ docs })
      await use(server, 'docs', 'upsert', { vectors })
      const before = await dumpIndex(server, 'docs', ['a', 'b'])
      const wider = { docs: { ...docs, dimensions: 3 } }
      const words =
        'vector.docs: 2 stored vectors have 2 dimensions and the metric euclidean, but 3 dimensions and euclidean'
      // No other part of the rejected configuration is applied.
      const message = await configErrorOf(server.reload(onKind(kind, { ...wider, other: docs })))
      expect(message).toStartWith(words)
      expect(message).toContain('another name')
      expectRefusal(await perform(server.service, 'other', 'describe'), 404)
      expect(await search(server)).toEqual(['a', 'b'])
      // Not even the change of an empty index, whose table would have been recreated.
      await server.reload(onKind(kind, { empty: docs, docs }))
      await configErrorOf(server.reload(onKind(kind, { empty: { ...docs, dimensions: 5 }, ...wider })))
      await use(server, 'empty', 'upsert', { vectors })
      expect(idsOf(await use(server, 'empty', 'search', { vector: [0, 0] }))).toEqual(['a', 'b'])
      expect(await configErrorOf(server.restart(onKind(kind, wider)))).toStartWith(words)
      expect(await configErrorOf(server.restart(onKind(kind, { docs: { ...docs, metric: 'cosine' } })))).toContain(
        'and cosine are declared',
      )
      await server.restart(onKind(kind, { docs }))
      expect(await dumpIndex(server, 'docs', ['a', 'b'])).toEqual(before)
      // An empty index can be declared differently.
      await use(server, 'docs', 'delete', { ids: ['a', 'b'] })
      await server.reload(onKind(kind, { docs: { ...docs, dimensions: 3, metric: 'cosine' } }))
      await use(server, 'docs', 'upsert', { vectors: [{ id: 'a', values: [1, 2, 3] }] })
      expect(await use(server, 'docs', 'describe')).toEqual({ vectorCount: 1, dimensions: 3, metric: 'cosine' })
      expect(idsOf(await use(server, 'docs', 'search', { vector: [1, 1, 1] }))).toEqual(['a'])
    })

    test('[VEC-23] a rejected declaration of an index also leaves tables unchanged', async () => {
      const tables = (schema: object) => ({ databases: { shared: { tables: { notes: { schema } } } } })
      const before = { ...tables({ title: { type: 'string' } }), ...onKind(kind, { docs }) }
      const server = await startServer({ config: before }, kind.storage)
      opened.push(server.close)
      await use(server, 'docs', 'upsert', { vectors })
      const more = tables({ title: { type: 'string' }, text: { type: 'string' } })
      const next = { ...more, ...onKind(kind, { docs: { ...docs, dimensions: 3 } }) }
      await configErrorOf(server.reload(next))
      await server.restart(before)
      await configErrorOf(server.restart(next))
      // A field that had been added would now be an undeclared one.
      await server.restart(before)
      expect(await search(server)).toEqual(['a', 'b'])
    })

    const testNodes = kind.storage === sharedEngine ? test : () => {}
    testNodes('[VEC-23] a node with an outdated declaration of an index can neither write nor search it', async () => {
      const { nodes, engine, close } = await openNodes(sharedEngine, 1, { config: onKind(kind, { docs }) })
      opened.push(close)
      const [old] = nodes as readonly [TestServer]
      const next = await startServer({ config: onKind(kind, { docs: { ...docs, dimensions: 3 } }) }, engine)
      opened.push(next.close)
      expectRefusal(await perform(old.service, 'docs', 'upsert', { vectors }), 503)
      expectRefusal(await perform(old.service, 'docs', 'search', { vector: [0, 0] }), 503)
      await use(next, 'docs', 'upsert', { vectors: [{ id: 'a', values: [1, 2, 3] }] })
      expect(idsOf(await use(next, 'docs', 'search', { vector: [1, 1, 1] }))).toEqual(['a'])
    })

    test('[VEC-24] a newly indexed metadata field covers existing vectors', async () => {
      const server = await start({ docs })
      await use(server, 'docs', 'upsert', { vectors })
      const filter = { year: { $gt: 2005 } }
      expectRefusal(await perform(server.service, 'docs', 'search', { vector: [0, 0], filter }), 400)
      await server.reload(onKind(kind, { docs: { ...docs, metadataIndexes: ['lang', 'year'] } }))
      expect(await search(server, { filter })).toEqual(['b'])
      expect(await search(server, { filter: { lang: 'en' } })).toEqual(['a'])
      await server.restart(onKind(kind, { docs: { ...docs, metadataIndexes: ['year'] } }))
      expect(await search(server, { filter })).toEqual(['b'])
      expectRefusal(await perform(server.service, 'docs', 'search', { vector: [0, 0], filter: { lang: 'en' } }), 400)
    })

    test('[VEC-1, SYS-14] an index that is no longer declared is not served, and keeps its vectors', async () => {
      const server = await start({ docs, other: docs })
      await use(server, 'other', 'upsert', { vectors })
      await server.reload(onKind(kind, { docs }))
      expectRefusal(await perform(server.service, 'other', 'describe'), 404)
      await server.reload({})
      expectRefusal(await perform(server.service, 'docs', 'describe'), 404)
      await server.reload(onKind(kind, { other: docs }))
      expect(idsOf(await use(server, 'other', 'search', { vector: [0, 0] }))).toEqual(['a', 'b'])
      expectRefusal(await perform(server.service, 'docs', 'describe'), 404)
    })

    test('[VEC-1, VEC-14] indexes do not share vectors', async () => {
      const server = await start({ docs, other: docs })
      await use(server, 'docs', 'upsert', { vectors })
      expect(await use(server, 'other', 'describe')).toMatchObject({ vectorCount: 0 })
      await use(server, 'other', 'insert', { vectors: [{ id: 'a', values: [5, 5] }] })
      expect(idsOf(await use(server, 'other', 'search', { vector: [0, 0] }))).toEqual(['a'])
      expect(await use(server, 'docs', 'getByIds', { ids: ['a'] })).toMatchObject({ vectors: [{ values: [1, 0] }] })
    })

    if (kind.storage.name !== 'sqlite-files-memory')
      test('[VEC-22, VEC-4] every node sees what another node has acknowledged', async () => {
        const first = await start({ docs })
        const { databaseUrl = null, redisUrl = null, redisPrefix = '' } = first.settings()
        const second = await startServer({
          config: onKind(kind, { docs }),
          settings: { databaseUrl, redisUrl, redisPrefix },
        })
        opened.push(second.close)
        const nodes = [first, second] as const
        for (let round = 0; round < 10; round++) {
          const [writer, reader] = round % 2 ? nodes : [second, first]
          await use(writer, 'docs', 'upsert', { vectors: [{ id: 'moving', values: [round + 1, 0] }] })
          const found = await use(reader, 'docs', 'search', { vector: [round + 1, 0], topK: 1 })
          expect(found.matches).toMatchObject([{ id: 'moving', score: 0 }])
        }
        await use(second, 'docs', 'delete', { ids: ['moving'] })
        expect(await search(first)).toEqual([])
        const insert = (at: number) =>
          perform((nodes[at % 2] as TestServer).service, 'docs', 'insert', {
            vectors: [{ id: 'one', values: [at, 1] }],
          })
        const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => insert(at)))
        expect(answers.filter(({ status }) => status === 200).length).toBe(1)
        const [here, there] = await Promise.all(nodes.map((node) => use(node, 'docs', 'getByIds', { ids: ['one'] })))
        expect(here).toEqual(there)
      })
  })

describe('the search engine', () => {
  test('[VEC-25] the engine pgvector requires PostgreSQL', async () => {
    const server = await startServer({ config: { vector: { docs: { ...docs, engine: 'memory' } } } })
    opened.push(server.close)
    await use(server, 'docs', 'upsert', { vectors })
    const message = await configErrorOf(server.reload({ vector: { docs: { ...docs, engine: 'pgvector' } } }))
    expect(message).toStartWith('vector.docs.engine: "pgvector" needs PostgreSQL')
    expect(idsOf(await use(server, 'docs', 'search', { vector: [0, 0] }))).toEqual(['a', 'b'])
  })

  const [pgvector] = vectorKinds.filter(({ engine }) => engine === 'pgvector')
  test.if(pgvector !== undefined)('[VEC-25] can change at every start', async () => {
    const declared = (engine: string) => ({ vector: { docs: { ...docs, engine } } })
    const server = await startServer({ config: declared('memory') }, pgvector?.storage)
    opened.push(server.close)
    await use(server, 'docs', 'upsert', { vectors })
    for (const [round, engine] of ['pgvector', 'memory', 'auto', 'memory'].entries()) {
      await server.reload(declared(engine))
      await use(server, 'docs', 'upsert', { vectors: [{ id: 'c', values: [0, round] }] })
      const found = await use(server, 'docs', 'search', { vector: [0, round], topK: 1 })
      expect({ engine, matches: found.matches }).toEqual({ engine, matches: [{ id: 'c', score: 0 }] })
    }
  })

  test.if(process.env.PLINTH_TEST_DATABASE_URL !== undefined)(
    '[VEC-22, ERR-5] while PostgreSQL is down nothing is acknowledged; afterwards every acknowledged write is found',
    async () => {
      const postgres = await openPostgres(providePostgres() as PostgresPrograms)
      opened.push(postgres.remove)
      const server = await startServer({
        config: { vector: { docs: { ...docs, engine: 'memory' } } },
        settings: { databaseUrl: postgres.url },
      })
      opened.push(server.close)
      await use(server, 'docs', 'upsert', { vectors })
      const insert = (at: number) =>
        perform(server.service, 'docs', 'insert', { vectors: [{ id: `n${at}`, values: [at, 1] }] })
      const during = Array.from({ length: 20 }, (_, at) => insert(at))
      await postgres.crash()
      const answers = await Promise.all(during)
      for (const { status } of answers) expect([200, 503]).toContain(status)
      expectRefusal(await insert(99), 503)
      // The copy in memory must not be searched: it may have missed a change.
      expectRefusal(await perform(server.service, 'docs', 'search', { vector: [0, 0] }), 503)
      await postgres.start()
      await untilServed(server)
      const { matches } = await use(server, 'docs', 'search', { vector: [0, 0], topK: 100 })
      const found = new Set(matches.map(({ id }: { id: string }) => id))
      for (const id of ['a', 'b']) expect(found.has(id)).toBe(true)
      for (const [at, { status }] of answers.entries()) if (status === 200) expect(found.has(`n${at}`)).toBe(true)
      expect(found.has('n99')).toBe(false)
    },
  )
})
