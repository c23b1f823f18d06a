/** Formats the figures of the analytics run for `docs/benchmarks.md`. */

import {
  type Cells,
  columns,
  decimal,
  linesOf,
  markdownTable,
  measuredWith,
  megabytes,
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

const headOf = (engine: string): Cells => [
  `${engine}: report`,
  'p50 ms',
  'worst ms',
  'rolling up: p50 ms',
  'worst ms',
  'budget',
]

const lineOf = ({ title, restMs, rollUpMs }: ReportTimes): Cells => {
  const slowest = Math.max(worst(restMs) ?? 0, worst(rollUpMs) ?? 0)
  const numbers = [middle(restMs), worst(restMs), middle(rollUpMs), worst(rollUpMs)].map((ms) => decimal(ms, 1))
  return [title, ...numbers, `< 1 s ${slowest < budgetMs ? '✓' : '✗'}`]
}

const summaryOf = ({ engine, dataBytes, rollUpSeconds }: ReportedEngine): string =>
  `On ${engine} ${megabytes(dataBytes)} MB on disk; rolling up three days took ${decimal(rollUpSeconds, 0)} s beside the reports.`

/** The reports as aligned lines for a terminal. */
export const toText = (reported: ReportedEngine): string =>
  [headOf(reported.engine), ...reported.times.map(lineOf)]
    .map((cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(42) : cell.padStart(20))).join(''))
    .concat(summaryOf(reported))
    .join('\n')

/** All figures of a run as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, figures: AnalyticsFigures): string {
  const { events, reported, measurements } = figures
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    `${events.toLocaleString('en-US')} events. ${reported.map(summaryOf).join(' ')}`,
    ...reported.map(({ engine, times }) => markdownTable(headOf(engine), times.map(lineOf))),
    markdownTable(columns, measurements.flatMap(linesOf)),
  ].join('\n\n')
}
