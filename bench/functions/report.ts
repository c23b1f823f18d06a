/** Formats the figures of the run of functions for the terminal and for `docs/benchmarks.md`. */
import { decimal, markdownTable, measuredWith, megabytes, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import type { HookFigures } from './before.ts'
import type { FaultFigures } from './faults.ts'
import type { ReloadFigures } from './reload.ts'

export interface FunctionFigures {
  readonly hooks: readonly HookFigures[]
  readonly faults: readonly FaultFigures[]
  readonly reload: ReloadFigures
}

const shareMin = 0.6
const addedMsMax = 0.1
const readsP99MsMax = 20
const reloadMsMax = 300

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

const hookHead = ['engine', 'writers', 'hooks', 'per second', 'share', 'p50 ms', 'added ms', 'budget']
const faultHead = ['function', 'reads per second', 'p50 ms', 'p99 ms', 'budget', 'server peak MB', 'its answers']

const sectionsOf = ({ hooks, faults, reload }: FunctionFigures): string[] => [
  '### Hooks before inserts',
  markdownTable(hookHead, hooks.map(hookLine)),
  '### Reads while a function fails',
  markdownTable(faultHead, faults.map(faultLine)),
  '### Saved code in development',
  `The new code answers ${Math.round(reload.medianMs)} ms after it was saved, at most ${Math.round(reload.longestMs)} ms (≤ ${reloadMsMax} ms ${mark(reload.medianMs <= reloadMsMax)}).`,
]

export const toText = (figures: FunctionFigures): string => sectionsOf(figures).join('\n\n')

export const toMarkdown = (environment: Environment, plan: Plan, figures: FunctionFigures): string =>
  [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), ...sectionsOf(figures)].join('\n\n')
