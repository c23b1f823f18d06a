/**
 * The parts of the subscription bench, each measured on a separate server. Returns figures; prints nothing. Compared
 * measurements alternate, so that a temporary slowdown of the machine affects all of them.
 */
import { Histogram } from '../load/histogram.ts'
import { median } from '../setup/measure.ts'
import { readCpuSeconds, readMemoryBytes, serverCore } from '../setup/proc.ts'
import { startJobs, startListener } from '../setup/processes.ts'
import type { MatchingJob, MatchingKind, MatchingResult } from './matching.ts'
import type { LivePlan } from './plan.ts'
import {
  helloTo,
  type LiveLoad,
  type LiveSetup,
  onSetup,
  openAlike,
  openSignedIn,
  publishesTo,
  readGauge,
  readMessage,
  type WriteRequest,
  writesTo,
} from './setup.ts'
import type { LiveResult } from './writes.ts'
import { firstId, type WriteJob } from './writes.ts'

/** Figures over all rounds of one kind. */
export interface LiveFigures {
  readonly changesPerSecond: number
  readonly deliveriesPerSecond: number
  /** Milliseconds from when a write was due to its response. */
  readonly responses: Percentiles
  /** Milliseconds from when a write was due to each delivery. */
  readonly deliveries: Percentiles
  /** Milliseconds from the response to each delivery; 0 if the delivery came first. */
  readonly lag: Percentiles
  /** CPU of the server per change and per delivery. Null if unavailable from the kernel, or without deliveries. */
  readonly changeCpuUs: number | null
  readonly deliveryCpuUs: number | null
  /** CPU shares of the server and the clients, each on one core. */
  readonly serverShare: number | null
  readonly loadShare: number
}

export interface Percentiles {
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface FanOut {
  readonly subscribers: number
  readonly server: LiveFigures
  readonly baseline: LiveFigures
  /** Median over the rounds of deliveries per second, server divided by baseline. */
  readonly ratio: number
  /** CPU per delivery, baseline divided by server. */
  readonly cpuRatio: number | null
  /** CPU of the server per delivery, without the cost of the write. */
  readonly ownCpuUs: number | null
}

export interface Latency {
  readonly subscribers: number
  readonly perSecond: number
  readonly figures: LiveFigures
}

export interface Slow {
  readonly subscribers: number
  readonly perSecond: number
  readonly without: LiveFigures
  readonly beside: LiveFigures
}

export interface Ruled {
  readonly title: string
  readonly subscribers: number
  readonly users: number
  readonly receivers: number
  readonly figures: LiveFigures
}

export interface Idle {
  readonly sockets: number
  readonly openSeconds: number
  /** Growth of the resident memory of the server, per socket. */
  readonly bytesPerSocket: number | null
  /** CPU share with only pings. */
  readonly share: number | null
  /** One change at a time, delivered to all sockets. */
  readonly figures: LiveFigures
}

export interface Matching extends MatchingResult {
  readonly kind: MatchingKind
  readonly subscriptions: number
}

/** Concurrent writes: enough to saturate the server, too few to make a subscriber slow. */
const concurrency = 16
/** Concurrent writes at a fixed rate; more than are ever pending at the measured rates. */
const pacedConcurrency = 64

async function write(load: LiveLoad, request: WriteRequest, own: Omit<WriteJob, keyof WriteRequest>) {
  const result = await load.run({ do: 'write', ...request, ...own })
  if (!result) throw new Error('The clients returned no result of their writes')
  return result
}

/** Writes to `notes` without subscribers, then with each number of subscribers, compared with the baseline. */
export async function measureFanOut(folder: string, plan: LivePlan): Promise<{ alone: LiveFigures; lines: FanOut[] }> {
  return onSetup(folder, async (setup) => {
    const { server, load } = setup
    const message = await readMessage(server)
    const baseline = await startListener(['bench/subscriptions/baseline.ts'])
    try {
      await fetch(`http://127.0.0.1:${baseline.port}/message/${firstId}`, { method: 'PUT', body: message })
      const round = (request: WriteRequest, receivers: number): Promise<LiveResult> =>
        write(load, request, { ...plan.round, concurrency, perSecond: null, receivers, users: 1 })
      const alone = figuresOf(await repeat(plan.rounds, () => round(writesTo(server, 'notes'), 0)))
      const lines: FanOut[] = []
      for (const subscribers of plan.subscribers) {
        await load.run(openAlike('server', server.port, 'notes', subscribers))
        await load.run({ ...openAlike('baseline', baseline.port, 'notes', subscribers), path: '/socket', hellos: [] })
        const rounds: (readonly [LiveResult, LiveResult])[] = []
        for (let index = 0; index < plan.rounds; index++)
          rounds.push([
            await round(writesTo(server, 'notes'), subscribers),
            await round(publishesTo(baseline), subscribers),
          ])
        lines.push(fanOutOf(subscribers, rounds, alone))
        await load.run({ do: 'close', group: 'server' })
        await load.run({ do: 'close', group: 'baseline' })
      }
      return { alone, lines }
    } finally {
      await baseline.stop()
    }
  })
}

function fanOutOf(
  subscribers: number,
  rounds: readonly (readonly [LiveResult, LiveResult])[],
  alone: LiveFigures,
): FanOut {
  const server = figuresOf(rounds.map(([one]) => one))
  const baseline = figuresOf(rounds.map(([, one]) => one))
  const rate = ({ deliveries, seconds }: LiveResult): number => deliveries / seconds
  const own = server.changeCpuUs === null || alone.changeCpuUs === null ? null : server.changeCpuUs - alone.changeCpuUs
  return {
    subscribers,
    server,
    baseline,
    ratio: median(rounds.map(([ours, theirs]) => rate(ours) / rate(theirs))),
    cpuRatio:
      server.deliveryCpuUs === null || baseline.deliveryCpuUs === null
        ? null
        : baseline.deliveryCpuUs / server.deliveryCpuUs,
    ownCpuUs: own === null ? null : own / subscribers,
  }
}

/** Writes at a fixed rate, far below capacity. */
export function measureLatency(folder: string, plan: LivePlan): Promise<Latency[]> {
  return onSetup(folder, async ({ server, load }) => {
    const lines: Latency[] = []
    for (const { subscribers, perSecond } of plan.paced) {
      await load.run(openAlike('readers', server.port, 'notes', subscribers))
      const figures = figuresOf(
        await repeat(plan.rounds, () => pacedRound({ server, load }, plan, subscribers, perSecond)),
      )
      await load.run({ do: 'close', group: 'readers' })
      lines.push({ subscribers, perSecond, figures })
    }
    return lines
  })
}

const pacedRound = (
  { server, load }: LiveSetup,
  { round }: LivePlan,
  receivers: number,
  perSecond: number,
): Promise<LiveResult> =>
  write(load, writesTo(server, 'notes'), { ...round, concurrency: pacedConcurrency, perSecond, receivers, users: 1 })

/** Rounds without and with a socket that has stopped reading and whose buffers are full. */
export function measureSlow(folder: string, plan: LivePlan): Promise<Slow> {
  return onSetup(folder, async (setup) => {
    const { server, load } = setup
    const { subscribers, perSecond } = plan.slow
    await load.run(openAlike('readers', server.port, 'notes', subscribers))
    const without: LiveResult[] = []
    const beside: LiveResult[] = []
    for (let index = 0; index < plan.rounds; index++) {
      without.push(await pacedRound(setup, plan, subscribers, perSecond))
      await stopReading(setup)
      beside.push(await pacedRound(setup, plan, subscribers, perSecond))
      await load.run({ do: 'close', group: 'slow' })
    }
    return { subscribers, perSecond, without: figuresOf(without), beside: figuresOf(beside) }
  })
}

/** Opens a socket that subscribes to both tables and stops reading, and writes until the server has paused it. */
async function stopReading({ server, load }: LiveSetup): Promise<void> {
  await load.run({ ...openAlike('slow', server.port, 'notes', 1), isCounted: false })
  await load.run({ do: 'send', group: 'slow', message: helloTo('drafts') })
  await load.run({ do: 'pause', group: 'slow' })
  const large = writesTo(server, 'drafts', { published: true, body: 'x'.repeat(64 * 1024) })
  const burst = { concurrency: 4, perSecond: null, receivers: 0, users: 1, warmupSeconds: 0, seconds: 0.3 }
  for (let index = 0; index < slowBurstsMax; index++) {
    await write(load, large, burst)
    if ((await readGauge(server, 'subscriptions_held')) > 0) return
  }
  throw new Error('The server has not paused the socket that does not read')
}

const slowBurstsMax = 20

/** Maximum throughput under a rule that gives every user a different filter. */
export function measureRules(folder: string, plan: LivePlan): Promise<Ruled[]> {
  return onSetup(folder, async ({ server, load }) => {
    const { users, subscribers } = plan.rules
    await load.run(await openSignedIn('users', server.port, users, subscribers))
    const round = (request: WriteRequest, receivers: number, among: number): Promise<LiveResult> =>
      write(load, request, { ...plan.round, concurrency, perSecond: null, receivers, users: among })
    const own: LiveResult[] = []
    const all: LiveResult[] = []
    for (let index = 0; index < plan.rounds; index++) {
      own.push(await round(writesTo(server, 'drafts', { published: false }), subscribers / users, users))
      all.push(await round(writesTo(server, 'drafts', { published: true }), subscribers, 1))
    }
    const about = { subscribers, users }
    return [
      { title: 'each visible to its author only', ...about, receivers: subscribers / users, figures: figuresOf(own) },
      { title: 'each visible to all', ...about, receivers: subscribers, figures: figuresOf(all) },
    ]
  })
}

/** Idle sockets subscribed to a table, then changes delivered to all of them. */
export function measureIdle(folder: string, plan: LivePlan): Promise<Idle> {
  return onSetup(folder, async ({ server, load }) => {
    const { sockets, idleSeconds } = plan.idle
    // Excludes one-time allocations from the memory per socket.
    await load.run(openAlike('first', server.port, 'notes', 100))
    await load.run({ do: 'close', group: 'first' })
    const request = writesTo(server, 'notes')
    await write(load, request, { ...plan.round, concurrency, perSecond: 100, receivers: 0, users: 1 })
    const before = readMemoryBytes(server.pid, 'VmRSS')
    const startedAt = performance.now()
    await load.run(openAlike('idle', server.port, 'notes', sockets))
    const openSeconds = (performance.now() - startedAt) / 1000
    await Bun.sleep(1000)
    const cpuBefore = readCpuSeconds(server.pid)
    await Bun.sleep(idleSeconds * 1000)
    const cpuAfter = readCpuSeconds(server.pid)
    const after = readMemoryBytes(server.pid, 'VmRSS')
    const results = await repeat(plan.rounds, () =>
      write(load, request, { ...plan.round, concurrency: 1, perSecond: null, receivers: sockets, users: 1 }),
    )
    return {
      sockets,
      openSeconds,
      bytesPerSocket: before === null || after === null ? null : (after - before) / sockets,
      share: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / idleSeconds,
      figures: figuresOf(results),
    }
  })
}

/** Each number of subscriptions in a separate process, on the core of the server. */
export async function measureMatching(plan: LivePlan): Promise<Matching[]> {
  const lines: Matching[] = []
  for (const { kind, subscriptions } of plan.matching) {
    const process = startJobs<MatchingJob, MatchingResult>('bench/subscriptions/matching.ts', serverCore)
    try {
      const result = await process.run({ kind, subscriptions, seconds: plan.round.seconds })
      lines.push({ kind, subscriptions, ...result })
    } finally {
      await process.stop()
    }
  }
  return lines
}

async function repeat(rounds: number, round: () => Promise<LiveResult>): Promise<LiveResult[]> {
  const results: LiveResult[] = []
  for (let index = 0; index < rounds; index++) results.push(await round())
  return results
}

function figuresOf(rounds: readonly LiveResult[]): LiveFigures {
  const sum = (of: (round: LiveResult) => number): number => rounds.reduce((total, round) => total + of(round), 0)
  const seconds = sum((round) => round.seconds)
  const changes = sum((round) => round.changes)
  const deliveries = sum((round) => round.deliveries)
  const isKnown = rounds.every(({ cpuSeconds }) => cpuSeconds !== null)
  const cpuSeconds = isKnown ? sum((round) => round.cpuSeconds ?? 0) : null
  return {
    changesPerSecond: changes / seconds,
    deliveriesPerSecond: deliveries / seconds,
    responses: percentilesOf(rounds, 'responses'),
    deliveries: percentilesOf(rounds, 'deliveryTimes'),
    lag: percentilesOf(rounds, 'lag'),
    changeCpuUs: cpuSeconds === null ? null : (cpuSeconds / changes) * 1e6,
    deliveryCpuUs: cpuSeconds === null || deliveries === 0 ? null : (cpuSeconds / deliveries) * 1e6,
    serverShare: cpuSeconds === null ? null : cpuSeconds / seconds,
    loadShare: sum((round) => round.loadCpuSeconds) / seconds,
  }
}

function percentilesOf(rounds: readonly LiveResult[], of: 'responses' | 'deliveryTimes' | 'lag'): Percentiles {
  const histogram = new Histogram()
  for (const round of rounds) histogram.merge(round[of])
  return { p50Ms: histogram.percentile(0.5), p99Ms: histogram.percentile(0.99) }
}
