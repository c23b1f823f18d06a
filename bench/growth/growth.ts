/**
 * The run of growth (`--growth`): the same reads of a small and of a large table, whose results are equally large, in
 * alternating rounds. Whatever an index serves must not cost much more in the large one.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkMark, decimal, integer, markdownTable, measuredWith, megabytes } from '../report.ts'
import { countedList, type Scenario, scenarios } from '../scenarios.ts'
import { readEnvironment } from '../setup/environment.ts'
import { copyFolder, folderBytes } from '../setup/folders.ts'
import { compare, type Plan, type Round, roundOf } from '../setup/measure.ts'
import { type LoadProcess, type ServerProcess, startLoad, startServer } from '../setup/processes.ts'
import { type OnProgress, seededFolder } from '../setup/seed.ts'

export interface GrowthRun {
  readonly plan: Plan
  /** The rows of the small and of the large table. */
  readonly sizes: readonly number[]
  readonly keep: string | null
  readonly onProgress: OnProgress
}

interface Side {
  readonly rows: number
  readonly server: ServerProcess
  readonly bytes: number
}

interface Growth {
  readonly scenario: Scenario
  readonly smallUs: number | null
  readonly largeUs: number | null
}

const growthMax = 1.3
/** Longer than the interval of housekeeping, whose commits would end the mapping of the large file. */
const firstLoadSeconds = 12
const names: ReadonlySet<string> = new Set(['point', 'list', 'total', 'all', 'search'])
const chosen = [...scenarios.filter(({ name }) => names.has(name)), countedList]

async function openSide(
  stack: AsyncDisposableStack,
  { keep, onProgress }: GrowthRun,
  work: string,
  rows: number,
): Promise<Side> {
  const { folder } = await seededFolder(keep ?? work, rows, onProgress)
  const copy = await copyFolder(folder, join(work, `server-${rows}`))
  const server = await startServer(copy)
  stack.defer(() => server.stop())
  return { rows, server, bytes: folderBytes(copy) }
}

async function underLoad(
  { requests, connections, total }: Scenario,
  { rows, server }: Side,
  load: LoadProcess,
  { warmupSeconds = 0, seconds }: { warmupSeconds?: number; seconds: number },
): Promise<Round> {
  const sent = requests({ rows, token: '' })
  const job = { ports: [server.port], connections, requests: sent, warmupSeconds, seconds, total }
  return roundOf(await load.run({ ...job, watched: [[server.pid]] }), 1)
}

async function measureGrowth(
  scenario: Scenario,
  [small, large]: readonly [Side, Side],
  load: LoadProcess,
  plan: Plan,
): Promise<Growth> {
  const runOn = (side: Side) => () => underLoad(scenario, side, load, plan)
  const ofLarge = { pid: large.server.pid, run: runOn(large) }
  const { cpuUs, baselines } = await compare(ofLarge, [{ baseline: null, run: runOn(small) }], plan.rounds)
  return { scenario, smallUs: baselines[0]?.cpuUs ?? null, largeUs: cpuUs }
}

/** The budget is that of point reads, lists by an index and totals; a search ranks in a larger index. */
function lineOf({ scenario: { name, title }, smallUs, largeUs }: Growth): string[] {
  const growth = smallUs === null || largeUs === null ? null : largeUs / smallUs
  const mark = growth === null || name === 'search' ? '' : ` ${checkMark(growth <= growthMax)}`
  return [title, decimal(smallUs, 1), decimal(largeUs, 1), growth === null ? '' : `${growth.toFixed(2)}×${mark}`]
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runGrowth(run: GrowthRun): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const { plan, sizes, keep } = run
  const [smallRows, largeRows] = sizes
  if (smallRows === undefined || largeRows === undefined || sizes.length > 2)
    throw new Error('--growth compares two sizes: --rows 10k,1m')
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  if (keep !== null) mkdirSync(keep, { recursive: true })
  const load = startLoad()
  stack.defer(() => load.stop())
  const sides = [await openSide(stack, run, work, smallRows), await openSide(stack, run, work, largeRows)] as const
  const lines: string[][] = []
  for (const side of sides) await underLoad(chosen[0] as Scenario, side, load, { seconds: firstLoadSeconds })
  for (const scenario of chosen) {
    const line = lineOf(await measureGrowth(scenario, sides, load, plan))
    console.log(line.join('  '))
    lines.push(line)
  }
  const [, large] = sides
  const environment = readEnvironment(work)
  const head = ['CPU µs per request', `${integer(smallRows)} rows`, `${integer(largeRows)} rows`, 'growth']
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    `The folder with ${integer(largeRows)} rows per table takes ${megabytes(large.bytes)} MB; a server starts on it in ${Math.round(large.server.startMs)} ms.`,
    markdownTable(head, lines),
  ].join('\n\n')
}
