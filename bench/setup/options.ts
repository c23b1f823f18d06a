/** Parses the command line of the benchmark, with defaults. */
import { parseArgs } from 'node:util'
import { pgbenchWarmupSeconds } from '../postgres/pgbench.ts'
import { runsOnPostgres } from '../postgres/pgbench-scripts.ts'
import type { MeasuredPart } from '../report.ts'
import { type RoomsPlan, roomsPlan } from '../rooms/plan.ts'
import { type Scenario, scenarios } from '../scenarios.ts'
import { type LivePart, type LivePlan, livePartNames, livePlan } from '../subscriptions/plan.ts'
import type { Plan } from './measure.ts'

const namesOf = (some: readonly Scenario[]): string => some.map(({ name }) => name).join(', ')

/** Runs without a choice of sizes and scenarios. */
const fixedRuns: ReadonlySet<string> = new Set([
  'users',
  'rooms',
  'storage',
  'analytics',
  'kv',
  'sql',
  'vector',
  'client',
  'functions',
  'queries',
  'overload',
  'start',
  'peers',
])

const help = `npm run bench -- [options]
  --rows 10k,100k,1m      sizes of the tables (default 100k)
  --scenario point,list   only these: ${namesOf(scenarios)}
  --seconds 1             length of one measured round
  --rounds 5              alternating rounds of server and baselines
  --quick                 10k rows, 2 rounds of half a second (--postgres: 1 round of a second; --live: 1 of half a
                          second, fewer sockets)
  --postgres              on PostgreSQL with Redis, 1, 2 and 4 nodes beside pgbench: 100k rows, 3 rounds of a second,
                          only ${namesOf(scenarios.filter(runsOnPostgres))}
  --live                  live subscriptions beside the runtime's own publish: about four minutes, 3 rounds of 2 seconds,
                          only ${livePartNames.join(', ')}
  --storage               files beside nginx and cp: 3 rounds of a second and more, about two minutes and 10 GB of disk
  --rooms                 full, many, idle and hibernated rooms, beside Colyseus and Socket.IO: about five
                          minutes, 3 rounds of a second
  --sql                   SQL databases on both engines beside their bare drivers: half a minute
  --client                the TypeScript client beside bare fetch and a bare socket: about three minutes, 5 rounds
                          of a second
  --users                 sign-in, refresh and reads of signed-in users: 3 rounds of 1.5 s and more
  --vector                vector search beside sqlite-vec and pgvector: 100k vectors of two kinds, about fifteen minutes
  --kv                    key-value stores beside Redis: 3 rounds of a second
  --functions             hooks before writes on both engines beside hooks in the process of the server and in
                          PocketBase, reads while functions fail, jobs and reloads: 3 rounds of a second, about four
                          minutes
  --queries               related records and aggregates over a million rows, beside hand-written SQL and PocketBase:
                          about four minutes
  --growth                reads at 10k and at 1m rows, or those of --rows, in alternating rounds: 15 of half a second,
                          about ten minutes with the seeding, and 8 GB of disk
  --overload              ten times what the server can do of mixed requests, from eight callers: 10 seconds
  --start                 starts on an empty folder and with 100,000 tenants, beside the runtime alone: 20 of each,
                          about four minutes
  --peers                 the same posts, rule and requests on PocketBase and TrailBase, which are built where that is
                          possible (TrailBase takes ten minutes once): 100k posts, 5 rounds of a second
  --analytics             reports on ten million events while old days are rolled up, on both engines, incoming events,
                          the request log: about ten minutes and 8 GB of disk; with --quick on 200,000
  --write                 update the tables of docs/benchmarks.md
  --keep <folder>         keep the seeded folders there and reuse them (remove it after a schema change)`

export interface Options {
  /** What is measured, and which part of the page documents it. */
  readonly part: MeasuredPart
  /** Null unless live subscriptions are measured. */
  readonly live: LivePlan | null
  /** Null unless rooms are measured. */
  readonly rooms: RoomsPlan | null
  readonly sizes: readonly number[]
  readonly chosen: readonly Scenario[]
  readonly plan: Plan
  /** Smaller and shorter runs, beyond the plan. */
  readonly quick: boolean
  readonly write: boolean
  readonly keep: string | null
}

/** Throws an Error that names the invalid option. */
export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: 'string' },
      scenario: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      keep: { type: 'string' },
      postgres: { type: 'boolean', default: false },
      live: { type: 'boolean', default: false },
      storage: { type: 'boolean', default: false },
      rooms: { type: 'boolean', default: false },
      users: { type: 'boolean', default: false },
      client: { type: 'boolean', default: false },
      vector: { type: 'boolean', default: false },
      kv: { type: 'boolean', default: false },
      sql: { type: 'boolean', default: false },
      functions: { type: 'boolean', default: false },
      growth: { type: 'boolean', default: false },
      queries: { type: 'boolean', default: false },
      overload: { type: 'boolean', default: false },
      start: { type: 'boolean', default: false },
      peers: { type: 'boolean', default: false },
      analytics: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  const runs = [
    'live',
    'rooms',
    'storage',
    'users',
    'analytics',
    'kv',
    'sql',
    'vector',
    'client',
    'functions',
    'growth',
    'queries',
    'overload',
    'start',
    'peers',
    'postgres',
  ] as const
  const [part = 'sqlite', other] = runs.filter((name) => values[name])
  if (other !== undefined) throw new Error(`--${part} and --${other} cannot be combined`)
  const given = (['rows', 'scenario', 'keep'] as const).find((name) => values[name] !== undefined)
  if (fixedRuns.has(part) && given !== undefined) throw new Error(`--${part} does not support --${given}`)
  const possible = part === 'postgres' ? scenarios.filter(runsOnPostgres) : scenarios
  const names = values.scenario?.split(',')
  const known: readonly string[] = part === 'live' ? livePartNames : possible.map(({ name }) => name)
  const unknown = names?.find((name) => !known.includes(name))
  const how = part === 'sqlite' ? '' : ` with --${part}`
  if (unknown !== undefined) throw new Error(`Unknown scenario "${unknown}"${how}`)
  if (part === 'postgres' && values.keep !== undefined) throw new Error('--postgres does not support --keep')
  const unsupported = (['rows', 'keep'] as const).find((name) => values[name] !== undefined)
  if (part === 'live' && unsupported !== undefined) throw new Error(`--live does not support --${unsupported}`)
  const defaults = defaultPlans[part][quick ? 'quick' : 'full']
  const isWanted = (name: string): boolean => names?.includes(name) ?? true
  const plan = {
    rounds: parseAmount('--rounds', values.rounds ?? defaults.rounds),
    seconds: parseAmount('--seconds', values.seconds ?? defaults.seconds),
    warmupSeconds: defaults.warmupSeconds,
  }
  const parts: LivePart[] = livePartNames.filter(isWanted)
  return {
    part,
    live: part === 'live' ? livePlan(parts, plan, quick) : null,
    rooms: part === 'rooms' ? roomsPlan(plan, quick) : null,
    sizes: (values.rows ?? defaults.rows).split(',').map(parseCount),
    chosen: possible.filter(({ name }) => isWanted(name)),
    plan,
    quick,
    write: values.write,
    keep: values.keep ?? null,
  }
}

interface DefaultPlan extends Plan {
  readonly rows: string
}

const defaultPlans: Record<MeasuredPart, Record<'full' | 'quick', DefaultPlan>> = {
  // `rows` is not used here.
  live: {
    full: { rows: '1k', rounds: 3, seconds: 2, warmupSeconds: 0.5 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.3 },
  },
  rooms: {
    full: { rows: '1k', rounds: 3, seconds: 1, warmupSeconds: 0.5 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.3 },
  },
  sqlite: {
    full: { rows: '100k', rounds: 5, seconds: 1, warmupSeconds: 0.5 },
    quick: { rows: '10k', rounds: 2, seconds: 0.5, warmupSeconds: 0.3 },
  },
  growth: {
    full: { rows: '10k,1m', rounds: 15, seconds: 0.5, warmupSeconds: 0.2 },
    quick: { rows: '1k,10k', rounds: 2, seconds: 0.3, warmupSeconds: 0.1 },
  },
  // `rows` is not used; file sizes are fixed.
  storage: {
    full: { rows: '1k', rounds: 3, seconds: 1, warmupSeconds: 0.3 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.2 },
  },
  sql: {
    full: { rows: '10k', rounds: 3, seconds: 1, warmupSeconds: 0.3 },
    quick: { rows: '10k', rounds: 1, seconds: 0.5, warmupSeconds: 0.2 },
  },
  users: {
    full: { rows: '10k', rounds: 3, seconds: 1.5, warmupSeconds: 0.5 },
    quick: { rows: '10k', rounds: 2, seconds: 0.5, warmupSeconds: 0.3 },
  },
  // `rows` is not used; the number of vectors is fixed.
  vector: {
    full: { rows: '1k', rounds: 3, seconds: 2, warmupSeconds: 0.5 },
    quick: { rows: '1k', rounds: 1, seconds: 1, warmupSeconds: 0.2 },
  },
  // `rows` is not used; lists have 1,000 rows.
  client: {
    full: { rows: '1k', rounds: 5, seconds: 1, warmupSeconds: 0.3 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.2 },
  },
  // `rows` is not used.
  functions: {
    full: { rows: '1k', rounds: 3, seconds: 1, warmupSeconds: 0.3 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.2 },
  },
  // `rows` is not used; tables have fixed sizes.
  queries: {
    full: { rows: '1k', rounds: 3, seconds: 2, warmupSeconds: 0.5 },
    quick: { rows: '1k', rounds: 1, seconds: 0.5, warmupSeconds: 0.2 },
  },
  // `rows` is not used here.
  overload: {
    full: { rows: '1k', rounds: 1, seconds: 5, warmupSeconds: 1 },
    quick: { rows: '1k', rounds: 1, seconds: 3, warmupSeconds: 1 },
  },
  // Only the rounds are used.
  start: {
    full: { rows: '1k', rounds: 20, seconds: 1, warmupSeconds: 0 },
    quick: { rows: '1k', rounds: 3, seconds: 1, warmupSeconds: 0 },
  },
  peers: {
    full: { rows: '100k', rounds: 5, seconds: 1, warmupSeconds: 0.5 },
    quick: { rows: '10k', rounds: 2, seconds: 0.5, warmupSeconds: 0.3 },
  },
  kv: {
    full: { rows: '10k', rounds: 3, seconds: 1, warmupSeconds: 0.5 },
    quick: { rows: '10k', rounds: 2, seconds: 0.5, warmupSeconds: 0.3 },
  },
  analytics: {
    full: { rows: '10k', rounds: 3, seconds: 1.5, warmupSeconds: 0.5 },
    quick: { rows: '10k', rounds: 1, seconds: 0.5, warmupSeconds: 0.3 },
  },
  postgres: {
    full: { rows: '100k', rounds: 3, seconds: 1, warmupSeconds: pgbenchWarmupSeconds },
    quick: { rows: '10k', rounds: 1, seconds: 1, warmupSeconds: pgbenchWarmupSeconds },
  },
}

function parseAmount(name: string, given: string | number): number {
  const amount = Number(given)
  if (!(amount > 0)) throw new Error(`${name} must be a number above zero, not "${given}"`)
  return amount
}

/** `10k` is 10,000, `1m` a million. */
function parseCount(text: string): number {
  const [, digits, unit = ''] = /^(\d+)([km]?)$/i.exec(text) ?? []
  const count = Number(digits) * ({ k: 1e3, m: 1e6 }[unit.toLowerCase()] ?? 1)
  if (!(count >= 1000)) throw new Error(`--rows must be numbers from 1k such as 10k,1m, not "${text}"`)
  return count
}

/** Prints help and exits with `--help` or an invalid option. */
export function optionsOrExit(args: string[]): Options {
  if (args.includes('--help')) {
    console.log(help)
    process.exit(0)
  }
  try {
    return parseOptions(args)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${help}`)
    process.exit(2)
  }
}
