/**
 * How wide a graph must be searched to find what there is, and what that costs, measured on the index's own vectors:
 * how well a graph finds depends on the data, and no fixed number is right for all.
 */
import { vectorGraphDepths, vectorGraphRecallMin, vectorGraphWidths } from '../../limits/resources.ts'
import type { VectorGraph } from './graph.ts'
import type { VectorRows } from './rows.ts'

export interface Measured {
  /** For each of `vectorGraphDepths`: candidates to ask for, to find that many of the nearest; null: ask no graph. */
  readonly widths: readonly (number | null)[]
  readonly graphMsPerCandidate: number
  readonly exactMsPerRow: number
  /** Nodes there were. */
  readonly nodes: number
}

/**
 * Gives a function that takes one sample, and after the last of them what they say. Samples are vectors that the graph
 * does not have: it finds its own ones better than what it has never seen.
 */
export function createMeasuring(parts: {
  readonly graph: VectorGraph
  readonly rows: VectorRows
  readonly heldOut: Iterable<number>
  readonly nowMs: () => number
}): () => Measured | null {
  const { graph, rows, heldOut, nowMs } = parts
  const samples = Array.from(heldOut, (slot) => rows.values(slot).slice())
  const depthMax = vectorGraphDepths.at(-1) ?? 0
  /** By depth and width: how many of the nearest were found. */
  const hits = vectorGraphDepths.map(() => vectorGraphWidths.map(() => 0))
  const looked = vectorGraphDepths.map(() => 0)
  let [candidates, graphMs, compared, exactMs] = [0, 0, 0, 0]

  function sample(vector: Float32Array): void {
    let startMs = nowMs()
    const exact = rows.compare(vector, depthMax)
    for (let slot = 0; slot < rows.slotsEnd; slot++) if (graph.has(slot)) exact.offer(slot)
    const { goodness: truth } = exact.best()
    exactMs += nowMs() - startMs
    compared += graph.live
    for (const [index, depth] of vectorGraphDepths.entries())
      looked[index] = (looked[index] ?? 0) + Math.min(depth, truth.length)
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
      // One as good as the last of the nearest is one of them.
      const least = truth[Math.min(depth, truth.length) - 1] ?? 0
      const counts = hits[index] ?? []
      counts[width] = (counts[width] ?? 0) + found.slice(0, depth).filter((value) => value >= least).length
    }
  }

  return () => {
    const vector = samples.pop()
    if (vector) sample(vector)
    if (samples.length > 0) return null
    const widths = hits.map((counts, index) => {
      const enough = vectorGraphRecallMin * (looked[index] ?? 0)
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
