/**
 * The values of an index's vectors, in the kernel's memory, and their comparison with a query. A vector has a slot, a
 * small number, as long as it lives; slots are reused. Metadata and graphs refer to slots and are elsewhere.
 */
import { vectorBlockRows } from '../../limits/resources.ts'
import { EngineError } from '../sql/error.ts'
import { createKernel, pageBytes, pagesMax, rowAlignBytes } from './kernel.ts'
import type { VectorMatch, VectorMetric } from './vectors.ts'

/** One search in progress: rows are offered one by one, compared in blocks, and the best are kept. */
export interface Comparison {
  /** Padded to a row of the index, for searches of a graph. */
  readonly query: Float32Array
  offer(slot: number): void
  /** Slots and their goodness (higher is better, 32-bit precision), best first. */
  best(): { readonly slots: readonly number[]; readonly goodness: readonly number[] }
  /** The best of the given slots, at most `topK`, with scores at full precision; ties in key order. */
  matches(slots: readonly number[], topK: number): VectorMatch[]
}

export interface VectorRows {
  /** Number of vectors. */
  readonly size: number
  /** All slots are below this. */
  readonly slotsEnd: number
  readonly bytes: number
  isLive(slot: number): boolean
  keyOf(slot: number): number
  find(key: number): number | undefined
  /** The vector's slot, and whether it is new or its values changed. Throws `EngineError` when full. */
  put(key: number, values: Float32Array): { readonly slot: number; readonly isChanged: boolean }
  /** Frees the vector's slot and returns it. */
  remove(key: number): number | undefined
  /** The stored values: normalized under `cosine`, padded with zeros. Valid until the next `put`. */
  values(slot: number): Float32Array
  /** Keeps the best `keptMax`. One comparison at a time: the next one ends it. */
  compare(vector: Float32Array, keptMax: number): Comparison
}

/** Floats of a row, with padding. */
export const rowFloats = (dimensions: number): number =>
  (Math.ceil((dimensions * 4) / rowAlignBytes) * rowAlignBytes) / 4

export function createVectorRows({ dimensions, metric }: { dimensions: number; metric: VectorMetric }): VectorRows {
  const { memory, dots, squares } = createKernel()
  const floats = rowFloats(dimensions)
  const stride = floats * 4
  const [numbersAt, resultsAt, queryAt] = [0, 4 * vectorBlockRows, 8 * vectorBlockRows]
  const spareAt = queryAt + stride
  const rowsAt = spareAt + stride
  const slotsMax = Math.floor((pagesMax * pageBytes - rowsAt) / stride)
  const slots = new Map<number, number>()
  const free: number[] = []
  let keys = new Float64Array(64)
  let slotsEnd = 0
  let all = new Float32Array(0)

  /** Growing the memory detaches its views. */
  function floatsAt(at: number): Float32Array {
    if (all.buffer !== memory.buffer) all = new Float32Array(memory.buffer)
    return all.subarray(at / 4, at / 4 + floats)
  }

  function makeRoom(bytes: number): void {
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
  makeRoom(rowsAt)

  /** Writes normalized, padded values. */
  function write(at: number, values: Float32Array): Float32Array {
    const row = floatsAt(at)
    const scale = metric === 'cosine' ? 1 / (lengthOf(values) || 1) : 1
    for (let index = 0; index < dimensions; index++) row[index] = (values[index] ?? 0) * scale
    row.fill(0, dimensions)
    return row
  }

  function takeSlot(key: number): number {
    const slot = free.pop() ?? slotsEnd
    if (slot >= slotsMax)
      throw new EngineError('unavailable', `An index holds at most ${slotsMax} vectors of this size`)
    makeRoom(rowsAt + (slot + 1) * stride)
    if (slot === slotsEnd) slotsEnd += 1
    if (slot >= keys.length) keys = grown(keys, new Float64Array(keys.length * 2))
    keys[slot] = key
    slots.set(key, slot)
    return slot
  }

  function compareWith(vector: Float32Array, keptMax: number): Comparison {
    const compare = metric === 'euclidean' ? squares : dots
    const sign = metric === 'euclidean' ? -1 : 1
    const query = write(queryAt, vector)
    const block = new Uint32Array(memory.buffer, numbersAt, vectorBlockRows)
    const results = new Float32Array(memory.buffer, resultsAt, vectorBlockRows)
    const best = createBest(keptMax, (slot) => keys[slot] ?? 0)
    let waiting = 0

    function flush(): void {
      compare(numbersAt, waiting, queryAt, rowsAt, stride, resultsAt)
      for (let index = 0; index < waiting; index++) {
        const goodness = (results[index] ?? 0) * sign
        if (goodness >= best.least) best.offer(block[index] ?? 0, goodness)
      }
      waiting = 0
    }
    return {
      query,
      offer(slot) {
        block[waiting++] = slot
        if (waiting === vectorBlockRows) flush()
      },
      best() {
        flush()
        return best
      },
      matches(slots, topK) {
        return slots
          .map((slot) => ({ key: keys[slot] ?? 0, score: exactScore(query, floatsAt(rowsAt + slot * stride), metric) }))
          .sort((one, other) => (one.score - other.score) * -sign || one.key - other.key)
          .slice(0, topK)
      },
    }
  }

  return {
    get size() {
      return slots.size
    },
    get slotsEnd() {
      return slotsEnd
    },
    get bytes() {
      return memory.buffer.byteLength + keys.byteLength + slots.size * mapEntryBytes
    },
    isLive: (slot) => (keys[slot] ?? 0) > 0,
    keyOf: (slot) => keys[slot] ?? 0,
    find: (key) => slots.get(key),
    put(key, values) {
      const known = slots.get(key)
      const slot = known ?? takeSlot(key)
      const spare = write(spareAt, values)
      const row = floatsAt(rowsAt + slot * stride)
      if (known !== undefined && row.every((value, index) => value === spare[index])) return { slot, isChanged: false }
      row.set(spare)
      return { slot, isChanged: true }
    },
    remove(key) {
      const slot = slots.get(key)
      if (slot === undefined) return undefined
      slots.delete(key)
      keys[slot] = 0
      free.push(slot)
      return slot
    },
    values: (slot) => floatsAt(rowsAt + slot * stride),
    compare: compareWith,
  }
}

/** Approximate size of a map entry of numbers. */
const mapEntryBytes = 48

/** Copies a full array into a longer one. */
export function grown<T extends Float64Array | Int32Array | Uint8Array>(full: T, longer: T): T {
  longer.set(full)
  return longer
}

function lengthOf(values: Float32Array): number {
  let sum = 0
  // Three times as fast as `for … of`.
  for (let index = 0; index < values.length; index++) sum += (values[index] ?? 0) ** 2
  return Math.sqrt(sum)
}

function exactScore(query: Float32Array, row: Float32Array, metric: VectorMetric): number {
  let product = 0
  let squares = 0
  for (let index = 0; index < query.length; index++) {
    const one = query[index] ?? 0
    const other = row[index] ?? 0
    product += one * other
    squares += (one - other) ** 2
  }
  if (metric === 'euclidean') return Math.sqrt(squares)
  if (metric === 'dot-product') return product
  // Normalized rows have length 1 only to 32-bit precision.
  const size = lengthOf(query) * lengthOf(row)
  return size === 0 ? 0 : Math.max(-1, Math.min(1, product / size))
}

interface Best {
  /** Goodness below this is not kept. */
  readonly least: number
  readonly slots: number[]
  readonly goodness: number[]
  offer(slot: number, goodness: number): void
}

/** The best few of many, ordered by goodness, then by key. */
function createBest(keptMax: number, keyOf: (slot: number) => number): Best {
  const slots: number[] = []
  const goodness: number[] = []

  function isBefore(slot: number, value: number, index: number): boolean {
    const other = goodness[index] ?? 0
    return value > other || (value === other && keyOf(slot) < keyOf(slots[index] ?? 0))
  }
  return {
    get least() {
      return slots.length < keptMax ? Number.NEGATIVE_INFINITY : (goodness[keptMax - 1] ?? 0)
    },
    slots,
    goodness,
    offer(slot, value) {
      if (slots.length === keptMax) {
        if (!isBefore(slot, value, keptMax - 1)) return
        slots.pop()
        goodness.pop()
      }
      let [low, high] = [0, slots.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if (isBefore(slot, value, middle)) high = middle
        else low = middle + 1
      }
      slots.splice(low, 0, slot)
      goodness.splice(low, 0, value)
    },
  }
}
