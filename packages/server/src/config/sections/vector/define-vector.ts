/** Types of the configuration section `vector`. `vector.ts` validates it at start. */

/** A vector index as it is written. */
export interface VectorConfig {
  /** Numbers in each vector: what the model gives, 1 to 4096. */
  readonly dimensions: number
  /** What near means; default `cosine`. */
  readonly metric?: 'cosine' | 'euclidean' | 'dot-product'
  /** Members of the metadata that searches may filter by; default none. */
  readonly metadataIndexes?: readonly string[]
  /**
   * Where searches run. `auto` (the default): in PostgreSQL where that has pgvector, else in the server's memory.
   * `memory` and `pgvector` insist.
   */
  readonly engine?: 'auto' | 'memory' | 'pgvector'
}
