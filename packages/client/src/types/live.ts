/** Live lists and live records: what a query answers, kept up to date by the server. */
import type { PlinthErrorShape } from './options.ts'

export type LiveStatus = 'loading' | 'live' | 'stale' | 'closed'

/** The state of a live list; the same object until something changed. */
export interface LiveListState<Row> {
  readonly items: readonly Row[]
  readonly status: LiveStatus
  readonly error?: PlinthErrorShape
  /** Optimistic changes that the server has not answered yet. */
  readonly pending: number
}

export interface LiveList<Row> {
  readonly current: LiveListState<Row>
  /** The first complete list. Rejects with the error of a refusal (status `closed`), never for a network failure. */
  readonly ready: Promise<readonly Row[]>
  /** The last unsubscribe ends the subscription of the server. */
  subscribe(listener: () => void): () => void
}

/** The state of a live record; the same object until something changed. */
export interface LiveRecordState<Row> {
  /** Null if there is no such record, or none that the caller may read. */
  readonly record: Row | null
  readonly status: LiveStatus
  readonly error?: PlinthErrorShape
}

export interface LiveRecord<Row> {
  readonly current: LiveRecordState<Row>
  readonly ready: Promise<Row | null>
  subscribe(listener: () => void): () => void
}
