/** Formats the figures of the key-value run for `docs/benchmarks.md`. */

import { measuredWith, pageTable, type Reported } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { busyNote } from '../users/report.ts'

/** All figures of a run as Markdown. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  redisVersion: string,
  measurements: readonly Reported[],
): string {
  const sections = [
    measuredWith(environment, `SQLite ${environment.sqlite}, Redis ${redisVersion}`, plan),
    busyNote(measurements) ?? '',
    pageTable(measurements),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}
