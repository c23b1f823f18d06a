/**
 * The key-value run (`--kv`). Uses private processes and folders and removes them; `docs/benchmarks.md` explains the
 * figures.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LoadRequest } from '../load/load-requests.ts'
import { type Reported, textHeader, toText } from '../report.ts'
import { clients } from '../scenarios.ts'
import { readEnvironment } from '../setup/environment.ts'
import { copyFolder } from '../setup/folders.ts'
import { compare, type Plan, type Round, roundOf, runLoop } from '../setup/measure.ts'
import { loadCore } from '../setup/proc.ts'
import {
  type BaselineProcess,
  type JobProcess,
  type LoadProcess,
  type ServerProcess,
  serviceKey,
  startJobs,
  startListener,
  startLoad,
  startServer,
} from '../setup/processes.ts'
import { type Redis, readRedisVersion, startRedis } from './kv-redis.ts'
import type { RedisCommand, RedisJob, RedisResult } from './kv-redis-load.ts'
import { toMarkdown } from './kv-report.ts'
import { gets, keyAt, keyCount, kvNamespace, redisGets, redisSets, sets } from './kv-requests.ts'

interface Setup {
  readonly server: ServerProcess
  readonly baseline: BaselineProcess
  readonly load: LoadProcess
  readonly redisLoad: JobProcess<RedisJob, RedisResult>
  /** Redis with and without persistence; null where Redis is missing. */
  readonly durable: Redis | null
  readonly volatile: Redis | null
}

type BaselineLine = { readonly title: string; readonly budget: number | null }
type Competitor = { readonly baseline: BaselineLine; readonly run: () => Promise<Round> }

/** Writes every key once and stops the server, so that its file can be copied. */
async function seed(folder: string, load: LoadProcess): Promise<void> {
  const server = await startServer(folder)
  try {
    const job = { ports: [server.port], connections: clients, warmupSeconds: 0, seconds: 0, watched: [] }
    await load.run({ ...job, requests: sets(), total: keyCount })
  } finally {
    await server.stop()
  }
}

async function openSetup(stack: AsyncDisposableStack, work: string): Promise<Setup> {
  const load = startLoad()
  stack.defer(() => load.stop())
  const redisLoad = startJobs<RedisJob, RedisResult>('bench/resources/kv-redis-load.ts', loadCore)
  stack.defer(() => redisLoad.stop())
  const folder = join(work, 'server')
  await seed(folder, load)
  const baselineFolder = await copyFolder(folder, join(work, 'baseline'))
  const server = await startServer(folder)
  stack.defer(() => server.stop())
  const baseline = await startListener(['bench/resources/kv-baseline.ts', baselineFolder])
  stack.defer(() => baseline.stop())
  const [durable, volatile] = [await startRedis('always'), await startRedis('nothing')]
  for (const redis of [durable, volatile]) {
    if (redis === null) continue
    stack.defer(() => redis.stop())
    await redisLoad.run({ ...redisJob(redis, redisSets()), warmupSeconds: 0, seconds: 0, total: keyCount })
  }
  return { server, baseline, load, redisLoad, durable, volatile }
}

const redisJob = ({ port, password, pid }: Redis, commands: readonly RedisCommand[]) => ({
  port,
  password,
  pid,
  commands,
  connections: clients,
  total: null,
})

function createRuns({ load, redisLoad }: Setup, { warmupSeconds, seconds }: Plan) {
  const overHttp = (target: { pid: number; port: number }, requests: readonly LoadRequest[]) => async () => {
    const job = { ports: [target.port], connections: clients, requests, watched: [[target.pid]] }
    return roundOf(await load.run({ ...job, warmupSeconds, seconds, total: null }), 1)
  }
  const ofRedis = (title: string, redis: Redis | null, commands: readonly RedisCommand[]): Competitor[] => {
    if (redis === null) return []
    const job = { ...redisJob(redis, commands), warmupSeconds, seconds }
    const run = async () => roundOf({ ...(await redisLoad.run(job)), created: 0, renewedTexts: null }, 1)
    return [{ baseline: { title, budget: null }, run }]
  }
  return { overHttp, ofRedis }
}

async function measureKv(setup: Setup, plan: Plan, onMeasured: (one: Reported) => void): Promise<Reported[]> {
  const { server, baseline, durable, volatile } = setup
  const { overHttp, ofRedis } = createRuns(setup, plan)
  const measureOne = async (title: string, run: () => Promise<Round>, baselines: readonly Competitor[]) => {
    const measurement = { scenario: { title }, ...(await compare({ pid: server.pid, run }, baselines, plan.rounds)) }
    onMeasured(measurement)
    return measurement
  }
  const read = await measureOne(`Get, ${clients} in flight`, overHttp(server, gets()), [
    { baseline: { title: 'minimal handler', budget: null }, run: overHttp(baseline, gets()) },
    ...ofRedis('Redis GET', volatile, redisGets()),
  ])
  const written = await measureOne(`Set, on disk, ${clients} in flight`, overHttp(server, sets()), [
    {
      baseline: { title: 'loop, 64 per commit, same SQL', budget: null },
      run: () => runLoop(baseline, 'set', plan.seconds),
    },
    ...ofRedis('Redis SET, on disk', durable, redisSets()),
    ...ofRedis('Redis SET, in memory', volatile, redisSets()),
  ])
  await checkKeys(server)
  return [read, written]
}

/** Throws unless sampled keys have a value that was set under them. */
async function checkKeys({ url }: ServerProcess): Promise<void> {
  const send = async (command: object) => {
    const response = await fetch(`${url}/api/kv/${kvNamespace}`, {
      method: 'POST',
      headers: { 'X-Platform-Service-Key': serviceKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(command),
    })
    return (await response.json()) as { value: { key: string } | null }
  }
  for (let index = 0; index < keyCount; index += 97) {
    const { value } = await send({ action: 'get', key: keyAt(index) })
    if (value?.key !== keyAt(index)) throw new Error(`${keyAt(index)} has the value ${JSON.stringify(value)}`)
  }
}

/** Runs, prints, and returns the figures as Markdown. */
export async function runKv(plan: Plan): Promise<string> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'plinth-bench-'))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const setup = await openSetup(stack, work)
  if (setup.durable === null) console.log('Redis is not installed: the server is measured without it.')
  console.log(`\n${textHeader}`)
  const measurements = await measureKv(setup, plan, (measurement) => console.log(toText(measurement)))
  return toMarkdown(readEnvironment(work), plan, readRedisVersion(), measurements)
}
