/**
 * Measures how many candidates a graph search needs for the required recall, and its cost, on the index's own vectors:
 * recall depends on the data, so no fixed number fits all.
 */
import { vectorGraphDepths, vectorGraphRecallMin, vectorGraphWidths } from '../../limits/resources.ts'
import type { VectorGraph } from './graph.ts'
import type { VectorRows } from './rows.ts'

export interface Measured {
  /**
   * For each of `vectorGraphDepths`: candidates needed to find that many of the nearest; null: do not use the graph.
   */
  readonly widths: readonly (number | null)[]
  readonly graphMsPerCandidate: number
  readonly exactMsPerRow: number
  /** Nodes of the graph when it was measured. */
  readonly nodes: number
}

/**
 * Returns a function that measures one sample, and returns the result after the last. Samples are vectors held out of
 * the graph: it finds its own vectors better than others.
 */
export function createMeasuring(parts: {
  readonly graph: VectorGraph
  readonly rows: VectorRows
  readonly samples: Iterable<number>
  readonly nowMs: () => number
}): () => Measured | null {
  const { graph, rows, samples, nowMs } = parts
  const vectors = Array.from(samples, (slot) => rows.values(slot).slice())
  const depthMax = vectorGraphDepths.at(-1) ?? 0
  /** Hits by depth and width. */
  const hits = vectorGraphDepths.map(() => vectorGraphWidths.map(() => 0))
  const expected = vectorGraphDepths.map(() => 0)
  let [candidates, graphMs, compared, exactMs] = [0, 0, 0, 0]

  function sample(vector: Float32Array): void {
    let startMs = nowMs()
    const exact = rows.compare(vector, depthMax)
    for (let slot = 0; slot < rows.slotsEnd; slot++) if (graph.has(slot)) exact.offer(slot)
    const { goodness: truth } = exact.best()
    exactMs += nowMs() - startMs
    compared += graph.live
    for (const [index, depth] of vectorGraphDepths.entries())
      expected[index] = (expected[index] ?? 0) + Math.min(depth, truth.length)
    for (const [index, width] of vectorGraphWidths.entries()) {
      startMs = nowMs()
      const found = rows.compare(vector, depthMax)
      for (const slot of graph.search(found.query, width)) found.offer(slot)
      const { goodness } = found.best()
      graphMs += nowMs() - startMs
      candidates += Math.min(width, graph.nodes)
      count(goodness, truth, index)
    }
  }

  function count(found: readonly number[], truth: readonly number[], width: number): void {
    for (const [index, depth] of vectorGraphDepths.entries()) {
      // A result as good as the last of the nearest counts as one of them.
      const least = truth[Math.min(depth, truth.length) - 1] ?? 0
      const counts = hits[index] ?? []
      counts[width] = (counts[width] ?? 0) + found.slice(0, depth).filter((value) => value >= least).length
    }
  }

  return () => {
    const vector = vectors.pop()
    if (vector) sample(vector)
    if (vectors.length > 0) return null
    const widths = hits.map((counts, index) => {
      const enough = vectorGraphRecallMin * (expected[index] ?? 0)
      return vectorGraphWidths.find((_, width) => enough > 0 && (counts[width] ?? 0) >= enough) ?? null
    })
    return {
      widths,
      graphMsPerCandidate: graphMs / Math.max(1, candidates),
      exactMsPerRow: exactMs / Math.max(1, compared),
      nodes: graph.nodes,
    }
  }
}
