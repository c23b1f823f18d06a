/**
 * The atlas on PostgreSQL, Redis, three nodes and a load balancer, all on this machine, in a folder and on ports of
 * their own. Imports places, kills a node while clients write, and shows that everything they were promised is there.
 * Then serves until Ctrl-C, and leaves nothing behind.
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
/** Polls of a health check before something is taken to be wrong. */
const attemptsMax = 1000

/** What to undo, last first. */
const opened: (() => unknown)[] = []

const say = (line: string): void => console.log(line)
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

function needed<T>(found: T | null, name: string): T {
  if (found === null) throw new Error(`${name} is not on this machine and cannot be installed here. Install it first.`)
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
    postgres: needed(providePostgres(), 'PostgreSQL'),
    redis: needed(provideRedis(), 'Redis'),
    haproxy: needed(provideHaproxy(), 'HAProxy'),
  }
  const folder = mkdtempSync(join(tmpdir(), 'plinth-cluster-'))
  opened.push(() => rmSync(folder, { recursive: true, force: true }))
  const postgres = await openPostgres(programs.postgres)
  opened.push(postgres.remove)
  const redis = await openRedis(programs.redis)
  opened.push(redis.remove)
  say('PostgreSQL and Redis are running.')
  const shared = makeShared(postgres.url, redis.url)
  const nodes: Node[] = []
  // All at once, as a real cluster might: they agree on who creates the tables.
  await Promise.all(
    nodeNames.map(async (name) => {
      const node = await startNode(name, folder, shared)
      opened.push(node.stop)
      nodes.push(node)
    }),
  )
  nodes.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, url } of nodes) say(`${name} serves ${url}`)
  const balancer = await startLoadBalancer(programs.haproxy, folder, nodes, port)
  opened.push(balancer.stop)
  await untilHealthy(balancer.url)
  say(`HAProxy serves ${balancer.url}`)
  return { nodes, target: { url: balancer.url, serviceKey: shared.serviceKey } }
}

/** Kills a node in the middle of a load, brings it back, and asks every node what is there. */
async function killUnderLoad(nodes: readonly Node[], target: Target, writes: number): Promise<void> {
  const victim = nodes[1] as Node
  const load = await createLoad(target)
  say(`\nClients write through HAProxy; each write is to be acknowledged.`)
  await load.writeUntil(writes / 3)
  const rest = load.writeUntil(writes)
  await victim.kill()
  say(`${victim.name} is killed (SIGKILL) after ${number(load.acknowledged)} acknowledged writes; the others go on.`)
  await rest
  say(
    `${number(load.acknowledged)} writes are acknowledged; ${number(load.repeated)} were sent again for want of an answer.`,
  )
  await victim.start()
  await untilHealthy(victim.url)
  say(`${victim.name} is back.`)
  let isRight = true
  for (const { name, url } of nodes) {
    const { notes, lost, counted } = await check({ ...target, url }, load.acknowledged)
    say(`${name} has ${number(notes)} notes, counts ${number(counted)}, and lacks ${number(lost)}.`)
    isRight &&= lost === 0 && notes === load.acknowledged && counted === load.acknowledged
  }
  if (!isRight) throw new Error('What was acknowledged is not what is there.')
  say('No acknowledged write is lost, and none happened twice.')
}

async function main(): Promise<void> {
  const { port, only, all, writes, once } = parseOptions()
  const stopped = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.resolve())
  const working = async (): Promise<void> => {
    const { nodes, target } = await startEverything(port)
    await importAtlas({ ...target, ...(all ? {} : { only: only.split(',') }) })
    await killUnderLoad(nodes, target, writes)
    if (once) return
    say(`\nThe atlas is at ${target.url}/docs, with the service key ${target.serviceKey}`)
    say('Ctrl-C stops everything and removes it.')
    await stopped.promise
  }
  await Promise.race([working(), stopped.promise])
}

async function close(): Promise<void> {
  for (const undo of opened.splice(0).reverse()) await undo()
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
