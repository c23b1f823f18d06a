/**
 * The SQL run (`--sql`): the same statements through the server and with each engine's bare driver, in alternating
 * rounds. Uses private processes and folders and removes them.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { providePostgres, provideRedis } from '../../scripts/servers/programs.ts'
import { openRedis } from '../../scripts/servers/redis.ts'
import { measuredWith, pageTable, type Reported, textHeader, toText } from '../report.ts'
import { clients, post } from '../scenarios.ts'
import { readEnvironment } from '../setup/environment.ts'
import { compare, type Plan, type Round, roundOf, runLoop } from '../setup/measure.ts'
import {
  type BaselineProcess,
  type LoadProcess,
  type ServerProcess,
  type Shared,
  serviceKey,
  startListener,
  startLoad,
  startServer,
} from '../setup/processes.ts'
import { listRows, type StatementName, seedStatements, statements, valuesAt } from './sql-statements.ts'

/** Number of different requests, sent in a cycle. */
const variety = 1000

/** What is measured: statements, and how many clients send them at once. */
const scenarios: readonly { readonly name: StatementName; readonly title: string; readonly connections: number }[] = [
  { name: 'point', title: 'Point read, one client', connections: 1 },
  { name: 'point', title: `Point read, ${clients} clients`, connections: clients },
  { name: 'list', title: `${listRows} rows, ${clients} clients`, connections: clients },
  { name: 'insert', title: `Durable insert, ${clients} clients`, connections: clients },
]

interface Setup {
  readonly engine: string
  readonly server: ServerProcess
  readonly baseline: BaselineProcess
  readonly load: LoadProcess
}

const path = '/api/sql/bench'

async function openSetup(
  stack: AsyncDisposableStack,
  options: { engine: string; folder: string; shared: Shared | null; load: LoadProcess },
): Promise<Setup> {
  const { engine, folder, shared, load } = options
  const server = await startServer(folder, shared, 'bench/resources/plinth.config.ts')
  stack.defer(() => server.stop())
  for (const query of seedStatements(shared === null ? 'INTEGER' : 'SERIAL')) {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Platform-Service-Key': serviceKey },
      body: JSON.stringify({ query }),
    })
    if (response.status !== 200) throw new Error(`${query}: ${await response.text()}`)
  }
  const baseline = await startListener(['bench/resources/sql-baseline.ts', shared?.databaseUrl ?? folder])
  stack.defer(() => baseline.stop())
  return { engine, server, baseline, load }
}

/** The server and its child processes; PostgreSQL's are not included. */
function familyOf(pid: number): number[] {
  const children = readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      return readFileSync(`/proc/${entry}/status`, 'utf8').includes(`\nPPid:\t${pid}\n`)
    } catch {
      return false
    }
  })
  return [pid, ...children.map(Number)]
}

function createRequests(name: StatementName) {
  const head = `POST ${path} HTTP/1.1\r\n`
  return Array.from({ length: variety }, (_, index) => {
    const request = post(path, { query: statements[name], params: valuesAt(name, index) }, { status: 200 })
    return { ...request, text: request.text.replace(head, `${head}X-Platform-Service-Key: ${serviceKey}\r\n`) }
  })
}

async function measureSql({ engine, server, baseline, load }: Setup, plan: Plan): Promise<Reported[]> {
  const measurements: Reported[] = []
  for (const { name, title, connections } of scenarios) {
    const requests = createRequests(name)
    const underLoad = async (seconds: number): Promise<Round> => {
      const { warmupSeconds } = plan
      const watched = [familyOf(server.pid)]
      const job = { ports: [server.port], connections, requests, warmupSeconds, seconds, total: null, watched }
      return roundOf(await load.run(job), 1)
    }
    // Starts the child processes whose CPU is measured.
    await underLoad(0.2)
    const comparison = await compare(
      { pid: server.pid, run: () => underLoad(plan.seconds) },
      [
        {
          baseline: { title: 'bare driver', budget: null },
          run: () => runLoop(baseline, name, plan.seconds),
        },
      ],
      plan.rounds,
    )
    const measurement = { scenario: { title: `${engine}: ${title}` }, ...comparison }
    console.log(toText(measurement))
    measurements.push(measurement)
  }
  return measurements
}

/** A private PostgreSQL and Redis; null where they are missing. */
async function openShared(stack: AsyncDisposableStack): Promise<Shared | null> {
  const [postgresPrograms, redisProgram] = [providePostgres(), provideRedis()]
  if (postgresPrograms === null || redisProgram === null) return null
  const postgres = await openPostgres(postgresPrograms)
  stack.defer(() => postgres.remove())
  const redis = await openRedis(redisProgram)
  stack.defer(() => redis.remove())
  return { databaseUrl: postgres.url, redisUrl: redis.url }
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runSql(plan: Plan): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const load = startLoad()
  stack.defer(() => load.stop())
  console.log(`\n${textHeader}`)
  const measurements: Reported[] = []
  const shared = await openShared(stack)
  for (const [engine, by] of [
    ['SQLite', null],
    ['PostgreSQL', shared],
  ] as const) {
    if (engine === 'PostgreSQL' && by === null) continue
    await using own = new AsyncDisposableStack()
    const folder = join(work, engine)
    mkdirSync(folder)
    measurements.push(...(await measureSql(await openSetup(own, { engine, folder, shared: by, load }), plan)))
  }
  const environment = readEnvironment(work)
  return [
    measuredWith(environment, `SQLite ${environment.sqlite}`, plan),
    shared === null ? '**There was no PostgreSQL on this machine.**' : '',
    pageTable(measurements),
  ]
    .filter((section) => section !== '')
    .join('\n\n')
}
