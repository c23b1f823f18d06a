/**
 * Inserts into tables with 0, 1 and 3 functions that run before them, in hosts and, as the floor, in the process of the
 * server; and into those of PocketBase, whose hooks run in a JavaScript machine of its process. They alternate, so that
 * a slow moment of the machine affects all of them.
 */
import { join } from 'node:path'
import { Histogram } from '../load/histogram.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import { median, type Plan } from '../setup/measure.ts'
import { serverCore } from '../setup/proc.ts'
import { type LoadProcess, type Shared, startServer } from '../setup/processes.ts'
import { openHooked } from './pocketbase.ts'

export const configPath = 'bench/functions/plinth.config.ts'
const inProcess = 'bench/functions/in-process.ts'

const tables = { none: 0, one: 1, three: 3 } as const
type TableName = keyof typeof tables
/** Many writers for the throughput, one for the time that a hook adds. */
const writerCounts = [32, 1] as const

/** Cores that a server has with its hosts: both of the machine, one of which is also that of the load, or one. */
export type Cores = 'all' | 'one'

export interface HookFigures {
  readonly engine: string
  readonly cores: Cores
  readonly where: 'hosts' | 'the server' | 'its process'
  readonly writers: number
  readonly hooks: number
  readonly perSecond: number
  readonly p50Ms: number
  /** Of the throughput without hooks; medians over rounds. */
  readonly share: number
  readonly addedMs: number
}

const requestsTo = (path: string, status: number): LoadRequest[] =>
  Array.from({ length: 1000 }, (_, at) => {
    const body = JSON.stringify({ title: `Title of post ${at}`, body: 'word '.repeat(40) })
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: 127.0.0.1',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    return { text: `${head.join('\r\n')}\r\n\r\n${body}`, expect: { status } }
  })

interface Rounds {
  readonly perSecond: number[]
  readonly p50Ms: number[]
}

/** A server with the tables. */
interface Host {
  readonly engine: string
  readonly cores: Cores
  readonly where: HookFigures['where']
  readonly port: number
  readonly tables: readonly TableName[]
  readonly requests: (table: TableName) => LoadRequest[]
}

interface Target extends Host {
  readonly rounds: ReadonlyMap<TableName, Rounds>
}

export interface HookedServers {
  readonly engine: string
  readonly cores: Cores
  /** Opens a database for one server; null for SQLite. */
  readonly open: () => Promise<Shared | null>
  /** The program of PocketBase, where it is measured beside. */
  readonly pocketbase: string | null
}

/** Each server has its own database. */
export async function measureHooks(
  { engine, cores, open, pocketbase }: HookedServers,
  work: string,
  load: LoadProcess,
  plan: Plan,
): Promise<HookFigures[]> {
  await using stack = new AsyncDisposableStack()
  const hosts: Host[] = []
  const core = cores === 'all' ? null : serverCore
  for (const where of ['hosts', 'the server'] as const) {
    const options = where === 'hosts' ? { core } : { core, program: inProcess }
    const server = await startServer(join(work, `${engine} ${cores} ${where}`), await open(), configPath, options)
    stack.defer(() => server.stop())
    const requests = (table: TableName): LoadRequest[] => requestsTo(`/api/db/shared/tables/${table}`, 201)
    hosts.push({ engine, cores, where, port: server.port, tables: ['none', 'one', 'three'], requests })
  }
  if (pocketbase !== null) {
    const peer = await openHooked(pocketbase, join(work, `pocketbase ${cores}`), core)
    stack.defer(() => peer.stop())
    const requests = (table: TableName): LoadRequest[] => requestsTo(`/api/collections/${table}/records`, 200)
    hosts.push({
      engine: 'PocketBase',
      cores,
      where: 'its process',
      port: peer.port,
      tables: ['none', 'one'],
      requests,
    })
  }
  const figures: HookFigures[] = []
  for (const connections of writerCounts) {
    const targets = hosts.map((one): Target => ({ ...one, rounds: emptyRounds(one.tables) }))
    for (let round = 0; round < plan.rounds; round++)
      for (const { port, requests, rounds } of targets)
        for (const [table, { perSecond, p50Ms }] of rounds) {
          const { seconds, warmupSeconds } = plan
          const timing = { seconds, warmupSeconds, total: null, watched: [] }
          const job = { ports: [port], connections, requests: requests(table), ...timing }
          const result = await load.run(job)
          const latencies = new Histogram()
          latencies.merge(result.latencies)
          perSecond.push(result.requests / result.seconds)
          p50Ms.push(latencies.percentile(0.5))
        }
    for (const target of targets) figures.push(...figuresOf(connections, target))
  }
  return figures
}

const emptyRounds = (names: readonly TableName[]): Map<TableName, Rounds> =>
  new Map(names.map((table) => [table, { perSecond: [], p50Ms: [] }]))

function figuresOf(writers: number, { engine, cores, where, rounds }: Target): HookFigures[] {
  const base = rounds.get('none')
  return [...rounds].map(([table, { perSecond, p50Ms }]) => ({
    engine,
    cores,
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
