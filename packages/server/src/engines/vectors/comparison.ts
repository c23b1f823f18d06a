/**
 * One search in progress over the rows of an index: rows are offered one by one, compared with the query in blocks, and
 * the best are kept. `rows` owns the memory that both share.
 */
import { vectorBlockRows } from '../../limits/resources.ts'
import { exactScore } from './scores.ts'
import type { VectorMatch, VectorMetric } from './vectors.ts'

/** The rows as a comparison sees them. */
export interface ComparedRows {
  keyOf(slot: number): number
  values(slot: number): Float32Array
}

export interface ComparisonParts {
  readonly rows: ComparedRows
  readonly metric: VectorMetric
  readonly query: Float32Array
  /** Slots to compare next, and the results: views of the kernel's memory with room for `vectorBlockRows`. */
  readonly block: Uint32Array
  readonly results: Float32Array
  /** Compares the query with the first `count` slots of the block. */
  readonly compareBlock: (count: number) => void
  readonly keptMax: number
}

export class Comparison {
  /** Padded to a row of the index, for searches of a graph. */
  readonly query: Float32Array
  readonly #rows: ComparedRows
  readonly #metric: VectorMetric
  /** Makes a higher result the better one. */
  readonly #sign: 1 | -1
  readonly #block: Uint32Array
  readonly #results: Float32Array
  readonly #compareBlock: (count: number) => void
  readonly #best: Best
  #waiting = 0

  constructor({ rows, metric, query, block, results, compareBlock, keptMax }: ComparisonParts) {
    this.query = query
    this.#rows = rows
    this.#metric = metric
    this.#sign = metric === 'euclidean' ? -1 : 1
    this.#block = block
    this.#results = results
    this.#compareBlock = compareBlock
    this.#best = new Best(keptMax, rows)
  }

  offer(slot: number): void {
    this.#block[this.#waiting++] = slot
    if (this.#waiting === vectorBlockRows) this.#flush()
  }

  /** Slots and their goodness (higher is better, 32-bit precision), best first. */
  best(): { readonly slots: readonly number[]; readonly goodness: readonly number[] } {
    this.#flush()
    return this.#best
  }

  /** The best of the given slots, at most `topK`, with scores at full precision; ties in key order. */
  matches(slots: readonly number[], topK: number): VectorMatch[] {
    const rows = this.#rows
    return slots
      .map((slot) => ({ key: rows.keyOf(slot), score: exactScore(this.query, rows.values(slot), this.#metric) }))
      .sort((one, other) => (one.score - other.score) * -this.#sign || one.key - other.key)
      .slice(0, topK)
  }

  #flush(): void {
    const best = this.#best
    const block = this.#block
    const results = this.#results
    const waiting = this.#waiting
    this.#compareBlock(waiting)
    for (let index = 0; index < waiting; index++) {
      const goodness = (results[index] ?? 0) * this.#sign
      if (goodness >= best.least) best.offer(block[index] ?? 0, goodness)
    }
    this.#waiting = 0
  }
}

/** The best few of many, ordered by goodness, then by key. */
class Best {
  readonly slots: number[] = []
  readonly goodness: number[] = []
  /** Goodness below this is not kept. */
  least = Number.NEGATIVE_INFINITY
  readonly #keptMax: number
  readonly #rows: ComparedRows

  constructor(keptMax: number, rows: ComparedRows) {
    this.#keptMax = keptMax
    this.#rows = rows
  }

  offer(slot: number, value: number): void {
    const { slots, goodness } = this
    if (slots.length === this.#keptMax) {
      if (!this.#isBefore(slot, value, this.#keptMax - 1)) return
      slots.pop()
      goodness.pop()
    }
    let [low, high] = [0, slots.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#isBefore(slot, value, middle)) high = middle
      else low = middle + 1
    }
    slots.splice(low, 0, slot)
    goodness.splice(low, 0, value)
    if (slots.length === this.#keptMax) this.least = goodness[this.#keptMax - 1] ?? 0
  }

  #isBefore(slot: number, value: number, index: number): boolean {
    const other = this.goodness[index] ?? 0
    if (value !== other) return value > other
    return this.#rows.keyOf(slot) < this.#rows.keyOf(this.slots[index] ?? 0)
  }
}
