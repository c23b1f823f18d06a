/**
 * One index in its thread: the copy, and the graph over it if it is large. Chooses between graph and exact search;
 * knows nothing of threads and SQL.
 */
import {
  vectorGraphDepthSpare,
  vectorGraphDepths,
  vectorSharesSampled,
  vectorSpareCandidates,
} from '../../limits/resources.ts'
import { createVectorColumns, type SlotTest, type VectorColumns } from './columns.ts'
import { GraphBuilder, type GraphOptions } from './graph-builder.ts'
import { VectorRows } from './rows.ts'
import type { VectorIndexState, VectorMatch, VectorMetadataValue, VectorQuery } from './vectors.ts'

export interface CoreOptions extends GraphOptions {
  readonly metadataIndexes: readonly string[]
}

export interface CoreRow {
  readonly key: number
  /** Null if the vector was deleted. */
  readonly values: Float32Array | null
  readonly namespace: string
  readonly metadata: readonly VectorMetadataValue[]
}

type SearchInput = Omit<VectorQuery, 'atLeast'>

export class VectorCore {
  readonly #rows: VectorRows
  readonly #columns: VectorColumns
  readonly #builder: GraphBuilder
  #isCurrent = false
  /** Searches that the graph has answered. */
  #byGraph = 0

  constructor(options: CoreOptions) {
    this.#rows = new VectorRows(options.dimensions, options.metric)
    this.#columns = createVectorColumns(options.metadataIndexes)
    this.#builder = new GraphBuilder(this.#rows, options)
  }

  /** `isCurrent` once the copy has caught up. Throws `EngineError` when there is no room. */
  apply(rows: Iterable<CoreRow>, isCurrent: boolean): void {
    for (const row of rows) {
      if (row.values) this.#put(row, row.values)
      else this.#remove(row.key)
    }
    this.#isCurrent ||= isCurrent
  }

  search(query: SearchInput): VectorMatch[] {
    const accepts = this.#columns.compile(query.namespace, query.conditions)
    return this.#searchGraph(query, accepts) ?? this.#searchAll(query, accepts)
  }

  state(): Omit<VectorIndexState, 'version'> {
    return {
      size: this.#rows.size,
      bytes: this.#rows.bytes + this.#columns.bytes + this.#builder.bytes,
      inGraph: this.#builder.graph?.live ?? 0,
      byGraph: this.#byGraph,
    }
  }

  /** Runs a slice of background work; returns false when there is none. One call at a time. */
  async work(): Promise<boolean> {
    return this.#isCurrent && this.#builder.work()
  }

  /** Saves the graph if enough of it is unsaved. */
  save(): Promise<void> {
    return this.#builder.save()
  }

  #put({ key, namespace, metadata }: CoreRow, values: Float32Array): void {
    const { slot, isChanged } = this.#rows.put(key, values)
    this.#columns.put(slot, namespace, metadata)
    if (isChanged) this.#builder.put(slot)
  }

  #remove(key: number): void {
    const slot = this.#rows.remove(key)
    if (slot === undefined) return
    this.#columns.remove(slot)
    this.#builder.remove(slot)
  }

  #searchGraph(query: SearchInput, accepts: SlotTest | null): VectorMatch[] | null {
    const { graph } = this.#builder
    const plan = this.#planGraphSearch(query.topK, accepts)
    if (!graph || !plan) return null
    const comparison = this.#rows.compare(query.vector, plan.depth + vectorSpareCandidates)
    for (const slots of [graph.search(comparison.query, plan.width), ...this.#builder.outside])
      for (const slot of slots) comparison.offer(slot)
    const nearest = comparison.best().slots
    const accepted = accepts ? nearest.filter(accepts) : nearest
    // If the accepted vectors are far from the query, only an exact search finds the rest.
    const sure = nearest.slice(0, plan.depth)
    if ((accepts ? sure.filter(accepts) : sure).length < query.topK) return null
    this.#byGraph += 1
    return comparison.matches(accepted.slice(0, query.topK + vectorSpareCandidates), query.topK)
  }

  #searchAll(query: SearchInput, accepts: SlotTest | null): VectorMatch[] {
    const rows = this.#rows
    const comparison = rows.compare(query.vector, query.topK + vectorSpareCandidates)
    const { slotsEnd } = rows
    for (let slot = 0; slot < slotsEnd; slot++)
      if (rows.isLive(slot) && (!accepts || accepts(slot))) comparison.offer(slot)
    return comparison.matches(comparison.best().slots, query.topK)
  }

  /**
   * Plans a graph search: how many of the nearest to inspect, and how many candidates to request so that they are among
   * them. Null if an exact search is faster or safer.
   */
  #planGraphSearch(topK: number, accepts: SlotTest | null): { depth: number; width: number } | null {
    const { graph, measured } = this.#builder
    if (!graph || !measured) return null
    const share = accepts ? this.#shareOf(accepts) : 1
    const needed = accepts ? (topK / share) * vectorGraphDepthSpare : topK
    const index = vectorGraphDepths.findIndex((depth) => depth >= needed)
    const measuredWidth = measured.widths[index] ?? null
    if (measuredWidth === null) return null
    const width = Math.ceil((measuredWidth * graph.nodes) / graph.live)
    const graphMs = width * measured.graphMsPerCandidate
    if (graphMs >= this.#rows.size * share * measured.exactMsPerRow) return null
    return { depth: vectorGraphDepths[index] ?? topK, width }
  }

  /** Estimates the share of accepted vectors from a sample. */
  #shareOf(accepts: SlotTest): number {
    const rows = this.#rows
    const step = Math.max(1, Math.floor(rows.slotsEnd / vectorSharesSampled))
    let [sampled, accepted] = [0, 0]
    for (let slot = 0; slot < rows.slotsEnd; slot += step) {
      if (!rows.isLive(slot)) continue
      sampled += 1
      if (accepts(slot)) accepted += 1
    }
    return sampled === 0 ? 0 : accepted / sampled
  }
}
