/**
 * A process that changes an index and saves its graph for as long as it lives, and says so with a line whenever the
 * files are others than before. `vectors-threads.test.ts` kills it.
 */
import { readdirSync } from 'node:fs'
import { silentLog } from '../../base/log.ts'
import { openVectorThreads } from '../vectors/threads.ts'
import { createTable, type VectorTable } from './vectors-contract.ts'

export const saverDimensions = 16
const size = 1000

/** The values of a key in one of many rounds; 0 is the first. */
export const saverValues = (key: number, round = 0): number[] =>
  Array.from({ length: saverDimensions }, (_, index) => Math.sin(key * (index + 1) + round))

export function saverTable(): VectorTable {
  const table = createTable()
  for (let key = 1; key <= size; key++) table.put({ key, values: saverValues(key) })
  return table
}

async function saveForEver(folder: string): Promise<never> {
  const vectors = openVectorThreads({ folder, log: silentLog, exactValuesMax: 0, saveEveryMs: 0 })
  const source = saverTable()
  const index = vectors.openIndex({
    name: 'docs',
    dimensions: saverDimensions,
    metric: 'euclidean',
    metadataIndexes: [],
    source,
  })
  const vector = new Float32Array(saverDimensions)
  let before = ''
  for (let round = 1; ; ) {
    await index.search({ vector, topK: 1, namespace: null, conditions: [], atLeast: source.version })
    const files = readdirSync(folder).sort().join()
    if (files === before) continue
    before = files
    process.stdout.write(`${files}\n`)
    round += 1
    // Enough of them: some are kept out of the graph to measure it with, and few changes are not saved.
    for (let key = 1 + (round % 5); key <= size; key += 5) source.put({ key, values: saverValues(key, round) })
  }
}

if (import.meta.main) await saveForEver(process.argv[2] ?? '')
