/**
 * Reservations for uploads in progress: bytes are reserved before they are written, so that concurrent uploads of one
 * caller cannot fill a disk that their quota should protect. A reservation is part of the staged blob's row, so it
 * applies on every node and ends with the row. It expires when its node stops renewing it.
 */
import { type Clock, waitOn } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { ApiError, quotaExceeded, rateLimited, unavailable } from '../../../errors.ts'
import {
  adoptMarginMs,
  reservationLivesMs,
  reservationRenewMs,
  reservedStepBytesMin,
  stagedBlobMs,
  stagedBytesMax,
  stagedQuotaBytesMin,
  stagedUserBytesMax,
} from '../../../limits/storage.ts'
import type { Store } from '../migrations.ts'
import type { QuotaScope } from './garbage.ts'

/** What is known about a body before its first byte. */
export interface ExpectedBody {
  /** The declared size in bytes. */
  readonly size?: number
  /** An estimate in bytes if the size is not declared: the length of a form, for example. */
  readonly aboutBytes?: number
  readonly bytesMax: number
}

export interface Reservation {
  /**
   * Passes the body through; each chunk after its bytes have been reserved. Throws 413, 429 or 503 if a reservation
   * fails.
   */
  within(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
}

export interface Staging {
  /**
   * Inserts the row of a staged blob with its reservation; without a scope nothing is reserved. Throws 413 over a
   * quota, 429 if the owner's uploads in progress exceed their bound, 503 if all uploads together do.
   */
  begin(id: string, scope: QuotaScope | null, expected: ExpectedBody): Promise<Reservation>
  /** Stops renewing the reservation of a blob whose row has none anymore. */
  end(id: string): void
}

/** Bounds of bytes in progress without a quota. */
export interface StagedBounds {
  readonly userBytes: number
  readonly bytes: number
}

/** Reserved bytes: in total, in a bucket, and of a user in it. */
interface Sums {
  readonly everywhere: number | null
  readonly bucket: number | null
  readonly owner: number | null
}

/** Bytes under way that a quota allows: many small files at once, or overwrites of one, pass under any quota. */
const withinQuota = (known: number, more: number, quotaBytes: number | null): boolean =>
  quotaBytes === null || known + more <= Math.max(quotaBytes, stagedQuotaBytesMin)

/** A bound without a quota never refuses the only upload: `maxFileSize` bounds that. */
const isOver = (known: number, more: number, bound: number): boolean => known > 0 && known + more > bound

function quotaErrorOf({ bucket, owner }: QuotaScope, sums: Sums, more: number, bounds: StagedBounds): ApiError | null {
  const inBucket = Number(sums.bucket ?? 0)
  const ofOwner = Number(sums.owner ?? 0)
  if (!withinQuota(inBucket, more, bucket.quotaBytes)) return quotaExceeded('The bucket')
  if (owner !== null && !withinQuota(ofOwner, more, bucket.userQuotaBytes))
    return quotaExceeded('Your space in this bucket')
  if (owner !== null && bucket.userQuotaBytes === null && isOver(ofOwner, more, bounds.userBytes))
    return rateLimited(1, `Your uploads in progress exceed ${bounds.userBytes} bytes; retry after some have finished`)
  return isOver(Number(sums.everywhere ?? 0), more, bounds.bytes)
    ? unavailable(1, 'Too many uploads are in progress; retry later')
    : null
}

interface StagingDeps {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly bounds?: StagedBounds
}

export function createStaging({ store, clock, log, bounds = defaultBounds }: StagingDeps): Staging {
  const { database, tables } = store
  const { dialect } = database
  const table = tables.blobs
  /** Blobs whose reservations this node renews, each with the time until which it does. */
  const renewed = new Map<string, number>()
  let isRenewing = false

  /** Throws where so many bytes more are too many. Uploads to one bucket are judged one after the other. */
  async function judge(tx: Transaction, scope: QuotaScope, more: number): Promise<void> {
    const { bucket, owner } = scope
    await tx.lock(`storage staged ${bucket.name}`)
    const isInBucket = sql`bucket = ${bucket.name}`
    const [sums] = await tx.all<Sums>(sql`SELECT sum(reserved) AS everywhere,
      sum(CASE WHEN ${isInBucket} THEN reserved END) AS bucket,
      sum(CASE WHEN ${isInBucket} AND owner = ${owner} THEN reserved END) AS owner
      FROM ${table} WHERE reserved IS NOT NULL AND reserveduntil > ${clock.now()}`)
    const refusal = quotaErrorOf(scope, sums as Sums, more, bounds)
    if (refusal) throw refusal
  }

  const insert = (id: string, scope: QuotaScope | null, bytes: number): Promise<void> =>
    database.write(async (tx) => {
      if (scope) await judge(tx, scope, bytes)
      const nowMs = clock.now()
      await tx.run(sql`INSERT INTO ${table} (id, sweepafter, bucket, owner, reserved, reserveduntil)
        VALUES (${id}, ${nowMs + stagedBlobMs}, ${scope?.bucket.name ?? null}, ${scope?.owner ?? null},
          ${scope ? bytes : null}, ${scope ? nowMs + reservationLivesMs : null})`)
    })

  const grow = (id: string, scope: QuotaScope, more: number): Promise<void> =>
    database.write(async (tx) => {
      await judge(tx, scope, more)
      const changed = await tx.run(sql`UPDATE ${table} SET reserved = reserved + ${more},
        reserveduntil = ${clock.now() + reservationLivesMs} WHERE id = ${id} AND reserved IS NOT NULL`)
      // The row was removed or abandoned: further bytes would not be counted.
      if (changed !== 1) throw unavailable()
    })

  const isRefusal = (error: unknown): boolean => error instanceof ApiError && [413, 429].includes(error.status)

  /** Runs `attempt` with the preferred number of bytes; if these are rejected, with the required number. */
  async function withFallback(good: number, must: number, attempt: (bytes: number) => Promise<void>): Promise<number> {
    try {
      await attempt(good)
      return good
    } catch (error) {
      if (good <= must || !isRefusal(error)) throw error
      await attempt(must)
      return must
    }
  }

  async function renew(): Promise<void> {
    const nowMs = clock.now()
    for (const [id, untilMs] of renewed) if (untilMs <= nowMs) renewed.delete(id)
    if (renewed.size === 0) return
    const ids = dialect.inList(sql`id`, [...renewed.keys()], 'text')
    await database.write((tx) =>
      tx.run(sql`UPDATE ${table} SET reserveduntil = ${nowMs + reservationLivesMs}
        WHERE ${ids} AND reserved IS NOT NULL`),
    )
  }

  async function renewPeriodically(): Promise<void> {
    while (renewed.size > 0) {
      await waitOn(clock, reservationRenewMs)
      // A database that is unavailable for longer than a reservation's lifetime accepts no uploads either.
      await renew().catch((error: unknown) => log.warn('storage.reservations_not_renewed', { error }))
    }
    isRenewing = false
  }

  return {
    async begin(id, scope, { size, aboutBytes, bytesMax }) {
      if (!scope) {
        await insert(id, null, 0)
        return { within: (body) => body }
      }
      const wanted = Math.min(size ?? aboutBytes ?? reservedStepBytesMin, bytesMax, reservedStepBytesMin)
      const must = size === undefined ? 0 : wanted
      if (size !== undefined && size > wanted) rejectImpossible(scope, size)
      let reserved = await withFallback(wanted, must, (bytes) => insert(id, scope, bytes))
      renewed.set(id, clock.now() + stagedBlobMs - adoptMarginMs)
      if (!isRenewing) {
        isRenewing = true
        void renewPeriodically()
      }
      return {
        async *within(body) {
          let received = 0
          for await (const piece of body) {
            received += piece.length
            // The store rejects a body beyond its bounds, with an error that states them.
            const needed = Math.min(received, size ?? bytesMax, bytesMax) - reserved
            if (needed > 0) {
              const step = Math.max(reservedStepBytesMin, reserved / 8, needed)
              const good = Math.max(needed, Math.min(Math.floor(step), Math.min(size ?? bytesMax, bytesMax) - reserved))
              reserved += await withFallback(good, needed, (bytes) => grow(id, scope, bytes))
            }
            yield piece
          }
        },
      }
    },

    end: (id) => void renewed.delete(id),
  }
}

/** Refuses what no upload that ends meanwhile could make room for, before a byte of it is read. */
function rejectImpossible({ bucket, owner }: QuotaScope, size: number): void {
  if (bucket.quotaBytes !== null && size > bucket.quotaBytes) throw quotaExceeded('The bucket')
  if (owner !== null && bucket.userQuotaBytes !== null && size > bucket.userQuotaBytes)
    throw quotaExceeded('Your space in this bucket')
}

const defaultBounds: StagedBounds = { userBytes: stagedUserBytesMax, bytes: stagedBytesMax }
