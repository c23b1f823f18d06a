/** Opens the engines: databases, cluster, blob store and image library. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Config, Settings } from '../config/config.ts'
import type { Blobs } from '../engines/blobs/blobs.ts'
import type { Cluster } from '../engines/cluster/cluster.ts'
import type { Images } from '../engines/images/images.ts'
import { hasImageLibrary, openBlobs, openCluster, openImages, openSql } from '../engines/open.ts'
import type { Sql } from '../engines/sql/sql.ts'
import type { Schema } from '../features/records/schema/migrator.ts'
import { findLeftovers } from '../features/records/schema/undeclared-data.ts'
import { prepareStore, type Store } from '../features/storage/migrations.ts'
import { checkVectors } from '../features/vector/index.ts'

/** The open engines. */
export interface Engines {
  readonly sql: Sql
  readonly cluster: Cluster
  readonly blobs: Blobs
  readonly images: Images
  readonly store: Store
}

/**
 * Opens the engines and migrates the tables. Throws as `openApp` does. Each engine is added to
 * `opened` as soon as it is open, so that a later failure closes it.
 */
export async function openEngines(
  { config, settings, clock, log }: { config: Config; settings: Settings; clock: Clock; log: Log },
  schema: Schema,
  opened: AsyncDisposableStack,
): Promise<Engines> {
  const keep = <Engine extends { close(): Promise<void> }>(engine: Engine): Engine => {
    opened.defer(() => engine.close())
    return engine
  }
  const sql = keep(await openSql({ ...settings, prepareInstance: schema.prepareInstance, clock, log }))
  await checkVectors(sql, config.vector)
  await schema.migrate(sql, config.storedNamespaces, { accept: false })
  for (const warning of await findLeftovers(sql, config.storedNamespaces))
    log.warn('records.undeclared_data', { warning })
  const store = await prepareStore(sql)
  const { redisUrl, redisPrefix } = settings
  const cluster = keep(await openCluster({ redisUrl, redisPrefix, clock, log }))
  const blobs = keep(await openBlobs({ ...settings, log }))
  // A start does not wait for the blob store, but checks it, so that the log says where it is unavailable.
  void blobs.findFault().catch(() => null)
  const images = keep(openImages())
  const transforming = [...config.buckets.values()].filter((bucket) => bucket.images).map(({ name }) => name)
  if (transforming.length > 0 && !hasImageLibrary()) log.warn('images.unsupported', { buckets: transforming })
  return { sql, cluster, blobs, images, store }
}
