/**
 * Chooses the engines from the settings. The only file that names adapters. Adapters of remote servers are loaded on
 * demand: their libraries are a fifth of the start time and memory of a server without them.
 */
import { join } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { imageTimeoutMs } from '../limits/storage.ts'
import type { BackupRuns, BackupRunsOptions } from './backup/backup-runs.ts'
import type { Blobs } from './blobs/blobs.ts'
import { openFsBlobs } from './blobs/fs.ts'
import type { StoreAddress } from './blobs/store-address.ts'
import type { Cluster } from './cluster/cluster.ts'
import { createMemoryCluster } from './cluster/memory.ts'
import { HostPool, type HostPoolOptions } from './hosts/host-pool.ts'
import type { FunctionHosts } from './hosts/hosts.ts'
import type { Images } from './images/images.ts'
import { openImageProcesses } from './images/process.ts'

export { hasImageLibrary } from './images/process.ts'

import type { Sandboxes } from './sandbox/sandbox.ts'
import { createSqliteSandboxes } from './sandbox/sqlite/sqlite.ts'
import type { Circuit } from './sql/circuit.ts'
import type { Sql } from './sql/sql.ts'
import type { PrepareInstance } from './sqlite/instances/instance-pool.ts'
import { openSqlite } from './sqlite/sqlite.ts'
import { openVectorThreads } from './vectors/threads.ts'
import type { Vectors } from './vectors/vectors.ts'

/**
 * PostgreSQL if it is configured, else SQLite in the data folder. Waits a bounded time for PostgreSQL; rejects with
 * `EngineError` after it.
 */
export async function openSql(options: {
  databaseUrl: string | null
  dataFolder: string
  acceptsLoss?: boolean
  prepareInstance: PrepareInstance
  clock?: Clock
  log: Log
}): Promise<Sql> {
  const { databaseUrl, dataFolder, acceptsLoss = false, prepareInstance, clock = systemClock, log } = options
  if (databaseUrl === null) return openSqlite({ folder: dataFolder, acceptsLoss, prepareInstance, clock })
  const { openPostgres } = await import('./postgres/postgres.ts')
  const engine = openPostgres({ url: databaseUrl, log })
  await engine.waitUntilReady()
  return engine
}

/** Opens even if Redis is unavailable; the cluster is unhealthy until it is back. */
export async function openCluster(options: {
  redisUrl: string | null
  redisPrefix: string
  clock: Clock
  log: Log
}): Promise<Cluster> {
  const { redisUrl, redisPrefix, clock, log } = options
  if (redisUrl === null) return createMemoryCluster({ clock, log })
  const { openRedisCluster } = await import('./cluster/redis.ts')
  return openRedisCluster({ url: redisUrl, prefix: redisPrefix, log })
}

/**
 * Opens even if the store is unavailable; the node is unhealthy until it is back. Throws if the folder cannot be used.
 */
export async function openBlobs(options: { s3: StoreAddress | null; dataFolder: string; log: Log }): Promise<Blobs> {
  const { s3, dataFolder, log } = options
  if (s3 === null) return openFsBlobs({ folder: join(dataFolder, 'blobs') })
  const { openS3Blobs } = await import('./blobs/s3.ts')
  return openS3Blobs({ ...s3, spoolFolder: join(dataFolder, 'spool'), log })
}

/** Vector search in threads of this process; saved graphs are in the data folder. */
export const openVectors = ({ dataFolder, log }: { dataFolder: string; log: Log }): Vectors =>
  openVectorThreads({ folder: join(dataFolder, 'vectors'), log })

/** Databases for untrusted statements: in PostgreSQL if it is configured, else in files of the data folder. */
export async function createSandboxes(options: {
  databaseUrl: string | null
  dataFolder: string
  secret: string
  /** The relational engine's circuit, which the sandboxes share. */
  circuit: Circuit | null
  log: Log
}): Promise<Sandboxes> {
  const { databaseUrl, dataFolder, secret, circuit, log } = options
  if (databaseUrl === null || circuit === null) return createSqliteSandboxes({ folder: join(dataFolder, 'sql') })
  const { createPostgresSandboxes } = await import('./sandbox/postgres/postgres.ts')
  return createPostgresSandboxes({ url: databaseUrl, secret, circuit, log })
}

/** Image processes start on demand. */
export const openImages = (): Images => openImageProcesses({ timeoutMs: imageTimeoutMs })

/** Backups that the server starts. Must be closed. */
export async function openBackupRuns(options: BackupRunsOptions): Promise<BackupRuns> {
  const { BackupProcesses } = await import('./backup/backup-runs.ts')
  return new BackupProcesses(options)
}

/** Starts no process before code is loaded. */
export const openHosts = (options: HostPoolOptions): FunctionHosts => new HostPool(options)
