/** Figures of a run about analytics as text: their part of `docs/benchmarks.md`. */
import { middle, type ReportTimes, worst } from './analytics-measure.ts'
import type { Environment } from './environment.ts'
import type { Plan } from './measure.ts'
import {
  type Cells,
  columns,
  decimal,
  linesOf,
  markdownTable,
  measuredWith,
  megabytes,
  type Reported,
} from './report.ts'

export interface AnalyticsFigures {
  readonly events: number
  readonly dataBytes: number
  readonly times: readonly ReportTimes[]
  readonly rollUpSeconds: number
  readonly measurements: readonly Reported[]
}

/** What the brief of analytics asks of every report, on ten million events. */
const budgetMs = 1000

const head = ['report', 'p50 ms', 'worst ms', 'rolling up: p50 ms', 'worst ms', 'budget']

const lineOf = ({ title, restMs, rollUpMs }: ReportTimes): Cells => {
  const slowest = Math.max(worst(restMs) ?? 0, worst(rollUpMs) ?? 0)
  const numbers = [middle(restMs), worst(restMs), middle(rollUpMs), worst(rollUpMs)].map((ms) => decimal(ms, 1))
  return [title, ...numbers, `< 1 s ${slowest < budgetMs ? '✓' : '✗'}`]
}

/** The reports as aligned lines for a terminal. */
export const toText = (times: readonly ReportTimes[]): string =>
  [head, ...times.map(lineOf)]
    .map((cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(42) : cell.padStart(20))).join(''))
    .join('\n')

/** Everything a run found out, as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, figures: AnalyticsFigures): string {
  const { events, dataBytes, times, rollUpSeconds, measurements } = figures
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    `${events.toLocaleString('en-US')} events, ${megabytes(dataBytes)} MB on disk. Rolling up three days took ${decimal(rollUpSeconds, 0)} s beside the reports.`,
    markdownTable(head, times.map(lineOf)),
    markdownTable(columns, measurements.flatMap(linesOf)),
  ].join('\n\n')
}
