/** Formats the figures of the run of functions for the terminal and for `docs/benchmarks.md`. */
import type { Histogram } from '../load/histogram.ts'
import { checkMark, decimal, integer, markdownTable, measuredWith, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { HookFigures } from './before.ts'
import type { FaultFigures } from './faults.ts'
import { changesPerSecond, type JobFigures } from './jobs.ts'
import type { ReloadFigures } from './reload.ts'

export interface FunctionFigures {
  readonly hooks: readonly HookFigures[]
  readonly faults: readonly FaultFigures[]
  readonly jobs: readonly JobFigures[]
  readonly reload: ReloadFigures
}

const shareMin = 0.6
const addedMsMax = 0.1
const readsP99MsMax = 20
const reloadMsMax = 300
const lagP95MsMax = 50

/** The budgets are those of one hook in a host: a share of the throughput of many writers, and the time of one. */
function verdictOf({ where, writers, hooks, share, addedMs }: HookFigures): string {
  if (where !== 'hosts' || hooks !== 1) return ''
  return ` ${checkMark(writers > 1 ? share >= shareMin : addedMs <= addedMsMax)}`
}

/** A line for each engine, place of the hooks and number of writers: without hooks, then what each number costs. */
function hookLines(figures: readonly HookFigures[], counts: readonly number[]): string[][] {
  const groups = Map.groupBy(figures, ({ engine, cores, where, writers }) => [engine, cores, writers, where].join('|'))
  return [...groups.values()].map((group) => {
    const [none, ...hooked] = [0, ...counts].map((count) => group.find(({ hooks }) => hooks === count))
    const [first] = group
    return [
      first?.engine ?? '',
      first?.cores ?? '',
      String(first?.writers ?? ''),
      first?.where ?? '',
      none ? integer(none.perSecond) : '',
      ...hooked.flatMap((one) =>
        one ? [`${percent(one.share)}`, `${decimal(one.addedMs, 2)}${verdictOf(one)}`] : ['', ''],
      ),
    ]
  })
}

const faultLine = (one: FaultFigures): string[] => [
  one.fault ?? 'none',
  integer(one.readsPerSecond),
  `${decimal(one.p99Ms, 2)} ${checkMark(one.p99Ms <= readsP99MsMax)}`,
]

const p95 = (latencies: Histogram): string => decimal(latencies.percentile(0.95), 1)

const jobLine = ({ engine, inserts, lags, jobsPerSecond, calls, requests }: JobFigures): string[] => [
  engine,
  `${p95(lags)} ${checkMark(lags.percentile(0.95) <= lagP95MsMax)}`,
  p95(inserts),
  p95(calls),
  p95(requests),
  integer(jobsPerSecond),
]

const jobHead = ['engine', 'job start p95 ms', 'insert p95 ms', 'call p95 ms', 'read p95 ms', 'queued jobs/s']
const hookHead = (counts: readonly number[]): string[] => [
  ...['engine', 'cores', 'writers', 'hooks in', 'without hooks/s'],
  ...counts.flatMap((count) => [`share with ${count}`, `added ms`]),
]
const faultHead = ['function', 'reads/s', 'p99 ms']

const sectionsOf = ({ hooks, faults, jobs, reload }: FunctionFigures, hookCounts: readonly number[]): string[] => [
  '### Hooks before inserts',
  markdownTable(hookHead(hookCounts), hookLines(hooks, hookCounts)),
  '### Reads while a function fails',
  markdownTable(faultHead, faults.map(faultLine)),
  `### Jobs at ${changesPerSecond.toLocaleString('en-US')} changes per second, and calls`,
  markdownTable(jobHead, jobs.map(jobLine)),
  `In development, new code answers ${Math.round(reload.medianMs)} ms after it was saved, at most ${Math.round(reload.longestMs)} ms (≤ ${reloadMsMax} ms ${checkMark(reload.medianMs <= reloadMsMax)}).`,
]

export const toText = (figures: FunctionFigures): string => sectionsOf(figures, [1, 3]).join('\n\n')

export const toMarkdown = (environment: Environment, plan: Plan, figures: FunctionFigures): string =>
  [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), ...sectionsOf(figures, [1])].join('\n\n')
