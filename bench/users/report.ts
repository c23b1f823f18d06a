/** Figures of a run about users as text: their part of `docs/benchmarks.md`. */

import { columns, linesOf, markdownTable, measuredWith, percent, type Reported } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import { median, type Plan } from '../setup/measure.ts'

/** Everything a run found out, as Markdown. */
export function toMarkdown(environment: Environment, plan: Plan, measurements: readonly Reported[]): string {
  const sections = [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    busyNote(measurements) ?? '',
    markdownTable(columns, measurements.flatMap(linesOf)),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

/** Most baselines are reads at full load or hashes, which leave nothing of a unlogged core. */
const idleShareMin = 0.9

/** A sentence when the machine had other work during the run; null when it had not, or when nobody can say. */
export function busyNote(measurements: readonly Reported[]): string | null {
  const shares = measurements.flatMap(({ baselines }) => baselines.flatMap(({ serverShare }) => serverShare ?? []))
  if (shares.length === 0) return null
  const share = median(shares)
  if (share >= idleShareMin) return null
  return `The machine had other work during this run: baselines at full load got only ${percent(share)} of their core. Trust the CPU ratios more than the throughput.`
}
