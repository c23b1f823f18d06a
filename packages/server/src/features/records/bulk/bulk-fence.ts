/**
 * The fence of bulk jobs in the database of their records: the highest fencing token that may write, in one row per job
 * beside the effect keys of its pages. The job itself is in another database, so only a row here can decide in the
 * transaction of a page whether the page may still commit.
 *
 * Each claim of the job takes a token that is higher than all before; a cancellation is such a claim. States:
 * - the token is claimed: the row has an older one, whose holder may still commit the page under way;
 * - the token is raised: the page under way has either committed before, or changes nothing;
 * - the cancellation is stored with the count of the pages that have committed, and shown from then on.
 *
 * Invariant: a page commits only while the row has exactly the token of its attempt. The lock on the row's key orders
 * each page and each raise on every engine, so a canceled job and a node that has lost its lease change nothing.
 */
import { storedKeyOf } from '../../../engines/sql/effects.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { findResponse, responsesTable, storeResponse } from '../../../engines/sql/stored-responses.ts'
import { type BulkClaim, LeaseLost } from '../../bulk-jobs.ts'

type Claim = Pick<BulkClaim, 'id' | 'token'>

interface FencedDatabase {
  readonly database: Database
  readonly namespace: string
}

/** Kept and removed with the effects of the job. */
const fenceKeyOf = (id: string): string => storedKeyOf(`${id}:fence`)

/** The effect key of a page. */
export const pageKeyOf = (id: string, page: number): string => `${id}:${page}`

/** The highest token that was raised; null without one. Locks the fence until the transaction ends. */
async function readFence(tx: Transaction, { database, namespace }: FencedDatabase, id: string): Promise<number | null> {
  const table = responsesTable(namespace, database.dialect)
  const stored = await findResponse(tx, table, { key: fenceKeyOf(id), sinceMs: 0 })
  return stored && Number(stored.body)
}

/**
 * Raises the fence to the token of a claim, after the page under way. Returns the stored response of `page`, which has
 * committed although its progress was not saved; null without one. Throws `LeaseLost` for an older token. An instance
 * without a database has nothing to fence, and is not created.
 */
export function raiseFence(
  target: FencedDatabase,
  { id, token }: Claim,
  { page, nowMs }: { readonly page: number; readonly nowMs: number },
): Promise<string | null> {
  const { database, namespace } = target
  const table = responsesTable(namespace, database.dialect)
  return database.write(
    async (tx) => {
      const highest = await readFence(tx, target, id)
      if (highest !== null && highest > token) throw new LeaseLost()
      storeResponse(tx, table, { key: fenceKeyOf(id), nowMs }, { fingerprint: '', status: 200, body: String(token) })
      // Without the lock on its key: a page has that one before it waits for the fence.
      const key = storedKeyOf(pageKeyOf(id, page))
      const [committed] = await tx.all<{ body: string | null }>(sql`SELECT body FROM ${table} WHERE key = ${key}`)
      return committed?.body ?? null
    },
    { creates: false },
  )
}

/**
 * Locks the fence until the transaction of a page ends. Throws `LeaseLost` where another claim has raised it; false
 * where no claim has, since the database did not exist then.
 */
export async function lockFence(tx: Transaction, target: FencedDatabase, { id, token }: Claim): Promise<boolean> {
  const highest = await readFence(tx, target, id)
  if (highest !== null && highest !== token) throw new LeaseLost()
  return highest !== null
}
