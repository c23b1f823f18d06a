/** A search of the instances of a dynamic namespace: which have data, in pages. */

export interface InstanceSearch {
  readonly namespace: string
  /** The names of the tables of the namespace. */
  readonly tables: readonly string[]
  /** Empty for all. */
  readonly text: string
  /** Where an id has the text. */
  readonly match: 'prefix' | 'contains'
  /** Only ids after it; empty for the start. */
  readonly after: string
  readonly limit: number
  /** The caller's key (`callerKey`). */
  readonly caller: string
}

export interface FoundInstance {
  readonly id: string
  /** Of the last write, in milliseconds since 1970; null where the engine does not know. */
  readonly writtenAtMs: number | null
}

export interface InstancePage {
  /** By id. */
  readonly instances: readonly FoundInstance[]
  readonly hasMore: boolean
  /** Of those in use by this server, the latest written to; empty where the engine does not know. */
  readonly recent: readonly FoundInstance[]
}
