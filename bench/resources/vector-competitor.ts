/** A process that measures one store and prints the result as a line of JSON. Started by `vector.ts`. */
import { readMemoryBytes } from '../setup/proc.ts'
import { createVectorData, type Shape, type VectorData } from './vector-data.ts'
import { openStore, type StoreName, type StoreOptions, type Tenths, type VectorStore } from './vector-stores.ts'

export interface CompetitorJob extends StoreOptions {
  readonly store: StoreName
  readonly shape: Shape
  readonly count: number
  readonly rounds: number
  readonly seconds: number
  readonly warmupSeconds: number
}

export interface CompetitorResult {
  readonly loadSeconds: number
  readonly buildSeconds: number
  /** Growth of the process; null where searches run in another one. */
  readonly memoryBytes: number | null
  readonly diskBytes: number | null
  readonly searches: readonly SearchResult[]
}

export interface SearchResult {
  readonly tenths: Tenths
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Result keys of each query. */
  readonly found: readonly (readonly number[])[]
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await work()
  return (performance.now() - startMs) / 1000
}

async function measure(
  store: VectorStore,
  data: VectorData,
  tenths: Tenths,
  job: CompetitorJob,
): Promise<SearchResult> {
  const found: number[][] = []
  for (const query of data.queries) found.push(await store.search(query, tenths))
  const times: number[] = []
  const runFor = async (seconds: number, isCounted: boolean): Promise<void> => {
    const endMs = performance.now() + seconds * 1000
    for (let index = 0; performance.now() < endMs; index++) {
      const startMs = performance.now()
      await store.search(data.queries[index % data.queries.length] as Float32Array, tenths)
      if (isCounted) times.push(performance.now() - startMs)
    }
  }
  await runFor(job.warmupSeconds, false)
  for (let round = 0; round < job.rounds; round++) await runFor(job.seconds, true)
  const sorted = times.sort((one, other) => one - other)
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0
  const totalMs = sorted.reduce((sum, time) => sum + time, 0)
  return { tenths, perSecond: (sorted.length / totalMs) * 1000, p50Ms: at(0.5), p99Ms: at(0.99), found }
}

async function run(job: CompetitorJob): Promise<CompetitorResult> {
  const data = createVectorData(job.shape, job.count)
  const store = await openStore(job.store, job)
  Bun.gc(true)
  const before = readMemoryBytes(process.pid, 'VmRSS')
  const loadSeconds = await secondsOf(() => store.load(data.values))
  const buildSeconds = await secondsOf(() => store.build())
  Bun.gc(true)
  const after = readMemoryBytes(process.pid, 'VmRSS')
  const searches: SearchResult[] = []
  for (const tenths of [10, 5, 1] as const) searches.push(await measure(store, data, tenths, job))
  const diskBytes = await store.diskBytes()
  await store.close()
  const isElsewhere = job.store === 'pgvector' || before === null || after === null
  return { loadSeconds, buildSeconds, memoryBytes: isElsewhere ? null : after - before, diskBytes, searches }
}

if (import.meta.main) {
  const result = await run(JSON.parse(process.argv[2] ?? '') as CompetitorJob)
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
