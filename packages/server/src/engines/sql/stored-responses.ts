/**
 * The table `_idempotency` of a database: responses that are stored in the transaction of their write, by a key, so
 * that a repeated write finds the first response and changes nothing. The keys are those of requests
 * (`Idempotency-Key`) and of the effects of jobs.
 */
import type { Dialect, TableRef } from './dialect.ts'
import type { Transaction } from './sql.ts'
import { join, type SqlText, sql } from './sql-text.ts'

/** Stored responses of a namespace and all its instances. */
const tableOf = (namespace: string): TableRef => ({ namespace, name: '_idempotency', perInstance: false })

/** The table of stored responses of a namespace, with the columns `seq`, `at` and `key`. */
export const responsesTable = (namespace: string, dialect: Dialect): SqlText => dialect.target(tableOf(namespace))

/** `at` in milliseconds since 1970. */
export const createResponsesTable = (namespace: string, dialect: Dialect): SqlText[] => [
  sql`CREATE TABLE IF NOT EXISTS ${responsesTable(namespace, dialect)} (${join(dialect.logHead, ', ')},
    key TEXT NOT NULL UNIQUE, at BIGINT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER NOT NULL, body TEXT)`,
  sql`CREATE INDEX IF NOT EXISTS "_idempotency_at" ON ${responsesTable(namespace, dialect)} (at)`,
]

export interface StoredResponse {
  /** Of the content of the request; empty if it is not compared. */
  readonly fingerprint: string
  readonly status: number
  readonly body: string | null
}

/**
 * The response to a key that was stored at `sinceMs` or later; null without one. Locks the key: of concurrent writes
 * with one key, the second finds the response to the first.
 */
export async function findResponse(
  tx: Transaction,
  table: SqlText,
  { key, sinceMs }: { readonly key: string; readonly sinceMs: number },
): Promise<StoredResponse | null> {
  await tx.lock(key)
  const [stored] = await tx.all<StoredResponse>(
    sql`SELECT fingerprint, status, body FROM ${table} WHERE key = ${key} AND at >= ${sinceMs}`,
  )
  return stored ?? null
}

/** Stores the response to a key, in place of an expired one. */
export function storeResponse(
  tx: Transaction,
  table: SqlText,
  { key, nowMs }: { readonly key: string; readonly nowMs: number },
  { fingerprint, status, body }: StoredResponse,
): void {
  tx.send(
    sql`INSERT INTO ${table} (key, at, fingerprint, status, body)
      VALUES (${key}, ${nowMs}, ${fingerprint}, ${status}, ${body})
      ON CONFLICT (key) DO UPDATE SET at = excluded.at, fingerprint = excluded.fingerprint, status = excluded.status,
        body = excluded.body`,
  )
}
