/** Formats the figures of the client run for `docs/benchmarks.md`. */
import { type Cells, decimal, integer, markdownTable, measuredWith, percent } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { BaselineFigures, Comparison, Figures } from '../setup/measure.ts'
import type { ClientPlan } from './plan.ts'

export interface ClientMeasurement extends Comparison<{ readonly title: string }> {
  readonly part: 'calls' | 'live'
  readonly title: string
}

/** Load averages before the run and at its end. */
export interface MachineLoad {
  readonly before: number
  readonly after: number
}

const microseconds = (ms: number | null): string => decimal(ms === null ? null : ms * 1000, 0)

const figureCells = (part: ClientMeasurement['part'], figures: Figures): Cells => [
  integer(figures.perSecond),
  ...(part === 'calls' ? [microseconds(figures.p50Ms), microseconds(figures.p99Ms)] : []),
  decimal(figures.cpuUs, 1),
  percent(figures.serverShare),
]

/** What the client adds to the CPU of the baseline. */
const added = ({ cpuUs }: Figures, baseline: BaselineFigures<unknown>): string =>
  decimal(cpuUs === null || baseline.cpuUs === null ? null : cpuUs - baseline.cpuUs, 1)

/** The lines of a measurement: the client, then its baselines with the ratios and what the client adds. */
export const linesOf = (measurement: ClientMeasurement): Cells[] => [
  [measurement.title, ...figureCells(measurement.part, measurement), '', '', ''],
  ...measurement.baselines.map((baseline) => [
    `↳ ${baseline.baseline.title}`,
    ...figureCells(measurement.part, baseline),
    percent(baseline.ratio),
    percent(baseline.cpuRatio),
    `+ ${added(measurement, baseline)}`,
  ]),
]

export const toText = (measurement: ClientMeasurement): string =>
  linesOf(measurement)
    .map((cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(34) : cell.padStart(10))).join(' '))
    .join('\n')

/** The page has a line per baseline, with what the client adds to its CPU. */
function table(part: ClientMeasurement['part'], measurements: readonly ClientMeasurement[]): string {
  const unit = part === 'calls' ? 'calls/s' : 'changes/s'
  const lines = measurements
    .filter((measurement) => measurement.part === part)
    .flatMap(({ title, baselines, ...figures }) =>
      baselines.map((baseline) => [
        title,
        integer(figures.perSecond),
        decimal(figures.cpuUs, 1),
        baseline.baseline.title,
        percent(baseline.ratio),
        added(figures, baseline),
      ]),
    )
  return markdownTable(['what', unit, 'CPU µs', 'compared with', 'ratio', 'added CPU µs'], lines)
}

/** Server and program need one core each. */
const idleLoadMax = 0.5

/** The load of the machine, and which figures to trust if it had other work. */
function loadNote({ before, after }: MachineLoad): string {
  const loads = `Load of the machine before the run: ${before.toFixed(1)}; at its end: ${after.toFixed(1)}.`
  const other = 'The machine had other work during this run: trust the CPU more than the throughput and the latencies.'
  return before > idleLoadMax ? `${loads} ${other}` : loads
}

/** All figures of a run as Markdown. */
export function toMarkdown(
  environment: Environment,
  plan: ClientPlan,
  load: MachineLoad,
  measurements: readonly ClientMeasurement[],
): string {
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    loadNote(load),
    `### Calls\n\n${table('calls', measurements)}`,
    `### Changes of live lists\n\n${table('live', measurements)}`,
  ].join('\n\n')
}
