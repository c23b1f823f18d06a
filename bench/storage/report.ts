/** Formats the figures of the storage run for `docs/benchmarks.md`. */

import { measuredWith, pageTable, type Reported } from '../report.ts'
import type { Environment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'

/** Circumstances of a run, beside the machine. */
export interface StorageCircumstances {
  /** Null where nginx was missing. */
  readonly nginxVersion: string | null
  /** Load average before the run, and at its end. */
  readonly loadBefore: number
  readonly loadAfter: number
}

/** All figures of a run as Markdown. */
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
    `Load of the machine before the run: ${loadBefore.toFixed(1)}; at its end: ${loadAfter.toFixed(1)}.`,
    pageTable(measurements),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}
