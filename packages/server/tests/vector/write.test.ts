/** Writing, fetching and deleting vectors, also concurrently, and the scopes they need. */
import { describe, expect, test } from 'bun:test'
import type { Answer } from '../harness/client.ts'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeVectors, dumpIndex, perform, use } from '../harness/resources/vector.ts'

const indexes = {
  docs: { dimensions: 3, metadataIndexes: ['lang'] },
  wide: { dimensions: 1536, metric: 'euclidean' },
  'points-2': { dimensions: 2, metric: 'euclidean' },
} as const

const serviceKeys = ['query', 'write'].map((action) => ({
  name: action,
  key: `a-key-that-may-${action}`,
  scopes: [`vector:index:docs:${action}`],
}))

describeVectors('writing vectors', { indexes, serviceKeys }, (server) => {
  const fetched = async (index: string, ...ids: string[]) => (await use(server, index, 'getByIds', { ids })).vectors

  test('[VEC-3, VEC-6, VEC-8, VEC-9, VEC-19] written vectors are fetched in the requested order', async () => {
    const vectors = [
      { id: 'a', values: [0.1, -2, 3e-7], metadata: { lang: 'en', deep: { list: [1, null, 'ü'] } } },
      { id: 'b', values: [1, 0, 0], namespace: 'other' },
      { id: 'é/😀 ?', values: [0, 1e10, 0], metadata: {} },
    ]
    const written = await use(server, 'docs', 'upsert', { vectors, namespace: 'mine' })
    expect(written).toEqual({ ok: true, count: 3, ids: ['a', 'b', 'é/😀 ?'] })
    expect(await fetched('docs', 'é/😀 ?', 'unknown', 'b', 'a', 'b')).toEqual([
      { id: 'é/😀 ?', values: [0, 1e10, 0], metadata: {}, namespace: 'mine' },
      { id: 'b', values: [1, 0, 0], metadata: null, namespace: 'other' },
      { id: 'a', values: [0.1, -2, 3e-7].map(Math.fround), metadata: vectors[0]?.metadata, namespace: 'mine' },
    ])
  })

  test('[VEC-3, VEC-5] an upsert replaces a vector including its namespace', async () => {
    await use(server, 'docs', 'upsert', {
      vectors: [{ id: 'r', values: [1, 1, 1], metadata: { lang: 'en' } }],
      namespace: 'x',
    })
    const { vectorCount } = await use(server, 'docs', 'describe')
    await use(server, 'docs', 'upsert', { vectors: [{ id: 'r', values: [1, 2, 1] }] })
    expect(await fetched('docs', 'r')).toEqual([{ id: 'r', values: [1, 2, 1], metadata: null, namespace: null }])
    expect((await use(server, 'docs', 'describe')).vectorCount).toBe(vectorCount)
  })

  test('[VEC-3] fetched vectors can be written back unchanged', async () => {
    const before = await fetched('docs', 'a', 'r')
    await use(server, 'docs', 'upsert', { vectors: before, namespace: 'elsewhere' })
    expect((await fetched('docs', 'a', 'r')).map(({ namespace, ...vector }: { namespace: string }) => vector)).toEqual(
      before.map(({ namespace, ...vector }: { namespace: string }) => vector),
    )
  })

  test('[VEC-4, ERR-3] an insert with existing ids inserts nothing and names them', async () => {
    const ids = ['n1', 'a', 'n2', 'b']
    const before = await dumpIndex(server, 'docs', ids)
    const vectors = ids.map((id) => ({ id, values: [1, 2, 3] }))
    // Ids are unique over all namespaces.
    for (const namespace of [undefined, 'mine', 'new']) {
      const answer = await perform(server.service, 'docs', 'insert', { vectors, namespace })
      expectRefusal(answer, 409)
      expect(codesOf(answer.body.data)).toEqual({ 'vectors[1].id': 'unique', 'vectors[3].id': 'unique' })
    }
    expect(await dumpIndex(server, 'docs', ids)).toEqual(before)
    const free = vectors.filter(({ id }) => id.startsWith('n'))
    expect(await use(server, 'docs', 'insert', { vectors: free })).toEqual({ ok: true, count: 2, ids: ['n1', 'n2'] })
  })

  test('[VEC-4] of 50 concurrent inserts of one id one succeeds', async () => {
    const insert = (at: number) =>
      perform(server.service, 'docs', 'insert', {
        vectors: [
          { id: `only-${at}`, values: [at + 1, 0, 0] },
          { id: 'contested', values: [1, at, 1], metadata: { at } },
        ],
      })
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => insert(at)))
    const statuses = (answer: Answer): number => answer.status
    expect(answers.map(statuses).sort()).toEqual([200, ...Array(49).fill(409)])
    const succeeded = answers.findIndex(({ status }) => status === 200)
    const [contested] = await fetched('docs', 'contested')
    expect(contested.metadata).toEqual({ at: succeeded })
    const others = await fetched('docs', ...answers.map((_, at) => `only-${at}`))
    expect(others.map(({ id }: { id: string }) => id)).toEqual([`only-${succeeded}`])
  })

  test('[VEC-3] after 30 concurrent upserts of the same vectors all vectors are from one of them', async () => {
    const ids = ['u1', 'u2', 'u3']
    const upsert = (at: number) =>
      use(server, 'docs', 'upsert', {
        // In different orders, which must not cause a deadlock.
        vectors: (at % 2 ? ids : ids.toReversed()).map((id) => ({ id, values: [at, 1, 1], metadata: { at } })),
      })
    await Promise.all(Array.from({ length: 30 }, (_, at) => upsert(at)))
    const found = await fetched('docs', ...ids)
    expect(
      new Set(found.map(({ metadata, values }: Record<string, unknown>) => JSON.stringify([metadata, values]))).size,
    ).toBe(1)
  })

  test('[VEC-20] a delete returns the ids that existed, which can be used again', async () => {
    await use(server, 'docs', 'upsert', { vectors: ['d1', 'd2', 'd3'].map((id) => ({ id, values: [3, 2, 1] })) })
    const { vectorCount } = await use(server, 'docs', 'describe')
    expect(await use(server, 'docs', 'delete', { ids: ['d3', 'unknown', 'd1', 'd3'] })).toEqual({
      ok: true,
      count: 2,
      ids: ['d3', 'd1'],
    })
    expect((await use(server, 'docs', 'describe')).vectorCount).toBe(vectorCount - 2)
    expect(await fetched('docs', 'd1', 'd2', 'd3')).toMatchObject([{ id: 'd2' }])
    expect(await use(server, 'docs', 'delete', { ids: ['d1'] })).toEqual({ ok: true, count: 0, ids: [] })
    await use(server, 'docs', 'insert', { vectors: [{ id: 'd1', values: [1, 1, 1] }] })
    expect(await fetched('docs', 'd1')).toMatchObject([{ id: 'd1', values: [1, 1, 1] }])
  })

  test('[VEC-20] of 30 concurrent deletes of one vector one deletes it', async () => {
    await use(server, 'docs', 'upsert', { vectors: [{ id: 'gone', values: [1, 1, 1] }] })
    const { vectorCount } = await use(server, 'docs', 'describe')
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => use(server, 'docs', 'delete', { ids: ['gone'] })),
    )
    expect(answers.reduce((sum, { count }) => sum + count, 0)).toBe(1)
    expect((await use(server, 'docs', 'describe')).vectorCount).toBe(vectorCount - 1)
  })

  test('[VEC-21] describe returns the number of vectors, the dimensions and the metric', async () => {
    expect(await use(server, 'points-2', 'describe')).toEqual({ vectorCount: 0, dimensions: 2, metric: 'euclidean' })
    await use(server, 'points-2', 'upsert', { vectors: [{ id: 'a', values: [0, 0] }] })
    expect(await use(server, 'points-2', 'describe')).toEqual({ vectorCount: 1, dimensions: 2, metric: 'euclidean' })
  })

  test('[VEC-3, VEC-10] a request can have up to the maximum number of vectors and bytes', async () => {
    const values = Array.from({ length: 1536 }, (_, at) => Math.fround(Math.sin(at)))
    const vectorsNamed = (count: number, name: string) =>
      Array.from({ length: count }, (_, at) => ({ id: `${name}${at}`, values }))
    expect((await use(server, 'wide', 'upsert', { vectors: vectorsNamed(200, 'w') })).count).toBe(200)
    expect(await fetched('wide', 'w199')).toEqual([{ id: 'w199', values, metadata: null, namespace: null }])
    const points = Array.from({ length: 1001 }, (_, at) => ({ id: `p${at}`, values: [at, 1] }))
    expectRefusal(await perform(server.service, 'points-2', 'upsert', { vectors: points }), 400)
    expect((await use(server, 'points-2', 'describe')).vectorCount).toBe(1)
    expect((await use(server, 'points-2', 'upsert', { vectors: points.slice(0, 1000) })).count).toBe(1000)
    const ids = points.map(({ id }) => id)
    expectRefusal(await perform(server.service, 'points-2', 'delete', { ids }), 400)
    expect((await use(server, 'points-2', 'delete', { ids: ids.slice(0, 1000) })).count).toBe(1000)
    const tooLarge = await server.service.request('POST', '/api/vector/wide', {
      raw: JSON.stringify({ action: 'upsert', vectors: vectorsNamed(1, 'x'), padding: 'x'.repeat(8 * 1024 * 1024) }),
      headers: { 'content-type': 'application/json' },
    })
    expectRefusal(tooLarge, 413)
    expect((await use(server, 'wide', 'describe')).vectorCount).toBe(200)
  })

  describe('[VEC-1, VEC-2, KEY-4] scopes', () => {
    const vectors = [{ id: 'scoped', values: [1, 1, 1] }]
    const actionsByScope = {
      write: { upsert: { vectors }, insert: { vectors }, delete: { ids: ['scoped'] } },
      query: { search: { vector: [1, 1, 1] }, queryById: { vectorId: 'a' }, getByIds: { ids: ['a'] }, describe: {} },
    } as const
    for (const [needed, actions] of Object.entries(actionsByScope))
      for (const [action, rest] of Object.entries(actions))
        test(`${action} requires the scope ${needed}`, async () => {
          await use(server, 'docs', 'delete', { ids: ['scoped'] })
          const before = await dumpIndex(server, 'docs', ['a', 'scoped'])
          const other = needed === 'write' ? 'query' : 'write'
          const refused = [
            [server.anonymous, 'docs', 401],
            [server.as({ id: 'alice', role: 'admin' }), 'docs', 403],
            [server.withKey('wrong'), 'docs', 401],
            [server.withKey(`a-key-that-may-${other}`), 'docs', 401],
            [server.withKey(`a-key-that-may-${needed}`), 'wide', 401],
            [server.withKey(`a-key-that-may-${needed}`), 'undeclared', 401],
            [server.withKey(`a-key-that-may-${needed}`), 'docs:query:x', 401],
            [server.service, 'undeclared', 404],
            [server.service, 'constructor', 404],
          ] as const
          for (const [client, index, status] of refused)
            expectRefusal(await perform(client, encodeURIComponent(index), action, rest), status)
          expect(await dumpIndex(server, 'docs', ['a', 'scoped'])).toEqual(before)
          expect((await perform(server.withKey(`a-key-that-may-${needed}`), 'docs', action, rest)).status).toBe(200)
        })
  })
})
