/** Searches: metrics, namespaces, filters, and the contents of a match. */
import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectRefusal } from '../harness/refusal.ts'
import { createNumbers, describeVectors, makeValues, perform, use } from '../harness/resources/vector.ts'

const metadataIndexes = ['kind', 'year', 'open', 'odd name-1']
const indexes = {
  cosine: { dimensions: 2 },
  euclidean: { dimensions: 2, metric: 'euclidean' },
  dot: { dimensions: 2, metric: 'dot-product' },
  filtered: { dimensions: 2, metric: 'euclidean', metadataIndexes },
  random: { dimensions: 8, metadataIndexes: ['group', 'rank', 'flag'] },
  clustered: { dimensions: 16, metric: 'euclidean', metadataIndexes: ['half', 'part'] },
  empty: { dimensions: 2 },
} as const

interface Found {
  readonly id: string
  readonly score: number
  readonly namespace?: string
  readonly metadata?: Record<string, unknown>
}
const idsOf = ({ matches }: { matches: readonly Found[] }): string[] => matches.map(({ id }) => id)

/** Vectors on a line, so that the order by distance from 0 is the order of the ids. */
const filtered = [
  { id: 'a', metadata: { kind: 'book', year: 1999, open: true, hidden: 'x' } },
  { id: 'b', metadata: { kind: 'book', year: 2010 } },
  { id: 'c', metadata: { kind: 'Book', year: '2010', open: false } },
  { id: 'd', metadata: { kind: null, year: 2020.5, 'odd name-1': '"quoted"' } },
  { id: 'e', metadata: { kind: ['book'], year: { $gt: 1 }, open: 1 } },
  { id: 'f' },
  { id: 'g', namespace: 'other', metadata: { kind: 'film', year: -3, open: true } },
  { id: 'h', namespace: 'other', metadata: { kind: '\u{1f600}', year: 0 } },
  { id: 'i', namespace: 'Other', metadata: { kind: '\uffff', year: 2010 } },
].map((vector, at) => ({ ...vector, values: [at + 1, 0] }))

describeVectors('searching vectors', { indexes }, (server) => {
  beforeAll(async () => {
    const vectors = [
      { id: 'east', values: [1, 0] },
      { id: 'far east', values: [4, 0] },
      { id: 'north', values: [0, 2], namespace: 'up' },
      { id: 'west', values: [-1, 0] },
    ]
    for (const index of ['cosine', 'euclidean', 'dot']) await use(server, index, 'upsert', { vectors })
    await use(server, 'filtered', 'upsert', { vectors: filtered })
  })

  describe('[VEC-11] the metric decides the order of matches', () => {
    const expected = {
      cosine: [
        ['east', 1],
        ['far east', 1],
        ['north', 0],
        ['west', -1],
      ],
      euclidean: [
        ['east', 1],
        ['far east', 2],
        ['north', Math.sqrt(8)],
        ['west', 3],
      ],
      dot: [
        ['far east', 8],
        ['east', 2],
        ['north', 0],
        ['west', -2],
      ],
    } as const
    for (const [index, matches] of Object.entries(expected))
      test(index, async () => {
        const found = await use(server, index, 'search', { vector: [2, 0] })
        expect(found.count).toBe(4)
        const byScore = (a: Found, b: Found) =>
          (index === 'euclidean' ? a.score - b.score : b.score - a.score) || (a.id < b.id ? -1 : 1)
        expect(found.matches.toSorted(byScore)).toEqual(found.matches)
        for (const [at, [id, score]] of matches.entries()) {
          expect(found.matches[at].id).toBe(id)
          expect(found.matches[at].score).toBeCloseTo(score, 5)
        }
      })
  })

  test('[VEC-12] a search returns ten matches by default, at most a hundred, and none from an empty index', async () => {
    const next = createNumbers(5)
    const vectors = Array.from({ length: 150 }, (_, at) => ({
      id: `n${at}`,
      values: makeValues(next, 8),
      namespace: 'many',
    }))
    await use(server, 'random', 'upsert', { vectors })
    const search = { vector: makeValues(next, 8), namespace: 'many' }
    const countOf = async (rest: object) => (await use(server, 'random', 'search', { ...search, ...rest })).count
    expect(await countOf({})).toBe(10)
    expect(await countOf({ topK: 1 })).toBe(1)
    expect(await countOf({ topK: 100 })).toBe(100)
    expect(await use(server, 'empty', 'search', { vector: [1, 1] })).toEqual({ matches: [], count: 0 })
    await use(server, 'random', 'delete', { ids: vectors.map(({ id }) => id) })
    expect(await countOf({})).toBe(0)
  })

  test('[VEC-13] a match contains values and metadata as requested', async () => {
    const search = async (rest: object) =>
      (await use(server, 'filtered', 'search', { vector: [0, 0], topK: 1, ...rest })).matches[0]
    const bare = { id: 'a', score: 1 }
    const all = { kind: 'book', year: 1999, open: true, hidden: 'x' }
    const { hidden: _, ...indexed } = all
    expect(await search({})).toEqual(bare)
    expect(await search({ returnValues: false, returnMetadata: 'none' })).toEqual(bare)
    expect(await search({ returnValues: true })).toEqual({ ...bare, values: [1, 0] })
    expect(await search({ returnMetadata: true })).toEqual({ ...bare, metadata: all })
    expect(await search({ returnMetadata: 'all', returnValues: true })).toEqual({
      ...bare,
      metadata: all,
      values: [1, 0],
    })
    expect(await search({ returnMetadata: 'indexed' })).toEqual({ ...bare, metadata: indexed })
    expect(await search({ vector: [6, 0], returnMetadata: true })).toEqual({ id: 'f', score: 0, metadata: null })
    expect(await search({ vector: [7, 0] })).toEqual({ id: 'g', score: 0, namespace: 'other' })
  })

  test('[VEC-14] a search in a namespace matches its exact name; without one it searches all namespaces', async () => {
    const ids = async (namespace?: string) =>
      idsOf(
        await use(server, 'filtered', 'search', { vector: [0, 0], ...(namespace === undefined ? {} : { namespace }) }),
      )
    expect(await ids()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'])
    expect(await ids('other')).toEqual(['g', 'h'])
    expect(await ids('Other')).toEqual(['i'])
    for (const unknown of ["other' OR 1=1 --", '%', 'othe', '*']) expect(await ids(unknown)).toEqual([])
  })

  const filters: readonly (readonly [object, string])[] = [
    [{}, 'abcdefghi'],
    [{ kind: 'book' }, 'ab'],
    [{ kind: { $eq: 'book' } }, 'ab'],
    [{ kind: 'BOOK' }, ''],
    [{ kind: 'book', year: 2010 }, 'b'],
    [{ year: 2010 }, 'bi'],
    [{ year: '2010' }, 'c'],
    [{ open: true }, 'ag'],
    [{ open: false }, 'c'],
    [{ open: 1 }, 'e'],
    [{ kind: null }, 'def'],
    [{ kind: { $ne: null } }, 'abcghi'],
    [{ kind: { $ne: 'book' } }, 'cdefghi'],
    [{ year: { $gt: 1999 } }, 'bdi'],
    [{ year: { $gte: 1999 } }, 'abdi'],
    [{ year: { $lt: 0 } }, 'g'],
    [{ year: { $lte: 0 } }, 'gh'],
    [{ year: { $gt: 1999, $lt: 2020 } }, 'bi'],
    [{ year: { $gt: '1' } }, 'c'],
    [{ kind: { $gt: 'book' } }, 'ghi'],
    [{ kind: { $gt: '\uffff' } }, 'h'],
    [{ kind: { $lt: 'a' } }, 'c'],
    [{ kind: { $in: ['book', 'film', 3] } }, 'abg'],
    [{ kind: { $in: ['book', null] } }, 'abdef'],
    [{ kind: { $in: [] } }, ''],
    [{ kind: { $nin: [] } }, 'abcdefghi'],
    [{ kind: { $nin: ['book', 'film'] } }, 'cdefhi'],
    [{ kind: { $nin: ['book', null] } }, 'cghi'],
    [{ year: { $in: [2010, '2010'] } }, 'bci'],
    [{ open: { $in: [true] }, year: { $lt: 5 } }, 'g'],
    [{ 'odd name-1': '"quoted"' }, 'd'],
    [{ kind: "book' OR '1'='1" }, ''],
    [{ kind: { $ne: "'; DROP TABLE x; --" } }, 'abcdefghi'],
  ]
  for (const [filter, ids] of filters)
    test(`[VEC-15] the filter ${JSON.stringify(filter)} matches ${ids || 'nothing'}`, async () => {
      const found = await use(server, 'filtered', 'search', { vector: [0, 0], filter })
      expect(idsOf(found).join('')).toBe(ids)
    })

  test('[VEC-14, VEC-15] a filter applies within a namespace', async () => {
    const found = await use(server, 'filtered', 'search', {
      vector: [0, 0],
      filter: { open: true },
      namespace: 'other',
    })
    expect(idsOf(found)).toEqual(['g'])
  })

  test('[VEC-18] queryById finds the vector itself too, and an unknown id is 404', async () => {
    const found = await use(server, 'filtered', 'queryById', { vectorId: 'b', topK: 3, returnMetadata: true })
    expect(found.matches[0]).toEqual({ id: 'b', score: 0, metadata: { kind: 'book', year: 2010 } })
    expect(idsOf(found).toSorted()).toEqual(['a', 'b', 'c'])
    const others = await use(server, 'filtered', 'queryById', {
      vectorId: 'b',
      namespace: 'other',
      filter: { year: 0 },
    })
    expect(idsOf(others)).toEqual(['h'])
    for (const vectorId of ['unknown', 'B', 'b '])
      expectRefusal(await perform(server.service, 'filtered', 'queryById', { vectorId }), 404)
  })

  test('[VEC-22] a search reflects acknowledged writes and deletes immediately, also under concurrent writes', async () => {
    const writers = Array.from({ length: 30 }, async (_, at) => {
      const id = `fresh-${at}`
      const values = [at, at + 1, 3, 1, 0, 0, 0, at % 7]
      const search = { vector: values, topK: 1, namespace: id, returnValues: true }
      const first = async () => (await use(server, 'random', 'search', search)).matches[0]
      await use(server, 'random', 'insert', { vectors: [{ id, values, namespace: id }] })
      expect(await first()).toMatchObject({ id, values })
      const moved = values.toReversed().with(0, 1)
      await use(server, 'random', 'upsert', { vectors: [{ id, values: moved, namespace: id }] })
      expect(await first()).toMatchObject({ id, values: moved })
      await use(server, 'random', 'delete', { ids: [id] })
      expect(await first()).toBeUndefined()
    })
    await Promise.all(writers)
  })

  test('[VEC-15, VEC-22] a match never mixes values and metadata of different writes', async () => {
    const states = [
      { values: [1, 0, 0, 0, 0, 0, 0, 0], metadata: { group: 'here' } },
      { values: [0, 1, 0, 0, 0, 0, 0, 0], metadata: { group: 'there' } },
    ] as const
    const ids = ['flip-0', 'flip-1', 'flip-2']
    const write = (round: number) =>
      use(server, 'random', 'upsert', {
        vectors: ids.map((id, at) => ({ id, ...states[(round + at) % 2] })),
        namespace: 'flips',
      })
    await write(0)
    let seen = 0
    for (let round = 1; round <= 60; round++) {
      const search = { vector: states[0].values, namespace: 'flips', returnValues: true, returnMetadata: true }
      const [, ...answers] = await Promise.all([
        write(round),
        ...['here', 'there'].map((group) => use(server, 'random', 'search', { ...search, filter: { group } })),
      ])
      for (const [at, { matches }] of answers.entries())
        for (const { values, metadata, score } of matches) {
          seen += 1
          expect({ values, metadata, score: Math.round(score) + 0 }).toEqual({ ...states[at], score: 1 - at } as never)
        }
    }
    expect(seen).toBeGreaterThan(60)
    await use(server, 'random', 'delete', { ids })
  })

  describe('[VEC-17] a filter that matches only distant vectors', () => {
    const next = createNumbers(9)
    const centers = Array.from({ length: 20 }, () => makeValues(next, 16))
    /** Twenty clusters; `part` is the number of the cluster. */
    const vectors = Array.from({ length: 5000 }, (_, at) => ({
      id: `c${at}`,
      values: (centers[at % 20] as number[]).map((value) => Math.fround(value + next() / 3)),
      metadata: { half: at % 2, part: at % 20 },
    }))
    beforeAll(async () => {
      for (let at = 0; at < vectors.length; at += 1000)
        await use(server, 'clustered', 'upsert', { vectors: vectors.slice(at, at + 1000) })
    })
    const distance = (a: readonly number[], b: readonly number[]): number =>
      Math.hypot(...a.map((value, at) => value - (b[at] ?? 0)))

    test.each([
      ['half', 1],
      ['part', 3],
    ] as const)('%s', async (field, wanted) => {
      let right = 0
      for (const center of centers) {
        const vector = center.map((value) => value + next() / 3)
        const { matches } = await use(server, 'clustered', 'search', { vector, filter: { [field]: wanted } })
        const best = vectors
          .filter(({ metadata }) => metadata[field] === wanted)
          .map(({ id, values }) => [distance(vector, values), id] as const)
          .sort(([a], [b]) => a - b)
          .slice(0, 10)
        const ids = new Set(best.map(([, id]) => id))
        expect(matches.length).toBe(10)
        right += idsOf({ matches }).filter((id) => ids.has(id)).length
      }
      expect(right / (10 * centers.length)).toBeGreaterThanOrEqual(0.95)
    })
  })

  describe('[VEC-11, VEC-15, VEC-17, VEC-25] random searches find the matches of a full comparison', () => {
    type Vector = { id: string; values: number[]; namespace: string; metadata: Record<string, unknown> }
    const next = createNumbers(42)
    const vectors: Vector[] = Array.from({ length: 600 }, (_, at) => ({
      id: `r${at}`,
      values: makeValues(next, 8),
      namespace: at % 5 === 0 ? 'fifth' : 'rest',
      metadata: { group: `g${at % 40}`, rank: at, ...(at % 3 ? { flag: at % 3 === 1 } : {}) },
    }))
    beforeAll(async () => {
      await use(server, 'random', 'upsert', { vectors })
    })
    const similarity = (a: readonly number[], b: readonly number[]): number => {
      const product = (x: readonly number[], y: readonly number[]) =>
        x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0)
      return product(a, b) / Math.sqrt(product(a, a) * product(b, b))
    }
    const query = fc.record({
      seed: fc.nat(),
      topK: fc.integer({ min: 1, max: 100 }),
      namespace: fc.option(fc.constantFrom('fifth', 'rest', 'none'), { nil: undefined }),
      group: fc.option(fc.uniqueArray(fc.nat(45), { maxLength: 8 }), { nil: undefined }),
      rank: fc.option(fc.integer({ min: -10, max: 610 }), { nil: undefined }),
      flag: fc.option(fc.constantFrom(true, false, null), { nil: undefined }),
    })

    test('in every namespace and under every filter', async () => {
      let [wanted, right] = [0, 0]
      await fc.assert(
        fc.asyncProperty(query, async ({ seed, topK, namespace, group, rank, flag }) => {
          const vector = makeValues(createNumbers(seed), 8)
          const filter = {
            ...(group ? { group: { $in: group.map((number) => `g${number}`) } } : {}),
            ...(rank === undefined ? {} : { rank: { $gte: rank } }),
            ...(flag === undefined ? {} : { flag }),
          }
          const accepts = ({ namespace: own, metadata }: Vector): boolean =>
            (namespace === undefined || own === namespace) &&
            (group === undefined || group.some((number) => metadata.group === `g${number}`)) &&
            (rank === undefined || Number(metadata.rank) >= rank) &&
            (flag === undefined || (metadata.flag ?? null) === flag)
          const accepted = vectors.filter(accepts)
          const best = accepted
            .map(({ id, values }) => ({ id, score: similarity(vector, values) }))
            .sort((a, b) => b.score - a.score)
            .slice(0, topK)
          const search = { vector, topK, filter, ...(namespace === undefined ? {} : { namespace }) }
          const { matches } = await use(server, 'random', 'search', search)
          expect(matches.length).toBe(best.length)
          const byId = new Map(accepted.map((one) => [one.id, one]))
          for (const [at, { id, score }] of (matches as Found[]).entries()) {
            expect(score).toBeCloseTo(similarity(vector, byId.get(id)?.values ?? []), 4)
            if (at > 0) expect(score).toBeLessThanOrEqual(matches[at - 1].score)
          }
          const bestIds = new Set(best.map(({ id }) => id))
          wanted += best.length
          right += idsOf({ matches }).filter((id) => bestIds.has(id)).length
        }),
        { numRuns: 150, seed: 7 },
      )
      expect(right / wanted).toBeGreaterThanOrEqual(0.95)
    })
  })
})
