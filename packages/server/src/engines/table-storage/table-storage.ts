/**
 * What a table and its indexes take on disk, and how many rows the table has. Each engine has one statement for it that
 * visits a bounded part of the table: what is larger is estimated from that part, and says so.
 */

/** How a number was found: counted in full, estimated from a part of it, or only that part. */
export const precisions = ['exact', 'estimate', 'at-least'] as const

export interface Measure {
  readonly value: number
  readonly precision: (typeof precisions)[number]
}

/** `key`: the index of the id. `search`: what full-text searches read. */
export type StoredIndexKind = 'key' | 'index' | 'search'

export interface StoredIndex {
  /** As the database has it. */
  readonly name: string
  readonly kind: StoredIndexKind
  readonly bytes: Measure
}

export interface StoredTable {
  readonly rows: Measure
  /** Without indexes. */
  readonly bytes: Measure
  readonly indexes: readonly StoredIndex[]
}

export interface StorageBounds {
  /** Pages of the table, and of each of its indexes, that are visited. */
  readonly pages: number
  /** Rows that are counted, and of a larger table the rows at either end from which the others are estimated. */
  readonly rows: number
}

export const exact = (value: number): Measure => ({ value, precision: 'exact' })
export const estimate = (value: number): Measure => ({ value: Math.round(value), precision: 'estimate' })
export const atLeast = (value: number): Measure => ({ value, precision: 'at-least' })
