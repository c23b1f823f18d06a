/**
 * Objects: rows that refer to lists of blobs. Every operation on an object passes through this module, which evaluates
 * the access rules on the row: read, list, put, set metadata, remove. Callers handle HTTP.
 */
import { randomUUID } from 'node:crypto'
import { required } from '../../access/check.ts'
import type { BucketDefinition } from '../../access/definition.ts'
import type { Clock } from '../../base/clock.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { notFound, objectChanged } from '../../errors.ts'
import type { NamespaceHooks } from '../before-hooks.ts'
import type { BlobPart, BlobRegistry } from './blobs/blob-registry.ts'
import { changeUsage } from './blobs/usage.ts'
import { type BucketCall, requireRule } from './buckets.ts'
import { createObjectWriter, type ObjectWrite, type ObjectWriter } from './hooks/object-write.ts'
import type { Metadata } from './metadata.ts'
import type { Store } from './migrations.ts'
import { listReadable, type Page } from './object-list.ts'
import {
  type AppendFileChange,
  createObjectRows,
  type ObjectRows,
  type PageRange,
  type StoredObject,
  toRuleRow,
} from './object-rows.ts'
import type { VariantCache } from './variant-cache.ts'

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

export interface Objects {
  /**
   * Throws 404 for an absent object, 412 for one that differs from `expected`, 401 or 403 if the read rule denies
   * access.
   */
  getReadable(call: BucketCall, key: string, expected?: Expected): Promise<StoredObject>
  /** Objects that the read rule allows, in order of their keys, after `after`; without custom metadata and blobs. */
  list(call: BucketCall, range: PageRange): Promise<Page>
  /**
   * Throws 401 or 403 if the existing object may not be overwritten. Rejects an upload before its bytes are received.
   */
  checkOverwrite(call: BucketCall, key: string): Promise<void>
  /** Begins a transaction that changes an object; see `ObjectWriter`. */
  readonly write: ObjectWriter['write']
  /**
   * Stores an object and replaces an existing one. Its blobs must be live, or adopted in the same transaction.
   * `counted` bytes are already part of the usage counts. Returns the object as the caller may see it: what hooks made
   * of its custom metadata only with permission to read it. Throws 401 or 403 if the write rule rejects the new or the
   * existing object, 413 over a quota.
   */
  put(write: ObjectWrite, object: NewObject, usage: { counted: number }): Promise<StoredObject>
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

const sizeOf = (blobs: readonly BlobPart[]): number => blobs.reduce((sum, [, size]) => sum + size, 0)

interface ObjectsDeps {
  readonly store: Store
  readonly blobRegistry: BlobRegistry
  readonly variantCache: VariantCache
  /** The hooks that run before files change; null without any. */
  readonly hooks: () => NamespaceHooks | null
  readonly appendChange: AppendFileChange
  readonly clock: Clock
}

export function createObjects(deps: ObjectsDeps): Objects {
  const { store, hooks, appendChange } = deps
  const rows = createObjectRows(store, appendChange)
  const { write } = createObjectWriter(store.database, hooks)
  return { ...createReads(rows), write, ...createChanges({ ...deps, rows, write }) }
}

const createReads = (rows: ObjectRows): Pick<Objects, 'getReadable' | 'list' | 'checkOverwrite'> => ({
  async getReadable(call, key, expected) {
    const rule = required(call.permissions.read(), call.caller)
    const object = await rows.find(call, key)
    if (!object) throw notFound('File')
    if (expected && !isExpected(object, expected)) throw objectChanged()
    await requireRule(call, rule, toRuleRow(object))
    return object
  },

  list: (call, range) => listReadable(rows, call, range),

  async checkOverwrite(call, key) {
    const rule = required(call.permissions.updateBefore(), call.caller)
    const there = await rows.find(call, key)
    if (there) await requireRule(call, rule, toRuleRow(there))
  },
})

type ChangesDeps = Omit<ObjectsDeps, 'hooks' | 'appendChange'> & {
  readonly rows: ObjectRows
  readonly write: ObjectWriter['write']
}

function createChanges(deps: ChangesDeps): Pick<Objects, 'put' | 'setMetadata' | 'remove'> {
  const { store, blobRegistry, variantCache, clock, rows, write } = deps

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
    async put({ tx, call, decide }, given, { counted }) {
      const { bucket, caller, permissions } = call
      const object: StoredObject = {
        ...given,
        size: sizeOf(given.blobs),
        createdAt: formatDatetime(clock.now()),
        version: randomUUID(),
      }
      const there = await rows.findLocked(tx, call, object.key)
      if (there) await requireRule(call, permissions.updateBefore(), toRuleRow(there))
      const rule = required(there ? permissions.updateAfter() : permissions.insert(), caller)
      const stored = decide({ operation: there ? 'update' : 'insert', previous: there, object })
      await requireRule(call, rule, toRuleRow(stored))
      await rows.change(tx, call, there, stored)
      if (there) await releaseVersion(tx, bucket, there)
      const gone = there ? [{ owner: there.uploadedBy, bytes: -there.size, files: -1 }] : []
      const added = { owner: stored.uploadedBy, bytes: stored.size - counted, files: 1 }
      await changeUsage(tx, store, bucket, [...gone, added])
      if (stored.customMetadata === object.customMetadata) return stored
      const isReadable = await call.isTrue(permissions.read(), toRuleRow(stored))
      return isReadable ? stored : { ...stored, customMetadata: object.customMetadata }
    },

    setMetadata(call, key, merge) {
      const { caller, permissions } = call
      const rule = required(permissions.updateBefore(), caller)
      return write(call, async ({ tx, decide }) => {
        const there = await rows.findLocked(tx, call, key)
        if (!there) throw notFound('File')
        await requireRule(call, rule, toRuleRow(there))
        const after = required(permissions.updateAfter(), caller)
        const object = { ...there, customMetadata: merge(there.customMetadata) }
        const stored = decide({ operation: 'update', previous: there, object })
        await requireRule(call, after, toRuleRow(stored))
        await rows.change(tx, call, there, stored)
        return { object: stored, isReadable: await call.isTrue(permissions.read(), toRuleRow(stored)) }
      })
    },

    async remove(call, key) {
      const { bucket, caller, permissions } = call
      const rule = required(permissions.delete(), caller)
      await write(call, async ({ tx, decide }) => {
        const there = await rows.findLocked(tx, call, key)
        if (!there) throw notFound('File')
        await requireRule(call, rule, toRuleRow(there))
        decide({ operation: 'delete', previous: there, object: there })
        await rows.change(tx, call, there, null)
        await releaseVersion(tx, bucket, there)
        await changeUsage(tx, store, bucket, [{ owner: there.uploadedBy, bytes: -there.size, files: -1 }])
      })
    },
  }
}
