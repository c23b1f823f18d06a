/**
 * A stream of writes, and the deliveries of their changes: either with a fixed concurrency, where a write starts when
 * another has been acknowledged and delivered to all receivers, or at a fixed rate. Ids of rows contain numbers, which
 * relate changes to writes. Counts the deliveries; `load.ts` owns the sockets.
 */
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { Connection, type HeadLayout } from '../load/load-connection.ts'
import { readCpuSeconds } from '../setup/proc.ts'

/** The result of a write job. */
export interface LiveResult {
  readonly seconds: number
  /** Acknowledged writes and deliveries within the measured time. */
  readonly changes: number
  readonly deliveries: number
  /** Milliseconds from when a write was due to its response. */
  readonly responses: SparseHistogram
  /** Milliseconds from when a write was due to each delivery. */
  readonly deliveryTimes: SparseHistogram
  /** Milliseconds from the response to each delivery; 0 if the delivery came first. */
  readonly lag: SparseHistogram
  /** CPU of the measured process; null if unavailable from the kernel. */
  readonly cpuSeconds: number | null
  readonly loadCpuSeconds: number
}

export interface WriteJob {
  readonly port: number
  /** The complete request, with `firstId` as the id of the row and optionally `firstUser` as the user. */
  readonly request: string
  readonly status: number
  /** Maximum writes that are not yet delivered to all receivers. */
  readonly concurrency: number
  /** Null for as fast as the concurrency allows. */
  readonly perSecond: number | null
  readonly warmupSeconds: number
  readonly seconds: number
  /** The number of sockets that receive each change. */
  readonly receivers: number
  /** Change n is delivered only to sockets of user n modulo users; 1 if all sockets receive all changes. */
  readonly users: number
  /** The process whose CPU is measured. */
  readonly pid: number
}

/** The placeholder for the id of the row in a request, in the format of all ids. */
export const firstId = 'live-000000000'
/** The placeholder for the number of the user, which ends the name of the user. */
export const firstUser = '-user-0000'

const idPrefix = 'live-'
const idDigits = 9
const userDigits = 4
/** Timeout of the last deliveries after the last write. */
const drainTimeoutMs = 20_000

/** Numbers increase across jobs, since the rows remain in the server. `firstId` itself is used before all jobs. */
let nextNumber = 1

const marker = Buffer.from(`"docId":"${idPrefix}`)
/** The offset of the number in the last message; messages of one kind differ only in digits. */
let markerAt = 0

/** The number in the id of a change; null for other messages. */
export function changeNumberAt(bytes: Buffer, start: number, end: number): number | null {
  // Only `{"type":"db_change"` has `db` as its tenth and eleventh byte.
  if (bytes[start + 9] !== 0x64 || bytes[start + 10] !== 0x62) return null
  if (!isMarkerAt(bytes, start + markerAt)) {
    const found = bytes.subarray(start, end).indexOf(marker)
    if (found < 0) return null
    markerAt = found
  }
  let number = 0
  const first = start + markerAt + marker.length
  for (let at = first; at < first + idDigits; at++) number = number * 10 + (bytes[at] as number) - 0x30
  return number
}

/** Compares a few bytes only, which are unique to the marker in these messages. */
const isMarkerAt = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0x22 && bytes[at + 1] === 0x64 && bytes[at + 8] === 0x22 && bytes[at + 9] === 0x6c

/** Overwrites digits with a number. */
function patch(bytes: Buffer, at: number, digits: number, number: number): void {
  let left = number
  for (let index = at + digits - 1; index >= at; index--) {
    bytes[index] = 0x30 + (left % 10)
    left = Math.floor(left / 10)
  }
}

interface Write {
  readonly dueAt: number
  answeredAt: number
  left: number
}

export class LiveWrites {
  readonly #responses = new Histogram()
  readonly #deliveryTimes = new Histogram()
  readonly #lag = new Histogram()
  readonly #first = nextNumber
  readonly #writes: Write[] = []
  readonly #idle: Connection[] = []
  readonly #numbers = new Map<Connection, number>()
  readonly #done = Promise.withResolvers<void>()
  readonly #bytes: Buffer
  readonly #idAt: number
  readonly #userAt: number
  /** Responses since the start of the measured time. */
  #changes = 0
  #open = 0
  #isOver = false

  constructor(private readonly job: WriteJob) {
    this.#bytes = Buffer.from(job.request, 'latin1')
    this.#idAt = job.request.indexOf(firstId) + idPrefix.length
    this.#userAt = job.request.indexOf(firstUser)
    // Awaited later; an earlier rejection must not be reported as unhandled.
    this.#done.promise.catch(() => {})
  }

  fail(why: string): void {
    this.#isOver = true
    this.#done.reject(new Error(why))
  }

  /** Records that a socket has received a change. */
  delivered(socket: number, number: number): void {
    const { users } = this.job
    const write = this.#writes[number - this.#first]
    if (!write) this.fail(`A socket received write ${number}, which was never sent`)
    else if (number % users !== socket % users) this.fail(`A socket received write ${number} of another user`)
    else if (--write.left < 0) this.fail(`Write ${number} was delivered more than once`)
    else {
      const now = performance.now()
      this.#deliveryTimes.add(now - write.dueAt)
      this.#lag.add(write.answeredAt === 0 ? 0 : now - write.answeredAt)
      if (write.left === 0 && write.answeredAt !== 0) this.#onDelivered()
    }
  }

  async run(): Promise<LiveResult> {
    const { job } = this
    const layout: HeadLayout = { lengthAt: 0, afterLength: 0 }
    const events = {
      answered: (connection: Connection, status: number, body: Buffer | null) =>
        this.#answered(connection, status, body),
      failed: (message: string) => this.fail(message),
    }
    const connections = Array.from({ length: job.concurrency }, () => new Connection(layout, events))
    try {
      await Promise.all(connections.map((connection) => connection.open(job.port)))
      this.#idle.push(...connections)
      const sending = job.perSecond === null ? this.#sendAll() : this.#sendPaced(job.perSecond)
      await this.#pass(job.warmupSeconds)
      for (const histogram of [this.#responses, this.#deliveryTimes, this.#lag]) histogram.reset()
      this.#changes = 0
      const startedAt = performance.now()
      const cpu = process.cpuUsage()
      const cpuBefore = readCpuSeconds(job.pid)
      await this.#pass(job.seconds)
      const cpuAfter = readCpuSeconds(job.pid)
      const used = process.cpuUsage(cpu)
      const result: LiveResult = {
        seconds: (performance.now() - startedAt) / 1000,
        changes: this.#changes,
        deliveries: this.#deliveryTimes.total,
        responses: this.#responses.toSparse(),
        deliveryTimes: this.#deliveryTimes.toSparse(),
        lag: this.#lag.toSparse(),
        cpuSeconds: cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore,
        loadCpuSeconds: (used.user + used.system) / 1e6,
      }
      this.#isOver = true
      await sending
      if (this.#open === 0) this.#done.resolve()
      await this.#allDelivered()
      return result
    } finally {
      for (const connection of connections) connection.close()
    }
  }

  async #allDelivered(): Promise<void> {
    const timer = setTimeout(
      () => this.fail(`${this.#open} writes were not delivered to all receivers`),
      drainTimeoutMs,
    )
    await this.#done.promise.finally(() => clearTimeout(timer))
  }

  async #pass(seconds: number): Promise<void> {
    await Promise.race([Bun.sleep(seconds * 1000), this.#done.promise])
  }

  async #sendAll(): Promise<void> {
    while (this.#sendOne(performance.now()));
  }

  /** Latency counts from the due time, even if no connection is free or this process is busy. */
  async #sendPaced(perSecond: number): Promise<void> {
    const startedAt = performance.now()
    for (let sent = 0; !this.#isOver; ) {
      const dueAt = startedAt + (sent * 1000) / perSecond
      if (dueAt <= performance.now() && this.#sendOne(dueAt)) sent++
      else await Bun.sleep(1)
    }
  }

  /** Returns false if all connections are busy or the job is over. */
  #sendOne(dueAt: number): boolean {
    if (this.#isOver || this.#open >= this.job.concurrency) return false
    const connection = this.#idle.pop()
    if (!connection) return false
    const number = nextNumber++
    this.#writes.push({ dueAt, answeredAt: 0, left: this.job.receivers })
    this.#numbers.set(connection, number)
    this.#open++
    const bytes = Buffer.from(this.#bytes)
    patch(bytes, this.#idAt, idDigits, number)
    if (this.#userAt >= 0)
      patch(bytes, this.#userAt + firstUser.length - userDigits, userDigits, number % this.job.users)
    connection.send(bytes, false)
    return true
  }

  #answered(connection: Connection, status: number, body: Buffer | null): void {
    if (status !== this.job.status) this.fail(`Status ${status}: ${body?.toString() ?? ''}`)
    const write = this.#writes[(this.#numbers.get(connection) ?? 0) - this.#first] as Write
    this.#idle.push(connection)
    write.answeredAt = performance.now()
    this.#responses.add(write.answeredAt - write.dueAt)
    this.#changes++
    if (write.left === 0) this.#onDelivered()
  }

  /** Called when a write is acknowledged and delivered to all receivers. */
  #onDelivered(): void {
    this.#open--
    if (this.#isOver) {
      if (this.#open === 0) this.#done.resolve()
    } else if (this.job.perSecond === null) this.#sendOne(performance.now())
  }
}
