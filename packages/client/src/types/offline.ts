/** What the feature `persist` takes and adds to the client. */
import type { PlinthErrorShape } from './options.ts'

/** A queued write that the server has refused, or whose outcome cannot be known any more. */
export interface RejectedWrite {
  readonly table: string
  readonly operation: 'insert' | 'update' | 'delete'
  readonly id: string
  /** The inserted row, or the patch. */
  readonly data?: object
  readonly error: PlinthErrorShape
}

export interface PersistOptions {
  /** Called for a write that was accepted for the queue and is rolled back. */
  onReject?: (write: RejectedWrite) => void
  /** The id of the user, for clients with `getToken`; null while signed out. */
  userId?: () => string | null
}

/** The queue of writes that the server has not answered. */
export interface Offline {
  /** Writes of the signed-in user that wait for the server. */
  readonly pending: number
  /** Calls the listener when `pending` changes. Returns the function that stops it. */
  subscribe(listener: () => void): () => void
  /** Sends what waits. Resolves when nothing waits any more; rejects with the error that stopped it. */
  flush(): Promise<void>
  /**
   * Gives up the first write that waits, for one that the server can never answer. It is rolled back and reported with
   * the slug `discarded`; the server may have executed it. Resolves with it, or with null where nothing waits.
   */
  discard(): Promise<RejectedWrite | null>
}
