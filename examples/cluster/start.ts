/**
 * The atlas on PostgreSQL, Redis, three nodes and a load balancer, all on this machine, with a temporary folder and
 * free ports. Imports places, kills a node while clients write, and verifies that every acknowledged write exists. Then
 * serves until Ctrl-C and removes everything.
 *
 * node scripts/run.mjs examples/cluster/start.ts [--port 4200] [--only IS,PT | --all] [--writes 3000] [--once]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { provideHaproxy, providePostgres, provideRedis } from '../../scripts/servers/programs.ts'
import { openRedis } from '../../scripts/servers/redis.ts'
import { importAtlas } from '../atlas/import.ts'
import { check, createLoad, type Target } from './load.ts'
import { startLoadBalancer } from './load-balancer.ts'
import { makeShared, type Node, startNode } from './nodes.ts'

const nodeNames = ['node-1', 'node-2', 'node-3']
const countriesDefault = 'IS,PT,CL,LI,VA'
/** Polls of a health check before the start fails. */
const attemptsMax = 1000

/** Clean-up functions, run in reverse order. */
const cleanups: (() => unknown)[] = []

const print = (line: string): void => console.log(line)
const number = (value: number): string => value.toLocaleString('en')

function parseOptions() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '4200' },
      only: { type: 'string', default: countriesDefault },
      all: { type: 'boolean', default: false },
      writes: { type: 'string', default: '3000' },
      once: { type: 'boolean', default: false },
    },
  })
  return { ...values, port: Number(values.port), writes: Number(values.writes) }
}

function required<T>(found: T | null, name: string): T {
  if (found === null)
    throw new Error(`${name} is not installed and cannot be installed automatically. Install it first.`)
  return found
}

async function untilHealthy(url: string): Promise<void> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const response = await fetch(`${url}/api/health`).catch(() => null)
    if (response?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`${url} is not healthy`)
}

async function startEverything(port: number) {
  const programs = {
    postgres: required(providePostgres(), 'PostgreSQL'),
    redis: required(provideRedis(), 'Redis'),
    haproxy: required(provideHaproxy(), 'HAProxy'),
  }
  const folder = mkdtempSync(join(tmpdir(), 'plinth-cluster-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  const postgres = await openPostgres(programs.postgres)
  cleanups.push(postgres.remove)
  const redis = await openRedis(programs.redis)
  cleanups.push(redis.remove)
  print('PostgreSQL and Redis are running.')
  const shared = makeShared(postgres.url, redis.url)
  const nodes: Node[] = []
  // All at once, as a real cluster might: they agree on who creates the tables.
  await Promise.all(
    nodeNames.map(async (name) => {
      const node = await startNode(name, folder, shared)
      cleanups.push(node.stop)
      nodes.push(node)
    }),
  )
  nodes.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, url } of nodes) print(`${name} serves ${url}`)
  const balancer = await startLoadBalancer(programs.haproxy, folder, nodes, port)
  cleanups.push(balancer.stop)
  await untilHealthy(balancer.url)
  print(`HAProxy serves ${balancer.url}`)
  return { nodes, target: { url: balancer.url, serviceKey: shared.serviceKey } }
}

/** Kills a node under load, restarts it, and verifies the data on every node. */
async function killUnderLoad(nodes: readonly Node[], target: Target, writes: number): Promise<void> {
  const victim = nodes[1] as Node
  const load = await createLoad(target)
  print(`\nWriting through HAProxy until every write is acknowledged.`)
  await load.writeUntil(writes / 3)
  const rest = load.writeUntil(writes)
  await victim.kill()
  print(
    `${victim.name} was killed (SIGKILL) after ${number(load.acknowledged)} acknowledged writes; the other nodes continue.`,
  )
  await rest
  print(
    `${number(load.acknowledged)} writes acknowledged; ${number(load.retried)} requests retried after a lost response.`,
  )
  await victim.start()
  await untilHealthy(victim.url)
  print(`${victim.name} is running again.`)
  let isConsistent = true
  for (const { name, url } of nodes) {
    const { notes, lost, counted } = await check({ ...target, url }, load.acknowledged)
    print(`${name} has ${number(notes)} notes, a counter total of ${number(counted)}, and ${number(lost)} missing.`)
    isConsistent &&= lost === 0 && notes === load.acknowledged && counted === load.acknowledged
  }
  if (!isConsistent) throw new Error('The data differs from the acknowledged writes.')
  print('No acknowledged write was lost, and none was applied twice.')
}

async function main(): Promise<void> {
  const { port, only, all, writes, once } = parseOptions()
  const stopped = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.resolve())
  const run = async (): Promise<void> => {
    const { nodes, target } = await startEverything(port)
    await importAtlas({ ...target, ...(all ? {} : { only: only.split(',') }) })
    await killUnderLoad(nodes, target, writes)
    if (once) return
    print(`\nThe atlas is at ${target.url}/docs, with the service key ${target.serviceKey}`)
    print('Ctrl-C stops everything and removes it.')
    await stopped.promise
  }
  await Promise.race([run(), stopped.promise])
}

async function close(): Promise<void> {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
}

main().then(
  async () => {
    await close()
    process.exit(0)
  },
  async (error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    await close()
    process.exit(1)
  },
)
