/** The run beside peers (`--peers`): the same posts, rule and requests on Plinth, PocketBase and TrailBase. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { providePocketBase } from '../../scripts/servers/programs.ts'
import { provideTrailBase } from '../../scripts/servers/trailbase.ts'
import {
  integer,
  markdownTable,
  measuredWith,
  megabytes,
  pageTable,
  type Reported,
  textHeader,
  toText,
} from '../report.ts'
import { readEnvironment } from '../setup/environment.ts'
import { compare, type Plan, type Round, roundOf } from '../setup/measure.ts'
import { type LoadProcess, startLoad } from '../setup/processes.ts'
import { openPlinth } from './plinth.ts'
import { openPocketBasePeer } from './pocketbase.ts'
import { type Peer, type Work, works } from './posts.ts'
import { openTrailBase } from './trailbase.ts'

interface Setup {
  readonly plinth: Peer
  readonly peers: readonly Peer[]
  readonly load: LoadProcess
}

async function openSetup(stack: AsyncDisposableStack, folder: string, rows: number): Promise<Setup> {
  const load = startLoad()
  stack.defer(() => load.stop())
  const opened = async (opening: Promise<Peer>): Promise<Peer> => {
    const peer = await opening
    stack.defer(() => peer.stop())
    return peer
  }
  const programs = [
    { title: 'PocketBase', provide: providePocketBase, open: openPocketBasePeer },
    { title: 'TrailBase', provide: provideTrailBase, open: openTrailBase },
  ]
  const peers: Peer[] = []
  for (const { title, provide, open } of programs) {
    const program = provide()
    if (program === null) console.log(`${title} could not be built: it is not measured.`)
    else peers.push(await opened(open(program, join(folder, title), rows)))
  }
  return { plinth: await opened(openPlinth(join(folder, 'Plinth'), rows)), peers, load }
}

async function measureWork(work: Work, { plinth, peers, load }: Setup, rows: number, plan: Plan): Promise<Reported> {
  const { title, connections } = work
  const underLoad = async ({ port, pid, dialect }: Peer): Promise<Round> => {
    const { warmupSeconds, seconds } = plan
    const requests = work.requests(dialect, rows)
    const job = { ports: [port], connections, requests, warmupSeconds, seconds, total: null, watched: [[pid]] }
    return roundOf(await load.run(job), 1)
  }
  const baselines = peers.map((peer) => ({
    baseline: { title: peer.title, budget: null },
    run: () => underLoad(peer),
  }))
  // The first work that lists would otherwise be charged for compiling what lists run.
  for (const peer of [plinth, ...peers]) await underLoad(peer)
  const comparison = await compare({ pid: plinth.pid, run: () => underLoad(plinth) }, baselines, plan.rounds)
  return { scenario: { title }, ...comparison }
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runPeers(plan: Plan, rows: number): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const setup = await openSetup(stack, folder, rows)
  console.log(textHeader)
  const figures: Reported[] = []
  for (const work of works) {
    const reported = await measureWork(work, setup, rows, plan)
    console.log(toText(reported))
    figures.push(reported)
  }
  const all = [setup.plinth, ...setup.peers]
  const disk = all.map(({ title, bytes }) => [title, megabytes(bytes), integer(bytes / rows)])
  const sizes = markdownTable(['disk', 'MB', 'bytes per post'], disk)
  console.log(`\n${sizes}`)
  const environment = readEnvironment(folder)
  const posts = `${integer(rows)} posts.`
  return [measuredWith(environment, `SQLite ${environment.sqlite}`, plan), posts, pageTable(figures), sizes].join(
    '\n\n',
  )
}
