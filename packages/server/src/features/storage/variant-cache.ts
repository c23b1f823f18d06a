/**
 * Cache of image variants: their rows, their total size per bucket and overall, and LRU eviction beyond the bounds.
 * `images` renders them.
 */
import type { Clock } from '../../base/clock.ts'
import { createSingleFlight } from '../../base/concurrency/single-flight.ts'
import type { Log } from '../../base/log.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { garbageBytesMin, variantBucketBytesMax, variantBytesMax, variantUsedStepMs } from '../../limits/storage.ts'
import type { BlobPart, BlobRegistry } from './blobs/blob-registry.ts'
import { type QuotaBucket, withoutQuota } from './blobs/usage.ts'
import type { BucketDefinitions } from './buckets.ts'
import type { Store } from './migrations.ts'

export interface Variant {
  readonly blob: string
  /** In bytes. */
  readonly size: number
  readonly etag: string
  readonly type: string
}

interface VariantRow extends Variant {
  readonly used: number | null
}

/** A version of an object and the name of one of its variants. */
export interface VariantName {
  readonly version: string
  readonly variant: string
}

/** Bounds of the cache, in bytes, for buckets without a quota. */
export interface VariantBounds {
  readonly bucketBytes: number
  readonly bytes: number
}

export interface VariantCache {
  /** A cached variant, marked as used; null if absent. */
  find(name: VariantName): Promise<Variant | null>
  /** Whether a variant of this size can be cached at all. */
  fits(bucket: QuotaBucket, bytes: number): boolean
  /** Adds a variant whose blob is adopted in the same transaction. */
  add(tx: Transaction, bucket: QuotaBucket, name: VariantName, variant: Variant): Promise<void>
  /** Removes one or all variants of a version and returns their blobs for the caller to release. */
  remove(tx: Transaction, bucket: QuotaBucket, version: string, variant?: string): Promise<readonly BlobPart[]>
  /**
   * Evicts least recently used variants until the bucket and the whole cache are within their bounds. Concurrent calls
   * for one bucket share a pass. Never rejects: the next addition evicts what is left.
   */
  evict(bucket: QuotaBucket): Promise<void>
}

interface VariantCacheDeps {
  readonly store: Store
  readonly blobRegistry: BlobRegistry
  readonly buckets: () => BucketDefinitions
  readonly clock: Clock
  readonly log: Log
  readonly bounds?: VariantBounds
}

const defaultBounds: VariantBounds = { bucketBytes: variantBucketBytesMax, bytes: variantBytesMax }

export function createVariantCache(deps: VariantCacheDeps): VariantCache {
  const { store, blobRegistry, buckets, clock, log, bounds = defaultBounds } = deps
  const { database, tables } = store
  const flights = createSingleFlight<void>()

  const at = ({ version, variant }: VariantName): SqlText => sql`version = ${version} AND variant = ${variant}`

  const bytesMaxOf = ({ quotaBytes }: QuotaBucket): number =>
    quotaBytes === null ? bounds.bucketBytes : Math.max(quotaBytes, garbageBytesMin)

  const count = (tx: Transaction, bucket: string, bytes: number): Promise<number> =>
    tx.run(sql`INSERT INTO ${tables.kept} AS counted (bucket, bytes) VALUES (${bucket}, ${bytes})
      ON CONFLICT (bucket) DO UPDATE SET bytes = counted.bytes + excluded.bytes`)

  /** One transaction per variant, which locks the variant and then the count, so that evictions cannot deadlock. */
  async function evictOne(bucket: QuotaBucket, isAnywhere: boolean): Promise<boolean> {
    const candidates = isAnywhere ? sql`bucket IS NOT NULL` : sql`bucket = ${bucket.name}`
    const [oldest] = await database.all<VariantName & BlobRef>(sql`SELECT version, variant, bucket, blob, size
      FROM ${tables.derived} WHERE ${candidates} ORDER BY used LIMIT 1`)
    if (!oldest) return false
    await database.write(async (tx) => {
      if ((await tx.run(sql`DELETE FROM ${tables.derived} WHERE ${at(oldest)}`)) !== 1) return
      await count(tx, oldest.bucket, -oldest.size)
      await blobRegistry.release(
        tx,
        { bucket: buckets().get(oldest.bucket) ?? withoutQuota(oldest.bucket), owner: null },
        [[oldest.blob, oldest.size]],
      )
    })
    return true
  }

  async function evictAll(bucket: QuotaBucket): Promise<void> {
    for (;;) {
      const [sums] = await database.all<{ everywhere: number | null; own: number | null }>(sql`SELECT
        sum(bytes) AS everywhere, sum(CASE WHEN bucket = ${bucket.name} THEN bytes END) AS own FROM ${tables.kept}`)
      const isOwnOver = Number(sums?.own ?? 0) > bytesMaxOf(bucket)
      if (!isOwnOver && Number(sums?.everywhere ?? 0) <= bounds.bytes) return
      if (!(await evictOne(bucket, !isOwnOver))) return
    }
  }

  return {
    async find(name) {
      const [row] = await database.all<VariantRow>(sql`SELECT blob, size, etag, type, used FROM ${tables.derived}
        WHERE ${at(name)}`)
      if (!row) return null
      const { used, ...variant } = row
      const nowMs = clock.now()
      // Also resets a timestamp that a clock running ahead has written.
      if (Math.abs(nowMs - (used ?? 0)) >= variantUsedStepMs)
        await database
          .write((tx) => tx.run(sql`UPDATE ${tables.derived} SET used = ${nowMs} WHERE ${at(name)}`))
          .catch((error: unknown) => log.warn('storage.variant_use_not_recorded', { error }))
      return variant
    },

    fits: (bucket, bytes) => bytes <= Math.min(bytesMaxOf(bucket), bounds.bytes),

    async add(tx, bucket, { version, variant }, { blob, size, etag, type }) {
      const nowMs = clock.now()
      await tx.run(sql`INSERT INTO ${tables.derived} (version, variant, blob, size, etag, type, made, bucket, used)
        VALUES (${version}, ${variant}, ${blob}, ${size}, ${etag}, ${type}, ${nowMs}, ${bucket.name}, ${nowMs})`)
      await count(tx, bucket.name, size)
    },

    async remove(tx, bucket, version, variant) {
      const some = variant === undefined ? sql`version = ${version}` : at({ version, variant })
      const rows = await tx.all<{ blob: string; size: number }>(
        sql`SELECT blob, size FROM ${tables.derived} WHERE ${some}${database.dialect.forUpdate}`,
      )
      if (rows.length === 0) return []
      await tx.run(sql`DELETE FROM ${tables.derived} WHERE ${some}`)
      await count(tx, bucket.name, -rows.reduce((sum, { size }) => sum + size, 0))
      return rows.map(({ blob, size }) => [blob, size] as const)
    },

    evict: (bucket) =>
      flights
        .run(bucket.name, () => evictAll(bucket))
        .catch((error: unknown) => log.error('storage.variant_eviction_failed', { error })),
  }
}

interface BlobRef {
  readonly bucket: string
  readonly blob: string
  readonly size: number
}
