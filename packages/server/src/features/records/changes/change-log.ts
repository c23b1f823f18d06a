/** A change log for a reader that stores its position, such as the dispatcher of functions. */
import type { Clock } from '../../../base/clock.ts'
import type { Database, DatabaseAddress } from '../../../engines/sql/sql.ts'
import { changesKeptMinMs } from '../../../limits/sqlite.ts'
import type { ChangeLogReader, LogPosition, Page, PageSize } from './change-log-reader.ts'
import { findTrimmed, type LogBounds } from './trim.ts'

/** `all`; `some`: trimmed beyond the position, perhaps; `none`: the position is of another history of the log. */
export type Coverage = 'all' | 'some' | 'none'

export interface ChangeLog {
  readonly address: DatabaseAddress
  /** The position after everything committed so far. */
  currentPosition(): Promise<LogPosition>
  /** A page of the changes after a position, once they are on disk. */
  read(position: LogPosition, size: PageSize): Promise<Page>
  /** What the log knows of the changes since a position. */
  coverageOf(position: LogPosition): Promise<Coverage>
  /** Calls the listener when the log may have changed, until the returned function is called. */
  onWake(listener: () => void): () => void
}

export interface ChangeLogDeps extends Pick<ChangeLog, 'address' | 'onWake'> {
  readonly reader: ChangeLogReader
  readonly database: Database
  readonly bounds: () => LogBounds
  readonly clock: Clock
}

export function createChangeLog({ address, reader, database, bounds, clock, onWake }: ChangeLogDeps): ChangeLog {
  return {
    address,
    onWake,
    currentPosition: () => reader.currentPosition(),
    async read(position, size) {
      const page = await reader.read(position, size)
      if (page.changes.length > 0) await database.synced()
      return page
    },
    async coverageOf(position) {
      const nowMs = clock.now()
      const now = await reader.currentPosition()
      if (!(await reader.isOfHistory(position, now, nowMs - bounds().retentionMs))) return 'none'
      // Younger changes are never trimmed.
      if (nowMs - position.atMs < changesKeptMinMs / 2) return 'all'
      const trimmed = await findTrimmed(database, address.namespace)
      return database.dialect.logView.isBeyond(trimmed, position.from) ? 'some' : 'all'
    },
  }
}
