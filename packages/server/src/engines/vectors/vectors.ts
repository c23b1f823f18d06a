/**
 * Port: finds the vectors nearest to one, in a copy of what SQL holds. The copy follows SQL by itself, page by page,
 * and can be lost at any time without harm. Adapters (`vectors-threads`) own how it is searched and where; what a
 * vector is, who may see it and where it is kept is the callers' matter.
 */

/** `cosine` ranks by similarity, `dot-product` by product, highest first; `euclidean` by distance, lowest first. */
export type VectorMetric = 'cosine' | 'euclidean' | 'dot-product'

/** A value of indexed metadata; null where the vector has none, or one that is not a text, a number or a boolean. */
export type VectorMetadataValue = string | number | boolean | null

/** One vector as SQL has it, or had it last. */
export interface VectorRow {
  /** Whole, above 0, at most 2^53 - 1; a vector keeps it for life, and no other vector ever has it. */
  readonly key: number
  /** Whole, above 0: when the row last changed, in the order of the index's changes. No two rows share one. */
  readonly version: number
  /** Those of a query's `vector`, as little-endian 32-bit floats; null when it has been deleted. Not kept. */
  readonly values: Uint8Array | null
  /** Empty where the vector has none. */
  readonly namespace: string
  /** In the order of the index's `metadataIndexes`. */
  readonly metadata: readonly VectorMetadataValue[]
}

/** Rows that changed after some version, in the order of their versions. */
export interface VectorPage {
  readonly rows: readonly VectorRow[]
  /** With these rows a copy has everything up to here: no row with a lower version may appear later. */
  readonly version: number
  /** False when there may be more rows to read now. */
  readonly isLast: boolean
  /** The index's last change when this was read, whether or not these rows reach as far. */
  readonly latest: number
}

/** Where the copy comes from. */
export interface VectorSource {
  /**
   * At most `rowsMax` rows with a version above `after`. After 0 deleted vectors may be left out. `begun` is the
   * `latest` of the first page that the copy was given, 0 while there is none: what was deleted before is not in it.
   * Null when deletions since both are no longer known: the copy starts over from 0. May reject with `EngineError`.
   */
  readChanges(after: number, begun: number, rowsMax: number): Promise<VectorPage | null>
}

export interface VectorIndexOptions {
  /** Unlike those of other open indexes; 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string
  readonly dimensions: number
  readonly metric: VectorMetric
  /** Fields that conditions may name. */
  readonly metadataIndexes: readonly string[]
  readonly source: VectorSource
}

/**
 * What the metadata of a match must be. Values compare with their own type only: numbers by size, texts by code point;
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
  /**
   * As many numbers as the index has dimensions, none beyond `vectorValueMax` in magnitude; under `cosine` not all of
   * them zero.
   */
  readonly vector: Float32Array
  /** From 1. */
  readonly topK: number
  /** Only vectors of this namespace; null for those of all, the empty text for those without one. */
  readonly namespace: string | null
  /** All of them must hold. */
  readonly conditions: readonly VectorCondition[]
  /** The search sees every change up to this version of SQL, and perhaps later ones. */
  readonly atLeast: number
}

export interface VectorMatch {
  readonly key: number
  /** The similarity (1: same direction), the distance (0: same place), or the product. */
  readonly score: number
}

export interface VectorIndexState {
  /** Vectors in the copy. */
  readonly size: number
  /** Everything up to this version of SQL is in the copy; 0 while there is none. */
  readonly version: number
  /** Bytes of memory taken by the copy and its graph. */
  readonly bytes: number
  /** Vectors that the graph has; the others are compared one by one. */
  readonly inGraph: number
  /** Searches that the graph has answered. */
  readonly byGraph: number
}

export interface VectorIndex {
  /** Starts bringing the copy up to SQL in the background, so that searches find it there. Never fails. */
  follow(): void
  /**
   * The best matches, best first; equal scores in the order of keys. Exact in a small index and under a narrow filter;
   * else at least 95 of 100 are, in the mean of many searches for the best ten. A filter is always respected. Rejects
   * with `EngineError`: `busy` when too many wait; `unavailable` when the copies would take more memory than they may,
   * or the thread that searches was lost twice; and with what the source rejects with.
   */
  search(query: VectorQuery): Promise<VectorMatch[]>
  /** For tests and figures. Rejects like `search`. */
  state(): Promise<VectorIndexState>
  /** Lets go of the copy; what waits rejects with `unavailable`. */
  close(): void
}

export interface Vectors {
  /** Opens an index with an empty copy, which is filled by the first search or by `follow`. */
  openIndex(options: VectorIndexOptions): VectorIndex
  /** Saves what is worth it, and ends the threads. What waits rejects with `unavailable`. */
  close(): Promise<void>
}
