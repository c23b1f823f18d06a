/**
 * The overload run (`--overload`): ten times what the server can do of mixed requests, from several callers, one of
 * which sends half of the expensive ones. Reports what point reads wait, what is shed, and what each caller gets.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { Histogram } from '../load/histogram.ts'
import type { LoadResult } from '../load/load.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import { integer, markdownTable, measuredWith } from '../report.ts'
import { authorAt, hash, idAt, rowAt, topicAt, topicCount } from '../setup/data.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { loadCore } from '../setup/proc.ts'
import { startJobs, startLoad, startServer, tokenSecret } from '../setup/processes.ts'
import { type OnProgress, seedFolder } from '../setup/seed.ts'
import type { OverloadJob, Stream, StreamResult } from './load.ts'

const rows = 20_000
const callerCount = 8
/** The first caller sends this share of the expensive requests. */
const greedyShare = 1 / 2
const overloadFactor = 10
const connections = 2_000
const variety = 200
const point = 'point read'

interface Kind {
  readonly name: string
  /** Of all requests. */
  readonly share: number
  readonly request: (index: number, headers: string) => string
}

const base = '/api/db/shared/tables'
const get = (path: string, headers: string): string =>
  `GET ${base}/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`
const json = (value: unknown): string => encodeURIComponent(JSON.stringify(value))
const insertsOf = (index: number) =>
  Array.from({ length: 50 }, (_, at) => {
    const { id, createdAt, ...row } = rowAt(index + at, rows)
    return row
  })

const kinds: readonly Kind[] = [
  {
    name: point,
    share: 0.6,
    request: (index, headers) => get(`posts/${idAt(hash(index) % rows)}`, headers),
  },
  {
    name: 'unindexed list',
    share: 0.1,
    request: (index, headers) => get(`notes?sort=views:desc&limit=50&filter=${json([['views', '>', index]])}`, headers),
  },
  {
    name: 'search',
    share: 0.1,
    request: (index, headers) => get(`posts/search?limit=50&q=${topicAt(hash(index) % topicCount(rows))}`, headers),
  },
  {
    name: 'aggregate',
    share: 0.1,
    request: (index, headers) =>
      get(
        `posts/aggregate?group=${json(['authorId'])}&measures=${json({ n: 'count' })}&filter=${json([['views', '>', index]])}`,
        headers,
      ),
  },
  {
    name: 'batch of 50',
    share: 0.1,
    request(index, headers) {
      const body = JSON.stringify({ inserts: insertsOf(index) })
      return `POST ${base}/notes/batch HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    },
  },
]

const shareOf = (caller: number): number => (caller === 0 ? greedyShare : (1 - greedyShare) / (callerCount - 1))

function streamsOf(headers: readonly string[], perSecond: number): Stream[] {
  return kinds.flatMap(({ name, share, request }) =>
    headers.map((header, caller) => ({
      name: `${name}|${caller}`,
      requests: Array.from({ length: variety }, (_, at) => request(caller * variety + at, header)),
      // Point reads are spread evenly.
      perSecond: perSecond * share * (name === point ? 1 / callerCount : shareOf(caller)),
    })),
  )
}

/** The kind at a point of the line from 0 to 1 on which each kind has its share. */
function kindAt(position: number): Kind {
  let end = 0
  for (const kind of kinds) {
    end += kind.share
    if (position < end) return kind
  }
  return kinds[0] as Kind
}

/** Requests of all kinds in the shares above, to find what the server can do of them. */
function mixOf(headers: readonly string[]): LoadRequest[] {
  return Array.from({ length: 1000 }, (_, at) => {
    const kind = kindAt((hash(at) % 1000) / 1000)
    return { text: kind.request(at, headers[at % headers.length] as string), expect: { status: 200 } }
  })
}

interface Row {
  readonly due: number
  readonly good: number
  readonly shed: number
  readonly other: number
  readonly p50: number
  readonly p99: number
}

function rowOf(results: readonly StreamResult[]): Row {
  const latencies = new Histogram()
  let [due, good, shed, other] = [0, 0, 0, 0]
  for (const result of results) {
    due += result.due
    other += result.unsent
    latencies.merge(result.latencies)
    for (const [status, count] of Object.entries(result.statuses)) {
      if (status === '200' || status === '201') good += count
      else if (status === '503' || status === '429') shed += count
      else other += count
    }
  }
  return { due, good, shed, other, p50: latencies.percentile(0.5), p99: latencies.percentile(0.99) }
}

const rate = (count: number, seconds: number): string => integer(count / seconds)

function tableOf(results: readonly StreamResult[], seconds: number): string {
  const lines = kinds.map(({ name }) => {
    const row = rowOf(results.filter((one) => one.name.startsWith(`${name}|`)))
    const counts = [row.due, row.good, row.shed, row.other].map((count) => rate(count, seconds))
    return [name, ...counts, row.p50.toFixed(1), row.p99.toFixed(1)]
  })
  return markdownTable(['what', 'offered/s', 'answered/s', 'shed/s', 'unsent/s', 'p50 ms', 'p99 ms'], lines)
}

/** What the first caller, who sends half of the expensive requests, and each of the others get. */
function sharesOf(results: readonly StreamResult[], seconds: number): string {
  const [first, ...others] = Array.from({ length: callerCount }, (_, caller) =>
    rowOf(results.filter(({ name }) => name.endsWith(`|${caller}`) && !name.startsWith(point))),
  ) as [Row, ...Row[]]
  const answered = others.map(({ good }) => good)
  const range = `${rate(Math.min(...answered), seconds)} to ${rate(Math.max(...answered), seconds)}`
  return `Expensive requests answered each second: ${rate(first.good, seconds)} of the ${rate(first.due, seconds)} of the first caller, ${range} of the ${rate(others[0]?.due ?? 0, seconds)} of each other caller.`
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runOverload(plan: Plan, onProgress: OnProgress): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const folder = join(work, 'server')
  await seedFolder(folder, rows, onProgress)
  const tokens = createTokens(createFirstSigningKey(tokenSecret), systemClock)
  const headers = Array.from(
    { length: callerCount },
    (_, caller) => `Authorization: Bearer ${tokens.signAccess({ id: authorAt(caller) })}\r\n`,
  )
  const server = await startServer(folder)
  stack.defer(() => server.stop())
  const closed = startLoad()
  stack.defer(() => closed.stop())
  const open = startJobs<OverloadJob, StreamResult[]>('bench/overload/load.ts', loadCore)
  stack.defer(() => open.stop())
  const { warmupSeconds, seconds } = plan
  const timing = { warmupSeconds, seconds }
  const mix = { ports: [server.port], connections: callerCount, requests: mixOf(headers), total: null, watched: [] }
  const { requests, seconds: measured }: LoadResult = await closed.run({ ...mix, ...timing })
  const capacity = requests / measured
  const streams = streamsOf(headers, capacity * overloadFactor)
  const results = await open.run({ port: server.port, streams, connections, ...timing })
  const load = loadavg().map((one) => one.toFixed(1))
  const text = `Capacity of the mix: ${integer(capacity)} requests/s in a closed loop of ${callerCount} connections. Offered: ${overloadFactor} times that, by ${callerCount} callers, the first of which sends half of the expensive requests. Load of the machine: ${load.join(', ')}.`
  const figures = [text, tableOf(results, seconds), sharesOf(results, seconds)].join('\n\n')
  console.log(`\n${figures}`)
  const environment = readEnvironment(work)
  return [measuredWith(environment, `SQLite ${environment.sqlite}`, { ...plan, rounds: 1 }), figures].join('\n\n')
}
