/** Formats the figures of the users run for `docs/benchmarks.md`. */

import { measuredWith, pageTable, percent, type Reported } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import { median, type Plan } from '../setup/measure.ts'

/** All figures of a run as Markdown, with the first baseline of each. */
export function toMarkdown(environment: Environment, plan: Plan, measurements: readonly Reported[]): string {
  const sections = [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    busyNote(measurements) ?? '',
    pageTable(measurements.map((one) => ({ ...one, baselines: one.baselines.slice(0, 1) }))),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}

/** Most baselines are saturating reads or hashes, which use all of an otherwise idle core. */
const idleShareMin = 0.9

/** A warning when the machine had other work during the run; null otherwise, or without figures. */
export function busyNote(measurements: readonly Reported[]): string | null {
  const shares = measurements.flatMap(({ baselines }) => baselines.flatMap(({ serverShare }) => serverShare ?? []))
  if (shares.length === 0) return null
  const share = median(shares)
  if (share >= idleShareMin) return null
  return `The machine had other work during this run: baselines at full load got only ${percent(share)} of their core. Trust the CPU ratios more than the throughput.`
}
