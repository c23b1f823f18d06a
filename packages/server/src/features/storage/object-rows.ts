/**
 * The rows of objects: statements that read, lock and change them, each change with its entry in the change log.
 * `objects` evaluates the access rules and counts usage.
 */
import { callerKey } from '../../access/caller.ts'
import { findPrefixEnd } from '../../base/text/text.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { Expr } from '../../query/expr.ts'
import type { Row } from '../../query/matches.ts'
import { createSqlBackEnd } from '../../query/to-sql.ts'
import type { BlobPart } from './blobs/blob-registry.ts'
import type { BucketCall } from './buckets.ts'
import { fromExtra, type Metadata, toExtra } from './metadata.ts'
import type { Store } from './migrations.ts'
import { type File, toFile } from './schemas.ts'

/** An object as the other modules use it. */
export interface StoredObject {
  readonly key: string
  readonly size: number
  readonly contentType: string
  /** The uploading user's id; null for uploads by a service key. */
  readonly uploadedBy: string | null
  readonly createdAt: string
  readonly customMetadata: Metadata
  /** Unique for every content that is stored under a key. */
  readonly version: string
  /** Without quotes. */
  readonly etag: string
  readonly blobs: readonly BlobPart[]
}

/** A range of a bucket's objects in order of their keys. */
export interface PageRange {
  readonly prefix: string
  /** The key after which the page starts; null for the first page. */
  readonly after: string | null
  readonly limit: number
}

export interface ObjectRows {
  find(call: BucketCall, key: string): Promise<StoredObject | null>
  /** As `find`, locked until the end of the transaction against concurrent puts and removals of the key. */
  findLocked(tx: Transaction, call: BucketCall, key: string): Promise<StoredObject | null>
  /** Objects that satisfy a condition. They have no blobs, and custom metadata only `withMetadata`. */
  page(
    call: BucketCall,
    condition: Expr,
    range: PageRange & { readonly withMetadata: boolean },
  ): Promise<StoredObject[]>
  /**
   * Replaces an object, locked by the transaction, with another one of its key, and appends the change to the change
   * log; null for no object. An object of the same version differs in its custom metadata only. Nothing else changes
   * objects.
   */
  change(tx: Transaction, call: BucketCall, before: StoredObject | null, after: StoredObject | null): Promise<void>
}

/** Appends a change of a file to the change log, in the transaction of the change; null for no file. */
export type AppendFileChange = (
  tx: Transaction,
  change: {
    /** The bucket. */
    readonly table: string
    /** The key. */
    readonly id: string
    readonly before: File | null
    readonly after: File | null
    readonly requestId: string
  },
) => Promise<void>

interface ObjectRow {
  readonly key: string
  readonly size: number
  readonly contentType: string
  readonly uploadedBy: string | null
  readonly createdAt: string
  readonly _extra: string
  readonly version: string
  readonly etag: string
  readonly blobs: string
}

const columnNames = ['key', 'size', 'contentType', 'uploadedBy', 'createdAt', '_extra', 'version', 'etag', 'blobs']
const alias = ident('objects')
const columns = join(
  columnNames.map((name) => sql`${alias}.${ident(name)}`),
  ', ',
)
/** Columns that lists omit, and their placeholders. */
const emptyColumns: ReadonlyMap<string, SqlText> = new Map([
  ['blobs', sql`'[]' AS blobs`],
  ['_extra', sql`'{}' AS ${ident('_extra')}`],
])
const columnsWithout = (left: readonly string[]): SqlText =>
  join(
    columnNames.map((name) => (left.includes(name) && emptyColumns.get(name)) || sql`${alias}.${ident(name)}`),
    ', ',
  )
/** Without custom metadata and blobs, which can be large. */
const listedColumns = columnsWithout(['blobs', '_extra'])
/** Columns that a rule can refer to. */
const judgedColumns = columnsWithout(['blobs'])

const toObject = ({ _extra, blobs, ...row }: ObjectRow): StoredObject => ({
  ...row,
  customMetadata: fromExtra(JSON.parse(_extra)),
  blobs: JSON.parse(blobs),
})

/** The object as a row for rule evaluation. */
export const toRuleRow = ({ key, size, contentType, uploadedBy, createdAt, customMetadata }: StoredObject): Row => ({
  ...toExtra(customMetadata),
  key,
  size,
  contentType,
  uploadedBy,
  createdAt,
})

export function createObjectRows({ database, tables }: Store, appendChange: AppendFileChange): ObjectRows {
  const { dialect } = database
  /** For rules without `exists`: the objects' database has no other tables. */
  const backEnd = createSqlBackEnd(dialect, () => {
    throw new Error('The objects’ database has no other tables')
  })

  const from = ({ bucket }: BucketCall): SqlText => dialect.from(bucket.objects.table, alias)
  const at = ({ bucket }: BucketCall, key: string): SqlText => sql`bucket = ${bucket.name} AND key = ${key}`
  const select = (call: BucketCall, key: string): SqlText =>
    sql`SELECT ${columns} FROM ${from(call)} WHERE ${alias}.bucket = ${call.bucket.name} AND ${alias}.key = ${key}`

  async function insert(tx: Transaction, { bucket }: BucketCall, object: StoredObject): Promise<void> {
    const { key, size, contentType, uploadedBy, createdAt, version, etag } = object
    await tx.run(sql`INSERT INTO ${tables.objects} (bucket, ${join(columnNames.map(ident), ', ')})
        VALUES (${bucket.name}, ${key}, ${size}, ${contentType}, ${uploadedBy}, ${createdAt},
          ${JSON.stringify(toExtra(object.customMetadata))}, ${version}, ${etag}, ${JSON.stringify(object.blobs)})`)
  }

  return {
    async find(call, key) {
      const [row] = await database.all<ObjectRow>(select(call, key))
      return row ? toObject(row) : null
    },

    async findLocked(tx, call, key) {
      await tx.lock(`storage ${call.bucket.name} ${key}`)
      const [row] = await tx.all<ObjectRow>(sql`${select(call, key)}${dialect.forUpdate}`)
      return row ? toObject(row) : null
    },

    async page(call, condition, { prefix, after, limit, withMetadata }) {
      const { bucket } = call
      const conditions = [sql`${alias}.bucket = ${bucket.name}`]
      const end = findPrefixEnd(prefix)
      if (prefix !== '') conditions.push(sql`${alias}.key >= ${prefix}`)
      if (end !== null) conditions.push(sql`${alias}.key < ${end}`)
      if (after !== null) conditions.push(sql`${alias}.key > ${after}`)
      conditions.push(backEnd.condition(condition, bucket.objects.table))
      const page = sql`SELECT ${withMetadata ? judgedColumns : listedColumns} FROM ${from(call)}
        WHERE ${join(conditions, ' AND ')} ORDER BY ${alias}.key LIMIT ${limit}`
      const rows = await database.all<ObjectRow>(page, undefined, callerKey(call.caller))
      return rows.map(toObject)
    },

    async change(tx, call, before, after) {
      const object = after ?? before
      if (!object) return
      const { key } = object
      if (before && after && before.version === after.version) {
        const [old, extra] = [before, after].map((one) => JSON.stringify(toExtra(one.customMetadata)))
        if (old === extra) return
        await tx.run(sql`UPDATE ${tables.objects} SET ${ident('_extra')} = ${extra as string} WHERE ${at(call, key)}`)
      } else {
        if (before) await tx.run(sql`DELETE FROM ${tables.objects} WHERE ${at(call, key)}`)
        if (after) await insert(tx, call, after)
      }
      const files = { before: before && toFile(before), after: after && toFile(after) }
      await appendChange(tx, { table: call.bucket.name, id: key, ...files, requestId: call.requestId })
    },
  }
}
