/**
 * Objects: rows that refer to lists of blobs. Every operation on an object passes through this module, which evaluates
 * the access rules on the row: read, list, put, set metadata, remove. Callers handle HTTP.
 */
import { randomUUID } from 'node:crypto'
import { callerKey } from '../../access/caller.ts'
import { required } from '../../access/check.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { Clock } from '../../base/clock.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { findPrefixEnd } from '../../base/text/text.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { notFound, objectChanged } from '../../errors.ts'
import { judgedObjectsAtOnce, judgedObjectsMax } from '../../limits/storage.ts'
import { assumeExists, type Expr } from '../../query/expr.ts'
import { partiallyEvaluate, type Row, readsOtherTables } from '../../query/matches.ts'
import { createSqlBackEnd } from '../../query/to-sql.ts'
import type { BlobPart, BlobRegistry } from './blobs/blob-registry.ts'
import { changeUsage } from './blobs/usage.ts'
import { type BucketCall, requireRule } from './buckets.ts'
import { fromExtra, type Metadata, toExtra } from './metadata.ts'
import type { Store } from './migrations.ts'
import type { VariantCache } from './variant-cache.ts'

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

/** An object to be stored. */
export interface NewObject {
  readonly key: string
  readonly contentType: string
  readonly uploadedBy: string | null
  readonly customMetadata: Metadata
  readonly etag: string
  readonly blobs: readonly BlobPart[]
}

/** The version of an object that a signed URL refers to. */
export interface Expected {
  readonly size: number
  /** Media type. */
  readonly type: string
  readonly etag: string
}

const isExpected = ({ size, contentType, etag }: StoredObject, expected: Expected): boolean =>
  size === expected.size && contentType === expected.type && etag === expected.etag

export interface Page {
  readonly objects: readonly StoredObject[]
  /** The key after which the next page starts; null on the last page. */
  readonly next: string | null
}

export interface Objects {
  /**
   * Throws 404 for an absent object, 412 for one that differs from `expected`, 401 or 403 if the read rule denies
   * access.
   */
  getReadable(call: BucketCall, key: string, expected?: Expected): Promise<StoredObject>
  /** Objects that the read rule allows, in order of their keys, after `after`; without custom metadata and blobs. */
  list(call: BucketCall, page: { prefix: string; after: string | null; limit: number }): Promise<Page>
  /**
   * Throws 401 or 403 if the existing object may not be overwritten. Rejects an upload before its bytes are received.
   */
  checkOverwrite(call: BucketCall, key: string): Promise<void>
  /**
   * Stores an object and replaces an existing one. Its blobs must be live, or adopted in the same transaction.
   * `counted` bytes are already part of the usage counts. Throws 401 or 403 if the write rule rejects the new or the
   * existing object, 413 over a quota.
   */
  put(tx: Transaction, call: BucketCall, object: NewObject, usage: { counted: number }): Promise<StoredObject>
  /**
   * Sets members of the custom metadata. The write rule is evaluated before and after the change; `isReadable` is the
   * result of the read rule for the new state.
   */
  setMetadata(
    call: BucketCall,
    key: string,
    merge: (known: Metadata) => Metadata,
  ): Promise<{ readonly object: StoredObject; readonly isReadable: boolean }>
  /** Throws 404, 401 or 403. */
  remove(call: BucketCall, key: string): Promise<void>
}

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
/** Columns of a list: without custom metadata and blobs, which can be large. */
const listedColumns = columnsWithout(['blobs', '_extra'])
/** Columns that a rule can refer to. */
const judgedColumns = columnsWithout(['blobs'])

const toObject = ({ _extra, blobs, ...row }: ObjectRow): StoredObject => ({
  ...row,
  customMetadata: fromExtra(JSON.parse(_extra)),
  blobs: JSON.parse(blobs),
})

/** The object as a row for rule evaluation. */
const toRuleRow = ({ key, size, contentType, uploadedBy, createdAt, customMetadata }: StoredObject): Row => ({
  ...toExtra(customMetadata),
  key,
  size,
  contentType,
  uploadedBy,
  createdAt,
})

export const sizeOf = (blobs: readonly BlobPart[]): number => blobs.reduce((sum, [, size]) => sum + size, 0)

/**
 * Reads a page under a rule that reads tables of another database: objects that satisfy the rest of the rule are read
 * in batches and evaluated one by one, each distinct condition once. The page ends early after `judgedObjectsMax`
 * objects.
 */
async function judgedPage(
  call: BucketCall,
  rule: Expr,
  {
    after,
    limit,
    page,
  }: { after: string | null; limit: number; page: (after: string | null, most: number) => Promise<StoredObject[]> },
): Promise<Page> {
  const answers = new Map<string, boolean>()
  const objects: StoredObject[] = []
  let judged = 0
  for (let last = after; ; ) {
    const some = await page(last, judgedObjectsAtOnce)
    for (const object of some) {
      if (judged === judgedObjectsMax) return { objects, next: last }
      const row = toRuleRow(object)
      const question = partiallyEvaluate(rule, row)
      const key = JSON.stringify(question)
      const answer = answers.get(key) ?? (await call.isTrue(question, row))
      answers.set(key, answer)
      if (answer && objects.length === limit) return { objects, next: objects.at(-1)?.key ?? null }
      // The metadata was read for the rule only; a page with it would be large.
      if (answer) objects.push({ ...object, customMetadata: {} })
      last = object.key
      judged += 1
    }
    if (some.length < judgedObjectsAtOnce) return { objects, next: null }
  }
}

export function createObjects(deps: {
  store: Store
  blobRegistry: BlobRegistry
  variantCache: VariantCache
  clock: Clock
}): Objects {
  const { store, blobRegistry, variantCache, clock } = deps
  const { database, tables } = store
  const { dialect } = database
  /** For rules without `exists`: the objects' database has no other tables. */
  const backEnd = createSqlBackEnd(dialect, () => {
    throw new Error('The objects’ database has no other tables')
  })

  const from = (call: BucketCall): SqlText => dialect.from(call.bucket.objects.table, alias)
  const select = (call: BucketCall, key: string): SqlText =>
    sql`SELECT ${columns} FROM ${from(call)} WHERE ${alias}.bucket = ${call.bucket.name} AND ${alias}.key = ${key}`

  async function find(call: BucketCall, key: string): Promise<StoredObject | null> {
    const [row] = await database.all<ObjectRow>(select(call, key))
    return row ? toObject(row) : null
  }

  /** The row, locked until the end of the transaction against concurrent puts and removals of the key. */
  async function findLocked(tx: Transaction, call: BucketCall, key: string): Promise<StoredObject | null> {
    await tx.lock(`storage ${call.bucket.name} ${key}`)
    const [row] = await tx.all<ObjectRow>(sql`${select(call, key)}${dialect.forUpdate}`)
    return row ? toObject(row) : null
  }

  const at = (call: BucketCall, key: string): SqlText => sql`bucket = ${call.bucket.name} AND key = ${key}`

  /** Objects that satisfy a condition, in order of their keys. */
  async function readPage(
    call: BucketCall,
    condition: Expr,
    { prefix, after, limit, shown }: { prefix: string; after: string | null; limit: number; shown: SqlText },
  ): Promise<StoredObject[]> {
    const { bucket } = call
    const conditions = [sql`${alias}.bucket = ${bucket.name}`]
    const end = findPrefixEnd(prefix)
    if (prefix !== '') conditions.push(sql`${alias}.key >= ${prefix}`)
    if (end !== null) conditions.push(sql`${alias}.key < ${end}`)
    if (after !== null) conditions.push(sql`${alias}.key > ${after}`)
    conditions.push(backEnd.condition(condition, bucket.objects.table))
    const page = sql`SELECT ${shown} FROM ${from(call)}
      WHERE ${join(conditions, ' AND ')} ORDER BY ${alias}.key LIMIT ${limit}`
    const rows = await database.all<ObjectRow>(page, undefined, callerKey(call.caller))
    return rows.map(toObject)
  }

  /** Releases the blobs of a version and of its image variants. Variants have no owner, since no user uploaded them. */
  async function releaseVersion(
    tx: Transaction,
    bucket: BucketDefinition,
    { version, blobs, uploadedBy }: StoredObject,
  ): Promise<void> {
    const variants = await variantCache.remove(tx, bucket, version)
    await blobRegistry.release(tx, { bucket, owner: uploadedBy }, blobs)
    await blobRegistry.release(tx, { bucket, owner: null }, variants)
  }

  return {
    async getReadable(call, key, expected) {
      const rule = required(call.permissions.read(), call.caller)
      const object = await find(call, key)
      if (!object) throw notFound('File')
      if (expected && !isExpected(object, expected)) throw objectChanged()
      await requireRule(call, rule, toRuleRow(object))
      return object
    },

    async list(call, { prefix, after, limit }) {
      const rule = required(call.permissions.read(), call.caller)
      const page = (from: string | null, most: number, shown = judgedColumns): Promise<StoredObject[]> =>
        readPage(call, assumeExists(rule), { prefix, after: from, limit: most, shown })
      if (!readsOtherTables(rule)) {
        const objects = await page(after, limit + 1, listedColumns)
        const last = objects.length > limit ? objects[limit - 1] : undefined
        return { objects: objects.slice(0, limit), next: last?.key ?? null }
      }
      return judgedPage(call, rule, { after, limit, page })
    },

    async checkOverwrite(call, key) {
      const rule = required(call.permissions.updateBefore(), call.caller)
      const there = await find(call, key)
      if (there) await requireRule(call, rule, toRuleRow(there))
    },

    async put(tx, call, object, { counted }) {
      const { bucket, permissions } = call
      const stored: StoredObject = {
        ...object,
        size: sizeOf(object.blobs),
        createdAt: formatDatetime(clock.now()),
        version: randomUUID(),
      }
      const there = await findLocked(tx, call, object.key)
      if (there) {
        await requireRule(call, permissions.updateBefore(), toRuleRow(there))
        await requireRule(call, permissions.updateAfter(), toRuleRow(stored))
        await tx.run(sql`DELETE FROM ${tables.objects} WHERE ${at(call, object.key)}`)
        await releaseVersion(tx, bucket, there)
      } else await requireRule(call, permissions.insert(), toRuleRow(stored))
      const { key, size, contentType, uploadedBy, createdAt, version, etag } = stored
      await tx.run(sql`INSERT INTO ${tables.objects} (bucket, ${join(columnNames.map(ident), ', ')})
        VALUES (${bucket.name}, ${key}, ${size}, ${contentType}, ${uploadedBy}, ${createdAt},
          ${JSON.stringify(toExtra(stored.customMetadata))}, ${version}, ${etag}, ${JSON.stringify(stored.blobs)})`)
      const gone = there ? [{ owner: there.uploadedBy, bytes: -there.size }] : []
      await changeUsage(tx, store, bucket, [...gone, { owner: uploadedBy, bytes: size - counted }])
      return stored
    },

    setMetadata(call, key, merge) {
      const { caller, permissions } = call
      const rule = required(permissions.updateBefore(), caller)
      return database.write(async (tx) => {
        const there = await findLocked(tx, call, key)
        if (!there) throw notFound('File')
        await requireRule(call, rule, toRuleRow(there))
        const stored = { ...there, customMetadata: merge(there.customMetadata) }
        await requireRule(call, permissions.updateAfter(), toRuleRow(stored))
        await tx.run(sql`UPDATE ${tables.objects} SET ${ident('_extra')} = ${JSON.stringify(toExtra(stored.customMetadata))}
          WHERE ${at(call, key)}`)
        return { object: stored, isReadable: await call.isTrue(permissions.read(), toRuleRow(stored)) }
      })
    },

    async remove(call, key) {
      const { bucket, caller, permissions } = call
      const rule = required(permissions.delete(), caller)
      await database.write(async (tx) => {
        const there = await findLocked(tx, call, key)
        if (!there) throw notFound('File')
        await requireRule(call, rule, toRuleRow(there))
        await tx.run(sql`DELETE FROM ${tables.objects} WHERE ${at(call, key)}`)
        await releaseVersion(tx, bucket, there)
        await changeUsage(tx, store, bucket, [{ owner: there.uploadedBy, bytes: -there.size }])
      })
    },
  }
}
