/**
 * What PostgreSQL's errors mean: one table from SQLSTATE to the port's kinds, and to how far the trouble reaches beyond
 * the statement. Whatever the table leaves out is a mistake in a statement and passes as it is.
 */
import pg from 'pg'
import { EngineError, type EngineErrorKind } from '../sql/error.ts'

/**
 * How far a failure reaches. `statement`: no further. `connection`: the connection is not used again, and the server is
 * probed. `writes`: reads go on, writes are refused until a probe write succeeds. `health`: the node is unhealthy for a
 * while, although other statements go on.
 */
export type FaultScope = 'statement' | 'connection' | 'writes' | 'health'

export interface FaultMeaning {
  readonly kind: EngineErrorKind
  readonly scope: FaultScope
  /** For the operator; null where the server's own message says it best. */
  readonly reason: string | null
}

const meaning = (kind: EngineErrorKind, scope: FaultScope, reason: string | null = null): FaultMeaning => ({
  kind,
  scope,
  reason,
})

/** Five characters are a state, two or three the states that begin with them; the longest entry wins. */
const meanings: Readonly<Record<string, FaultMeaning>> = {
  '08': meaning('unavailable', 'connection', 'the connection failed'),
  '23505': meaning('unique', 'statement'),
  '25006': meaning('unavailable', 'writes', 'the server is read-only'),
  '25P03': meaning('unavailable', 'connection', 'a transaction was idle for too long'),
  '28': meaning('unavailable', 'connection', 'the server refuses the user or its password'),
  '3D000': meaning('unavailable', 'connection', 'the database does not exist'),
  // Another transaction was quicker: the same work may succeed when it is run again.
  '40001': meaning('conflict', 'statement'),
  '40P01': meaning('conflict', 'statement'),
  '40003': meaning('unavailable', 'statement'),
  '53': meaning('unavailable', 'statement'),
  '53100': meaning('unavailable', 'writes', 'the disk of the server is full'),
  '53200': meaning('unavailable', 'health', 'the server is out of memory'),
  '53300': meaning('unavailable', 'connection', 'the server has no free connection'),
  // Beside the size of an index's row this is about statements that are never made here.
  '54000': meaning('oversized', 'statement'),
  '55000': meaning('unavailable', 'statement'),
  '55P03': meaning('busy', 'statement', 'a lock was not to be had in time'),
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

/** What a state means; null for a mistake in a statement. */
export const meaningOf = (sqlState: string): FaultMeaning | null =>
  meanings[sqlState] ?? meanings[sqlState.slice(0, 3)] ?? meanings[sqlState.slice(0, 2)] ?? null

export const lockTimeoutState = '55P03'
export const tooManyClientsState = '53300'

/** The state of an error, also of one that was mapped already; null where it does not come from the server. */
export function sqlStateOf(error: unknown): string | null {
  const origin = error instanceof EngineError ? error.cause : error
  return origin instanceof pg.DatabaseError ? (origin.code ?? null) : null
}

/** A mistake of the program, such as a value that cannot be sent: not a failure of the connection. */
const isMistake = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError

/** `Key (slug)=(a) already exists.`: in whatever language, the columns stand in the first parentheses before `=`. */
const uniqueDetail = /\(([^)]*)\)=\(/

/**
 * The error in the port's words, and how far it reaches. What is neither from the server nor a mistake is a failure of
 * the connection: the library gives those no type of their own.
 */
export function faultOf(error: unknown): { readonly error: unknown; readonly scope: FaultScope } {
  if (error instanceof EngineError || isMistake(error)) return { error, scope: 'statement' }
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
