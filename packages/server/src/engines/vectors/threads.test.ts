import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { createLog, silentLog } from '../../base/log.ts'
import { vectorSearchesWaitingMax } from '../../limits/resources.ts'
import { createTable, describeVectors, type VectorTable } from '../contract/vectors-contract.ts'
import { saverDimensions, saverTable, saverValues } from '../contract/vectors-saver.ts'
import { openVectorThreads, type VectorThreadsOptions } from './threads.ts'
import type { VectorIndexOptions, Vectors } from './vectors.ts'

for (const [name, exactValuesMax] of [
  ['threads', undefined],
  ['threads that build a graph at once', 0],
] as const)
  describeVectors(name, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-vectors-'))
    const vectors = openVectorThreads({
      folder,
      log: silentLog,
      ...(exactValuesMax === undefined ? {} : { exactValuesMax }),
    })
    return {
      vectors,
      async dispose() {
        await vectors.close()
        rmSync(folder, { recursive: true })
      },
    }
  })

const plain = { topK: 1, namespace: null, conditions: [] } as const

interface Opened {
  readonly vectors: Vectors
  readonly workers: Worker[]
  /** What was written to the log so far. */
  logged(): string
}

async function withThreads(options: Partial<VectorThreadsOptions>, run: (opened: Opened) => Promise<void>) {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'plinth-vectors-'))
  const isOurs = options.folder === undefined
  const workers: Worker[] = []
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (text) => lines.push(text) })
  const vectors = openVectorThreads({ log, onThread: (worker) => workers.push(worker), ...options, folder })
  try {
    const logged = (): string => {
      log.flush()
      return lines.join('')
    }
    await run({ vectors, workers, logged })
  } finally {
    await vectors.close()
    if (isOurs) rmSync(folder, { recursive: true, force: true })
  }
}

const indexOf = (table: VectorTable, name: string, dimensions = 2): VectorIndexOptions => ({
  name,
  dimensions,
  metric: 'euclidean',
  metadataIndexes: [],
  source: table,
})

function tableOf(count: number, dimensions = 2): VectorTable {
  const table = createTable()
  for (let key = 1; key <= count; key++) table.put({ key, values: new Array<number>(dimensions).fill(key) })
  return table
}

describe('threads', () => {
  test('that end are restarted, and pending searches do not fail', async () => {
    await withThreads({}, async ({ vectors, workers }) => {
      const table = tableOf(50)
      const index = vectors.openIndex(indexOf(table, 'docs'))
      const search = (key: number) =>
        index.search({ ...plain, vector: Float32Array.of(key, key), atLeast: table.version })
      expect(await search(7)).toEqual([{ key: 7, score: 0 }])
      const searches = Array.from({ length: 30 }, (_, turn) => search(turn + 1))
      await workers.at(-1)?.terminate()
      for (const [turn, matches] of (await Promise.all(searches)).entries())
        expect(matches).toEqual([{ key: turn + 1, score: 0 }])
      table.put({ key: 99, values: [99, 99] })
      expect(await search(99)).toEqual([{ key: 99, score: 0 }])
      expect(workers).toHaveLength(2)
    })
  })

  test('that end while a copy is filled leave no partial copy', async () => {
    await withThreads({}, async ({ vectors, workers }) => {
      const table = tableOf(3000)
      const index = vectors.openIndex(indexOf(table, 'docs'))
      const { readChanges } = table
      let pages = 0
      table.readChanges = async (...asked) => {
        if (++pages === 2) await workers.at(-1)?.terminate()
        return readChanges.apply(table, asked)
      }
      const matches = await index.search({ ...plain, topK: 100, vector: new Float32Array(2), atLeast: table.version })
      expect(matches.map(({ key }) => key)).toEqual(Array.from({ length: 100 }, (_, place) => place + 1))
      expect(await index.state()).toMatchObject({ size: 3000 })
    })
  })

  test('that end again on the retry fail the search', async () => {
    await withThreads({ onThread: (worker) => void worker.terminate() }, async ({ vectors }) => {
      const table = tableOf(1)
      const index = vectors.openIndex(indexOf(table, 'docs'))
      const search = index.search({ ...plain, vector: new Float32Array(2), atLeast: table.version })
      expect(search).rejects.toMatchObject({ kind: 'unavailable' })
      await search.catch(() => {})
    })
  })

  test('reject searches beyond the bound and answer the others', async () => {
    await withThreads({}, async ({ vectors }) => {
      const table = tableOf(1)
      const index = vectors.openIndex(indexOf(table, 'docs'))
      const query = { ...plain, vector: new Float32Array(2), atLeast: table.version }
      const searches = Array.from({ length: vectorSearchesWaitingMax }, () => index.search(query))
      expect(index.search(query)).rejects.toMatchObject({ kind: 'busy' })
      expect(await Promise.all(searches)).toHaveLength(vectorSearchesWaitingMax)
      expect(await index.search(query)).toHaveLength(1)
    })
  })

  test('fill a copy ahead of the first search', async () => {
    await withThreads({}, async ({ vectors }) => {
      const table = tableOf(10)
      const index = vectors.openIndex(indexOf(table, 'docs'))
      index.follow()
      expect(await index.state()).toMatchObject({ size: 10, version: table.version })
      expect(table.reads).toBe(1)
    })
  })
})

describe('memory of threads', () => {
  const dimensions = 1024
  const memoryBytesMax = 6_000_000
  const query = { ...plain, vector: new Float32Array(dimensions), atLeast: 1 }

  test('is reclaimed from idle copies', async () => {
    await withThreads({ memoryBytesMax, copyIdleMs: 0 }, async ({ vectors, logged }) => {
      const indexes = ['one', 'two', 'three'].map((name) => {
        const index = vectors.openIndex(indexOf(tableOf(800, dimensions), name, dimensions))
        return { index, name }
      })
      for (let round = 0; round < 2; round++)
        for (const { index } of indexes) expect(await index.search(query)).toMatchObject([{ key: 1 }])
      expect(logged()).toContain('vector.index_evicted')
    })
  })

  test('is not taken from copies in use: the index that does not fit is refused, the others are searched', async () => {
    await withThreads({ memoryBytesMax }, async ({ vectors }) => {
      const first = vectors.openIndex(indexOf(tableOf(800, dimensions), 'first', dimensions))
      const table = tableOf(1200, dimensions)
      const second = vectors.openIndex(indexOf(table, 'second', dimensions))
      expect(await first.search(query)).toHaveLength(1)
      const refusal = { kind: 'unavailable', message: expect.stringContaining('memory') }
      await second.search(query).then(
        () => expect.unreachable(),
        (error: unknown) => expect(error).toMatchObject(refusal),
      )
      const { reads } = table
      // The second refusal costs nothing.
      await second.search(query).catch((error: unknown) => expect(error).toMatchObject(refusal))
      expect(table.reads).toBe(reads)
      expect(await first.search(query)).toHaveLength(1)
    })
  })
})

describe('a process that is killed', () => {
  test('while it saves graphs leaves one that is whole, or none', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-vectors-'))
    let adopted = 0
    // A kill that meets a save in its middle leaves nothing to take up: it goes on until one has not.
    for (let round = 1; round <= 4 || adopted === 0; round++) {
      const saver = join(import.meta.dir, '../contract/vectors-saver.ts')
      const child = Bun.spawn([process.execPath, saver, folder], { stdout: 'pipe', stderr: 'inherit' })
      const reader = child.stdout.getReader()
      // Saves go on and on: the kill meets another part of one each time.
      for (let lines = 0; lines <= round % 7; lines++) await reader.read()
      child.kill('SIGKILL')
      await child.exited
      const before = readdirSync(folder)
      await withThreads({ folder, exactValuesMax: 0 }, async ({ vectors, logged }) => {
        const table = saverTable()
        const index = vectors.openIndex(indexOf(table, 'docs', saverDimensions))
        for (const key of [1, 500, 1000]) {
          const vector = Float32Array.from(saverValues(key))
          expect(await index.search({ ...plain, vector, atLeast: table.version })).toMatchObject([{ key, score: 0 }])
        }
        // The graph is taken up, or made, in the background.
        while ((await index.state()).inGraph === 0);
        expect(logged()).toBe('')
      })
      const after = readdirSync(folder)
      if (after.some((file) => file.endsWith('.graph') && before.includes(file))) adopted += 1
      expect(after.filter((file) => !/\.(graph|nodes)$/.test(file))).toEqual([])
      expect(after.length).toBeLessThanOrEqual(2)
    }
    rmSync(folder, { recursive: true })
    expect(adopted).toBeGreaterThan(0)
  })
})
