/**
 * The load generator: a process of its own that takes jobs as JSON lines on stdin and answers each with one JSON line.
 * Prebuilt requests over kept-alive sockets, one in flight per socket (no pipelining), so that it costs less than what
 * it measures. It checks every status, and of sampled answers the body; the first wrong answer fails the job.
 */

import { serveJobs } from '../setup/jobs.ts'
import { readGroupCpuSeconds } from '../setup/proc.ts'
import { Histogram, type SparseHistogram } from './histogram.ts'
import { Connection, type HeadLayout } from './load-connection.ts'
import { createRequestCycle, type Expectation, type LoadRequest } from './load-requests.ts'

export interface LoadJob {
  /** Of the servers, all alike; connections are spread over them evenly. */
  readonly ports: readonly number[]
  readonly connections: number
  readonly requests: readonly LoadRequest[]
  /** Not counted. */
  readonly warmupSeconds: number
  /** Length of the measured window; ignored when `total` is given. */
  readonly seconds: number
  /** A fixed job: exactly so many requests, no warm-up, the clock stops at the last answer. */
  readonly total: number | null
  /** Groups of processes whose CPU is read at both ends of the window. */
  readonly watched: readonly (readonly number[])[]
  /** A field of JSON bodies: each request is sent again with what its last answer said there. */
  readonly renewed?: string
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly latencies: SparseHistogram
  /** Of each watched group; null where the kernel does not tell. */
  readonly cpuSeconds: readonly (number | null)[]
  readonly loadCpuSeconds: number
  /** All answers of the job, warm-up and tail included: what the server has really done. */
  readonly answered: number
  /** Of these, how many with status 201. */
  readonly created: number
  /** The texts of all requests as the next job must send them; null where nothing is renewed. */
  readonly renewedTexts: readonly string[] | null
}

/** One body in so many is parsed and checked: often enough to notice, too seldom to cost. */
const sampleEvery = 211

interface InFlight {
  /** In the cycle of requests. */
  readonly place: number
  readonly sentAt: number
}

/** Runs one job; rejects with the first wrong answer, refused connection or early close. */
export async function runLoad(job: LoadJob): Promise<LoadResult> {
  const done = Promise.withResolvers<void>()
  // Awaited only later; a failure before that is not an unhandled one.
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
    const place = cycle.next()
    inFlight.set(connection, { place, sentAt: performance.now() })
    const isSampled = sent++ % sampleEvery === 0 && cycle.expectationOf(place).bodyBytes === undefined
    connection.send(cycle.bytesOf(place), isSampled || isRenewing)
  }

  function failed(message: string): void {
    sending = false
    done.reject(new Error(message))
  }

  function receive(connection: Connection, status: number, body: Buffer | null, bodyBytes: number): void {
    const now = performance.now()
    const { place, sentAt } = inFlight.get(connection) as InFlight
    inFlight.delete(connection)
    answered++
    if (status === 201) created++
    latencies.add(now - sentAt)
    const expected = cycle.expectationOf(place)
    let problem = status === expected.status ? findProblem(body, expected) : `Status ${status}`
    if (problem === null && bodyBytes !== (expected.bodyBytes ?? bodyBytes)) problem = `A body of ${bodyBytes} bytes`
    if (problem === null && body !== null && !cycle.renew(place, body)) problem = `No ${job.renewed}`
    if (problem === null) send(connection)
    else
      failed(`${problem} in answer to ${cycle.textOf(place).slice(0, 300)}: ${body?.toString().slice(0, 2000) ?? ''}`)
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

/** What is wrong with a sampled body; null for one that is right, or not sampled. */
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
