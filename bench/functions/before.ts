/**
 * Inserts into tables with 0, 1 and 3 functions that run before them, in hosts and, as the floor, in the process of the
 * server. They alternate, so that a slow moment of the machine affects all of them.
 */
import { join } from 'node:path'
import { Histogram } from '../load/histogram.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import { median, type Plan } from '../setup/measure.ts'
import { type LoadProcess, type ServerProcess, type Shared, serviceKey, startServer } from '../setup/processes.ts'

export const configPath = 'bench/functions/plinth.config.ts'
const inProcess = 'bench/functions/in-process.ts'

const tables = { none: 0, one: 1, three: 3 } as const
type TableName = keyof typeof tables
/** Many writers for the throughput, one for the time that a hook adds. */
const writerCounts = [32, 1] as const

export interface HookFigures {
  readonly engine: string
  readonly where: 'hosts' | 'the server'
  readonly writers: number
  readonly hooks: number
  readonly perSecond: number
  readonly p50Ms: number
  /** Of the throughput without hooks; medians over rounds. */
  readonly share: number
  readonly addedMs: number
}

const requestsFor = (table: TableName): LoadRequest[] =>
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

interface Rounds {
  readonly perSecond: number[]
  readonly p50Ms: number[]
}

interface Target {
  readonly where: HookFigures['where']
  readonly server: ServerProcess
  readonly rounds: ReadonlyMap<TableName, Rounds>
}

/** Each server has its own database. */
export async function measureHooks(
  { engine, open }: { readonly engine: string; readonly open: () => Promise<Shared | null> },
  work: string,
  load: LoadProcess,
  plan: Plan,
): Promise<HookFigures[]> {
  await using stack = new AsyncDisposableStack()
  const servers: { where: HookFigures['where']; server: ServerProcess }[] = []
  for (const where of ['hosts', 'the server'] as const) {
    const program = where === 'hosts' ? {} : { program: inProcess }
    const server = await startServer(join(work, `${engine} ${where}`), await open(), configPath, program)
    stack.defer(() => server.stop())
    servers.push({ where, server })
  }
  const figures: HookFigures[] = []
  for (const connections of writerCounts) {
    const targets = servers.map((one): Target => ({ ...one, rounds: emptyRounds() }))
    for (let round = 0; round < plan.rounds; round++)
      for (const { server, rounds } of targets)
        for (const [table, { perSecond, p50Ms }] of rounds) {
          const requests = requestsFor(table)
          const { seconds, warmupSeconds } = plan
          const job = { ports: [server.port], connections, requests, seconds, warmupSeconds, total: null, watched: [] }
          const result = await load.run(job)
          const latencies = new Histogram()
          latencies.merge(result.latencies)
          perSecond.push(result.requests / result.seconds)
          p50Ms.push(latencies.percentile(0.5))
        }
    for (const target of targets) figures.push(...figuresOf(engine, connections, target))
  }
  return figures
}

const emptyRounds = (): Map<TableName, Rounds> =>
  new Map((Object.keys(tables) as TableName[]).map((table) => [table, { perSecond: [], p50Ms: [] }]))

function figuresOf(engine: string, writers: number, { where, rounds }: Target): HookFigures[] {
  const base = rounds.get('none')
  return [...rounds].map(([table, { perSecond, p50Ms }]) => ({
    engine,
    where,
    writers,
    hooks: tables[table],
    perSecond: median(perSecond),
    p50Ms: median(p50Ms),
    // By round, since the machine is not equally fast in all of them.
    share: median(perSecond.map((one, round) => one / (base?.perSecond[round] ?? one))),
    addedMs: median(p50Ms.map((one, round) => one - (base?.p50Ms[round] ?? one))),
  }))
}
