/**
 * The benchmark: `npm run bench [-- options]`. Seeds data folders, starts the server and its baseline on copies of
 * them, measures both with the load generator in alternating rounds, prints the figures side by side, and with
 * `--write` updates `docs/benchmarks.md`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../packages/server/src/base/clock.ts'
import { createFirstSigningKey } from '../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../packages/server/src/features/users/sessions/tokens.ts'
import { runAnalytics } from './analytics/analytics.ts'
import { runClient } from './client/client.ts'
import { clientPlan } from './client/plan.ts'
import { runFunctions } from './functions/functions.ts'
import { runGrowth } from './growth/growth.ts'
import { runOverload } from './overload/overload.ts'
import { runPeers } from './peers/peers.ts'
import { runOnPostgres } from './postgres/postgres.ts'
import { runQueries } from './queries/queries.ts'
import {
  type Basics,
  busyNote,
  type MeasuredPart,
  replaceMeasured,
  type SizeBasics,
  textHeader,
  toMarkdown,
  toText,
} from './report.ts'
import { runKv } from './resources/kv.ts'
import { runSql } from './resources/sql.ts'
import { runVector } from './resources/vector.ts'
import { runRooms } from './rooms/rooms.ts'
import type { Scenario, Size } from './scenarios.ts'
import { authorAt } from './setup/data.ts'
import { readEnvironment } from './setup/environment.ts'
import { copyFolder, folderBytes } from './setup/folders.ts'
import { type Measurement, measure, median, type Plan } from './setup/measure.ts'
import { type Options, optionsOrExit } from './setup/options.ts'
import { readMemoryBytes } from './setup/proc.ts'
import { type LoadProcess, serviceKey, startBaseline, startLoad, startServer, tokenSecret } from './setup/processes.ts'
import { type OnProgress, seededFolder, seededRows } from './setup/seed.ts'
import { runStarts } from './start/start.ts'
import { runStorage } from './storage/storage.ts'
import { runLive } from './subscriptions/subscriptions.ts'
import { summaryOf } from './summary.ts'
import { runUsers } from './users/users.ts'

/** Start time on an empty folder and idle memory, before anything else has run. */
async function measureBasics(work: string): Promise<Pick<Basics, 'startEmptyMs' | 'idleBytes'>> {
  const starts: number[] = []
  let idleBytes: number | null = null
  for (let start = 0; start < 5; start++) {
    const server = await startServer(join(work, `empty-${start}`))
    starts.push(server.startMs)
    if (start === 4) {
      await fetch(`${server.url}/api/health`).then((response) => response.text())
      await Bun.sleep(1000)
      idleBytes = readMemoryBytes(server.pid, 'VmRSS')
    }
    await server.stop()
  }
  return { startEmptyMs: median(starts), idleBytes }
}

const onSeeded: OnProgress = (done, all) => progress(done === all ? '' : `Seeding ${Math.floor((done / all) * 100)} %`)

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

/** Throws unless every acknowledged row is stored. */
async function checkRowCount(url: string, scenario: Scenario, size: Size, rowsWritten: number): Promise<void> {
  const table = scenario.name === 'insert-searched' ? 'posts' : 'notes'
  const response = await fetch(`${url}/api/db/shared/tables/${table}/count`, {
    headers: { 'X-Platform-Service-Key': serviceKey },
  })
  const { total } = (await response.json()) as { total: number }
  if (total !== size.rows + rowsWritten) {
    throw new Error(`${scenario.name}: ${rowsWritten} rows were acknowledged, but ${total - size.rows} are stored`)
  }
}

/** Runs scenarios that share a pair of processes: all reads, or one that writes. */
async function runTogether(
  together: readonly Scenario[],
  context: { seeded: string; work: string; size: Size; load: LoadProcess; plan: Plan },
): Promise<{ measurements: Measurement[]; startMs: number }> {
  const { seeded, work, size, load, plan } = context
  const serverFolder = await copyFolder(seeded, join(work, 'server'))
  const baselineFolder = await copyFolder(seeded, join(work, 'baseline'))
  const server = await startServer(serverFolder)
  const baseline = await startBaseline(baselineFolder, size.rows)
  const measurements: Measurement[] = []
  try {
    for (const scenario of together) {
      const measurement = await measure(scenario, size, { server, baseline, load }, plan)
      if (scenario.writes) await checkRowCount(server.url, scenario, size, measurement.rowsWritten)
      console.log(toText(measurement))
      measurements.push(measurement)
    }
  } finally {
    await Promise.all([server.stop(), baseline.stop()])
  }
  return { measurements, startMs: server.startMs }
}

async function runSize(
  rows: number,
  options: Options,
  folders: { work: string; base: string },
  load: LoadProcess,
): Promise<{ measurements: Measurement[]; basics: SizeBasics }> {
  const { folder: seeded, seconds: seedSeconds } = await seededFolder(folders.base, rows, onSeeded)
  console.log(`\n${rows.toLocaleString('en-US')} rows\n${textHeader}`)
  const tokens = createTokens(createFirstSigningKey(tokenSecret), systemClock)
  const token = tokens.signAccess({ id: authorAt(0) })
  const context = { seeded, work: folders.work, size: { rows, token }, load, plan: options.plan }
  const reads = options.chosen.filter(({ writes }) => !writes)
  const writes = options.chosen.filter((scenario) => scenario.writes)
  const measurements: Measurement[] = []
  const starts: number[] = []
  for (const together of [reads, ...writes.map((scenario) => [scenario])]) {
    if (together.length === 0) continue
    const result = await runTogether(together, context)
    measurements.push(...result.measurements)
    starts.push(result.startMs)
  }
  const basics = {
    rows,
    seedSeconds,
    seededRows: seededRows(rows),
    dataBytes: folderBytes(seeded),
    startMs: median(starts),
  }
  return { measurements, basics }
}

function writePage(part: MeasuredPart, markdown: string): void {
  const page = fileURLToPath(new URL('../docs/benchmarks.md', import.meta.url))
  const written = replaceMeasured(readFileSync(page, 'utf8'), part, markdown)
  writeFileSync(page, replaceMeasured(written, 'summary', summaryOf(written)))
  // The page passes the same format check as the code.
  const biome = fileURLToPath(new URL('../node_modules/.bin/biome', import.meta.url))
  Bun.spawnSync([biome, 'format', '--write', page])
  console.log('\nWritten to docs/benchmarks.md')
}

async function runOnSqlite(options: Options): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  const base = options.keep ?? work
  mkdirSync(base, { recursive: true })
  const load = startLoad()
  try {
    const { startEmptyMs, idleBytes } = await measureBasics(work)
    console.log(
      `Start on an empty folder ${startEmptyMs.toFixed(0)} ms, idle ${((idleBytes ?? 0) / 1024 / 1024).toFixed(0)} MB`,
    )
    const measurements: Measurement[] = []
    const sizes: SizeBasics[] = []
    for (const rows of options.sizes) {
      const result = await runSize(rows, options, { work, base }, load)
      measurements.push(...result.measurements)
      sizes.push(result.basics)
    }
    const note = busyNote(measurements)
    if (note !== null) console.log(`\n${note}`)
    return toMarkdown(readEnvironment(work), options.plan, { startEmptyMs, idleBytes, sizes }, measurements)
  } finally {
    await load.stop()
    rmSync(work, { recursive: true, force: true })
  }
}

/** Runs the selected benchmark and returns its figures as Markdown. */
function run(options: Options): Promise<string> {
  const { part, sizes, chosen, plan, live, rooms } = options
  if (live) return runLive(live)
  if (part === 'storage') return runStorage(plan, options.quick)
  if (rooms) return runRooms(rooms)
  if (part === 'vector') return runVector(plan, options.quick)
  if (part === 'kv') return runKv(plan)
  if (part === 'sql') return runSql(plan)
  if (part === 'client') return runClient(clientPlan(plan, options.quick))
  if (part === 'functions') return runFunctions(plan, options.quick)
  if (part === 'queries') return runQueries(plan, options.quick)
  if (part === 'growth') return runGrowth({ plan, sizes, keep: options.keep, onProgress: onSeeded })
  if (part === 'overload') return runOverload(plan, onSeeded)
  if (part === 'start') return runStarts(plan, options.quick)
  if (part === 'peers') return runPeers(plan, sizes[0] ?? 0)
  if (part === 'users') return runUsers(plan, onSeeded)
  if (part === 'analytics') return runAnalytics(plan, options.quick, onSeeded)
  if (part === 'postgres') return runOnPostgres({ sizes, scenarios: chosen, plan, onProgress: onSeeded })
  return runOnSqlite(options)
}

const options = optionsOrExit(process.argv.slice(2))
const markdown = await run(options)
if (options.write) writePage(options.part, markdown)
