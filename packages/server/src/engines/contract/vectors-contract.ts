/** Contract tests of the `Vectors` port. Each adapter's test file runs this suite. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { compareText } from '../../base/text/text.ts'
import type {
  VectorCondition,
  VectorIndex,
  VectorMatch,
  VectorMetadataValue,
  VectorMetric,
  VectorPage,
  VectorQuery,
  VectorRow,
  Vectors,
} from '../vectors/vectors.ts'

export interface VectorsUnderTest {
  readonly vectors: Vectors
  dispose(): Promise<void>
}

export interface StoredVector {
  readonly key: number
  readonly values: readonly number[]
  readonly namespace?: string
  readonly metadata?: readonly VectorMetadataValue[]
}

/** A table of vectors as SQL has one, small enough to be read in one go or in pages of a few rows. */
export function createTable(pageRowsMax = 1000) {
  const rows = new Map<number, VectorRow>()
  let version = 0
  let isAway = false
  let forgottenTo = 0
  return {
    rows,
    /** How many pages were read. */
    reads: 0,
    get version() {
      return version
    },
    put({ key, values, namespace = '', metadata = [] }: StoredVector): void {
      version += 1
      const bytes = new Uint8Array(Float32Array.from(values).buffer)
      rows.set(key, { key, version, values: bytes, namespace, metadata })
    },
    remove(key: number): void {
      version += 1
      rows.set(key, { key, version, values: null, namespace: '', metadata: [] })
    },
    /** Deletions up to here are not known any more. */
    forget(): void {
      for (const [key, { values }] of rows) if (!values) rows.delete(key)
      forgottenTo = version
    },
    setAway(away: boolean): void {
      isAway = away
    },
    async readChanges(after: number, begun: number, rowsMax: number): Promise<VectorPage | null> {
      this.reads += 1
      if (isAway) throw new Error('The table is away')
      if (after > 0 && Math.max(after, begun) < forgottenTo) return null
      const changed = [...rows.values()].filter((row) => row.version > after && (after > 0 || row.values))
      changed.sort((one, other) => one.version - other.version)
      const page = changed.slice(0, Math.min(rowsMax, pageRowsMax))
      const isLast = page.length === changed.length
      return { rows: page, isLast, version: isLast ? version : (page.at(-1)?.version ?? after), latest: version }
    },
  }
}

export type VectorTable = ReturnType<typeof createTable>

const fields = ['lang', 'year']

/** What the table says, found the slow way. */
export function naiveSearch(table: VectorTable, metric: VectorMetric, query: VectorQuery): VectorMatch[] {
  const matches: VectorMatch[] = []
  for (const row of table.rows.values()) {
    if (!row.values || (query.namespace !== null && row.namespace !== query.namespace)) continue
    const isMatch = query.conditions.every((one) => satisfies(row.metadata[fields.indexOf(one.field)] ?? null, one))
    if (!isMatch) continue
    const values = new Float32Array(row.values.slice().buffer)
    matches.push({ key: row.key, score: naiveScore(metric, query.vector, values) })
  }
  const sign = metric === 'euclidean' ? 1 : -1
  matches.sort((one, other) => (one.score - other.score) * sign || one.key - other.key)
  return matches.slice(0, query.topK)
}

function naiveScore(metric: VectorMetric, one: Float32Array, other: Float32Array): number {
  const sum = (term: (a: number, b: number) => number): number =>
    one.reduce((total, value, index) => total + term(value, other[index] ?? 0), 0)
  if (metric === 'euclidean') return Math.sqrt(sum((a, b) => (a - b) ** 2))
  const product = sum((a, b) => a * b)
  return metric === 'dot-product' ? product : product / Math.sqrt(sum((a) => a * a) * sum((_, b) => b * b))
}

function satisfies(value: VectorMetadataValue, condition: VectorCondition): boolean {
  if ('values' in condition) return condition.values.includes(value) === (condition.operator === 'in')
  if (condition.operator === '=') return value === condition.value
  if (condition.operator === '!=') return value !== condition.value
  const wanted = condition.value
  let order = Number.NaN
  if (typeof value === 'string' && typeof wanted === 'string') order = compareText(value, wanted)
  if (typeof value === 'number' && typeof wanted === 'number') order = value - wanted
  if (condition.operator === '<') return order < 0
  if (condition.operator === '<=') return order <= 0
  return condition.operator === '>' ? order > 0 : order >= 0
}

const plain = { topK: 10, namespace: null, conditions: [] } as const

const keysOf = (matches: readonly VectorMatch[]): number[] => matches.map(({ key }) => key)

/** `exact` when the adapter has been opened so that no index under test gets a graph. */
export function describeVectors(name: string, open: () => Promise<VectorsUnderTest>): void {
  let opened = 0
  type Scenario = {
    readonly table: VectorTable
    readonly index: VectorIndex
    readonly vectors: Vectors
    search(query: Partial<VectorQuery> & { vector: Float32Array }): Promise<VectorMatch[]>
  }

  const withIndex = (title: string, run: (scenario: Scenario) => Promise<void>, metric: VectorMetric = 'euclidean') =>
    test(title, async () => {
      const { vectors, dispose } = await open()
      try {
        const table = createTable(3)
        const options = { name: `index-${++opened}`, dimensions: 2, metric, metadataIndexes: fields, source: table }
        const index = vectors.openIndex(options)
        const search: Scenario['search'] = (query) => index.search({ ...plain, atLeast: table.version, ...query })
        await run({ table, index, vectors, search })
      } finally {
        await dispose()
      }
    })
  const origin = Float32Array.of(0, 0)

  describe(`searches of ${name}`, () => {
    describeAgainstModel(open)

    withIndex('an empty index has no matches', async ({ search }) => {
      expect(await search({ vector: origin })).toEqual([])
    })

    withIndex('equal scores come in the order of keys, and the lowest keys stay', async ({ table, search }) => {
      for (const key of [9, 3, 7, 1, 5]) table.put({ key, values: [1, 1] })
      expect(keysOf(await search({ vector: origin }))).toEqual([1, 3, 5, 7, 9])
      expect(keysOf(await search({ vector: origin, topK: 2 }))).toEqual([1, 3])
    })

    withIndex(
      'a cosine is 1 for the same direction and -1 for the opposite, whatever the lengths',
      async ({ table, search }) => {
        table.put({ key: 1, values: [1e-30, 3e-30] })
        table.put({ key: 2, values: [-2e30, -6e30] })
        const [same, opposite] = await search({ vector: Float32Array.of(1, 3) })
        expect([same?.key, opposite?.key]).toEqual([1, 2])
        expect(same?.score).toBeCloseTo(1, 6)
        expect(opposite?.score).toBeCloseTo(-1, 6)
        expect(same?.score).toBeLessThanOrEqual(1)
      },
      'cosine',
    )

    withIndex(
      'products of the largest values are numbers',
      async ({ table, search }) => {
        table.put({ key: 1, values: [1e17, -1e17] })
        const [match] = await search({ vector: Float32Array.of(1e17, -1e17) })
        expect(match?.score).toBeCloseTo(2e34, -30)
      },
      'dot-product',
    )

    withIndex('a condition on a field without a column is refused', async ({ search }) => {
      const conditions: VectorCondition[] = [{ field: '__proto__', operator: '=', value: 'a' }]
      expect(search({ vector: origin, conditions })).rejects.toThrow('__proto__')
    })
  })

  describe(`the copies of ${name}`, () => {
    withIndex('a search sees every change before it, metadata alone included', async ({ table, search }) => {
      const conditions: VectorCondition[] = [{ field: 'lang', operator: '=', value: 'en' }]
      for (let key = 1; key <= 20; key++) {
        table.put({ key, values: [key, 0], metadata: ['de', null] })
        expect(keysOf(await search({ vector: origin, topK: 100 }))).toHaveLength(key)
      }
      expect(await search({ vector: origin, conditions })).toEqual([])
      table.put({ key: 7, values: [7, 0], metadata: ['en', null] })
      expect(keysOf(await search({ vector: origin, conditions }))).toEqual([7])
      table.put({ key: 7, values: [0, 0], metadata: ['en', null] })
      expect(await search({ vector: origin, topK: 1 })).toEqual([{ key: 7, score: 0 }])
      table.remove(7)
      table.remove(1)
      expect(await search({ vector: origin, conditions })).toEqual([])
      expect(keysOf(await search({ vector: origin, topK: 2 }))).toEqual([2, 3])
    })

    withIndex('nothing is read for a search that asks for no later version', async ({ table, search }) => {
      table.put({ key: 1, values: [1, 0] })
      await search({ vector: origin })
      const reads = table.reads
      await search({ vector: origin })
      expect(table.reads).toBe(reads)
    })

    withIndex('forgotten deletions make the copy start over', async ({ table, index, search }) => {
      for (const key of [1, 2, 3]) table.put({ key, values: [key, 0] })
      expect(await search({ vector: origin })).toHaveLength(3)
      table.remove(2)
      table.forget()
      table.put({ key: 4, values: [4, 0] })
      expect(keysOf(await search({ vector: origin }))).toEqual([1, 3, 4])
      expect(await index.state()).toMatchObject({ size: 3, version: table.version })
    })

    withIndex('what is older than forgotten deletions is read page by page', async ({ table, index, search }) => {
      for (let key = 1; key <= 25; key++) table.put({ key, values: [key, 0] })
      table.remove(25)
      table.forget()
      expect(keysOf(await search({ vector: origin, topK: 3 }))).toEqual([1, 2, 3])
      expect(await index.state()).toMatchObject({ size: 24, version: table.version })
    })

    withIndex('a source that is away fails the search, and nothing later', async ({ table, search }) => {
      table.put({ key: 1, values: [1, 0] })
      table.setAway(true)
      expect(search({ vector: origin })).rejects.toThrow('away')
      table.setAway(false)
      expect(keysOf(await search({ vector: origin }))).toEqual([1])
    })

    withIndex('searches beside writes each see what was there when they began', async ({ table, search }) => {
      const searches = Array.from({ length: 50 }, async (_, turn) => {
        table.put({ key: turn + 1, values: [-turn, 0] })
        const seen = keysOf(await search({ vector: Float32Array.of(-1000, 0), topK: 100 }))
        expect(seen).toContain(turn + 1)
      })
      await Promise.all(searches)
    })

    withIndex('an index that is closed refuses', async ({ table, index, search }) => {
      table.put({ key: 1, values: [1, 0] })
      await search({ vector: origin })
      index.close()
      expect(search({ vector: origin, atLeast: table.version + 1 })).rejects.toMatchObject({ kind: 'unavailable' })
    })

    withIndex('so does every index once all is closed', async ({ vectors, search }) => {
      await vectors.close()
      expect(search({ vector: origin })).rejects.toMatchObject({ kind: 'unavailable' })
    })
  })
}

function describeAgainstModel(open: () => Promise<VectorsUnderTest>): void {
  const text = fc.constantFrom('', 'a', 'b', 'ab', 'é', '\u{1F600}', '\uFFFD', '__proto__')
  const scalar = fc.oneof(
    text,
    fc.constantFrom(-1, 0, -0, 1, 2.5, 1e300),
    fc.boolean(),
    fc.constant<VectorMetadataValue>(null),
  )
  const values = fc.array(fc.float({ min: -8, max: 8, noNaN: true }), { minLength: 3, maxLength: 3 })
  const nonZero = values.filter((list) => list.some((value) => Math.abs(value) > 1e-3))
  const put = fc.record({
    key: fc.integer({ min: 1, max: 40 }),
    values: nonZero,
    namespace: fc.constantFrom('', 'x', 'y'),
    metadata: fc.tuple(scalar, scalar),
  })
  const change = fc.oneof({ weight: 4, arbitrary: put }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }) })
  const field = fc.constantFrom(...fields)
  const condition: fc.Arbitrary<VectorCondition> = fc.oneof(
    fc.record({ field, operator: fc.constantFrom('=', '!=', '<', '<=', '>', '>='), value: scalar }),
    fc.record({ field, operator: fc.constantFrom('in', 'not in'), values: fc.array(scalar, { maxLength: 4 }) }),
  )
  const query = fc.record({
    vector: nonZero,
    topK: fc.integer({ min: 1, max: 50 }),
    namespace: fc.option(fc.constantFrom('', 'x', 'y', 'z')),
    conditions: fc.array(condition, { maxLength: 3 }),
  })
  const steps = fc.array(fc.record({ changes: fc.array(change, { maxLength: 30 }), query }), {
    minLength: 1,
    maxLength: 5,
  })

  for (const metric of ['cosine', 'euclidean', 'dot-product'] as const)
    test(`by ${metric}, any search after any changes finds what a scan of every row finds`, async () => {
      const { vectors, dispose } = await open()
      let runs = 0
      try {
        await fc.assert(
          fc.asyncProperty(steps, async (script) => {
            const table = createTable(7)
            const name = `${metric}-${++runs}`
            const index = vectors.openIndex({ name, dimensions: 3, metric, metadataIndexes: fields, source: table })
            for (const { changes, query } of script) {
              for (const one of changes) {
                if (typeof one === 'number') table.remove(one)
                else table.put(one)
              }
              const vector = Float32Array.from(query.vector)
              const request = { ...query, vector, namespace: query.namespace, atLeast: table.version }
              const found = await index.search(request)
              const expected = naiveSearch(table, metric, request)
              expect(found).toHaveLength(expected.length)
              for (const [place, { score }] of expected.entries())
                expect(Math.abs((found[place]?.score ?? Number.NaN) - score)).toBeLessThan(1e-4)
              const accepted = new Set(keysOf(naiveSearch(table, metric, { ...request, topK: 1000 })))
              for (const key of keysOf(found)) expect(accepted.has(key)).toBe(true)
              expect(new Set(keysOf(found)).size).toBe(found.length)
            }
            index.close()
          }),
          { numRuns: 60 },
        )
      } finally {
        await dispose()
      }
    })
}
