/**
 * A stream of writes, and what is told of them: either as many at once as are wanted, each new one when one is answered
 * and has been told to everybody, or at a fixed rate. Rows are numbered in their ids, so that a change says which write
 * it is of. Owns the count of who has been told what; `live-load` has the sockets.
 */
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { Connection, type HeadLayout } from '../load/load-connection.ts'
import { readCpuSeconds } from '../setup/proc.ts'

/** What a job of writes found. */
export interface LiveResult {
  readonly seconds: number
  /** Answers to writes, and changes told, within the window. */
  readonly changes: number
  readonly deliveries: number
  /** From when a write was due to its answer. */
  readonly answers: SparseHistogram
  /** From when a write was due to each time it was told. */
  readonly told: SparseHistogram
  /** From the answer to each time it was told; nothing where it was told before. */
  readonly behind: SparseHistogram
  /** Of the watched process; null where the kernel does not tell. */
  readonly cpuSeconds: number | null
  readonly loadCpuSeconds: number
}

export interface WriteJob {
  readonly port: number
  /** A whole request with `firstId` where the row's id stands, and perhaps `firstUser` where the user's does. */
  readonly request: string
  readonly status: number
  /** Writes at once that are not yet told to everybody. */
  readonly atOnce: number
  /** Null: as fast as the above allows. */
  readonly perSecond: number | null
  readonly warmupSeconds: number
  readonly seconds: number
  /** How many sockets a change is told. */
  readonly receivers: number
  /** Change n is told to sockets of user n modulo users alone; 1 where all sockets are alike. */
  readonly users: number
  /** The process whose CPU is read. */
  readonly pid: number
}

/** What stands for a row's id in a request, and what the ids of rows look like. */
export const firstId = 'live-000000000'
/** What stands for the number of a user, the last digits of its name. */
export const firstUser = '-user-0000'

const idPrefix = 'live-'
const idDigits = 9
const userDigits = 4
/** How long the last changes may take after the last write. */
const lateMs = 20_000

/** Ids go on from job to job: the server still has the rows of the last one. It has `firstId` from before them all. */
let nextNumber = 1

const marker = Buffer.from(`"docId":"${idPrefix}`)
/** Where the number was in the last message: messages of one kind differ in digits only. */
let markerAt = 0

/** The number in a change's id; null for a message that is no change. */
export function changeNumberAt(bytes: Buffer, start: number, end: number): number | null {
  // `{"type":"db_change"` tells itself from all others by its tenth and eleventh byte.
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

/** A look at some bytes will do: nothing else in these messages is like it. */
const isMarkerAt = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0x22 && bytes[at + 1] === 0x64 && bytes[at + 8] === 0x22 && bytes[at + 9] === 0x6c

/** Writes a number over the digits that stand there. */
function patch(bytes: Buffer, at: number, digits: number, number: number): void {
  let left = number
  for (let place = at + digits - 1; place >= at; place--) {
    bytes[place] = 0x30 + (left % 10)
    left = Math.floor(left / 10)
  }
}

interface Write {
  readonly dueAt: number
  answeredAt: number
  left: number
}

export class LiveWrites {
  readonly #answers = new Histogram()
  readonly #told = new Histogram()
  readonly #behind = new Histogram()
  readonly #first = nextNumber
  readonly #writes: Write[] = []
  readonly #idle: Connection[] = []
  readonly #numbers = new Map<Connection, number>()
  readonly #done = Promise.withResolvers<void>()
  readonly #bytes: Buffer
  readonly #idAt: number
  readonly #userAt: number
  /** Answers of the window, as it goes. */
  #changes = 0
  #open = 0
  #isOver = false

  constructor(private readonly job: WriteJob) {
    this.#bytes = Buffer.from(job.request, 'latin1')
    this.#idAt = job.request.indexOf(firstId) + idPrefix.length
    this.#userAt = job.request.indexOf(firstUser)
    // Awaited only later; a failure before that is not an unhandled one.
    this.#done.promise.catch(() => {})
  }

  fail(why: string): void {
    this.#isOver = true
    this.#done.reject(new Error(why))
  }

  /** A socket was told of a change. */
  told(socket: number, number: number): void {
    const { users } = this.job
    const write = this.#writes[number - this.#first]
    if (!write) this.fail(`A socket was told of write ${number}, which nobody made`)
    else if (number % users !== socket % users) this.fail(`A socket was told of write ${number} of somebody else`)
    else if (--write.left < 0) this.fail(`Write ${number} was told once too often`)
    else {
      const now = performance.now()
      this.#told.add(now - write.dueAt)
      this.#behind.add(write.answeredAt === 0 ? 0 : now - write.answeredAt)
      if (write.left === 0 && write.answeredAt !== 0) this.#ended()
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
    const connections = Array.from({ length: job.atOnce }, () => new Connection(layout, events))
    try {
      await Promise.all(connections.map((connection) => connection.open(job.port)))
      this.#idle.push(...connections)
      const sending = job.perSecond === null ? this.#sendAll() : this.#sendPaced(job.perSecond)
      await this.#pass(job.warmupSeconds)
      for (const histogram of [this.#answers, this.#told, this.#behind]) histogram.reset()
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
        deliveries: this.#told.total,
        answers: this.#answers.toSparse(),
        told: this.#told.toSparse(),
        behind: this.#behind.toSparse(),
        cpuSeconds: cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore,
        loadCpuSeconds: (used.user + used.system) / 1e6,
      }
      this.#isOver = true
      await sending
      if (this.#open === 0) this.#done.resolve()
      await this.#allTold()
      return result
    } finally {
      for (const connection of connections) connection.close()
    }
  }

  async #allTold(): Promise<void> {
    const timer = setTimeout(() => this.fail(`${this.#open} writes were not told to everybody`), lateMs)
    await this.#done.promise.finally(() => clearTimeout(timer))
  }

  async #pass(seconds: number): Promise<void> {
    await Promise.race([Bun.sleep(seconds * 1000), this.#done.promise])
  }

  async #sendAll(): Promise<void> {
    while (this.#sendOne(performance.now()));
  }

  /** A write that is late, because none of the connections is free or this process was busy, was due all the same. */
  async #sendPaced(perSecond: number): Promise<void> {
    const startedAt = performance.now()
    for (let sent = 0; !this.#isOver; ) {
      const dueAt = startedAt + (sent * 1000) / perSecond
      if (dueAt <= performance.now() && this.#sendOne(dueAt)) sent++
      else await Bun.sleep(1)
    }
  }

  /** False where all connections are busy or nothing more is to be sent. */
  #sendOne(dueAt: number): boolean {
    if (this.#isOver || this.#open >= this.job.atOnce) return false
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
    this.#answers.add(write.answeredAt - write.dueAt)
    this.#changes++
    if (write.left === 0) this.#ended()
  }

  /** A write is answered and told to everybody. */
  #ended(): void {
    this.#open--
    if (this.#isOver) {
      if (this.#open === 0) this.#done.resolve()
    } else if (this.job.perSecond === null) this.#sendOne(performance.now())
  }
}
