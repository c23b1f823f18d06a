/**
 * The load generator: a process that reads jobs as JSON lines from stdin and writes one JSON line per result. It sends
 * prebuilt requests over keep-alive sockets, one in flight per socket (no pipelining), to cost less than the measured
 * process. It checks every status, and the body of sampled responses; the first wrong response fails the job.
 */

import { serveJobs } from '../setup/jobs.ts'
import { readGroupCpuSeconds } from '../setup/proc.ts'
import { Histogram, type SparseHistogram } from './histogram.ts'
import { Connection, type HeadLayout } from './load-connection.ts'
import { createRequestCycle, type Expectation, type LoadRequest } from './load-requests.ts'

export interface LoadJob {
  /** Ports of equivalent servers; connections are spread evenly over them. */
  readonly ports: readonly number[]
  readonly connections: number
  readonly requests: readonly LoadRequest[]
  /** Excluded from the result. */
  readonly warmupSeconds: number
  /** Length of the measured window; ignored when `total` is given. */
  readonly seconds: number
  /** Number of requests of a fixed job, without warm-up, timed until the last response; null for a timed job. */
  readonly total: number | null
  /** Groups of processes whose CPU is read at both ends of the window. */
  readonly watched: readonly (readonly number[])[]
  /** A JSON field: each request is repeated with the value of its last response. */
  readonly renewed?: string
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly latencies: SparseHistogram
  /** Of each watched group; null where the kernel does not report it. */
  readonly cpuSeconds: readonly (number | null)[]
  readonly loadCpuSeconds: number
  /** All responses of the job, warm-up and tail included. */
  readonly answered: number
  /** Responses with status 201. */
  readonly created: number
  /** The texts of all requests for the next job; null without a renewed field. */
  readonly renewedTexts: readonly string[] | null
}

/** One body in this many is parsed and checked: often enough to detect errors at a negligible cost. */
const sampleEvery = 211

interface InFlight {
  /** Index in the cycle of requests. */
  readonly index: number
  readonly sentAt: number
}

/** Runs one job; rejects on the first wrong response, refused connection or early close. */
export async function runLoad(job: LoadJob): Promise<LoadResult> {
  const done = Promise.withResolvers<void>()
  // Prevents an unhandled rejection before it is awaited.
  done.promise.catch(() => {})
  const latencies = new Histogram()
  const isRenewing = job.renewed !== undefined
  const cycle = createRequestCycle(job.requests, job.renewed)
  const inFlight = new Map<Connection, InFlight>()
  let sent = 0
  let answered = 0
  let created = 0
  let sending = true

  function send(connection: Connection): void {
    if (!sending || sent === job.total) {
      if (inFlight.size === 0) done.resolve()
      return
    }
    const index = cycle.next()
    inFlight.set(connection, { index, sentAt: performance.now() })
    const isSampled = sent++ % sampleEvery === 0 && cycle.expectationOf(index).bodyBytes === undefined
    connection.send(cycle.bytesOf(index), isSampled || isRenewing)
  }

  function failed(message: string): void {
    sending = false
    done.reject(new Error(message))
  }

  function receive(connection: Connection, status: number, body: Buffer | null, bodyBytes: number): void {
    const now = performance.now()
    const { index, sentAt } = inFlight.get(connection) as InFlight
    inFlight.delete(connection)
    answered++
    if (status === 201) created++
    latencies.add(now - sentAt)
    const expected = cycle.expectationOf(index)
    let problem = status === expected.status ? findProblem(body, expected) : `Status ${status}`
    if (problem === null && bodyBytes !== (expected.bodyBytes ?? bodyBytes)) problem = `Body of ${bodyBytes} bytes`
    if (problem === null && body !== null && !cycle.renew(index, body)) problem = `No ${job.renewed}`
    if (problem === null) send(connection)
    else
      failed(`${problem} in response to ${cycle.textOf(index).slice(0, 300)}: ${body?.toString().slice(0, 2000) ?? ''}`)
  }

  const layout: HeadLayout = { lengthAt: 0, afterLength: 0 }
  const connections = Array.from(
    { length: job.connections },
    () => new Connection(layout, { answered: receive, failed }),
  )
  try {
    await Promise.all(connections.map((connection, at) => connection.open(job.ports[at % job.ports.length] as number)))
    for (const connection of connections) send(connection)
    if (job.total === null) await Promise.race([Bun.sleep(job.warmupSeconds * 1000), done.promise])
    latencies.reset()
    const startedAt = performance.now()
    const cpu = process.cpuUsage()
    const watchedBefore = job.watched.map(readGroupCpuSeconds)
    await Promise.race([...(job.total === null ? [Bun.sleep(job.seconds * 1000)] : []), done.promise])
    const seconds = (performance.now() - startedAt) / 1000
    const used = process.cpuUsage(cpu)
    const watchedAfter = job.watched.map(readGroupCpuSeconds)
    const requests = latencies.total
    const counted = latencies.toSparse()
    sending = false
    await done.promise
    return {
      requests,
      seconds,
      latencies: counted,
      cpuSeconds: watchedBefore.map((before, at) => {
        const after = watchedAfter[at] ?? null
        return before === null || after === null ? null : after - before
      }),
      loadCpuSeconds: (used.user + used.system) / 1e6,
      answered,
      created,
      renewedTexts: isRenewing ? cycle.texts() : null,
    }
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** Describes an error in a sampled body; null for a correct one, or one that was not sampled. */
function findProblem(body: Buffer | null, { items, total, includes }: Expectation): string | null {
  if (body === null) return null
  const text = body.toString()
  if (includes !== undefined && !text.includes(includes)) return `Missing ${includes}`
  let parsed: { items?: unknown[]; total?: unknown }
  try {
    parsed = JSON.parse(text)
  } catch {
    return 'No JSON'
  }
  if (items !== undefined && parsed.items?.length !== items) return `Not ${items} items`
  if (total !== undefined && parsed.total !== total) return `Not a total of ${total}`
  return null
}

if (import.meta.main) await serveJobs(runLoad)
