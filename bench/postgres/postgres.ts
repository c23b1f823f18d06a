/**
 * The run on PostgreSQL (`--postgres`): the scenarios that pgbench supports, on one, two and four nodes, beside
 * pgbench. Uses private servers and removes them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scenario } from '../scenarios.ts'
import { readEnvironment } from '../setup/environment.ts'
import type { Plan } from '../setup/measure.ts'
import { type OnProgress, seededRows } from '../setup/seed.ts'
import { measureOnPostgres, type PostgresMeasurement } from './postgres-measure.ts'
import { busyNote, type PostgresSize, textHeader, toMarkdown, toText } from './postgres-report.ts'
import { openSetup, type Setup } from './postgres-setup.ts'

export interface PostgresRun {
  readonly sizes: readonly number[]
  readonly scenarios: readonly Scenario[]
  readonly plan: Plan
  readonly onProgress: OnProgress
}

const nodeCounts = [1, 2, 4]
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs, prints, and returns the figures as Markdown. */
export async function runOnPostgres(run: PostgresRun): Promise<string> {
  const { sizes, plan } = run
  const measurements: PostgresMeasurement[] = []
  const seeded: PostgresSize[] = []
  let version = ''
  for (const rows of sizes) {
    const result = await runSize(run, rows)
    measurements.push(...result.measurements)
    seeded.push({ rows, seededRows: seededRows(rows), seedSeconds: result.seedSeconds })
    version = result.version
  }
  const note = busyNote(measurements)
  if (note !== null) console.log(`\n${note}`)
  return toMarkdown(readEnvironment(tmpdir()), version, plan, seeded, measurements)
}

/** Measures one table size; a signal ends the run early and removes everything. */
async function runSize(
  { scenarios, plan, onProgress }: PostgresRun,
  rows: number,
): Promise<{ measurements: PostgresMeasurement[]; seedSeconds: number; version: string }> {
  await using stack = new AsyncDisposableStack()
  let ending: Promise<void> | null = null
  const endEarly = (): void => {
    ending ??= stack.disposeAsync().finally(() => process.exit(130))
  }
  for (const signal of signals) process.on(signal, endEarly)
  // The data folders of the nodes.
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  try {
    const setup = await openSetup(stack, { work, rows, nodeCount: Math.max(...nodeCounts) }, onProgress)
    printHeader(setup, rows)
    const measurements: PostgresMeasurement[] = []
    const written = { rows }
    for (const scenario of scenarios) {
      const measurement = await measureOnPostgres(scenario, setup, nodeCounts, rows, written, plan)
      console.log(toText(measurement))
      measurements.push(measurement)
    }
    return { measurements, seedSeconds: setup.seedSeconds, version: setup.databaseVersion }
  } catch (error) {
    // Errors during a shutdown are expected.
    await ending
    throw error
  } finally {
    for (const signal of signals) process.off(signal, endEarly)
  }
}

function printHeader({ pgbench, databaseVersion }: Setup, rows: number): void {
  if (pgbench === null) console.log('\npgbench IS NOT INSTALLED (Debian: postgresql-contrib). The baseline is skipped.')
  console.log(`\nPostgreSQL ${databaseVersion}, ${rows.toLocaleString('en-US')} rows\n${textHeader}`)
}
