/** Formats the figures of the analytics run for `docs/benchmarks.md`. */

import {
  type Cells,
  checkMark,
  decimal,
  integer,
  measuredWith,
  megabytes,
  pageTable,
  type Reported,
} from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { middle, type ReportTimes, worst } from './measure.ts'

/** Report times on one engine. */
export interface ReportedEngine {
  readonly engine: string
  readonly dataBytes: number
  readonly times: readonly ReportTimes[]
  readonly rollUpSeconds: number
}

export interface AnalyticsFigures {
  readonly events: number
  readonly reported: readonly ReportedEngine[]
  /** Of the embedded engine. */
  readonly measurements: readonly Reported[]
}

/** Budget of every report, on ten million events. */
const budgetMs = 1000

const slowestOf = ({ restMs, rollUpMs }: ReportTimes): number => Math.max(worst(restMs) ?? 0, worst(rollUpMs) ?? 0)

const headOf = (engine: string): Cells => [
  `${engine}: report`,
  'p50 ms',
  'worst ms',
  'rolling up: p50 ms',
  'worst ms',
  'budget',
]

const lineOf = (times: ReportTimes): Cells => {
  const { title, restMs, rollUpMs } = times
  const numbers = [middle(restMs), worst(restMs), middle(rollUpMs), worst(rollUpMs)].map((ms) => decimal(ms, 1))
  return [title, ...numbers, `< 1 s ${checkMark(slowestOf(times) < budgetMs)}`]
}

const summaryOf = ({ engine, dataBytes, rollUpSeconds }: ReportedEngine): string =>
  `On ${engine} ${megabytes(dataBytes)} MB on disk; rolling up three days took ${decimal(rollUpSeconds, 0)} s beside the reports.`

/** The reports as aligned lines for a terminal. */
export const toText = (reported: ReportedEngine): string =>
  [headOf(reported.engine), ...reported.times.map(lineOf)]
    .map((cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(42) : cell.padStart(20))).join(''))
    .concat(summaryOf(reported))
    .join('\n')

/** The page has the slowest report of an engine; the terminal has all of them. */
function slowestText({ engine, times }: ReportedEngine): string {
  const slowest = times.reduce((left, right) => (slowestOf(right) > slowestOf(left) ? right : left))
  const [rest, rolling] = [worst(slowest.restMs), worst(slowest.rollUpMs)].map((ms) => decimal(ms, 0))
  return `Slowest of ${times.length} reports on ${engine}: ${slowest.title}, ${rest} ms at rest and ${rolling} ms during the roll-up ${checkMark(slowestOf(slowest) < budgetMs)}.`
}

/** All figures of a run as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, figures: AnalyticsFigures): string {
  const { events, reported, measurements } = figures
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    [`${integer(events)} events.`, ...reported.flatMap((each) => [summaryOf(each), slowestText(each)])].join(' '),
    pageTable(measurements),
  ].join('\n\n')
}
