/**
 * The load generator of the overload run: sends requests at a rate, whatever the server does (an open loop), so that
 * waiting requests do not slow down the offer. Latencies count from the moment at which a request was due.
 */
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { Connection, type HeadLayout } from '../load/load-connection.ts'
import { serveJobs } from '../setup/jobs.ts'

/** Requests of one caller and one kind. */
export interface Stream {
  readonly name: string
  /** Complete requests, sent in a cycle. */
  readonly requests: readonly string[]
  readonly perSecond: number
}

export interface OverloadJob {
  readonly port: number
  readonly streams: readonly Stream[]
  /** Connections at most; a request that is due while all are in use counts as unsent. */
  readonly connections: number
  /** Excluded from the result. */
  readonly warmupSeconds: number
  readonly seconds: number
}

export interface StreamResult {
  readonly name: string
  /** Requests that were due within the window. */
  readonly due: number
  readonly unsent: number
  /** Responses within the window, by status. */
  readonly statuses: Readonly<Record<number, number>>
  /** Of responses with status 200 or 201. */
  readonly latencies: SparseHistogram
}

class Tally {
  readonly #stream: Stream
  readonly latencies = new Histogram()
  readonly statuses: Record<number, number> = {}
  readonly #bytes: readonly Buffer[]
  #due = 0
  #unsent = 0
  #nextAtMs: number
  #next = 0

  constructor(stream: Stream, startMs: number) {
    this.#stream = stream
    this.#bytes = stream.requests.map((text) => Buffer.from(text, 'latin1'))
    // Streams begin at different moments.
    this.#nextAtMs = startMs + (1000 / stream.perSecond) * Math.random()
  }

  /** Sends what is due. */
  send(nowMs: number, isCounted: boolean, open: (bytes: Buffer, tally: Tally, dueMs: number) => boolean): void {
    for (; this.#nextAtMs <= nowMs; this.#nextAtMs += 1000 / this.#stream.perSecond) {
      if (isCounted) this.#due += 1
      const bytes = this.#bytes[this.#next++ % this.#bytes.length] as Buffer
      if (!open(bytes, this, this.#nextAtMs) && isCounted) this.#unsent += 1
    }
  }

  count(status: number, ms: number): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
    if (status < 300) this.latencies.add(ms)
  }

  result(): StreamResult {
    const { statuses } = this
    const latencies = this.latencies.toSparse()
    return { name: this.#stream.name, due: this.#due, unsent: this.#unsent, statuses, latencies }
  }
}

/** How often what is due is sent, in milliseconds. */
const tickMs = 1

/** Runs one job; rejects when the server closes a connection. */
export async function runOverload(job: OverloadJob): Promise<StreamResult[]> {
  const failing = Promise.withResolvers<never>()
  failing.promise.catch(() => {})
  const layout: HeadLayout = { lengthAt: 0, afterLength: 0 }
  const inFlight = new Map<Connection, { readonly tally: Tally; readonly dueMs: number }>()
  const idle: Connection[] = []
  let isCounted = false
  const connections = Array.from(
    { length: job.connections },
    () =>
      new Connection(layout, {
        answered(connection, status) {
          const request = inFlight.get(connection)
          inFlight.delete(connection)
          idle.push(connection)
          if (isCounted) request?.tally.count(status, performance.now() - request.dueMs)
        },
        failed: (message) => failing.reject(new Error(message)),
      }),
  )
  try {
    for (const connection of connections) await connection.open(job.port)
    idle.push(...connections)
    const startMs = performance.now()
    const countMs = startMs + job.warmupSeconds * 1000
    const endMs = countMs + job.seconds * 1000
    const tallies = job.streams.map((stream) => new Tally(stream, startMs))
    const send = (bytes: Buffer, tally: Tally, dueMs: number): boolean => {
      const connection = idle.pop()
      if (!connection) return false
      inFlight.set(connection, { tally, dueMs })
      connection.send(bytes, false)
      return true
    }
    for (let nowMs = startMs; nowMs < endMs; nowMs = performance.now()) {
      isCounted = nowMs >= countMs
      for (const tally of tallies) tally.send(nowMs, isCounted, send)
      await Promise.race([Bun.sleep(tickMs), failing.promise])
    }
    isCounted = false
    return tallies.map((tally) => tally.result())
  } finally {
    for (const connection of connections) connection.close()
  }
}

if (import.meta.main) await serveJobs(runOverload)
