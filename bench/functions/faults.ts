/** Reads of single records while functions fail: their latency, and the memory of the server. */
import { join } from 'node:path'
import { Histogram } from '../load/histogram.ts'
import { readMemoryBytes, resetPeakMemory } from '../setup/proc.ts'
import { type LoadProcess, serviceKey, startServer } from '../setup/processes.ts'
import { configPath } from './before.ts'

/** Functions of `functions/index.ts`; null reads without a function. */
const faults = [null, 'loop', 'hog', 'exit', 'reject', 'flood'] as const
const readers = 8

export interface FaultFigures {
  readonly fault: string | null
  readonly p50Ms: number
  readonly p99Ms: number
  readonly readsPerSecond: number
  /** The greatest resident memory of the server meanwhile; null if unknown. */
  readonly peakBytes: number | null
  /** Of the calls of the function, in the order of their end. */
  readonly statuses: readonly number[]
}

/** One call of the function at a time, one after the other, for the seconds of the reads. */
export async function measureFaults(work: string, load: LoadProcess, seconds: number): Promise<FaultFigures[]> {
  await using stack = new AsyncDisposableStack()
  const server = await startServer(join(work, 'faults'), null, configPath)
  stack.defer(() => server.stop())
  const headers = { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' }
  const inserted = await fetch(`${server.url}/api/db/shared/tables/none`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ id: 'p1', title: 'One' }),
  })
  if (inserted.status !== 201) throw new Error(`The record was not inserted: ${inserted.status}`)
  const text = 'GET /api/db/shared/tables/none/p1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
  const job = {
    ports: [server.port],
    connections: readers,
    requests: [{ text, expect: { status: 200 } }],
    warmupSeconds: 0.3,
    seconds,
    total: null,
    watched: [],
  }
  const figures: FaultFigures[] = []
  for (const fault of faults) {
    resetPeakMemory(server.pid)
    const statuses: number[] = []
    let isOver = false
    const call = async (): Promise<void> => {
      while (fault !== null && !isOver) {
        const response = await fetch(`${server.url}/api/fn/${fault}`, { method: 'POST', headers })
        await response.text()
        statuses.push(response.status)
      }
    }
    const calls = call()
    const { latencies: sparse, requests, seconds: taken } = await load.run(job)
    isOver = true
    await calls
    const latencies = new Histogram()
    latencies.merge(sparse)
    figures.push({
      fault,
      p50Ms: latencies.percentile(0.5),
      p99Ms: latencies.percentile(0.99),
      readsPerSecond: requests / taken,
      peakBytes: readMemoryBytes(server.pid, 'VmHWM'),
      statuses,
    })
  }
  return figures
}
