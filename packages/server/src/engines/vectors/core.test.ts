import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vectorGraphSamples } from '../../limits/resources.ts'
import { type CoreRow, VectorCore } from './core.ts'
import { loadGraphLibrary } from './graph.ts'
import type { VectorCondition, VectorMetric } from './vectors.ts'

const dimensions = 32
const size = 6000
const createNearest = await loadGraphLibrary()
/** On a machine without a build of the library there are no graphs to test. */
const withGraphs = test.skipIf(createNearest === null)

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-graph-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** The same numbers in every run. */
function createRandom(seed: number) {
  let state = seed
  const uniform = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const normal = (): number => Math.sqrt(-2 * Math.log(uniform() + 1e-9)) * Math.cos(2 * Math.PI * uniform())
  const pick = <T>(list: readonly T[]): T => list[Math.floor(uniform() * list.length)] as T
  return { normal, pick }
}

const shapes = {
  random: (random: ReturnType<typeof createRandom>) => () => Float32Array.from({ length: dimensions }, random.normal),
  clustered: (random: ReturnType<typeof createRandom>) => {
    const centers = Array.from({ length: 50 }, () => Float32Array.from({ length: dimensions }, random.normal))
    return () => random.pick(centers).map((value) => value + 0.4 * random.normal())
  },
}

function openCore(metric: VectorMetric, options: { create?: typeof createNearest; name?: string } = {}) {
  const warnings: string[] = []
  let nowMs = 0
  const core = new VectorCore({
    name: options.name ?? 'docs',
    dimensions,
    metric,
    metadataIndexes: ['tenth', 'half'],
    folder,
    createNearest: options.create === undefined ? createNearest : options.create,
    exactValuesMax: 1000,
    saveEveryMs: 0,
    warn: (message) => warnings.push(message),
    // Every search takes one millisecond, so a graph is always the quicker way to what is not rare.
    nowMs: () => nowMs++,
  })
  return Object.assign(core, { warnings })
}

const rowOf = (key: number, values: Float32Array): CoreRow => ({
  key,
  values,
  namespace: '',
  metadata: [key % 10, key % 2],
})

const rowsOf = (make: () => Float32Array, count = size): CoreRow[] =>
  Array.from({ length: count }, (_, index) => rowOf(index + 1, make()))

async function settle(core: VectorCore): Promise<void> {
  while (await core.work());
}

const plain = { topK: 10, namespace: null, conditions: [] } as const
const oneIn = (field: string): VectorCondition[] => [{ field, operator: '=', value: 0 }]

/** How much of what `exact` finds `core` finds too. */
function recallOf(
  core: VectorCore,
  exact: VectorCore,
  queries: readonly Float32Array[],
  conditions: VectorCondition[] = [],
) {
  let [found, wanted] = [0, 0]
  for (const vector of queries) {
    const truth = new Set(exact.search({ ...plain, vector, conditions }).map(({ key }) => key))
    const matches = core.search({ ...plain, vector, conditions })
    expect(matches).toHaveLength(truth.size)
    for (const { key } of matches) if (truth.has(key)) found += 1
    wanted += truth.size
  }
  return found / wanted
}

describe('graphs', () => {
  for (const [shape, create] of Object.entries(shapes))
    for (const metric of ['cosine', 'euclidean', 'dot-product'] as const)
      withGraphs(`find 95 of 100 on ${shape} vectors by ${metric}, whatever the filter`, async () => {
        const make = create(createRandom(42))
        const rows = rowsOf(make)
        const core = openCore(metric)
        const exact = openCore(metric, { create: null })
        core.apply(rows, true)
        exact.apply(rows, true)
        await settle(core)
        // The others are those it is measured with.
        expect(core.state().inGraph).toBe(size - vectorGraphSamples)
        const queries = Array.from({ length: 100 }, make)
        expect(recallOf(core, exact, queries)).toBeGreaterThanOrEqual(0.95)
        expect(core.state().byGraph).toBe(100)
        expect(recallOf(core, exact, queries, oneIn('half'))).toBeGreaterThanOrEqual(0.95)
        expect(core.state().byGraph).toBeGreaterThan(100)
        expect(recallOf(core, exact, queries, oneIn('tenth'))).toBeGreaterThanOrEqual(0.95)
      })

  withGraphs('follow changes: what is gone is not found, what is new or moved is', async () => {
    const make = shapes.clustered(createRandom(7))
    const core = openCore('euclidean')
    const exact = openCore('euclidean', { create: null })
    const both = (rows: CoreRow[]): void => {
      core.apply(rows, true)
      exact.apply(rows, true)
    }
    both(rowsOf(make, 3000))
    await settle(core)
    const queries = Array.from({ length: 30 }, make)
    for (let round = 0; round < 6; round++) {
      const changes: CoreRow[] = []
      for (let key = round + 1; key <= 3300; key += 6)
        changes.push(key % 3 === 0 ? { key, values: null, namespace: '', metadata: [] } : rowOf(key, make()))
      both(changes)
      // First without the changes in the graph, then with them.
      expect(recallOf(core, exact, queries)).toBeGreaterThanOrEqual(0.95)
      await settle(core)
      expect(recallOf(core, exact, queries)).toBeGreaterThanOrEqual(0.95)
    }
    expect(core.state().size).toBe(exact.state().size)
    expect(core.state().inGraph).toBeLessThanOrEqual(core.state().size)
    expect(core.state().byGraph).toBeGreaterThan(0)
  })

  withGraphs('are dropped by an index that has shrunk', async () => {
    const rows = rowsOf(shapes.random(createRandom(3)), 500)
    const core = openCore('cosine')
    core.apply(rows, true)
    await settle(core)
    expect(core.state().inGraph).toBeGreaterThan(400)
    core.apply(
      rows.slice(10).map((row) => ({ ...row, values: null })),
      true,
    )
    await settle(core)
    expect(core.state()).toMatchObject({ size: 10, inGraph: 0 })
    expect(core.search({ ...plain, vector: rows[3]?.values ?? new Float32Array() })[0]?.key).toBe(4)
  })

  withGraphs('stay, and count as memory, in an index that is slightly below the threshold', async () => {
    const rows = rowsOf(shapes.random(createRandom(3)), 40)
    const core = openCore('cosine')
    const exact = openCore('cosine', { create: null })
    for (const each of [core, exact]) {
      each.apply(rows, true)
      await settle(each)
      // 24 vectors have 768 values: below the threshold of 1,000, above its half.
      each.apply(
        rows.slice(24).map((row) => ({ ...row, values: null })),
        true,
      )
      await settle(each)
    }
    expect(core.state()).toMatchObject({ size: 24, inGraph: 23 })
    expect(core.state().bytes).toBeGreaterThan(exact.state().bytes)
  })

  test('are done without where the library is not to be had', async () => {
    const rows = rowsOf(shapes.random(createRandom(3)), 500)
    const core = openCore('cosine', { create: null })
    core.apply(rows, true)
    await settle(core)
    expect(core.state().inGraph).toBe(0)
    expect(core.search({ ...plain, vector: rows[3]?.values ?? new Float32Array() })[0]?.key).toBe(4)
  })

  test('that fail are disabled, and searches continue', async () => {
    const rows = rowsOf(shapes.random(createRandom(3)), 500)
    const core = openCore('cosine', {
      create() {
        throw new Error('no memory')
      },
    })
    core.apply(rows, true)
    await settle(core)
    expect(core.warnings).toEqual(['the graph was disabled: Error: no memory'])
    expect(core.search({ ...plain, vector: rows[3]?.values ?? new Float32Array() })[0]?.key).toBe(4)
  })
})

describe('saved graphs', () => {
  const rows = rowsOf(shapes.clustered(createRandom(11)), 1000)
  const queries = rows.slice(0, 20).map(({ values }) => values ?? new Float32Array())

  async function saveOne(metric: VectorMetric = 'cosine'): Promise<void> {
    const core = openCore(metric)
    core.apply(rows, true)
    await settle(core)
    expect(files()).toHaveLength(2)
  }
  const files = (): string[] => readdirSync(folder).sort()

  /** Reopens the index; returns how many vectors it loaded from a file instead of adding them itself. */
  async function reopen(metric: VectorMetric = 'cosine', present: CoreRow[] = rows): Promise<number> {
    let added = 0
    const core = openCore(metric, {
      create: (...kind) => {
        const nearest = createNearest?.(...kind)
        if (!nearest) throw new Error('no library')
        const { add } = nearest
        nearest.add = (...vectors) => {
          added += 1
          add.apply(nearest, vectors)
        }
        return nearest
      },
    })
    const exact = openCore(metric, { create: null })
    core.apply(present, true)
    exact.apply(present, true)
    await settle(core)
    expect(recallOf(core, exact, queries)).toBeGreaterThanOrEqual(0.95)
    expect(core.warnings).toEqual([])
    return core.state().inGraph - added
  }

  withGraphs('spare the next start the building', async () => {
    await saveOne()
    expect(await reopen()).toBe(950)
  })

  withGraphs('that were not finished are gone on with', async () => {
    const core = openCore('cosine')
    core.apply(rows, true)
    await core.work()
    const { inGraph } = core.state()
    expect(inGraph).toBeGreaterThan(0)
    expect(inGraph).toBeLessThan(900)
    await core.save()
    expect(await reopen()).toBe(inGraph)
  })

  withGraphs('count for the vectors that are what they were, and for no others', async () => {
    await saveOne()
    const moved = rows.map((row) => (row.key <= 300 ? { ...row, values: rows[999 - row.key]?.values ?? null } : row))
    const found = await reopen('cosine', moved.slice(100))
    expect(found).toBeGreaterThan(600)
    expect(found).toBeLessThanOrEqual(700)
  })

  withGraphs('of another index are not taken', async () => {
    await saveOne('euclidean')
    expect(await reopen('cosine')).toBe(0)
    expect(files()).toHaveLength(2)
  })

  withGraphs('that are damaged anywhere are rebuilt', async () => {
    await saveOne()
    const intact = new Map(files().map((file) => [file, readFileSync(join(folder, file))]))
    for (const [file, bytes] of intact)
      for (const part of [0, 0.01, 0.3, 0.7, 1]) {
        const at = Math.min(bytes.length - 1, Math.floor(bytes.length * part))
        const flipped = Buffer.from(bytes)
        flipped[at] = (flipped[at] ?? 0) ^ 0x40
        for (const damaged of [flipped, bytes.subarray(0, at)]) {
          for (const name of files()) rmSync(join(folder, name))
          for (const [name, content] of intact) writeFileSync(join(folder, name), content)
          writeFileSync(join(folder, file), damaged)
          expect(await reopen()).toBe(0)
        }
      }
  })

  withGraphs('leave nothing of a save that was cut short', async () => {
    await saveOne()
    writeFileSync(join(folder, 'docs.0.graph'), 'half')
    writeFileSync(join(folder, 'docs.0.tmp'), 'half')
    writeFileSync(join(folder, 'docs-2.0.graph'), 'of another index')
    expect(await reopen()).toBe(950)
    expect(files()).toHaveLength(3)
    expect(files()).toContain('docs-2.0.graph')
  })

  withGraphs('that cannot be written are done without', async () => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'a file where the folder should be')
    const core = openCore('cosine')
    core.apply(rows, true)
    await settle(core)
    expect(core.warnings).toHaveLength(1)
    expect(core.warnings[0]).toStartWith('the graph could not be saved')
    expect(core.state().inGraph).toBe(950)
  })
})
