/** Tables of storage: their migrations and their names in statements. Decision 11 describes their contents. */
import { randomBytes } from 'node:crypto'
import type { Dialect } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql/sql-text.ts'

export const storageNamespace = '_storage'

const tableNames = [
  'objects',
  'blobs',
  'uploads',
  'parts',
  'grants',
  'usage',
  'derived',
  'deployment',
  'garbage',
  'leases',
  'kept',
] as const
export type StorageTable = (typeof tableNames)[number]

/** Each table as the target of a statement. */
export type StorageTables = Readonly<Record<StorageTable, SqlText>>

/** The feature's database and its tables by name. */
export interface Store {
  readonly database: Database
  readonly tables: StorageTables
  /** Prefix of all blob ids, which distinguishes deployments that share one S3 bucket. */
  readonly deployment: string
}

const typeText = (type: string): SqlText => ({ text: type, values: [] })

function tablesOf(dialect: Dialect): StorageTables {
  const entries = tableNames.map((name) => [name, dialect.target(platformTable(storageNamespace, name))])
  return Object.fromEntries(entries) as StorageTables
}

const firstStep: PlatformStep = (dialect) => {
  const { objects, blobs, uploads, parts, grants, usage, derived, deployment } = tablesOf(dialect)
  const text = typeText(dialect.columnTypes.text)
  const number = typeText(dialect.columnTypes.number)
  const json = typeText(dialect.columnTypes.json)
  return [
    sql`CREATE TABLE ${objects} (bucket ${text} NOT NULL, key ${text} NOT NULL, size ${number} NOT NULL,
      ${ident('contentType')} ${text} NOT NULL, ${ident('uploadedBy')} ${text}, ${ident('createdAt')} ${text} NOT NULL,
      ${ident('_extra')} ${json} NOT NULL, version ${text} NOT NULL, etag ${text} NOT NULL, blobs ${json} NOT NULL,
      PRIMARY KEY (bucket, key))`,
    sql`CREATE INDEX objects_uploader ON ${objects} (bucket, ${ident('uploadedBy')}, key)`,
    sql`CREATE TABLE ${blobs} (id ${text} PRIMARY KEY, sweepafter ${number})`,
    sql`CREATE INDEX blobs_sweep ON ${blobs} (sweepafter)`,
    sql`CREATE TABLE ${uploads} (id ${text} PRIMARY KEY, bucket ${text} NOT NULL, key ${text} NOT NULL,
      kind ${text} NOT NULL, type ${text} NOT NULL, metadata ${json} NOT NULL, uploader ${text}, owner ${text} NOT NULL,
      budget ${number}, reserved ${number} NOT NULL, length ${number}, received ${number} NOT NULL,
      touched ${number} NOT NULL, done ${number} NOT NULL)`,
    sql`CREATE INDEX uploads_owner ON ${uploads} (bucket, owner)`,
    sql`CREATE INDEX uploads_touched ON ${uploads} (touched)`,
    sql`CREATE TABLE ${parts} (upload ${text} NOT NULL, number ${number} NOT NULL, blob ${text} NOT NULL,
      size ${number} NOT NULL, etag ${text} NOT NULL, sniffed ${text}, PRIMARY KEY (upload, number))`,
    sql`CREATE TABLE ${grants} (id ${text} PRIMARY KEY, expires ${number} NOT NULL)`,
    sql`CREATE INDEX grants_expires ON ${grants} (expires)`,
    sql`CREATE TABLE ${usage} (bucket ${text} NOT NULL, owner ${text} NOT NULL, bytes ${number} NOT NULL,
      PRIMARY KEY (bucket, owner))`,
    sql`CREATE TABLE ${derived} (version ${text} NOT NULL, variant ${text} NOT NULL, blob ${text} NOT NULL,
      size ${number} NOT NULL, etag ${text} NOT NULL, type ${text} NOT NULL, made ${number} NOT NULL,
      PRIMARY KEY (version, variant))`,
    sql`CREATE TABLE ${deployment} (id ${text} PRIMARY KEY)`,
  ]
}

/** Adds counts of released blobs, and leases for backups. Older rows have no counts. */
const garbageStep: PlatformStep = (dialect) => {
  const { blobs, garbage, leases } = tablesOf(dialect)
  const text = typeText(dialect.columnTypes.text)
  const number = typeText(dialect.columnTypes.number)
  return [
    sql`ALTER TABLE ${blobs} ADD COLUMN bucket ${text}`,
    sql`ALTER TABLE ${blobs} ADD COLUMN owner ${text}`,
    sql`ALTER TABLE ${blobs} ADD COLUMN size ${number}`,
    sql`ALTER TABLE ${blobs} ADD COLUMN released ${number}`,
    sql`CREATE INDEX blobs_released ON ${blobs} (bucket, released) WHERE released IS NOT NULL`,
    sql`CREATE INDEX blobs_released_owner ON ${blobs} (bucket, owner, released)
      WHERE released IS NOT NULL AND owner IS NOT NULL`,
    sql`CREATE TABLE ${garbage} (bucket ${text} NOT NULL, owner ${text} NOT NULL, bytes ${number} NOT NULL,
      blobs ${number} NOT NULL, bytesmax ${number} NOT NULL, blobsmax ${number} NOT NULL, PRIMARY KEY (bucket, owner))`,
    sql`CREATE INDEX garbage_over ON ${garbage} (bucket, owner) WHERE bytes > bytesmax OR blobs > blobsmax`,
    sql`CREATE TABLE ${leases} (id ${text} PRIMARY KEY, since ${number} NOT NULL, expires ${number} NOT NULL)`,
  ]
}

/**
 * Adds reservations of uploads in progress and byte counts of cached variants, which are initialized from the existing
 * rows.
 */
const reservationStep: PlatformStep = (dialect) => {
  const { blobs, derived, kept, objects } = tablesOf(dialect)
  const text = typeText(dialect.columnTypes.text)
  const number = typeText(dialect.columnTypes.number)
  return [
    sql`ALTER TABLE ${blobs} ADD COLUMN reserved ${number}`,
    sql`ALTER TABLE ${blobs} ADD COLUMN reserveduntil ${number}`,
    sql`CREATE INDEX blobs_reserved ON ${blobs} (reserveduntil) WHERE reserved IS NOT NULL`,
    sql`ALTER TABLE ${derived} ADD COLUMN bucket ${text}`,
    sql`ALTER TABLE ${derived} ADD COLUMN used ${number}`,
    sql`UPDATE ${derived} AS variant SET used = variant.made, bucket = object.bucket FROM ${objects} AS object
      WHERE object.version = variant.version`,
    sql`CREATE INDEX derived_used ON ${derived} (bucket, used)`,
    sql`CREATE INDEX derived_used_anywhere ON ${derived} (used)`,
    sql`CREATE TABLE ${kept} (bucket ${text} PRIMARY KEY, bytes ${number} NOT NULL)`,
    sql`INSERT INTO ${kept} (bucket, bytes) SELECT bucket, sum(size) FROM ${derived}
      WHERE bucket IS NOT NULL GROUP BY bucket`,
  ]
}

/** Adds counts of files, which are initialized from the existing rows, and the order of users by their bytes. */
const fileCountStep: PlatformStep = (dialect) => {
  const { objects, usage } = tablesOf(dialect)
  const number = typeText(dialect.columnTypes.number)
  const uploader = ident('uploadedBy')
  const set = sql`ON CONFLICT (bucket, owner) DO UPDATE SET files = excluded.files`
  return [
    sql`ALTER TABLE ${usage} ADD COLUMN files ${number} NOT NULL DEFAULT 0`,
    sql`INSERT INTO ${usage} (bucket, owner, bytes, files)
      SELECT bucket, '', 0, count(*) FROM ${objects} WHERE true GROUP BY bucket ${set}`,
    sql`INSERT INTO ${usage} (bucket, owner, bytes, files)
      SELECT bucket, ${uploader}, 0, count(*) FROM ${objects} WHERE ${uploader} IS NOT NULL
      GROUP BY bucket, ${uploader} ${set}`,
    sql`CREATE INDEX usage_bytes ON ${usage} (bucket, bytes, owner) WHERE owner <> ''`,
  ]
}

/** Creates the tables or migrates them to the current version. Throws if a newer version of the server created them. */
export async function prepareStorageTables(engine: Sql): Promise<Store> {
  const database = engine.database({ namespace: storageNamespace, instanceId: null })
  await preparePlatformTables(database, storageNamespace, 'storage', [
    firstStep,
    garbageStep,
    reservationStep,
    fileCountStep,
  ])
  const tables = tablesOf(database.dialect)
  return { database, tables, deployment: await nameDeployment(database, tables) }
}

/** The deployment name that all nodes on one database share; generated by the first node. */
function nameDeployment(database: Database, { deployment }: StorageTables): Promise<string> {
  return database.write(
    async (tx) => {
      await tx.lock('storage deployment')
      const [known] = await tx.all<{ id: string }>(sql`SELECT id FROM ${deployment}`)
      if (known) return known.id
      const id = randomBytes(6).toString('hex')
      await tx.run(sql`INSERT INTO ${deployment} (id) VALUES (${id})`)
      return id
    },
    { isMigration: true },
  )
}
