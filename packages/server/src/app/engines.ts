/** Opening everything outside the process, in order, and letting go of it in the reverse order. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Config, Settings } from '../config/config.ts'
import type { Blobs } from '../engines/blobs/blobs.ts'
import type { Cluster } from '../engines/cluster/cluster.ts'
import type { Images } from '../engines/images/images.ts'
import { hasImageLibrary, openBlobs, openCluster, openImages, openSql } from '../engines/open.ts'
import type { Sql } from '../engines/sql/sql.ts'
import type { Schema } from '../features/records/schema/schema.ts'
import { findLeftovers } from '../features/records/schema/schema-leftovers.ts'
import { prepareStore, type Store } from '../features/storage/schema.ts'
import { checkVectors } from '../features/vector/index.ts'

/** A step of the start: what was opened before it is let go when it fails. */
export async function orClose<T>(opened: { close(): Promise<void> }, step: () => T | Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Everything outside the process, opened. */
export interface Engines {
  readonly sql: Sql
  readonly cluster: Cluster
  readonly blobs: Blobs
  readonly images: Images
  readonly store: Store
  close(): Promise<void>
}

/** Closes what was opened, the last first. */
export const closing = (opened: readonly { close(): Promise<void> }[]) => ({
  async close() {
    for (const one of opened.toReversed()) await one.close()
  },
})

/** Opens the engines and brings the tables to the configuration. Throws as `openApp` does, with everything let go. */
export async function openEngines(
  { config, settings }: { config: Config; settings: Settings },
  schema: Schema,
  clock: Clock,
  log: Log,
): Promise<Engines> {
  const sql = await openSql({ ...settings, prepareInstance: schema.prepareInstance, clock, log })
  await orClose(sql, () => checkVectors(sql, config.vector))
  await orClose(sql, () => schema.migrate(sql, config.storedNamespaces, { accept: false }))
  for (const warning of await orClose(sql, () => findLeftovers(sql, config.storedNamespaces)))
    log.warn('records.undeclared_data', { warning })
  const store = await orClose(sql, () => prepareStore(sql))
  const { redisUrl, redisPrefix } = settings
  const cluster = await orClose(sql, () => openCluster({ redisUrl, redisPrefix, clock, log }))
  const blobs = await orClose(closing([sql, cluster]), () => openBlobs({ ...settings, log }))
  // A start does not wait for the store, but asks for it, so that the log says where it is away.
  void blobs.findFault().catch(() => null)
  const images = openImages()
  const transforming = [...config.buckets.values()].filter((bucket) => bucket.images).map(({ name }) => name)
  if (transforming.length > 0 && !hasImageLibrary()) log.warn('images.unsupported', { buckets: transforming })
  return { sql, cluster, blobs, images, store, ...closing([sql, cluster, blobs, images]) }
}
