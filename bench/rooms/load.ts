/**
 * The players of the rooms benchmark, in a process of their own. Sockets stay open from job to job; actions are sent at
 * a constant rate, independent of response times. Each action must have one correct result, or the job fails.
 */
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { serveJobs } from '../setup/jobs.ts'
import { readCpuSeconds } from '../setup/proc.ts'
import { LiveSocket } from '../subscriptions/socket.ts'
import { createTransport, messageKinds, type Seat, type Transport, type TransportName } from './transports.ts'

/** The server and namespace of rooms. */
export interface RoomsTarget {
  readonly transport: TransportName
  readonly port: number
  readonly pid: number
  readonly namespace: string
}

/** Extends a group to `rooms` rooms with `players` players each. */
export interface FillJob extends RoomsTarget {
  readonly do: 'fill'
  readonly group: string
  readonly rooms: number
  readonly players: number
}

/** All players in the first `rooms` rooms of a group act at a rate. */
export interface PlayJob {
  readonly do: 'play'
  readonly group: string
  readonly rooms: number
  /** Actions per player and second. */
  readonly rate: number
  readonly warmupSeconds: number
  readonly seconds: number
}

/** One player joins and leaves each of `count` rooms, starting with `first`. */
export interface VisitJob extends RoomsTarget {
  readonly do: 'visit'
  readonly group: string
  readonly first: number
  readonly count: number
}

export type RoomsJob = FillJob | PlayJob | VisitJob

export interface PlayResult {
  readonly seconds: number
  readonly players: number
  /** Responses received within the window. */
  readonly answers: number
  readonly deltas: number
  readonly bytes: number
  /** Rejected by the rate limit. */
  readonly rejected: number
  /** Sent within the window, without a response. */
  readonly unanswered: number
  /** Of actions sent within the window. Those without a response count with the time waited for it. */
  readonly latencies: SparseHistogram
  readonly cpuSeconds: number | null
  readonly loadCpuSeconds: number
}

/** Time from the connection to the state of the room. */
export interface VisitResult {
  readonly seconds: number
  readonly latencies: SparseHistogram
}

export type RoomsResult = PlayResult | VisitResult | null

/** Concurrent connections: below the limit of unauthenticated sockets per address. */
const openingMax = 4
const answersWaitMs = 4000
const joinTimeoutMs = 10_000
/** Size of the ring of a player's pending actions; far more than are ever pending. */
const pendingMax = 1024
const numbersMax = 32_768

class Player {
  readonly #transport: Transport
  readonly #socket: LiveSocket
  readonly #joined = Promise.withResolvers<void>()
  /** Send times by the number of the action; 0 without a pending action, -1 for an abandoned one. */
  readonly sentAtMs = new Float64Array(pendingMax)
  #next = 0
  onAnswer: ((sentAtMs: number) => void) | null = null
  onDelta: ((bytes: number) => void) | null = null
  onRejected: (() => void) | null = null
  onFailed: (error: Error) => void = () => {}

  constructor(
    transport: Transport,
    private readonly seat: Seat,
  ) {
    this.#transport = transport
    this.#socket = new LiveSocket(0, {
      onMessage: (_, bytes, start, end) => this.#receive(bytes, start, end),
      onEnd: (_, why) => this.#fail(new Error(`A socket was closed: ${why}`)),
    })
  }

  async join(): Promise<void> {
    const timer = setTimeout(() => this.#fail(new Error('A join timed out')), joinTimeoutMs)
    await this.#socket.open(this.seat.port, await this.#transport.findPath(this.seat))
    this.#transport.begin(this.seat, this.#send)
    await this.#joined.promise
    clearTimeout(timer)
  }

  act(): void {
    // From 1 to 32,767.
    this.#next = (this.#next % (numbersMax - 1)) + 1
    this.sentAtMs[this.#next % pendingMax] = performance.now()
    this.#socket.send(this.#transport.act(this.#next))
  }

  close(): void {
    this.#socket.close()
  }

  readonly #send = (message: string | Buffer): void => this.#socket.send(message)

  #receive(bytes: Buffer, start: number, end: number): void {
    try {
      const kind = this.#transport.receive(bytes, start, end, this.#send)
      if (kind === messageKinds.delta) this.onDelta?.(end - start)
      else if (kind >= 0) this.#answered(kind)
      else if (kind === messageKinds.joined) this.#joined.resolve()
      else if (kind === messageKinds.rejected) this.onRejected?.()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #answered(number: number): void {
    const slot = number % pendingMax
    const sentAtMs = this.sentAtMs[slot] ?? 0
    if (sentAtMs === 0) throw new Error(`Action ${number} received two responses, or was never sent`)
    this.sentAtMs[slot] = 0
    if (sentAtMs > 0) this.onAnswer?.(sentAtMs)
  }

  #fail(error: Error): void {
    this.#joined.reject(error)
    this.onFailed(error)
  }
}

interface Group {
  readonly target: RoomsTarget
  /** Players by room. */
  readonly rooms: Player[][]
}

const groups = new Map<string, Group>()

/** Runs `work` for each index with limited concurrency. */
async function inLanes(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: openingMax }, lane))
}

async function fill({ do: _, group: name, rooms, players, ...target }: FillJob): Promise<null> {
  const group = groups.get(name) ?? { target, rooms: [] }
  groups.set(name, group)
  const transport = createTransport(target.transport)
  for (let room = group.rooms.length; room < rooms; room++) {
    const inside: Player[] = []
    group.rooms.push(inside)
    await inLanes(players, async (index) => {
      const id = `${name}-${room}`
      const player = new Player(transport, { ...target, room: id, player: `${id}-${index}` })
      inside.push(player)
      await player.join()
    })
  }
  return null
}

async function visit({ do: _, group, first, count, ...target }: VisitJob): Promise<VisitResult> {
  const transport = createTransport(target.transport)
  const latencies = new Histogram()
  const startedAtMs = performance.now()
  await inLanes(count, async (index) => {
    const beganAtMs = performance.now()
    const room = `${group}-${first + index}`
    const player = new Player(transport, { ...target, room, player: `${room}-0` })
    await player.join()
    latencies.add(performance.now() - beganAtMs)
    player.close()
  })
  return { seconds: (performance.now() - startedAtMs) / 1000, latencies: latencies.toSparse() }
}

/** Counters of the measurement window. */
class Counts {
  answers = 0
  deltas = 0
  bytes = 0
  rejected = 0
  isOpen = false
}

/** Interleaves the players of all rooms, so that every room is active all the time. */
const interleave = (rooms: readonly (readonly Player[])[]): Player[] =>
  (rooms[0] ?? []).flatMap((_, at) => rooms.flatMap((inside) => inside[at] ?? []))

async function play({ group: name, rooms, rate, warmupSeconds, seconds }: PlayJob): Promise<PlayResult> {
  const group = groups.get(name)
  if (!group || group.rooms.length < rooms) throw new Error(`The group ${name} has no ${rooms} rooms`)
  const players = interleave(group.rooms.slice(0, rooms))
  const counts = new Counts()
  const latencies = new Histogram()
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  let fromMs = Number.POSITIVE_INFINITY
  let toMs = Number.POSITIVE_INFINITY
  let pendingCount = 0
  for (const player of players) {
    player.onFailed = failed.reject
    player.onDelta = (bytes) => {
      if (!counts.isOpen) return
      counts.deltas++
      counts.bytes += bytes
    }
    player.onRejected = () => counts.rejected++
    player.onAnswer = (sentAtMs) => {
      pendingCount--
      if (counts.isOpen) counts.answers++
      if (sentAtMs >= fromMs && sentAtMs < toMs) latencies.add(performance.now() - sentAtMs)
    }
  }
  const pace = startPace(players, rate, () => pendingCount++)
  const wait = (ms: number): Promise<unknown> => Promise.race([Bun.sleep(ms), failed.promise])
  try {
    await wait(warmupSeconds * 1000)
    const cpu = { server: readCpuSeconds(group.target.pid), own: process.cpuUsage() }
    counts.isOpen = true
    fromMs = performance.now()
    await wait(seconds * 1000)
    toMs = performance.now()
    counts.isOpen = false
    const server = readCpuSeconds(group.target.pid)
    const own = process.cpuUsage(cpu.own)
    pace.stop()
    for (let waited = 0; pendingCount > counts.rejected && waited < answersWaitMs; waited += 20) await wait(20)
    const unanswered = abandon(players, fromMs, toMs, latencies)
    const { answers, deltas, bytes, rejected } = counts
    return {
      seconds: (toMs - fromMs) / 1000,
      players: players.length,
      answers,
      deltas,
      bytes,
      rejected,
      unanswered,
      latencies: latencies.toSparse(),
      cpuSeconds: cpu.server === null || server === null ? null : server - cpu.server,
      loadCpuSeconds: (own.user + own.system) / 1e6,
    }
  } finally {
    pace.stop()
  }
}

/** Sends actions evenly spread over time; late ones at once. */
function startPace(players: readonly Player[], rate: number, onSent: () => void): { stop(): void } {
  const beginMs = performance.now()
  const gapMs = 1000 / (rate * players.length)
  let sent = 0
  const timer = setInterval(() => {
    for (const due = (performance.now() - beginMs) / gapMs; sent < due; sent++) {
      players[sent % players.length]?.act()
      onSent()
    }
  }, 1)
  return { stop: () => clearInterval(timer) }
}

/** Abandons pending actions; returns how many were sent within the window. */
function abandon(players: readonly Player[], fromMs: number, toMs: number, latencies: Histogram): number {
  let count = 0
  const nowMs = performance.now()
  for (const { sentAtMs } of players)
    for (const [slot, atMs] of sentAtMs.entries()) {
      if (atMs <= 0) continue
      sentAtMs[slot] = -1
      if (atMs < fromMs || atMs >= toMs) continue
      count++
      latencies.add(nowMs - atMs)
    }
  return count
}

/** Runs one job. Rejects with the first error. */
export async function runRoomsJob(job: RoomsJob): Promise<RoomsResult> {
  switch (job.do) {
    case 'fill':
      return fill(job)
    case 'play':
      return play(job)
    case 'visit':
      return visit(job)
  }
}

if (import.meta.main) await serveJobs(runRoomsJob)
