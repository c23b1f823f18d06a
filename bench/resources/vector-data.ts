/** Deterministic test vectors: in clusters, like embeddings, or noise. */

export const dimensions = 384
export const queryCount = 200

/** `clusters`: around a thousand centers, like texts around subjects; `noise`: normal in every direction. */
export const shapes = ['clusters', 'noise'] as const
export type Shape = (typeof shapes)[number]

export interface VectorData {
  /** Side by side, `dimensions` each. The key of the first is 1. */
  readonly values: Float32Array
  readonly queries: readonly Float32Array[]
}

const centerCount = 1000
/** Deviation of a vector from its center, whose components have deviation 1. */
const spread = 0.6

export function createVectorData(shape: Shape, count: number): VectorData {
  const normal = createNormal(20_240_229)
  const centers = new Float32Array(centerCount * dimensions).map(normal)
  const fill = (target: Float32Array, number: number): Float32Array => {
    // Clusters have uneven sizes, and the order of the vectors is independent of their cluster.
    const center = Math.floor(centerCount * ((number * 0.618_033_988_7) % 1) ** 2) * dimensions
    for (let index = 0; index < dimensions; index++)
      target[index] = shape === 'noise' ? normal() : (centers[center + index] ?? 0) + spread * normal()
    return target
  }
  const values = new Float32Array(count * dimensions)
  for (let number = 0; number < count; number++)
    fill(values.subarray(number * dimensions, (number + 1) * dimensions), number)
  const queries = Array.from({ length: queryCount }, (_, at) => fill(new Float32Array(dimensions), count + at * 37))
  return { values, queries }
}

/** The value that searches filter by: 0 to 9. */
export const tenthOf = (key: number): number => key % 10

function createNormal(seed: number): () => number {
  let state = seed
  // Only the high bits of the state: the low ones have a short period.
  const uniform = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return ((state >>> 8) + 0.5) / 2 ** 24
  }
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
}
