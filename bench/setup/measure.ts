/**
 * Measures a scenario: the server and each of its baselines in alternating rounds, so that a slow moment of the machine
 * affects all of them.
 */
import type { LoopResult } from '../baseline-loops.ts'
import { Histogram, type SparseHistogram } from '../load/histogram.ts'
import type { LoadResult } from '../load/load.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import type { Baseline, Scenario, Size } from '../scenarios.ts'
import { readMemoryBytes, resetPeakMemory, sumOrNull } from './proc.ts'
import type { BaselineProcess, LoadProcess, ServerProcess } from './processes.ts'

export interface Figures {
  /** Units (requests, or rows of a batch) per second. */
  readonly perSecond: number
  /** Milliseconds; null for loops, which have no requests. */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  /** CPU of the server, all threads, per unit. Null where the kernel does not report it. */
  readonly cpuUs: number | null
  /** Share of one core the server used; near 1 the server is the limit, not the load generator. */
  readonly serverShare: number | null
  readonly loadShare: number | null
}

export interface BaselineFigures<F = Baseline> extends Figures {
  readonly baseline: F
  /** Median over the rounds of the server's throughput by the baseline's. */
  readonly ratio: number
  /** The baseline's CPU per unit by the server's. */
  readonly cpuRatio: number | null
}

/** The server's figures beside those of its baselines. */
export interface Comparison<F = Baseline> extends Figures {
  readonly peakBytes: number | null
  readonly baselines: readonly BaselineFigures<F>[]
}

export interface Measurement extends Comparison {
  readonly scenario: Scenario
  readonly rows: number
  /** Rows that the server has acknowledged; verified afterwards. */
  readonly rowsWritten: number
}

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  readonly warmupSeconds: number
}

/** One measured window. */
export interface Round {
  readonly units: number
  readonly seconds: number
  readonly cpuSeconds: number | null
  readonly loadCpuSeconds: number | null
  readonly latencies: Histogram | null
}

export async function measure(
  scenario: Scenario,
  size: Size,
  processes: { readonly server: ServerProcess; readonly baseline: BaselineProcess; readonly load: LoadProcess },
  plan: Plan,
): Promise<Measurement> {
  const { server, baseline, load } = processes
  const requests = scenario.requests(size)
  await setBareBody(server, baseline, requests[0])

  let rowsWritten = 0
  const underLoad = async (target: { pid: number; port: number }, sent: readonly LoadRequest[]): Promise<LoadResult> =>
    load.run({
      ports: [target.port],
      connections: scenario.connections,
      requests: sent,
      warmupSeconds: plan.warmupSeconds,
      seconds: plan.seconds,
      total: scenario.total,
      watched: [[target.pid]],
    })
  const runServer = async (): Promise<Round> => {
    const result = await underLoad(server, requests)
    rowsWritten += scenario.unitsPerRequest > 1 ? result.answered * scenario.unitsPerRequest : result.created
    return roundOf(result, scenario.unitsPerRequest)
  }
  const runBaseline = async ({ run }: Baseline): Promise<Round> =>
    run.kind === 'http'
      ? roundOf(await underLoad(baseline, run.requests(size)), scenario.unitsPerRequest)
      : runLoop(baseline, run.loop, plan.seconds)

  const baselines = scenario.baselines.map((each) => ({ baseline: each, run: () => runBaseline(each) }))
  const comparison = await compare({ pid: server.pid, run: runServer }, baselines, plan.rounds)
  return { scenario, rows: size.rows, ...comparison, rowsWritten }
}

/**
 * Runs the server and each baseline alternately for the given number of rounds, every second one in reverse order, so
 * that no position in a round has an advantage.
 */
export async function compare<F>(
  server: { readonly pid: number; readonly run: () => Promise<Round> },
  baselines: readonly { readonly baseline: F; readonly run: () => Promise<Round> }[],
  rounds: number,
): Promise<Comparison<F>> {
  resetPeakMemory(server.pid)
  const serverRounds: Round[] = []
  const baselineRounds: Round[][] = baselines.map(() => [])
  const competitors = [
    { run: server.run, rounds: serverRounds },
    ...baselines.map(({ run }, at) => ({ run, rounds: baselineRounds[at] as Round[] })),
  ]
  for (let number = 0; number < rounds; number++) {
    for (const each of number % 2 === 0 ? competitors : competitors.toReversed()) each.rounds.push(await each.run())
  }
  const figures = figuresOf(serverRounds)
  return {
    ...figures,
    peakBytes: readMemoryBytes(server.pid, 'VmHWM'),
    baselines: baselines.map(({ baseline }, at) => {
      const ownRounds = baselineRounds[at] ?? []
      const own = figuresOf(ownRounds)
      return {
        ...own,
        baseline,
        ratio: median(serverRounds.map((round, number) => rate(round) / rate(ownRounds[number] ?? round))),
        cpuRatio: own.cpuUs === null || figures.cpuUs === null ? null : own.cpuUs / figures.cpuUs,
      }
    }),
  }
}

/** Makes the bare handler respond with the server's body, so that both send the same number of bytes. */
async function setBareBody(
  server: ServerProcess,
  baseline: BaselineProcess,
  request: LoadRequest | undefined,
): Promise<void> {
  const head = /^GET (\S+) HTTP\/1\.1\r\n([\s\S]*)\r\n\r\n$/.exec(request?.text ?? '')
  if (head === null) return
  const headers = (head[2] as string).split('\r\n').map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  const response = await fetch(`${server.url}${head[1]}`, { headers })
  await fetch(`http://127.0.0.1:${baseline.port}/bare`, { method: 'PUT', body: await response.text() })
}

/** Runs a loop in the baseline process; throws when it has no loop of that name. */
export async function runLoop(baseline: BaselineProcess, name: string, seconds: number): Promise<Round> {
  const response = await fetch(`http://127.0.0.1:${baseline.port}/loop/${name}?seconds=${seconds}`)
  if (!response.ok) throw new Error(`The loop ${name} failed: ${await response.text()}`)
  const result = (await response.json()) as LoopResult
  return {
    units: result.done,
    seconds: result.seconds,
    cpuSeconds: result.cpuSeconds,
    loadCpuSeconds: null,
    latencies: result.latencies === undefined ? null : histogramOf(result.latencies),
  }
}

/** Converts a result of the load generator to a round, with the given number of units per request. */
export function roundOf(result: LoadResult, unitsPerRequest: number): Round {
  return {
    units: result.requests * unitsPerRequest,
    seconds: result.seconds,
    cpuSeconds: result.cpuSeconds[0] ?? null,
    loadCpuSeconds: result.loadCpuSeconds,
    latencies: histogramOf(result.latencies),
  }
}

function histogramOf(latencies: SparseHistogram): Histogram {
  const histogram = new Histogram()
  histogram.merge(latencies)
  return histogram
}

function figuresOf(rounds: readonly Round[]): Figures {
  const units = sum(rounds.map((round) => round.units))
  const seconds = sum(rounds.map((round) => round.seconds))
  const cpu = sumOrNull(rounds.map((round) => round.cpuSeconds))
  const loadCpu = sumOrNull(rounds.map((round) => round.loadCpuSeconds))
  const latencies = new Histogram()
  for (const round of rounds) if (round.latencies) latencies.merge(round.latencies.toSparse())
  return {
    perSecond: units / seconds,
    p50Ms: latencies.total > 0 ? latencies.percentile(0.5) : null,
    p99Ms: latencies.total > 0 ? latencies.percentile(0.99) : null,
    cpuUs: cpu === null ? null : (cpu / units) * 1e6,
    serverShare: cpu === null ? null : cpu / seconds,
    loadShare: loadCpu === null ? null : loadCpu / seconds,
  }
}

const rate = (round: Round): number => round.units / round.seconds

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
