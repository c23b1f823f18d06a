/**
 * Maps SQLSTATEs to the port's error kinds and to the scope of the failure. A state that is not listed is an invalid
 * statement; its error is passed through.
 */
import pg from 'pg'
import { EngineError, type EngineErrorKind } from '../sql/error.ts'
import { SkippedStatement } from './wire/wire.ts'

/**
 * Scope of a failure. `statement`: that statement alone. `connection`: the connection is discarded and the server
 * probed. `writes`: reads continue, writes are rejected until a probe write succeeds. `health`: the node reports itself
 * unhealthy for a while, but statements continue.
 */
export type FaultScope = 'statement' | 'connection' | 'writes' | 'health'

export interface FaultMeaning {
  readonly kind: EngineErrorKind
  readonly scope: FaultScope
  /** For the operator; null if the server's own message suffices. */
  readonly reason: string | null
}

const meaning = (kind: EngineErrorKind, scope: FaultScope, reason: string | null = null): FaultMeaning => ({
  kind,
  scope,
  reason,
})

/** Keys are states, or prefixes of two or three characters; the longest match wins. */
const meanings: Readonly<Record<string, FaultMeaning>> = {
  '08': meaning('unavailable', 'connection', 'the connection failed'),
  '23505': meaning('unique', 'statement'),
  '25006': meaning('unavailable', 'writes', 'the server is read-only'),
  '25P03': meaning('unavailable', 'connection', 'a transaction was idle for too long'),
  '28': meaning('unavailable', 'connection', 'the server refuses the user or its password'),
  '3D000': meaning('unavailable', 'connection', 'the database does not exist'),
  // Serialization conflicts: the same work may succeed when it runs again.
  '40001': meaning('conflict', 'statement'),
  '40P01': meaning('conflict', 'statement'),
  '40003': meaning('unavailable', 'statement'),
  '53': meaning('unavailable', 'statement'),
  '53100': meaning('unavailable', 'writes', 'the disk of the server is full'),
  '53200': meaning('unavailable', 'health', 'the server is out of memory'),
  '53300': meaning('unavailable', 'connection', 'the server has no free connection'),
  // Besides oversized index rows, this state concerns statements that are never sent here.
  '54000': meaning('oversized', 'statement'),
  '55000': meaning('unavailable', 'statement'),
  '55P03': meaning('busy', 'statement', 'a lock was not available in time'),
  // The statement took longer than `statement_timeout`, or an administrator canceled it.
  '57014': meaning('unavailable', 'statement'),
  '57P': meaning('unavailable', 'connection', 'the server is starting or stopping'),
  '57P04': meaning('unavailable', 'connection', 'the database was dropped'),
  '58': meaning('unavailable', 'health', 'the server reports a system error'),
  '72000': meaning('conflict', 'statement'),
  F0: meaning('unavailable', 'connection', 'the configuration of the server is broken'),
  XX001: meaning('unavailable', 'health', 'data on the server are corrupt'),
  XX002: meaning('unavailable', 'health', 'an index on the server is corrupt'),
}

/** The meaning of a state; null for an invalid statement. */
export const meaningOf = (sqlState: string): FaultMeaning | null =>
  meanings[sqlState] ?? meanings[sqlState.slice(0, 3)] ?? meanings[sqlState.slice(0, 2)] ?? null

export const lockTimeoutState = '55P03'
/** The statement took longer than `statement_timeout`. */
export const canceledState = '57014'
/** A number out of the range of its type. */
export const outOfRangeState = '22003'
export const tooManyClientsState = '53300'

/** The SQLSTATE of an error, mapped or not; null if it does not come from the server. */
export function sqlStateOf(error: unknown): string | null {
  const origin = error instanceof EngineError ? error.cause : error
  return origin instanceof pg.DatabaseError ? (origin.code ?? null) : null
}

/** A program error, such as a value that cannot be encoded: not a connection failure. */
const isProgramError = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError

/** The transaction is aborted: the server ignores statements until its end. */
const abortedState = '25P02'

/** Whether a statement failed only because an earlier one of its transaction had. */
export const isConsequence = (error: unknown): boolean =>
  error instanceof SkippedStatement || sqlStateOf(error) === abortedState

/** `Key (slug)=(a) already exists.`: in every language, the first parentheses before `=` list the columns. */
const uniqueDetail = /\(([^)]*)\)=\(/

/**
 * Maps an error and determines its scope. An error that is neither from the server nor a program error is a connection
 * failure: the library has no type for those.
 */
export function faultOf(error: unknown): { readonly error: unknown; readonly scope: FaultScope } {
  if (error instanceof EngineError || error instanceof SkippedStatement || isProgramError(error))
    return { error, scope: 'statement' }
  if (!(error instanceof pg.DatabaseError)) {
    const { message } = error as Error
    return { error: new EngineError('unavailable', message, [], error), scope: 'connection' }
  }
  const { code = '', detail = '', message } = error
  const found = meaningOf(code)
  if (!found) return { error, scope: 'statement' }
  const columns = found.kind === 'unique' ? columnsOf(detail) : []
  const text = found.reason === null ? message : `${found.reason}: ${message}`
  return { error: new EngineError(found.kind, text, columns, error), scope: found.scope }
}

function columnsOf(detail: string): string[] {
  const columns = (uniqueDetail.exec(detail)?.[1] ?? '').split(', ').map((name) => name.replaceAll('"', ''))
  return columns.filter((name) => name !== '_instance')
}
