/** Opens the engines (databases, cluster, blob store, image library, vectors, sandboxes) and migrates the tables. */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { Blobs } from '../engines/blobs/blobs.ts'
import type { Cluster } from '../engines/cluster/cluster.ts'
import type { Images } from '../engines/images/images.ts'
import { type Mails, openMails } from '../engines/mail/mail.ts'
import {
  createSandboxes,
  hasImageLibrary,
  openBlobs,
  openCluster,
  openImages,
  openSql,
  openVectors,
} from '../engines/open.ts'
import type { Sandboxes } from '../engines/sandbox/sandbox.ts'
import { createIndexUses, type IndexUses } from '../engines/sql/index-uses.ts'
import type { Sql } from '../engines/sql/sql.ts'
import { tracedSql } from '../engines/sql/traced-sql.ts'
import type { Vectors } from '../engines/vectors/vectors.ts'
import { preparePlatformLog } from '../features/records/changes/platform-log.ts'
import { createSchema, type Schema } from '../features/records/schema/migrator.ts'
import { findLeftovers } from '../features/records/schema/undeclared-data.ts'
import { prepareStorageTables, type Store, storageNamespace } from '../features/storage/migrations.ts'
import { checkVectors } from '../features/vector/index.ts'
import type { AppContext, DataContext } from './context.ts'

/** The databases, and the migrations of the tables in them. */
export interface Data {
  readonly sql: Sql
  readonly schema: Schema
  /** Of the statements of sampled requests. */
  readonly indexUses: IndexUses
}

/** The open engines. */
export interface Engines extends Data {
  readonly cluster: Cluster
  readonly blobs: Blobs
  readonly images: Images
  readonly mails: Mails
  readonly vectors: Vectors
  readonly sandboxes: Sandboxes
  readonly store: Store
}

export async function openDatabases(context: DataContext): Promise<Data> {
  const { settings, clock, log } = context
  const schema = createSchema({ namespaces: () => context.config.namespaces, log })
  const sql = await openSql({ ...settings, prepareInstance: schema.prepareInstance, clock, log })
  const indexUses = createIndexUses()
  return { schema, sql: tracedSql(sql, indexUses), indexUses }
}

/** Throws `ConfigError` or `SchemaError` if the data is incompatible with a configuration. */
export async function migrate({ sql, schema }: Pick<Data, 'sql' | 'schema'>, config: Config): Promise<void> {
  await checkVectors(sql, config.vector)
  await schema.migrate(sql, config.storedNamespaces, { accept: false })
}

/**
 * Opens the engines and migrates the tables. Throws as `openApp` does. Each engine is added to
 * `opened` as soon as it is open, so that a later failure closes it.
 */
export async function openEngines(context: AppContext, opened: AsyncDisposableStack): Promise<Engines> {
  const { settings, config, clock, log } = context
  const keep = <Engine extends { close(): Promise<void> }>(engine: Engine): Engine => {
    opened.defer(() => engine.close())
    return engine
  }
  const { sql, schema, indexUses } = await openDatabases(context)
  keep(sql)
  await migrate({ sql, schema }, config)
  for (const warning of await findLeftovers(sql, config.storedNamespaces))
    log.warn('records.undeclared_data', { warning })
  const store = await prepareStorageTables(sql)
  await preparePlatformLog(store.database, storageNamespace)
  const { redisUrl, redisPrefix } = settings
  const cluster = keep(await openCluster({ redisUrl, redisPrefix, clock, log }))
  const blobs = keep(await openBlobs({ ...settings, log }))
  // A start does not wait for the blob store, but checks it, so that the log says where it is unavailable.
  void blobs.findFault().catch(() => null)
  const images = keep(openImages())
  const transforming = [...config.buckets.values()].filter((bucket) => bucket.images).map(({ name }) => name)
  if (transforming.length > 0 && !hasImageLibrary()) log.warn('images.unsupported', { buckets: transforming })
  const mails = keep(openMailsOf(context))
  const vectors = keep(openVectors({ dataFolder: settings.dataFolder, log }))
  const sandboxes = await createSandboxes({ ...settings, circuit: sql.circuit, log })
  return { sql, schema, indexUses, cluster, blobs, images, mails, vectors, sandboxes, store }
}

/** Why an engine does not work, by engine; null for one that does. */
export async function findFaults({ sql, blobs, cluster }: Pick<Engines, 'sql' | 'blobs' | 'cluster'>) {
  const [sqlFault, blobsFault] = await Promise.all([sql.findFault(), blobs.findFault()])
  return { sql: sqlFault, blobs: blobsFault, cluster: cluster.findFault() }
}

/** In development mode without a mail server, mails go to the outbox. */
const openMailsOf = (context: AppContext): Mails =>
  context.substitutes.mails ??
  openMails({
    server: () => context.config.auth.mail?.smtp ?? null,
    from: () => context.config.auth.mail?.from ?? null,
    outboxFolder: context.config.mode === 'development' ? join(context.settings.dataFolder, 'outbox') : null,
    clock: context.clock,
    log: context.log,
  })
