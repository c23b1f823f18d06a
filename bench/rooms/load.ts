/**
 * The players of the rooms bench, a process of its own: rooms of sockets that stay open from job to job, and actions at
 * a steady pace, whatever the answers take. Each action must have one result, the right one; the first that has not
 * fails the job.
 */
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import { serveJobs } from '../setup/jobs.ts'
import { readCpuSeconds } from '../setup/proc.ts'
import { LiveSocket } from '../subscriptions/socket.ts'
import { createTransport, heard, type Seat, type Transport, type TransportName } from './transports.ts'

/** Where the rooms are. */
export interface RoomsTarget {
  readonly transport: TransportName
  readonly port: number
  readonly pid: number
  readonly namespace: string
}

/** Makes a group of rooms, or more of it: `count` in all, each with so many players. */
export interface FillJob extends RoomsTarget {
  readonly do: 'fill'
  readonly group: string
  readonly rooms: number
  readonly players: number
}

/** Has everybody in the first `rooms` of a group act so often. */
export interface PlayJob {
  readonly do: 'play'
  readonly group: string
  readonly rooms: number
  /** Actions of one player a second. */
  readonly rate: number
  readonly warmupSeconds: number
  readonly seconds: number
}

/** One player enters each of the rooms from `first` on and goes again. */
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
  /** Within the window, whenever they were sent. */
  readonly answers: number
  readonly deltas: number
  readonly bytes: number
  /** Refused for being too many. */
  readonly refused: number
  /** Sent within the window and never answered. */
  readonly unanswered: number
  /** Of what was sent within the window; what was never answered counts with the time it was waited for. */
  readonly latencies: SparseHistogram
  readonly cpuSeconds: number | null
  readonly loadCpuSeconds: number
}

/** How long it took from the connection to the state of the room. */
export interface VisitResult {
  readonly seconds: number
  readonly latencies: SparseHistogram
}

export type RoomsResult = PlayResult | VisitResult | null

/** As many sockets as may be on their way in from one address. */
const openingMax = 4
const answersWaitMs = 4000
const joinTimeoutMs = 10_000
/** Numbers of a player's actions that are remembered; a player has far fewer under way. */
const remembered = 1024
const numbersMax = 32_768

class Player {
  readonly #transport: Transport
  readonly #socket: LiveSocket
  readonly #joined = Promise.withResolvers<void>()
  /** By the action's number; 0 where there is none under way, and -1 for one that was given up. */
  readonly sentAtMs = new Float64Array(remembered)
  #next = 0
  onAnswer: ((sentAtMs: number) => void) | null = null
  onDelta: ((bytes: number) => void) | null = null
  onRefused: (() => void) | null = null
  onFailed: (error: Error) => void = () => {}

  constructor(
    transport: Transport,
    private readonly seat: Seat,
  ) {
    this.#transport = transport
    this.#socket = new LiveSocket(0, {
      heard: (_, bytes, start, end) => this.#heard(bytes, start, end),
      ended: (_, why) => this.#fail(new Error(`A socket was closed: ${why}`)),
    })
  }

  async join(): Promise<void> {
    const timer = setTimeout(() => this.#fail(new Error('A player does not come in')), joinTimeoutMs)
    await this.#socket.open(this.seat.port, await this.#transport.findPath(this.seat))
    this.#transport.begin(this.seat, this.#say)
    await this.#joined.promise
    clearTimeout(timer)
  }

  act(): void {
    // From 1 on, and never so many that they need more digits than others.
    this.#next = (this.#next % (numbersMax - 1)) + 1
    this.sentAtMs[this.#next % remembered] = performance.now()
    this.#socket.send(this.#transport.act(this.#next))
  }

  close(): void {
    this.#socket.close()
  }

  readonly #say = (message: string | Buffer): void => this.#socket.send(message)

  #heard(bytes: Buffer, start: number, end: number): void {
    try {
      const what = this.#transport.hear(bytes, start, end, this.#say)
      if (what === heard.delta) this.onDelta?.(end - start)
      else if (what >= 0) this.#answered(what)
      else if (what === heard.joined) this.#joined.resolve()
      else if (what === heard.refused) this.onRefused?.()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #answered(number: number): void {
    const slot = number % remembered
    const sentAtMs = this.sentAtMs[slot] ?? 0
    if (sentAtMs === 0) throw new Error(`Action ${number} was answered twice, or never sent`)
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
  /** Room by room. */
  readonly rooms: Player[][]
}

const groups = new Map<string, Group>()

/** Does all of it, with as many at once as may be on their way in. */
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

/** What is counted while the window is open. */
class Counts {
  answers = 0
  deltas = 0
  bytes = 0
  refused = 0
  isOpen = false
}

/** Room by room in turn, so that each room hears somebody all the time. */
const mixed = (rooms: readonly (readonly Player[])[]): Player[] =>
  (rooms[0] ?? []).flatMap((_, at) => rooms.flatMap((inside) => inside[at] ?? []))

async function play({ group: name, rooms, rate, warmupSeconds, seconds }: PlayJob): Promise<PlayResult> {
  const group = groups.get(name)
  if (!group || group.rooms.length < rooms) throw new Error(`The group ${name} has no ${rooms} rooms`)
  const players = mixed(group.rooms.slice(0, rooms))
  const counts = new Counts()
  const latencies = new Histogram()
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  let fromMs = Number.POSITIVE_INFINITY
  let toMs = Number.POSITIVE_INFINITY
  let underWay = 0
  for (const player of players) {
    player.onFailed = failed.reject
    player.onDelta = (bytes) => {
      if (!counts.isOpen) return
      counts.deltas++
      counts.bytes += bytes
    }
    player.onRefused = () => counts.refused++
    player.onAnswer = (sentAtMs) => {
      underWay--
      if (counts.isOpen) counts.answers++
      if (sentAtMs >= fromMs && sentAtMs < toMs) latencies.add(performance.now() - sentAtMs)
    }
  }
  const pace = startPace(players, rate, () => underWay++)
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
    for (let waited = 0; underWay > counts.refused && waited < answersWaitMs; waited += 20) await wait(20)
    const unanswered = forget(players, fromMs, toMs, latencies)
    const { answers, deltas, bytes, refused } = counts
    return {
      seconds: (toMs - fromMs) / 1000,
      players: players.length,
      answers,
      deltas,
      bytes,
      refused,
      unanswered,
      latencies: latencies.toSparse(),
      cpuSeconds: cpu.server === null || server === null ? null : server - cpu.server,
      loadCpuSeconds: (own.user + own.system) / 1e6,
    }
  } finally {
    pace.stop()
  }
}

/** Evenly spread over time, late ones at once. */
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

/** Gives up on what is still under way. */
function forget(players: readonly Player[], fromMs: number, toMs: number, latencies: Histogram): number {
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

/** Does one job. Rejects with the first thing that is not as it must be. */
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
