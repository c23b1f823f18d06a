/** The run of queries (`--queries`): related records, aggregates, places and searches. Uses private processes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { providePocketBase } from '../../scripts/servers/programs.ts'
import type { LoadRequest } from '../load/load-requests.ts'
import { measuredWith, pageTable, type Reported, textHeader, toText } from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import { copyFolder } from '../setup/folders.ts'
import { compare, type Plan, type Round, roundOf, runLoop } from '../setup/measure.ts'
import { type BaselineProcess, type LoadProcess, startListener, startLoad, startServer } from '../setup/processes.ts'
import { type Counts, commentsPerPost, places } from './data.ts'
import { openFilled } from './pocketbase.ts'
import { type QueryScenario, queryScenarios } from './scenarios.ts'
import { seedServer } from './seed.ts'

const configPath = 'bench/queries/plinth.config.ts'
const countsOf = (quick: boolean): Counts => ({
  authors: 1000,
  posts: quick ? 10_000 : 30_000,
  orders: quick ? 100_000 : 1_000_000,
})
/** A statement over a million rows takes a second. */
const aggregateSeconds = 5

interface Setup {
  readonly server: BaselineProcess
  readonly floor: BaselineProcess
  readonly pocketbase: BaselineProcess | null
  readonly load: LoadProcess
}

async function openSetup(stack: AsyncDisposableStack, work: string, counts: Counts): Promise<Setup> {
  const folder = join(work, 'server')
  const seeding = await startServer(folder, null, configPath)
  await seedServer(seeding, counts).finally(() => seeding.stop())
  const copy = await copyFolder(folder, join(work, 'floor'))
  const load = startLoad()
  stack.defer(() => load.stop())
  const program = providePocketBase()
  if (program === null) console.log('PocketBase could not be built: it is not measured.')
  const pocketbase = program === null ? null : await openFilled(program, join(work, 'pocketbase'), counts)
  stack.defer(() => pocketbase?.stop())
  const floor = await startListener(['bench/queries/baseline.ts', copy])
  stack.defer(() => floor.stop())
  const server = await startServer(folder, null, configPath)
  stack.defer(() => server.stop())
  return { server, floor, pocketbase, load }
}

async function measureScenario(scenario: QueryScenario, setup: Setup, plan: Plan): Promise<Reported> {
  const { server, floor, pocketbase, load } = setup
  const { title, connections } = scenario
  const seconds = connections === 1 ? Math.max(plan.seconds, aggregateSeconds) : plan.seconds
  const underLoad = async (target: BaselineProcess, requests: readonly LoadRequest[]): Promise<Round> => {
    const job = { ports: [target.port], connections, requests, warmupSeconds: plan.warmupSeconds, seconds, total: null }
    return roundOf(await load.run({ ...job, watched: [[target.pid]] }), 1)
  }
  const atFloor = scenario.floor
  const baselines = [
    {
      baseline: { title: atFloor.title, budget: null },
      run: () =>
        atFloor.kind === 'loop' ? runLoop(floor, atFloor.loop, seconds) : underLoad(floor, atFloor.requests()),
    },
  ]
  const atPocketBase = scenario.pocketbase
  if (pocketbase !== null && atPocketBase !== null)
    baselines.push({
      baseline: { title: 'PocketBase', budget: null },
      run: () => underLoad(pocketbase, atPocketBase()),
    })
  const run = (): Promise<Round> => underLoad(server, scenario.requests())
  return { scenario: { title }, ...(await compare({ pid: server.pid, run }, baselines, plan.rounds)) }
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runQueries(plan: Plan, quick: boolean): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const counts = countsOf(quick)
  const setup = await openSetup(stack, work, counts)
  console.log(textHeader)
  const figures: Reported[] = []
  for (const scenario of queryScenarios(counts.orders.toLocaleString('en-US'))) {
    const reported = await measureScenario(scenario, setup, plan)
    console.log(toText(reported))
    figures.push(reported)
  }
  const environment = readEnvironment(work)
  const rows = `${counts.posts.toLocaleString('en-US')} posts, ${commentsPerPost} comments each; ${places.length.toLocaleString('en-US')} places.`
  return [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), rows, pageTable(figures)].join('\n\n')
}
