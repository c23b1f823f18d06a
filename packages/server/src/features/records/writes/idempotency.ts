/**
 * `Idempotency-Key`: the first response to a key is stored in the same transaction as its effects, so a repeated
 * request gets it again and changes nothing, also after a crash. Of large responses only status and ids are stored. An
 * advisory lock on the key serializes the requests, so a second one sees either nothing or the finished first.
 * The writes of jobs have effect keys, which work in the same way.
 */
import { type Caller, callerKey } from '../../../access/caller.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { storedKeyOf } from '../../../engines/sql/effects.ts'
import type { Database, Transaction, WriteOptions } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { findResponse, responsesTable, storeResponse } from '../../../engines/sql/stored-responses.ts'
import { ApiError, conflict, invalidField } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { textOf } from '../../../http/replies/reply.ts'
import { idempotencyKeyCharsMax } from '../../../limits/api.ts'
import { idempotencyResponseCharsMax } from '../../../limits/writes.ts'
import type { StoredBody } from './replay.ts'
import { toResponse, type WriteResponse } from './response.ts'

/** What makes a repeated request the same one. */
export interface RequestIdentity {
  readonly caller: Caller
  readonly method: string
  readonly path: string
  /** Query string and body; another one under the same key is a conflict. */
  readonly content: string
}

/** The body of a stored response as its caller may see it now. */
export type Replay = (tx: Transaction, stored: StoredBody) => Promise<string | null>

export interface IdempotencyKey {
  readonly key: string
  /**
   * Of the content. Null for an effect key: the content may differ in a repeated attempt, and the response is kept as
   * long as its job.
   */
  readonly fingerprint: string | null
  /** Whether errors are stored. Those of effects are not, since they have no effect. */
  readonly storesErrors: boolean
}

export const effectKeyOf = (effectKey: string): IdempotencyKey => ({
  key: storedKeyOf(effectKey),
  fingerprint: null,
  storesErrors: false,
})

const keyPattern = new RegExp(`^[ -~]{1,${idempotencyKeyCharsMax}}$`)

/** Null without the header. Throws 400 for a key that is empty, too long or not printable ASCII. */
export function parseIdempotencyKey(
  header: string | null,
  identity: RequestIdentity,
  storesErrors = true,
): IdempotencyKey | null {
  if (header === null) return null
  if (!keyPattern.test(header))
    throw invalidField(
      'Idempotency-Key',
      'pattern',
      `must have 1 to ${idempotencyKeyCharsMax} printable ASCII characters`,
    )
  return {
    key: sha256(JSON.stringify([callerKey(identity.caller), identity.method, identity.path, header])),
    fingerprint: sha256(identity.content),
    storesErrors,
  }
}

/** The stored responses of one database. */
interface Responses {
  readonly replay: Replay
  readonly table: SqlText
  readonly sinceMs: number
  readonly nowMs: number
}

async function findStored(
  tx: Transaction,
  { table, sinceMs, replay }: Responses,
  { key, fingerprint }: IdempotencyKey,
): Promise<WriteResponse | null> {
  const stored = await findResponse(tx, table, { key, sinceMs: fingerprint === null ? 0 : sinceMs })
  if (!stored) return null
  if (fingerprint !== null && stored.fingerprint !== fingerprint)
    throw conflict('This Idempotency-Key was used with another request')
  const text = await replay(tx, stored)
  return toResponse({ status: stored.status, text, headers: { 'Idempotency-Replayed': 'true' } })
}

/** Whether a key has a response, as far as committed. */
export async function hasStored(
  { database, namespace }: { database: Database; namespace: string },
  { key }: IdempotencyKey,
  { sinceMs }: { sinceMs: number },
): Promise<boolean> {
  const table = responsesTable(namespace, database.dialect)
  const found = await database.all(sql`SELECT 1 FROM ${table} WHERE key = ${key} AND at >= ${sinceMs}`)
  return found.length > 0
}

/** The body to store: all of it, or the short form if it is large. */
function storedBody({ reply, brief }: WriteResponse): string | null {
  const text = textOf(reply)
  return text !== null && text.length > idempotencyResponseCharsMax ? brief() : text
}

const store = (
  tx: Transaction,
  { table, nowMs }: Responses,
  { key, fingerprint }: IdempotencyKey,
  response: WriteResponse,
): void =>
  storeResponse(
    tx,
    table,
    { key, nowMs },
    { fingerprint: fingerprint ?? '', status: response.reply.status, body: storedBody(response) },
  )

/** Whether an error is stored: not if it depends on the moment rather than on the request. */
const isStorable = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 401 && error.status !== 429

/** See `WriteOptions`. */
export interface WriteTarget extends Pick<WriteOptions, 'table' | 'row' | 'caller'> {
  readonly database: Database
  readonly namespace: string
}

/**
 * Runs a write at most once per key. Without a key it is `database.write`. With one, the response is committed together
 * with the effects of the write, and an error response in a transaction of its own. A repeated request gets the stored
 * response as `replay` shows it to the caller now.
 */
export const writeOnce = (
  target: WriteTarget,
  key: IdempotencyKey | null,
  times: { nowMs: number; sinceMs: number },
  work: (tx: Transaction) => Promise<WriteResponse>,
  replay: Replay,
): Promise<Reply> =>
  key ? writeWithKey(target, key, times, work, replay) : target.database.write(work, target).then(replyOf)

const replyOf = ({ reply }: WriteResponse): Reply => reply

async function writeWithKey(
  { database, namespace, table, row, caller }: WriteTarget,
  key: IdempotencyKey,
  times: { nowMs: number; sinceMs: number },
  work: (tx: Transaction) => Promise<WriteResponse>,
  replay: Replay,
): Promise<Reply> {
  const responses: Responses = { table: responsesTable(namespace, database.dialect), replay, ...times }
  let isMismatch = false
  try {
    const { reply } = await database.write(
      async (tx) => {
        const stored = await findStored(tx, responses, key).catch((error) => {
          isMismatch = error instanceof ApiError
          throw error
        })
        if (stored) return stored
        const response = await work(tx)
        store(tx, responses, key, response)
        return response
      },
      { table, row, caller },
    )
    return reply
  } catch (error) {
    if (isMismatch || !key.storesErrors || !isStorable(error)) throw error
    const failure = toResponse({ status: error.status, text: JSON.stringify(error.body()) })
    const storeFailure = async (tx: Transaction): Promise<WriteResponse> => {
      const stored = await findStored(tx, responses, key)
      if (stored) return stored
      store(tx, responses, key, failure)
      return failure
    }
    // A rejected write must not create the database.
    return (await database.write(storeFailure, { creates: false, table, caller })).reply
  }
}
