/**
 * Inserts into tables with 0, 1 and 3 functions that run before them: `node scripts/run.mjs bench/functions/before.ts`.
 * The tables take turns, so that a slow moment of the machine affects all of them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Histogram } from '../load/histogram.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import { median } from '../setup/measure.ts'
import { serviceKey, startLoad, startServer } from '../setup/processes.ts'

const tables = ['none', 'one', 'three'] as const
const rounds = 5
const plan = { warmupSeconds: 0.3, seconds: 1.5 }
/** Many writers for the throughput, one for the time that a hook adds. */
const loads = [32, 1] as const

const requestsFor = (table: string): LoadRequest[] =>
  Array.from({ length: 1000 }, (_, at) => {
    const body = JSON.stringify({ title: `Title of post ${at}`, body: 'word '.repeat(40) })
    const head = [
      `POST /api/db/shared/tables/${table} HTTP/1.1`,
      'Host: 127.0.0.1',
      `X-Platform-Service-Key: ${serviceKey}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    return { text: `${head.join('\r\n')}\r\n\r\n${body}`, expect: { status: 201 } }
  })

interface Figures {
  readonly perSecond: number[]
  readonly p50Ms: number[]
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  const server = await startServer(folder, null, 'bench/functions/plinth.config.ts')
  const load = startLoad()
  try {
    for (const connections of loads) {
      const figures = new Map<string, Figures>(tables.map((table) => [table, { perSecond: [], p50Ms: [] }]))
      for (let round = 0; round < rounds; round++)
        for (const [table, { perSecond, p50Ms }] of figures) {
          const requests = requestsFor(table)
          const job = { ports: [server.port], connections, requests, ...plan, total: null, watched: [] }
          const result = await load.run(job)
          perSecond.push(result.requests / result.seconds)
          const latencies = new Histogram()
          latencies.merge(result.latencies)
          p50Ms.push(latencies.percentile(0.5))
        }
      print(connections, figures)
    }
  } finally {
    await load.stop()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function print(connections: number, figures: ReadonlyMap<string, Figures>): void {
  const base = figures.get('none')
  console.log(`${connections} writers`)
  for (const [table, { perSecond, p50Ms }] of figures) {
    // By round, since the machine is not equally fast in all of them.
    const ratio = median(perSecond.map((one, round) => one / (base?.perSecond[round] ?? one)))
    const added = median(p50Ms.map((one, round) => one - (base?.p50Ms[round] ?? one)))
    const share = `${Math.round(ratio * 100)} %`
    const rate = Math.round(median(perSecond))
    console.log(`  ${table.padEnd(6)} ${rate}/s  ${share}  p50 ${median(p50Ms).toFixed(3)} ms  +${added.toFixed(3)} ms`)
  }
}

await main()
