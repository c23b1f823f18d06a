/**
 * Histogram of latencies in logarithmic buckets: constant memory, and at most 1.6 % error in a percentile. Serialized
 * as sparse pairs.
 */

/** Buckets per doubling; 64 keeps the error of a percentile below 1/64. */
const subBuckets = 64
/** Up to 2^32 µs, more than an hour. */
const bucketCount = (32 - 5) * subBuckets

/** Bucket index and count, only where the count is not zero. */
export type SparseHistogram = readonly (readonly [index: number, count: number])[]

export class Histogram {
  readonly #counts = new Float64Array(bucketCount)
  #total = 0

  get total(): number {
    return this.#total
  }

  /** Counts one latency in milliseconds. */
  add(ms: number): void {
    const index = indexOf(ms * 1000)
    this.#counts[index] = (this.#counts[index] ?? 0) + 1
    this.#total++
  }

  reset(): void {
    this.#counts.fill(0)
    this.#total = 0
  }

  merge(other: SparseHistogram): void {
    for (const [index, count] of other) {
      this.#counts[index] = (this.#counts[index] ?? 0) + count
      this.#total += count
    }
  }

  /** The latency in milliseconds that `share` (0 to 1) of all requests stayed below; 0 when there were none. */
  percentile(share: number): number {
    let left = Math.ceil(this.#total * share)
    for (let index = 0; index < bucketCount; index++) {
      left -= this.#counts[index] ?? 0
      if (left <= 0 && this.#total > 0) return middleOf(index) / 1000
    }
    return 0
  }

  toSparse(): SparseHistogram {
    const pairs: [number, number][] = []
    for (const [index, count] of this.#counts.entries()) if (count > 0) pairs.push([index, count])
    return pairs
  }
}

function indexOf(us: number): number {
  const value = Math.min(Math.max(Math.round(us), 0), 0xffff_ffff) >>> 0
  if (value < subBuckets) return value
  const exponent = 31 - Math.clz32(value)
  return (exponent - 5) * subBuckets + ((value >>> (exponent - 6)) & (subBuckets - 1))
}

function middleOf(index: number): number {
  if (index < subBuckets) return index
  const exponent = Math.floor(index / subBuckets) + 5
  const width = 2 ** (exponent - 6)
  return (subBuckets + (index % subBuckets)) * width + width / 2
}
