/** Refused requests to vector indexes: the error names each wrong field, and nothing has changed. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { codesOf } from '../harness/records/scenarios.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeVectors, dumpIndex, perform, use } from '../harness/resources/vector.ts'

const indexes = {
  docs: { dimensions: 3, metadataIndexes: ['lang', 'year'] },
  flat: { dimensions: 1, metric: 'dot-product' },
} as const
const ok = { id: 'new', values: [1, 2, 3] }
const long = 'ü'.repeat(33)

/** An action, its parameters, and the expected error codes by field; null for an error that names no field. */
type Refused = readonly [string, object, Readonly<Record<string, string>> | null]

const write = (...vectors: unknown[]) => ({ vectors })
const nest = (depth: number): unknown => (depth === 0 ? 1 : { a: nest(depth - 1) })

const values: readonly Refused[] = [
  ['upsert', write({ id: 'new' }), { 'vectors[0].values': 'required' }],
  ['upsert', write({ ...ok, values: 'abc' }), { 'vectors[0].values': 'type' }],
  ['upsert', write({ ...ok, values: { length: 3 } }), { 'vectors[0].values': 'type' }],
  ['upsert', write({ ...ok, values: [] }), { 'vectors[0].values': 'min' }],
  ['upsert', write(ok, { id: 'b', values: [1, 2] }), { 'vectors[1].values': 'min' }],
  ['insert', write({ ...ok, values: [1, 2, 3, 4] }), { 'vectors[0].values': 'max' }],
  ['upsert', write({ ...ok, values: [1, '2', 3] }), { 'vectors[0].values[1]': 'type' }],
  ['upsert', write({ ...ok, values: [1, null, 3] }), { 'vectors[0].values[1]': 'type' }],
  ['upsert', write({ ...ok, values: [1, [2], 3] }), { 'vectors[0].values[1]': 'type' }],
  ['upsert', write({ ...ok, values: [1, 2, 1e38] }), { 'vectors[0].values[2]': 'type' }],
  ['upsert', write({ ...ok, values: [0, 0, 0] }), { 'vectors[0].values': 'min' }],
  ['upsert', write({ ...ok, values: [0, -0, 1e-60] }), { 'vectors[0].values': 'min' }],
]

const names: readonly Refused[] = [
  ['upsert', {}, { vectors: 'required' }],
  ['upsert', { vectors: [] }, { vectors: 'min' }],
  ['upsert', { vectors: ok }, { vectors: 'type' }],
  ['upsert', write(null), { 'vectors[0]': 'type' }],
  ['upsert', write('new'), { 'vectors[0]': 'type' }],
  ['upsert', write({ values: ok.values }), { 'vectors[0].id': 'required' }],
  ['upsert', write({ ...ok, id: 7 }), { 'vectors[0].id': 'type' }],
  ['upsert', write({ ...ok, id: '' }), { 'vectors[0].id': 'pattern' }],
  ['upsert', write({ ...ok, id: long }), { 'vectors[0].id': 'pattern' }],
  ['upsert', write({ ...ok, id: 'a\0' }), { 'vectors[0].id': 'pattern' }],
  ['upsert', write({ ...ok, id: 'a\n' }), { 'vectors[0].id': 'pattern' }],
  ['insert', write({ ...ok, id: '\ud800' }), { 'vectors[0].id': 'pattern' }],
  ['upsert', write(ok, ok), { 'vectors[1].id': 'unique' }],
  ['insert', write(ok, { ...ok, id: 'other' }, { ...ok, namespace: 'x' }), { 'vectors[2].id': 'unique' }],
  ['upsert', { ...write(ok), namespace: '' }, { namespace: 'pattern' }],
  ['upsert', { ...write(ok), namespace: long }, { namespace: 'pattern' }],
  ['upsert', { ...write(ok), namespace: ['a'] }, { namespace: 'type' }],
  ['upsert', write({ ...ok, namespace: 'a\u0000' }), { 'vectors[0].namespace': 'pattern' }],
  ['getByIds', {}, { ids: 'required' }],
  ['getByIds', { ids: [] }, { ids: 'min' }],
  ['getByIds', { ids: 'a' }, { ids: 'type' }],
  ['getByIds', { ids: [1] }, { 'ids[0]': 'type' }],
  ['getByIds', { ids: Array(101).fill('a') }, { ids: 'max' }],
  ['delete', { ids: [] }, { ids: 'min' }],
  ['delete', { ids: ['a', { $ne: '' }] }, { 'ids[1]': 'type' }],
  ['delete', { ids: Array(1001).fill('a') }, { ids: 'max' }],
  ['queryById', {}, { vectorId: 'required' }],
  ['queryById', { vectorId: ['a'] }, { vectorId: 'type' }],
]

const metadata: readonly Refused[] = [
  ['upsert', write({ ...ok, metadata: 'en' }), { 'vectors[0].metadata': 'type' }],
  ['upsert', write({ ...ok, metadata: ['en'] }), { 'vectors[0].metadata': 'type' }],
  ['upsert', write({ ...ok, metadata: { a: 'x'.repeat(10_240) } }), { 'vectors[0].metadata': 'max' }],
  ['upsert', write({ ...ok, metadata: { a: [{ b: 'x\0' }] } }), { 'vectors[0].metadata': 'type' }],
  ['upsert', write({ ...ok, metadata: { 'a\0': 1 } }), { 'vectors[0].metadata': 'type' }],
  ['upsert', write({ ...ok, metadata: { a: '\udfff' } }), { 'vectors[0].metadata': 'type' }],
  ['upsert', write({ ...ok, metadata: nest(63) }), null],
]

const searches: readonly Refused[] = [
  ['search', {}, { vector: 'required' }],
  ['search', { vector: [1, 2] }, { vector: 'min' }],
  ['search', { vector: [1, 2, 3, 4] }, { vector: 'max' }],
  ['search', { vector: [0, 0, 0] }, { vector: 'min' }],
  ['search', { vector: [1, 2, '3'] }, { 'vector[2]': 'type' }],
  ['search', { vector: [1, 2, -1e300] }, { 'vector[2]': 'type' }],
  ...[0, -1, 101, 1e9].map(
    (topK): Refused => ['search', { vector: [1, 2, 3], topK }, { topK: topK > 0 ? 'max' : 'min' }],
  ),
  ['search', { vector: [1, 2, 3], topK: 1.5 }, { topK: 'type' }],
  ['search', { vector: [1, 2, 3], topK: '10' }, { topK: 'type' }],
  ['search', { vector: [1, 2, 3], namespace: null }, { namespace: 'type' }],
  ['search', { vector: [1, 2, 3], namespace: { $ne: 'a' } }, { namespace: 'type' }],
  ['search', { vector: [1, 2, 3], returnValues: 'yes' }, { returnValues: 'type' }],
  ['search', { vector: [1, 2, 3], returnMetadata: 'some' }, { returnMetadata: 'type' }],
]

/** Filters with the field and the code of the expected error. */
const filters: readonly (readonly [unknown, string, string])[] = [
  ['lang', 'filter', 'type'],
  [[['lang', '==', 'en']], 'filter', 'type'],
  [null, 'filter', 'type'],
  [{ title: 'x' }, 'filter.title', 'unknown'],
  [{ lang: 'en', 'lang ': 'en' }, 'filter.lang ', 'unknown'],
  [{ LANG: 'en' }, 'filter.LANG', 'unknown'],
  [{ 'lang.deep': 'en' }, 'filter.lang.deep', 'unknown'],
  [{ '"lang"': 'en' }, 'filter."lang"', 'unknown'],
  [{ "lang' OR 1=1 --": 'en' }, "filter.lang' OR 1=1 --", 'unknown'],
  [{ ['x'.repeat(5000)]: 1 }, `filter.${'x'.repeat(64)}`, 'unknown'],
  [{ $where: 'sleep(1000)' }, 'filter.$where', 'unknown'],
  [{ $or: [{ lang: 'en' }] }, 'filter.$or', 'unknown'],
  [{ namespace: 'x' }, 'filter.namespace', 'unknown'],
  [{ id: 'a' }, 'filter.id', 'unknown'],
  [JSON.parse('{"__proto__":{"lang":"en"}}'), 'filter.__proto__', 'unknown'],
  [{ constructor: 'x' }, 'filter.constructor', 'unknown'],
  [{ toString: 'x' }, 'filter.toString', 'unknown'],
  [{ lang: ['en'] }, 'filter.lang', 'type'],
  [{ lang: {} }, 'filter.lang', 'type'],
  [{ lang: { $regex: '(a+)+$' } }, 'filter.lang', 'operator'],
  [{ lang: { eq: 'en' } }, 'filter.lang', 'operator'],
  [{ lang: { constructor: 'en' } }, 'filter.lang', 'operator'],
  [JSON.parse('{"lang":{"__proto__":"en"}}'), 'filter.lang', 'operator'],
  [{ lang: { $not: { $eq: 'en' } } }, 'filter.lang', 'operator'],
  [{ lang: { $eq: { $ne: '' } } }, 'filter.lang', 'type'],
  [{ lang: { $gt: null } }, 'filter.lang', 'type'],
  [{ lang: { $lt: true } }, 'filter.lang', 'type'],
  [{ lang: { $gte: ['a'] } }, 'filter.lang', 'type'],
  [{ lang: { $in: 'en' } }, 'filter.lang', 'type'],
  [{ lang: { $in: [['en']] } }, 'filter.lang', 'type'],
  [{ lang: { $nin: [{}] } }, 'filter.lang', 'type'],
  [{ lang: { $in: Array(1001).fill('en') } }, 'filter.lang', 'max'],
  [{ lang: 'a\0' }, 'filter.lang', 'type'],
  [{ lang: { $gt: '\ud800' } }, 'filter.lang', 'type'],
]

describeVectors('refused requests to vector indexes', { indexes }, (server) => {
  const ids = ['a', 'new', 'b', 'other']
  beforeAll(async () => {
    await use(server, 'docs', 'upsert', { vectors: [{ id: 'a', values: [1, 0, 0], metadata: { lang: 'en' } }] })
  })

  async function expectRefused(send: () => ReturnType<typeof server.service.post>, data: Refused[2]): Promise<void> {
    const before = await dumpIndex(server, 'docs', ids)
    const answer = await send()
    expectRefusal(answer, 400)
    if (data !== null) expect(codesOf(answer.body.data)).toEqual(data)
    expect(await dumpIndex(server, 'docs', ids)).toEqual(before)
  }

  const tables = {
    '[VEC-6, VEC-7]': values,
    '[VEC-5, VEC-9, VEC-19, VEC-20]': names,
    '[VEC-8, HTTP-5]': metadata,
    '[VEC-6, VEC-7, VEC-12, VEC-13]': searches,
  }
  for (const [rules, table] of Object.entries(tables))
    describe(rules, () => {
      for (const [action, rest, data] of table)
        test(`${rules} ${action} of ${JSON.stringify(rest).slice(0, 80)} is refused`, () =>
          expectRefused(() => perform(server.service, 'docs', action, rest), data))
    })

  for (const [filter, field, code] of filters)
    for (const action of ['search', 'queryById'])
      test(`[VEC-16] ${action} with filter ${JSON.stringify(filter).slice(0, 60)} is refused`, () =>
        expectRefused(() => perform(server.service, 'docs', action, { vector: [1, 0, 0], vectorId: 'a', filter }), {
          [field]: code,
        }))

  test('[VEC-16] a filter with too many conditions is refused', () => {
    const filter = { lang: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`$eq${at}`, 'x'])) }
    return expectRefused(() => perform(server.service, 'docs', 'search', { vector: [1, 0, 0], filter }), {
      'filter.lang': 'operator',
    })
  })

  for (const text of ['1e999', '-1e999', '1e39', 'NaN', 'Infinity', '0x1', '1,', '"1"', 'true'])
    test(`[VEC-6] the number ${text} in a body is refused`, async () => {
      const post = (body: string) =>
        server.service.request('POST', '/api/vector/docs', {
          raw: body,
          headers: { 'content-type': 'application/json' },
        })
      await expectRefused(() => post(`{"action":"upsert","vectors":[{"id":"new","values":[1,2,${text}]}]}`), null)
      await expectRefused(() => post(`{"action":"search","vector":[1,2,${text}]}`), null)
      await expectRefused(
        () =>
          post(
            `{"action":"search","vector":[1,2,3],"filter":{"year":${text === 'true' || text === '"1"' || text === '1e39' ? '[]' : text}}}`,
          ),
        null,
      )
      await expectRefused(
        () => post(`{"action":"upsert","vectors":[{"id":"new","values":[1,2,${text}],"metadata":{"year":${text}}}]}`),
        null,
      )
    })

  for (const body of [{}, { action: 'drop' }, { action: null }, { action: ['search'] }, { action: '__proto__' }])
    test(`[VEC-1] the action of ${JSON.stringify(body)} is refused`, () =>
      expectRefused(() => server.service.post('/api/vector/docs', body), {
        action: 'action' in body ? 'enum' : 'required',
      }))

  test('[VEC-7] metrics other than cosine accept a zero vector', async () => {
    await use(server, 'flat', 'upsert', { vectors: [{ id: 'zero', values: [0] }] })
    expect(await use(server, 'flat', 'search', { vector: [0] })).toEqual({
      matches: [{ id: 'zero', score: 0 }],
      count: 1,
    })
  })

  test('[VEC-6] very large and very small numbers are compared without overflow', async () => {
    const extremes = [
      { id: 'huge', values: [1e17] },
      { id: 'tiny', values: [1e-30] },
      { id: 'minus', values: [-1e17] },
    ]
    await use(server, 'flat', 'upsert', { vectors: extremes })
    const { matches } = await use(server, 'flat', 'search', { vector: [1e17] })
    expect(matches.map(({ id }: { id: string }) => id)).toEqual(['huge', 'tiny', 'zero', 'minus'])
    expect(matches.every(({ score }: { score: unknown }) => typeof score === 'number')).toBe(true)
    await use(server, 'docs', 'upsert', {
      vectors: [
        { id: 'x', values: [1e17, -1e17, 1e17] },
        { id: 'y', values: [1e-15, 0, 0] },
      ],
    })
    const [near] = (await use(server, 'docs', 'search', { vector: [1e-10, -1e-10, 1e-10], topK: 1 })).matches
    expect(near).toMatchObject({ id: 'x', score: expect.closeTo(1, 4) })
    await use(server, 'docs', 'delete', { ids: ['x', 'y'] })
  })

  test('[VEC-8, HTTP-12] metadata can have members of any name and cannot pollute prototypes', async () => {
    const raw =
      '{"action":"upsert","vectors":[{"id":"p","values":[1,1,1],"metadata":{"__proto__":{"lang":"xx"},"constructor":"c","\\"q":1}}]}'
    const answer = await server.service.request('POST', '/api/vector/docs', {
      raw,
      headers: { 'content-type': 'application/json' },
    })
    expect(answer.status).toBe(200)
    const fetched = await perform(server.service, 'docs', 'getByIds', { ids: ['p'] })
    expect(fetched.text).toContain('"metadata":{"__proto__":{"lang":"xx"},"constructor":"c","\\"q":1}')
    const found = await use(server, 'docs', 'search', { vector: [1, 1, 1], filter: { lang: 'xx' } })
    expect(found).toEqual({ matches: [], count: 0 })
    expect(({} as Record<string, unknown>).lang).toBeUndefined()
    await use(server, 'docs', 'delete', { ids: ['p'] })
  })
})
