/**
 * The values of an index's vectors, in the kernel's memory. A vector has a slot, a small number, as long as it lives;
 * slots are reused. Metadata and graphs refer to slots and are elsewhere; `comparison` searches the rows.
 */
import { vectorBlockRows } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import { Comparison } from './comparison.ts'
import { createKernel, type Kernel, pageBytes, pagesMax, rowAlignBytes } from './kernel.ts'
import { lengthOf } from './scores.ts'
import type { VectorMetric } from './vectors.ts'

/** Floats of a row, with padding. */
export const rowFloats = (dimensions: number): number =>
  (Math.ceil((dimensions * 4) / rowAlignBytes) * rowAlignBytes) / 4

/** Where the memory has the block of a comparison, its results, and its query; a spare row and all rows follow. */
const blockAt = 0
const resultsAt = 4 * vectorBlockRows
const queryAt = 8 * vectorBlockRows

export class VectorRows {
  readonly #dimensions: number
  readonly #metric: VectorMetric
  readonly #kernel: Kernel = createKernel()
  readonly #floats: number
  /** Bytes of a row. */
  readonly #stride: number
  readonly #spareAt: number
  readonly #rowsAt: number
  readonly #slotsMax: number
  readonly #slots = new Map<number, number>()
  readonly #free: number[] = []
  #keys = new Float64Array(64)
  #slotsEnd = 0
  #all = new Float32Array(0)

  constructor(dimensions: number, metric: VectorMetric) {
    this.#dimensions = dimensions
    this.#metric = metric
    this.#floats = rowFloats(dimensions)
    this.#stride = this.#floats * 4
    this.#spareAt = queryAt + this.#stride
    this.#rowsAt = this.#spareAt + this.#stride
    this.#slotsMax = Math.floor((pagesMax * pageBytes - this.#rowsAt) / this.#stride)
    this.#makeRoom(this.#rowsAt)
  }

  /** Number of vectors. */
  get size(): number {
    return this.#slots.size
  }

  /** All slots are below this. */
  get slotsEnd(): number {
    return this.#slotsEnd
  }

  get bytes(): number {
    return this.#kernel.memory.buffer.byteLength + this.#keys.byteLength + this.#slots.size * mapEntryBytes
  }

  isLive(slot: number): boolean {
    return this.keyOf(slot) > 0
  }

  keyOf(slot: number): number {
    return this.#keys[slot] ?? 0
  }

  find(key: number): number | undefined {
    return this.#slots.get(key)
  }

  /** The vector's slot, and whether it is new or its values changed. Throws `EngineError` when full. */
  put(key: number, values: Float32Array): { readonly slot: number; readonly isChanged: boolean } {
    const known = this.#slots.get(key)
    const slot = known ?? this.#takeSlot(key)
    const spare = this.#write(this.#spareAt, values)
    const row = this.values(slot)
    if (known !== undefined && row.every((value, index) => value === spare[index])) return { slot, isChanged: false }
    row.set(spare)
    return { slot, isChanged: true }
  }

  /** Frees the vector's slot and returns it. */
  remove(key: number): number | undefined {
    const slot = this.#slots.get(key)
    if (slot === undefined) return undefined
    this.#slots.delete(key)
    this.#keys[slot] = 0
    this.#free.push(slot)
    return slot
  }

  /** The stored values: normalized under `cosine`, padded with zeros. Valid until the next `put`. */
  values(slot: number): Float32Array {
    return this.#floatsAt(this.#rowsAt + slot * this.#stride)
  }

  /** Keeps the best `keptMax`. One comparison at a time: the next one ends it. */
  compare(vector: Float32Array, keptMax: number): Comparison {
    const { memory, squares, dots } = this.#kernel
    const compare = this.#metric === 'euclidean' ? squares : dots
    const rowsAt = this.#rowsAt
    const stride = this.#stride
    return new Comparison({
      rows: this,
      metric: this.#metric,
      query: this.#write(queryAt, vector),
      block: new Uint32Array(memory.buffer, blockAt, vectorBlockRows),
      results: new Float32Array(memory.buffer, resultsAt, vectorBlockRows),
      compareBlock: (count) => compare(blockAt, count, queryAt, rowsAt, stride, resultsAt),
      keptMax,
    })
  }

  /** Growing the memory detaches its views. */
  #floatsAt(at: number): Float32Array {
    const { buffer } = this.#kernel.memory
    if (this.#all.buffer !== buffer) this.#all = new Float32Array(buffer)
    return this.#all.subarray(at / 4, at / 4 + this.#floats)
  }

  #makeRoom(bytes: number): void {
    const { memory } = this.#kernel
    const missing = bytes - memory.buffer.byteLength
    if (missing <= 0) return
    // An eighth more than needed, so that filling an index grows it only a few times.
    const pages = Math.ceil(Math.max(missing, memory.buffer.byteLength / 8) / pageBytes)
    const room = pagesMax - memory.buffer.byteLength / pageBytes
    try {
      memory.grow(Math.min(pages, room))
    } catch (error) {
      throw new EngineError('unavailable', 'There is no memory for more vectors', [], error)
    }
  }

  /** Writes normalized, padded values. */
  #write(at: number, values: Float32Array): Float32Array {
    const dimensions = this.#dimensions
    const row = this.#floatsAt(at)
    const scale = this.#metric === 'cosine' ? 1 / (lengthOf(values) || 1) : 1
    for (let index = 0; index < dimensions; index++) row[index] = (values[index] ?? 0) * scale
    row.fill(0, dimensions)
    return row
  }

  #takeSlot(key: number): number {
    const slot = this.#free.pop() ?? this.#slotsEnd
    if (slot >= this.#slotsMax)
      throw new EngineError('unavailable', `An index holds at most ${this.#slotsMax} vectors of this size`)
    this.#makeRoom(this.#rowsAt + (slot + 1) * this.#stride)
    if (slot === this.#slotsEnd) this.#slotsEnd += 1
    if (slot >= this.#keys.length) this.#keys = grown(this.#keys, new Float64Array(this.#keys.length * 2))
    this.#keys[slot] = key
    this.#slots.set(key, slot)
    return slot
  }
}

/** Approximate size of a map entry of numbers. */
const mapEntryBytes = 48

/** Copies a full array into a longer one. */
export function grown<T extends Float64Array | Int32Array | Uint8Array>(full: T, longer: T): T {
  longer.set(full)
  return longer
}
