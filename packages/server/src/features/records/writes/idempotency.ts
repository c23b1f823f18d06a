/**
 * `Idempotency-Key`: the first response to a key is stored in the same transaction as its effects, so a repeated
 * request gets it again and changes nothing, also after a crash. Of large responses only status and ids are stored. An
 * advisory lock on the key serializes the requests, so a second one sees either nothing or the finished first.
 */
import { type Caller, callerKey } from '../../../access/caller.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Dialect, TableRef } from '../../../engines/sql/dialect.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { ApiError, conflict, invalidField } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { textOf } from '../../../http/replies/reply.ts'
import { idempotencyKeyCharsMax } from '../../../limits/api.ts'
import { idempotencyAnswerCharsMax } from '../../../limits/writes.ts'
import { type Answered, answered } from './answer.ts'
import type { StoredAnswer } from './replay.ts'

/** Answers of a namespace, all its instances together: the key says which. */
const answersOf = (namespace: string): TableRef => ({ namespace, name: '_idempotency', perInstance: false })

/** `at` in milliseconds since 1970; `key` and `fingerprint` are SHA-256. */
export const createAnswers = (namespace: string, dialect: Dialect): SqlText[] => [
  sql`CREATE TABLE IF NOT EXISTS ${dialect.target(answersOf(namespace))} (${join(dialect.logHead, ', ')},
    key TEXT NOT NULL UNIQUE, at BIGINT NOT NULL, fingerprint TEXT NOT NULL, status INTEGER NOT NULL, body TEXT)`,
  sql`CREATE INDEX IF NOT EXISTS "_idempotency_at" ON ${dialect.target(answersOf(namespace))} (at)`,
]

interface Kept extends StoredAnswer {
  readonly fingerprint: string
}

/** What makes a repeated request the same one. */
export interface RequestIdentity {
  readonly caller: Caller
  readonly method: string
  readonly path: string
  /** Query string and body; another one under the same key is a conflict. */
  readonly content: string
}

/** The body of a stored response as its caller may see it now. */
export type Replay = (tx: Transaction, stored: StoredAnswer) => Promise<string | null>

export interface IdempotencyKey {
  readonly key: string
  readonly fingerprint: string
}

const keyPattern = new RegExp(`^[ -~]{1,${idempotencyKeyCharsMax}}$`)

/** Null without the header. Throws 400 for a key that is empty, too long or not printable ASCII. */
export function parseIdempotencyKey(header: string | null, identity: RequestIdentity): IdempotencyKey | null {
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
  }
}

/** The stored responses of one database. */
interface Answers {
  readonly replay: Replay
  readonly table: SqlText
  readonly dialect: Dialect
  readonly sinceMs: number
  readonly nowMs: number
}

async function findKept(
  tx: Transaction,
  answers: Answers,
  { key, fingerprint }: IdempotencyKey,
): Promise<Answered | null> {
  // Serializes requests with one key, so that the second finds the answer of the first.
  await tx.lock(key)
  const [kept] = await tx.all<Kept>(
    sql`SELECT fingerprint, status, body FROM ${answers.table} WHERE key = ${key} AND at >= ${answers.sinceMs}`,
  )
  if (!kept) return null
  if (kept.fingerprint !== fingerprint) throw conflict('This Idempotency-Key was used with another request')
  const text = await answers.replay(tx, kept)
  return answered({ status: kept.status, text, headers: { 'Idempotency-Replayed': 'true' } })
}

/** What is kept of an answer: all of it, or what it was about where it is large. */
function keptBody({ reply, brief }: Answered): string | null {
  const text = textOf(reply)
  return text !== null && text.length > idempotencyAnswerCharsMax ? brief() : text
}

async function keep(tx: Transaction, { table, nowMs }: Answers, kept: IdempotencyKey, answer: Answered): Promise<void> {
  // One past its time may still be there.
  await tx.run(sql`DELETE FROM ${table} WHERE key = ${kept.key}`)
  await tx.run(
    sql`INSERT INTO ${table} (key, at, fingerprint, status, body)
      VALUES (${kept.key}, ${nowMs}, ${kept.fingerprint}, ${answer.reply.status}, ${keptBody(answer)})`,
  )
}

/** Refusals that hang on the moment rather than on the request are not worth keeping. */
const isKept = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 401 && error.status !== 429

/**
 * Runs a write to a table that may be a repetition. Without a key it is `database.write`; with one, the response and
 * the effects are committed together, and an error is stored by itself. A repetition gets the stored response as
 * `replay` shows it to the caller now.
 */
export async function writeOnce(
  { database, namespace, table }: { database: Database; namespace: string; table: string },
  key: IdempotencyKey | null,
  times: { nowMs: number; sinceMs: number },
  work: (tx: Transaction) => Promise<Answered>,
  replay: Replay,
): Promise<Reply> {
  if (!key) return (await database.write(work, { table })).reply
  const { dialect } = database
  const answers: Answers = { table: dialect.target(answersOf(namespace)), dialect, replay, ...times }
  let isMismatch = false
  try {
    const { reply } = await database.write(
      async (tx) => {
        const kept = await findKept(tx, answers, key).catch((error) => {
          isMismatch = error instanceof ApiError
          throw error
        })
        if (kept) return kept
        const answer = await work(tx)
        await keep(tx, answers, key, answer)
        return answer
      },
      { table },
    )
    return reply
  } catch (error) {
    if (isMismatch || !isKept(error)) throw error
    const refusal = answered({ status: error.status, text: JSON.stringify(error.body()) })
    const keepRefusal = async (tx: Transaction): Promise<Answered> => {
      const kept = await findKept(tx, answers, key)
      if (kept) return kept
      await keep(tx, answers, key, refusal)
      return refusal
    }
    // A refused write is no reason for a database to come into being.
    return (await database.write(keepRefusal, { creates: false, table })).reply
  }
}

/** The kept answers of a namespace, for `trimByTime`. */
export const answersTable = (namespace: string, dialect: Dialect): SqlText => dialect.target(answersOf(namespace))
