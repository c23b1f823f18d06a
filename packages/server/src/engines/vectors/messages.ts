/** Messages between the main thread and the search threads, and the transfer format of a page. */
import type { EngineErrorKind } from '../sql/error.ts'
import type { CoreRow } from './core.ts'
import type {
  VectorIndexState,
  VectorMatch,
  VectorMetadataValue,
  VectorMetric,
  VectorQuery,
  VectorRow,
} from './vectors.ts'

export interface OpenCopy {
  readonly name: string
  readonly dimensions: number
  readonly metric: VectorMetric
  readonly metadataIndexes: readonly string[]
  readonly folder: string
  readonly exactValuesMax?: number | undefined
  readonly saveEveryMs?: number | undefined
}

/** Rows in columnar form: one block of values is transferred to the other thread instead of copied. */
export interface PackedRows {
  readonly keys: Float64Array
  /** 1 if the vector was deleted; it has no entry in `values`. */
  readonly isGone: Uint8Array
  readonly values: Float32Array
  readonly namespaces: readonly string[]
  readonly metadata: readonly (readonly VectorMetadataValue[])[]
}

/** `copy` is the main thread's number of the copy. */
export type CopyTask =
  | { readonly task: 'open'; readonly copy: number; readonly options: OpenCopy }
  | { readonly task: 'apply'; readonly copy: number; readonly rows: PackedRows; readonly isCurrent: boolean }
  | { readonly task: 'search'; readonly copy: number; readonly query: Omit<VectorQuery, 'atLeast'> }
  | { readonly task: 'state'; readonly copy: number }
  | { readonly task: 'drop'; readonly copy: number }
  /** Saves graphs before the thread ends. */
  | { readonly task: 'save' }

/** Result of each task; for `apply`, the copy's size in bytes. */
export interface CopyResults {
  readonly open: { readonly hasGraphs: boolean }
  readonly apply: { readonly bytes: number }
  readonly search: VectorMatch[]
  readonly state: Omit<VectorIndexState, 'version'>
  readonly drop: null
  readonly save: null
}

export type CopyRequest = CopyTask & { readonly id: number }

export type CopyAnswer =
  | { readonly id: number; readonly result: CopyResults[CopyTask['task']] }
  | { readonly id: number; readonly error: { readonly kind: EngineErrorKind | null; readonly message: string } }

/** A background failure: searches continue without a graph, or on one that is not saved. */
export interface CopyWarning {
  readonly index: string
  readonly message: string
}

/** Throws if a row's values do not match the index's dimensions. */
export function packRows(rows: readonly VectorRow[], dimensions: number): PackedRows {
  const present = rows.filter(({ values }) => values !== null).length
  const values = new Float32Array(present * dimensions)
  const bytes = new Uint8Array(values.buffer)
  let at = 0
  for (const row of rows) {
    if (!row.values) continue
    if (row.values.length !== dimensions * 4)
      throw new Error(`The vector ${row.key} does not have the dimensions of its index`)
    bytes.set(row.values, at)
    at += row.values.length
  }
  return {
    keys: Float64Array.from(rows, ({ key }) => key),
    isGone: Uint8Array.from(rows, (row) => (row.values ? 0 : 1)),
    values,
    namespaces: rows.map(({ namespace }) => namespace),
    metadata: rows.map(({ metadata }) => metadata),
  }
}

export function* unpackRows(packed: PackedRows, dimensions: number): Generator<CoreRow> {
  let at = 0
  for (const [index, key] of packed.keys.entries()) {
    const isGone = packed.isGone[index] === 1
    const values = isGone ? null : packed.values.subarray(at, at + dimensions)
    if (!isGone) at += dimensions
    yield { key, values, namespace: packed.namespaces[index] ?? '', metadata: packed.metadata[index] ?? [] }
  }
}
