/** Figures of a run about files as text: their part of `docs/benchmarks.md`. */

import { columns, linesOf, markdownTable, measuredWith, type Reported } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'

/** What the figures depend on besides the machine. */
export interface StorageCircumstances {
  /** Null where there was none. */
  readonly nginxVersion: string | null
  /** Processes that wanted a core or the disk in the minute before the run, and in its last, its own included. */
  readonly loadBefore: number
  readonly loadAfter: number
}

/** Everything a run found out, as Markdown. */
export function toMarkdown(
  environment: Environment,
  plan: Plan,
  { nginxVersion, loadBefore, loadAfter }: StorageCircumstances,
  measurements: readonly Reported[],
): string {
  const programs = `SQLite ${environment.sqlite}, ${nginxVersion === null ? 'no nginx' : `nginx ${nginxVersion}`}`
  const sections = [
    measuredWith(environment, programs, plan),
    nginxVersion === null ? '**There was no nginx on this machine: downloads have no baseline.**' : '',
    `Load of the machine in the minute before the run: ${loadBefore.toFixed(1)}; in its last, with the run itself: ${loadAfter.toFixed(1)}.`,
    markdownTable(columns, measurements.flatMap(linesOf)),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}
