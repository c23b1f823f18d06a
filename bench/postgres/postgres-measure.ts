/**
 * Measures a scenario on PostgreSQL: pgbench and one, two and four nodes in alternating rounds, all on the same tables.
 */
import { availableParallelism } from 'node:os'
import { Histogram } from '../load/histogram.ts'
import type { Scenario } from '../scenarios.ts'
import { median, type Plan } from '../setup/measure.ts'
import { type ServerProcess, serviceKey } from '../setup/processes.ts'
import { runPgbench } from './pgbench.ts'
import { type PgbenchContext, pgbenchScripts } from './pgbench-scripts.ts'
import type { Setup } from './postgres-setup.ts'
import { warmUp } from './warm-up.ts'

/** What was measured: the baseline, a number of nodes, or of bare nodes. */
export type Competitor = 'pgbench' | number | `bare ${number}`

export interface CompetitorFigures {
  readonly competitor: Competitor
  /** Units (requests, or rows of a batch) per second. */
  readonly perSecond: number
  /** Milliseconds; null when no request completed in the window. */
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  /** CPU per unit, PostgreSQL's included, the load generator's not. Null where the kernel does not report it. */
  readonly cpuUs: number | null
  /** PostgreSQL's part of it. */
  readonly databaseCpuUs: number | null
  /** Share of all cores that everything together used. */
  readonly machineShare: number | null
  /** Median over the rounds of its throughput by pgbench's; null for pgbench and without it. */
  readonly ratio: number | null
  /** CPU per unit of pgbench by its own. */
  readonly cpuRatio: number | null
}

export interface PostgresMeasurement {
  readonly scenario: Scenario
  readonly rows: number
  readonly competitors: readonly CompetitorFigures[]
}

export interface Round {
  readonly units: number
  readonly seconds: number
  readonly latencies: Histogram
  /** Of the nodes with Redis, or of pgbench. */
  readonly cpuSeconds: number | null
  readonly databaseCpuSeconds: number | null
  /** Of the load generator, where it is a process of its own. */
  readonly loadCpuSeconds: number
  /** Rows added by the round, warm-up included. */
  readonly rowsAdded: number
}

/** Number of notes, the only table that scenarios write. */
export interface Written {
  rows: number
}

/** Scenarios that bare nodes serve. */
const bareScenarios: ReadonlySet<string> = new Set(['point', 'list'])

/** Measures a scenario, adds its rows to `written`, and verifies that no row is missing. */
export async function measureOnPostgres(
  scenario: Scenario,
  setup: Setup,
  nodeCounts: readonly number[],
  rows: number,
  written: Written,
  plan: Plan,
): Promise<PostgresMeasurement> {
  const requests = scenario.requests({ rows, token: '' })
  const run = (processes: readonly Listener[], runPlan: Plan): Promise<Round> =>
    runOn(scenario, setup, processes, requests, runPlan)
  written.rows += await warmUp(setup.nodes, (seconds) => run(setup.nodes, { ...plan, seconds }))
  const competitors: Competitor[] = [...(setup.pgbench === null ? [] : ['pgbench' as const]), ...nodeCounts]
  if (bareScenarios.has(scenario.name)) {
    await warmUp(setup.bareNodes, (seconds) => run(setup.bareNodes, { ...plan, seconds }))
    for (const count of [Math.min(...nodeCounts), Math.max(...nodeCounts)]) competitors.push(`bare ${count}`)
  }
  const rounds = new Map<Competitor, Round[]>(competitors.map((competitor) => [competitor, []]))
  for (let number = 0; number < plan.rounds; number++) {
    // Tables grow and the machine's speed varies: every second round runs in reverse order.
    for (const competitor of number % 2 === 0 ? competitors : competitors.toReversed()) {
      const round =
        competitor === 'pgbench'
          ? await runBaseline(scenario, setup, rows, plan)
          : await run(processesOf(setup, competitor), plan)
      written.rows += round.rowsAdded
      rounds.get(competitor)?.push(round)
    }
  }
  if (scenario.writes) await checkRowCount(setup, scenario, written.rows)
  return { scenario, rows, competitors: compare(rounds) }
}

/** What requests are sent to. */
type Listener = Pick<ServerProcess, 'pid' | 'port'>

const processesOf = ({ nodes, bareNodes }: Setup, competitor: number | `bare ${number}`): readonly Listener[] =>
  typeof competitor === 'number'
    ? nodes.slice(0, competitor)
    : bareNodes.slice(0, Number(competitor.slice('bare '.length)))

async function runOn(
  { connections, unitsPerRequest }: Scenario,
  { load, databasePid, redisPid }: Setup,
  targets: readonly Listener[],
  requests: ReturnType<Scenario['requests']>,
  plan: Plan,
): Promise<Round> {
  const result = await load.run({
    ports: targets.map(({ port }) => port),
    connections,
    requests,
    warmupSeconds: plan.warmupSeconds,
    seconds: plan.seconds,
    total: null,
    watched: [[...targets.map(({ pid }) => pid), redisPid], [databasePid]],
  })
  const latencies = new Histogram()
  latencies.merge(result.latencies)
  return {
    units: result.requests * unitsPerRequest,
    seconds: result.seconds,
    latencies,
    cpuSeconds: result.cpuSeconds[0] ?? null,
    databaseCpuSeconds: result.cpuSeconds[1] ?? null,
    loadCpuSeconds: result.loadCpuSeconds,
    rowsAdded: unitsPerRequest > 1 ? result.answered * unitsPerRequest : result.created,
  }
}

async function runBaseline(scenario: Scenario, setup: Setup, rows: number, plan: Plan): Promise<Round> {
  const context: PgbenchContext = { rows, nowMs: Date.now() }
  const script = pgbenchScripts[scenario.name]?.(context)
  if (!script || setup.pgbench === null) throw new Error(`There is no baseline for ${scenario.name}`)
  const result = await runPgbench(setup.pgbench, {
    work: setup.work,
    script,
    databaseUrl: setup.databaseUrl,
    databasePid: setup.databasePid,
    clients: scenario.connections,
    seconds: plan.seconds,
  })
  return {
    units: result.transactions * scenario.unitsPerRequest,
    seconds: result.seconds,
    latencies: result.latencies,
    cpuSeconds: result.cpuSeconds,
    databaseCpuSeconds: result.databaseCpuSeconds,
    loadCpuSeconds: 0,
    rowsAdded: result.committed * script.rowsAdded,
  }
}

/** Throws unless every node counts all acknowledged rows and those that pgbench committed. */
async function checkRowCount({ nodes }: Setup, scenario: Scenario, expected: number): Promise<void> {
  for (const { url } of nodes) {
    const response = await fetch(`${url}/api/db/shared/tables/notes/count`, {
      headers: { 'X-Platform-Service-Key': serviceKey },
    })
    const { total } = (await response.json()) as { total: number }
    if (total !== expected) throw new Error(`${scenario.name}: expected ${expected} rows, but ${url} has ${total}`)
  }
}

/** Figures of every competitor over its rounds, those of nodes beside pgbench's. */
export function compare(rounds: ReadonlyMap<Competitor, readonly Round[]>): CompetitorFigures[] {
  const baseline = rounds.get('pgbench') ?? null
  const baselineCpuUs = baseline === null ? null : cpuUsOf(baseline)
  return [...rounds].map(([competitor, own]) => {
    const latencies = new Histogram()
    for (const round of own) latencies.merge(round.latencies.toSparse())
    const cpuUs = cpuUsOf(own)
    const isBaseline = competitor === 'pgbench'
    return {
      competitor,
      perSecond: sum(own, 'units') / sum(own, 'seconds'),
      p50Ms: latencies.total > 0 ? latencies.percentile(0.5) : null,
      p99Ms: latencies.total > 0 ? latencies.percentile(0.99) : null,
      cpuUs,
      databaseCpuUs: perUnitUs(own, sum(own, 'databaseCpuSeconds')),
      machineShare: machineShareOf(own),
      ratio:
        isBaseline || baseline === null
          ? null
          : median(own.map((round, number) => rate(round) / rate(baseline[number] ?? round))),
      cpuRatio: isBaseline || baselineCpuUs === null || cpuUs === null ? null : baselineCpuUs / cpuUs,
    }
  })
}

const rate = ({ units, seconds }: Round): number => units / seconds

type Counted = 'units' | 'seconds' | 'cpuSeconds' | 'databaseCpuSeconds' | 'loadCpuSeconds'

/** NaN when a round has no value. */
const sum = (rounds: readonly Round[], what: Counted): number =>
  rounds.reduce((total, round) => total + (round[what] ?? Number.NaN), 0)

const knownOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null)

const perUnitUs = (rounds: readonly Round[], seconds: number): number | null =>
  knownOrNull((seconds / sum(rounds, 'units')) * 1e6)

const cpuUsOf = (rounds: readonly Round[]): number | null =>
  perUnitUs(rounds, sum(rounds, 'cpuSeconds') + sum(rounds, 'databaseCpuSeconds'))

const machineShareOf = (rounds: readonly Round[]): number | null => {
  const used = sum(rounds, 'cpuSeconds') + sum(rounds, 'databaseCpuSeconds') + sum(rounds, 'loadCpuSeconds')
  return knownOrNull(used / sum(rounds, 'seconds') / availableParallelism())
}
