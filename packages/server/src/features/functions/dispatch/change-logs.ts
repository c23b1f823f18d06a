/**
 * The port of the change logs that are dispatched, so that this feature does not depend on `features/records`, which
 * implements it. `app` connects the two.
 */
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'

/** A position in a log. Only the log knows its meaning; it is stored as JSON. */
export interface Position {
  /** A time, in milliseconds since 1970, when nothing beyond the position had been committed. */
  readonly atMs: number
  /** A snapshot of the log: every change in it is before the position. */
  readonly from: string
}

/** The change of one row by one write. */
export interface Change {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  /** Groups the changes of one request; a function's request is named by `causeOf`. */
  readonly requestId: string
  readonly atMs: number
  /** Of the row after the change. */
  readonly version: number
  /** Complete records, hidden fields included; null where there was or is none. */
  readonly before: Readonly<Record<string, unknown>> | null
  readonly after: Readonly<Record<string, unknown>> | null
  readonly afterText: string | null
}

/** See `features/records/changes/change-log`. */
export interface ChangeLog {
  readonly address: DatabaseAddress
  currentPosition(): Promise<Position>
  read(
    position: Position,
    size: { readonly changes: number; readonly bytes: number },
  ): Promise<{ readonly changes: readonly Change[]; readonly next: Position; readonly isLast: boolean }>
  coverageOf(position: Position): Promise<'all' | 'some' | 'none'>
  onWake(listener: () => void): () => void
}

export interface ChangeLogs {
  changeLog(address: DatabaseAddress): ChangeLog
}

export const keyOfLog = ({ namespace, instanceId }: DatabaseAddress): string =>
  instanceId === null ? namespace : `${namespace}/${instanceId}`
