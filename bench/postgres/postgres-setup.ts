/**
 * Setup of a run on PostgreSQL: starts a private PostgreSQL and Redis and the nodes, and seeds them.
 */
import { join } from 'node:path'
import { openPostgres } from '../../scripts/servers/postgres.ts'
import { providePostgres, provideRedis } from '../../scripts/servers/programs.ts'
import { openRedis } from '../../scripts/servers/redis.ts'
import {
  type BaselineProcess,
  type LoadProcess,
  type ServerProcess,
  startListener,
  startLoad,
  startServer,
} from '../setup/processes.ts'
import { type OnProgress, seed } from '../setup/seed.ts'
import { findPgbench } from './pgbench.ts'
import { createNewIds } from './pgbench-scripts.ts'

export interface Setup {
  /** Temporary folder of the run. */
  readonly work: string
  readonly nodes: readonly ServerProcess[]
  /** As many bare nodes. */
  readonly bareNodes: readonly BaselineProcess[]
  readonly load: LoadProcess
  readonly databaseUrl: string
  readonly databasePid: number
  readonly databaseVersion: string
  readonly redisPid: number
  /** Path of the program; null where it is not installed. */
  readonly pgbench: string | null
  readonly seedSeconds: number
}

/**
 * Default durability, with enough memory for the table, and without a checkpoint in the middle of a round, which would
 * affect one side only.
 */
export const postgresSettings = { shared_buffers: '512MB', max_wal_size: '8GB', checkpoint_timeout: '1h' }

function required<T>(found: T | null, name: string): T {
  if (found === null) throw new Error(`${name} is not installed and cannot be installed automatically`)
  return found
}

/** Starts everything; `stack` disposes of it, also when a later start fails. */
export async function openSetup(
  stack: AsyncDisposableStack,
  options: { readonly work: string; readonly rows: number; readonly nodeCount: number },
  onProgress: OnProgress,
): Promise<Setup> {
  const { work, rows, nodeCount } = options
  const programs = required(providePostgres(), 'PostgreSQL')
  const redisProgram = required(provideRedis(), 'Redis')
  const postgres = await openPostgres(programs, postgresSettings)
  stack.defer(() => postgres.remove())
  const redis = await openRedis(redisProgram)
  stack.defer(() => redis.remove())

  const nodes: ServerProcess[] = []
  for (let at = 0; at < nodeCount; at++) {
    const node = await startServer(join(work, `node-${at}`), { databaseUrl: postgres.url, redisUrl: redis.url })
    stack.defer(() => node.stop())
    nodes.push(node)
  }
  const startedAt = performance.now()
  await seed(
    nodes.map(({ url }) => url),
    rows,
    onProgress,
  )
  const seedSeconds = (performance.now() - startedAt) / 1000
  const database = await prepareDatabase(postgres.url)

  // There are more processes than cores: none is pinned.
  const bareNodes: BaselineProcess[] = []
  for (let at = 0; at < nodeCount; at++) {
    const node = await startListener(['bench/postgres/bare-node.ts', postgres.url], null)
    stack.defer(() => node.stop())
    bareNodes.push(node)
  }
  const load = startLoad(null)
  stack.defer(() => load.stop())
  return {
    work,
    nodes,
    bareNodes,
    load,
    databaseUrl: postgres.url,
    databasePid: database.pid,
    databaseVersion: database.version,
    redisPid: await readRedisPid(redis.url),
    pgbench: findPgbench(programs.postgres),
    seedSeconds,
  }
}

/** Completes the work of seeding (vacuum, statistics, checkpoint) before anything is measured. */
async function prepareDatabase(url: string): Promise<{ pid: number; version: string }> {
  const db = new Bun.SQL(url)
  try {
    await db.unsafe(createNewIds)
    await db.unsafe('VACUUM ANALYZE')
    await db.unsafe('CHECKPOINT')
    const [row] = await db.unsafe(
      `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid, current_setting('server_version') AS version`,
    )
    return { pid: row.pid, version: String(row.version).split(' ')[0] as string }
  } finally {
    await db.close()
  }
}

async function readRedisPid(url: string): Promise<number> {
  const client = new Bun.RedisClient(url)
  try {
    const info = String(await client.send('INFO', ['server']))
    return Number(/^process_id:(\d+)/m.exec(info)?.[1])
  } finally {
    client.close()
  }
}
