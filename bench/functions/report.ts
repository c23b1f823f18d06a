/** Formats the figures of the run of functions for the terminal and for `docs/benchmarks.md`. */
import type { Histogram } from '../load/histogram.ts'
import { decimal, markdownTable, measuredWith, megabytes, percent } from '../report.ts'
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

const mark = (isMet: boolean): string => (isMet ? '✓' : '✗')

/** The goals are those of one hook in a host. */
function verdictOf({ where, writers, hooks, share, addedMs }: HookFigures): string {
  if (where !== 'hosts' || hooks !== 1) return ''
  if (writers > 1) return `≥ ${percent(shareMin)} ${mark(share >= shareMin)}`
  return `≤ ${addedMsMax} ms ${mark(addedMs <= addedMsMax)}`
}

const hookLine = (one: HookFigures): string[] => [
  one.engine,
  String(one.writers),
  one.hooks === 0 ? '0' : `${one.hooks} in ${one.where}`,
  Math.round(one.perSecond).toLocaleString('en-US'),
  percent(one.share),
  decimal(one.p50Ms, 3),
  one.hooks === 0 ? '' : decimal(one.addedMs, 3),
  verdictOf(one),
]

const faultLine = (one: FaultFigures): string[] => [
  one.fault ?? 'none',
  Math.round(one.readsPerSecond).toLocaleString('en-US'),
  decimal(one.p50Ms, 2),
  decimal(one.p99Ms, 2),
  `≤ ${readsP99MsMax} ms ${mark(one.p99Ms <= readsP99MsMax)}`,
  megabytes(one.peakBytes),
  [...new Set(one.statuses)].join(', '),
]

const milliseconds = (latencies: Histogram): string[] =>
  [0.5, 0.95, 0.99].map((share) => decimal(latencies.percentile(share), 1))

const jobLines = ({ engine, inserts, lags, jobsPerSecond, calls, requests }: JobFigures): string[][] => {
  const isMet = lags.percentile(0.95) <= lagP95MsMax
  return [
    [
      engine,
      'request of a change to the start of its job',
      ...milliseconds(lags),
      `p95 ≤ ${lagP95MsMax} ms ${mark(isMet)}`,
    ],
    [engine, 'the request itself', ...milliseconds(inserts), ''],
    [engine, 'call of a function', ...milliseconds(calls), ''],
    [engine, 'request without a function', ...milliseconds(requests), ''],
    [engine, `queue: ${Math.round(jobsPerSecond).toLocaleString('en-US')} jobs per second`, '', '', '', ''],
  ]
}

const jobHead = ['engine', 'what', 'p50 ms', 'p95 ms', 'p99 ms', 'budget']
const hookHead = ['engine', 'writers', 'hooks', 'per second', 'share', 'p50 ms', 'added ms', 'budget']
const faultHead = ['function', 'reads per second', 'p50 ms', 'p99 ms', 'budget', 'server peak MB', 'its answers']

const sectionsOf = ({ hooks, faults, jobs, reload }: FunctionFigures): string[] => [
  '### Hooks before inserts',
  markdownTable(hookHead, hooks.map(hookLine)),
  '### Reads while a function fails',
  markdownTable(faultHead, faults.map(faultLine)),
  `### Jobs at ${changesPerSecond.toLocaleString('en-US')} changes per second, and calls`,
  markdownTable(jobHead, jobs.flatMap(jobLines)),
  '### Saved code in development',
  `The new code answers ${Math.round(reload.medianMs)} ms after it was saved, at most ${Math.round(reload.longestMs)} ms (≤ ${reloadMsMax} ms ${mark(reload.medianMs <= reloadMsMax)}).`,
]

export const toText = (figures: FunctionFigures): string => sectionsOf(figures).join('\n\n')

export const toMarkdown = (environment: Environment, plan: Plan, figures: FunctionFigures): string =>
  [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), ...sectionsOf(figures)].join('\n\n')
