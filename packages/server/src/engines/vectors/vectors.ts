/**
 * Port: nearest-neighbor search in a copy of the vectors in SQL. The copy follows SQL by itself, page by page, and can
 * be lost at any time without harm. Adapters (`threads`) own the search; the callers own storage and access.
 */

/** `cosine` ranks by similarity, `dot-product` by product, highest first; `euclidean` by distance, lowest first. */
export type VectorMetric = 'cosine' | 'euclidean' | 'dot-product'

/** A value of indexed metadata; null if the vector has none, or one that is not a text, a number or a boolean. */
export type VectorMetadataValue = string | number | boolean | null

/** One vector's latest state in SQL. */
export interface VectorRow {
  /** Integer from 1 to 2^53 - 1; permanent, and never reused by another vector. */
  readonly key: number
  /** Integer above 0: position of the row's last change in the index's changes. Unique. */
  readonly version: number
  /** As in a query's `vector`, as little-endian 32-bit floats; null if deleted. Not retained. */
  readonly values: Uint8Array | null
  /** Empty if the vector has none. */
  readonly namespace: string
  /** In the order of the index's `metadataIndexes`. */
  readonly metadata: readonly VectorMetadataValue[]
}

/** Rows that changed after some version, in the order of their versions. */
export interface VectorPage {
  readonly rows: readonly VectorRow[]
  /** With these rows a copy is complete up to here: no row with a lower version may appear later. */
  readonly version: number
  /** False if there may be more rows to read now. */
  readonly isLast: boolean
  /** The index's last change at the time of the read, whether or not these rows reach it. */
  readonly latest: number
}

/** Source of the copy. */
export interface VectorSource {
  /**
   * At most `rowsMax` rows with a version above `after`. After 0, deleted vectors may be omitted. `begun` is the
   * `latest` of the copy's first page, 0 before it: vectors deleted before are not in the copy. Null if the deletions
   * since are no longer known: the copy starts over from 0. May reject with `EngineError`.
   */
  readChanges(after: number, begun: number, rowsMax: number): Promise<VectorPage | null>
}

export interface VectorIndexOptions {
  /** Unique among open indexes; 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string
  readonly dimensions: number
  readonly metric: VectorMetric
  /** Fields that conditions may use. */
  readonly metadataIndexes: readonly string[]
  readonly source: VectorSource
}

/**
 * Condition on the metadata of a match. Values compare only with their own type: numbers by size, texts by code point;
 * booleans and null have no order. A vector without the field satisfies `!=` and `not in` (unless null is among the
 * values), and `=` null.
 */
export type VectorCondition =
  | {
      readonly field: string
      readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>='
      readonly value: VectorMetadataValue
    }
  | {
      readonly field: string
      readonly operator: 'in' | 'not in'
      readonly values: readonly VectorMetadataValue[]
    }

export interface VectorQuery {
  /** One number per dimension, none above `vectorValueMax` in magnitude; under `cosine`, not all zero. */
  readonly vector: Float32Array
  /** From 1. */
  readonly topK: number
  /** Only vectors of this namespace; null for all, the empty text for vectors without one. */
  readonly namespace: string | null
  /** All must be satisfied. */
  readonly conditions: readonly VectorCondition[]
  /** The search reflects every change up to this version of SQL, and possibly later ones. */
  readonly atLeast: number
}

export interface VectorMatch {
  readonly key: number
  /** The similarity (1: same direction), the distance (0: identical), or the product. */
  readonly score: number
}

export interface VectorIndexState {
  /** Vectors in the copy. */
  readonly size: number
  /** The copy is complete up to this version of SQL; 0 while empty. */
  readonly version: number
  /** Bytes of memory taken by the copy and its graph. */
  readonly bytes: number
  /** Vectors in the graph; the others are compared one by one. */
  readonly inGraph: number
  /** Searches that the graph has answered. */
  readonly byGraph: number
}

export interface VectorIndex {
  /** Starts catching up with SQL in the background, ahead of searches. Never fails. */
  follow(): void
  /**
   * The best matches, best first; ties in key order. Exact in a small index and under a narrow filter; otherwise a mean
   * recall of at least 95% for the best ten. A filter is always respected. Rejects with `EngineError`: `busy` when too
   * many searches are pending; `unavailable` when the copies would exceed their memory, or the thread was lost twice;
   * and with errors of the source.
   */
  search(query: VectorQuery): Promise<VectorMatch[]>
  /** For tests and metrics. Rejects like `search`. */
  state(): Promise<VectorIndexState>
  /** Drops the copy; pending requests reject with `unavailable`. */
  close(): void
}

export interface Vectors {
  /** Opens an index with an empty copy, which the first search or `follow` fills. */
  openIndex(options: VectorIndexOptions): VectorIndex
  /** Saves graphs and ends the threads. Pending requests reject with `unavailable`. */
  close(): Promise<void>
}
