/**
 * One index in its thread: the copy, and the graph over it if it is large. Chooses between graph and exact search, and
 * schedules background work; knows nothing of threads and SQL.
 */
import {
  vectorExactValuesMax,
  vectorGraphDeadMax,
  vectorGraphDepthSpare,
  vectorGraphDepths,
  vectorGraphGrowth,
  vectorGraphSamples,
  vectorGraphSamplesShare,
  vectorGraphSliceMs,
  vectorSaveEveryMs,
  vectorSaveShareMin,
  vectorSharesSampled,
  vectorSpareCandidates,
} from '../../limits/resources.ts'
import { createVectorColumns, type SlotTest } from './columns.ts'
import { type CreateNearestNodes, createVectorGraph, type VectorGraph } from './graph.ts'
import { findSavedGraph, type GraphLocation, hashOfRow, type NodeOrigin, saveGraph } from './graph-files.ts'
import { createMeasuring, type Measured } from './graph-measure.ts'
import { createVectorRows, rowFloats } from './rows.ts'
import type { VectorIndexState, VectorMatch, VectorMetadataValue, VectorMetric, VectorQuery } from './vectors.ts'

export interface CoreOptions {
  readonly name: string
  readonly dimensions: number
  readonly metric: VectorMetric
  readonly metadataIndexes: readonly string[]
  /** Where graphs are saved. */
  readonly folder: string
  /** Null: no graphs. */
  readonly createNearest: CreateNearestNodes | null
  /** An index with fewer values has no graph. */
  readonly exactValuesMax?: number
  readonly saveEveryMs?: number
  /** Called with a background failure that affected no search. */
  readonly warn: (message: string) => void
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

export interface CoreRow {
  readonly key: number
  /** Null if the vector was deleted. */
  readonly values: Float32Array | null
  readonly namespace: string
  readonly metadata: readonly VectorMetadataValue[]
}

export interface VectorCore {
  /** `isCurrent` once the copy has caught up. Throws `EngineError` when there is no room. */
  apply(rows: Iterable<CoreRow>, isCurrent: boolean): void
  search(query: Omit<VectorQuery, 'atLeast'>): VectorMatch[]
  state(): Omit<VectorIndexState, 'version'>
  /** Runs a slice of background work; returns false when there is none. One call at a time. */
  work(): Promise<boolean>
  /** Saves the graph if enough of it is unsaved. */
  save(): Promise<void>
}

export function createVectorCore(options: CoreOptions): VectorCore {
  const { dimensions, metric, nowMs } = options
  const exactValuesMax = options.exactValuesMax ?? vectorExactValuesMax
  const saveEveryMs = options.saveEveryMs ?? vectorSaveEveryMs
  const floats = rowFloats(dimensions)
  const location: GraphLocation = { folder: options.folder, name: options.name, metric, floats }
  const rows = createVectorRows({ dimensions, metric })
  const columns = createVectorColumns(options.metadataIndexes)
  let createNearest = options.createNearest
  let byGraph = 0
  /** Slots not yet in the graph. */
  const pending = new Set<number>()
  /** Slots held out of the graph, to measure it with. */
  const samples = new Set<number>()
  let graph: VectorGraph | null = null
  let measured: Measured | null = null
  let measuring: (() => Measured | null) | null = null
  let isCurrent = false
  let hasTriedSavedGraph = false
  let savedNodes = 0
  let savedMs = 0

  const wantsGraph = (): boolean => createNearest !== null && rows.size * dimensions >= exactValuesMax

  function remove(key: number): void {
    const slot = rows.remove(key)
    if (slot === undefined) return
    columns.remove(slot)
    graph?.forget(slot)
    pending.delete(slot)
    samples.delete(slot)
  }

  const samplesMax = (): number => Math.min(vectorGraphSamples, Math.floor(rows.size * vectorGraphSamplesShare))

  function put({ key, namespace, metadata }: CoreRow, values: Float32Array): void {
    const { slot, isChanged } = rows.put(key, values)
    columns.put(slot, namespace, metadata)
    if (!isChanged) return
    graph?.forget(slot)
    if (samples.has(slot)) return
    if (graph && samples.size < samplesMax()) samples.add(slot)
    else pending.add(slot)
  }

  /** Estimates the share of accepted vectors from a sample. */
  function shareOf(accepts: SlotTest): number {
    const step = Math.max(1, Math.floor(rows.slotsEnd / vectorSharesSampled))
    let [sampled, accepted] = [0, 0]
    for (let slot = 0; slot < rows.slotsEnd; slot += step) {
      if (!rows.isLive(slot)) continue
      sampled += 1
      if (accepts(slot)) accepted += 1
    }
    return sampled === 0 ? 0 : accepted / sampled
  }

  /**
   * Plans a graph search: how many of the nearest to inspect, and how many candidates to request so that they are among
   * them. Null if an exact search is faster or safer.
   */
  function planGraphSearch(topK: number, accepts: SlotTest | null): { depth: number; width: number } | null {
    if (!graph || !measured) return null
    const share = accepts ? shareOf(accepts) : 1
    const needed = accepts ? (topK / share) * vectorGraphDepthSpare : topK
    const index = vectorGraphDepths.findIndex((depth) => depth >= needed)
    const measuredWidth = measured.widths[index] ?? null
    if (measuredWidth === null) return null
    const width = Math.ceil((measuredWidth * graph.nodes) / graph.live)
    const graphMs = width * measured.graphMsPerCandidate
    if (graphMs >= rows.size * share * measured.exactMsPerRow) return null
    return { depth: vectorGraphDepths[index] ?? topK, width }
  }

  function searchGraph(query: SearchInput, accepts: SlotTest | null): VectorMatch[] | null {
    const plan = planGraphSearch(query.topK, accepts)
    if (!graph || !plan) return null
    const comparison = rows.compare(query.vector, plan.depth + vectorSpareCandidates)
    for (const slots of [graph.search(comparison.query, plan.width), pending, samples])
      for (const slot of slots) comparison.offer(slot)
    const nearest = comparison.best().slots
    const accepted = accepts ? nearest.filter(accepts) : nearest
    // If the accepted vectors are far from the query, only an exact search finds the rest.
    const sure = nearest.slice(0, plan.depth)
    if ((accepts ? sure.filter(accepts) : sure).length < query.topK) return null
    byGraph += 1
    return comparison.matches(accepted.slice(0, query.topK + vectorSpareCandidates), query.topK)
  }

  function searchAll(query: SearchInput, accepts: SlotTest | null): VectorMatch[] {
    const comparison = rows.compare(query.vector, query.topK + vectorSpareCandidates)
    for (let slot = 0; slot < rows.slotsEnd; slot++)
      if (rows.isLive(slot) && (!accepts || accepts(slot))) comparison.offer(slot)
    return comparison.matches(comparison.best().slots, query.topK)
  }

  function dropGraph(): void {
    if (!graph) return
    graph = null
    measured = null
    measuring = null
    pending.clear()
    samples.clear()
    for (let slot = 0; slot < rows.slotsEnd; slot++) if (rows.isLive(slot)) pending.add(slot)
  }

  /** Loads the saved graph; nodes whose vectors have changed are dead. */
  async function adopt(create: CreateNearestNodes): Promise<void> {
    hasTriedSavedGraph = true
    const saved = await findSavedGraph(location, create)
    if (!saved) return
    const slots = Int32Array.from(saved.origins, ({ key, hash }) => {
      const slot = rows.find(key)
      return slot !== undefined && hashOfRow(rows.values(slot)) === hash ? slot : -1
    })
    graph = createVectorGraph(saved.nearest, slots)
    measured = saved.measured
    for (const slot of slots) pending.delete(slot)
    savedNodes = graph.nodes
    savedMs = nowMs()
  }

  /** Holds out a sample of the pending slots, evenly. */
  function takeSamples(): void {
    const step = Math.max(1, Math.floor(pending.size / samplesMax()))
    for (const [index, slot] of [...pending].entries()) {
      if (samples.size >= samplesMax()) return
      if (index % step !== 0) continue
      samples.add(slot)
      pending.delete(slot)
    }
  }

  function fill(into: VectorGraph): void {
    const untilMs = nowMs() + vectorGraphSliceMs
    for (const slot of pending) {
      if (nowMs() >= untilMs) return
      into.add(slot, rows.values(slot))
      pending.delete(slot)
    }
  }

  const isMeasured = (): boolean => measured !== null && (graph?.nodes ?? 0) < measured.nodes * vectorGraphGrowth

  const isWorthSaving = (): boolean => graph !== null && graph.nodes - savedNodes > vectorSaveShareMin * graph.nodes

  async function save(): Promise<void> {
    if (!graph || !isWorthSaving()) return
    const { nearest, nodes } = graph
    const origins: NodeOrigin[] = []
    for (let node = 0; node < nodes; node++) {
      const slot = graph.slotOf(node)
      origins.push(slot < 0 ? { key: 0, hash: 0 } : { key: rows.keyOf(slot), hash: hashOfRow(rows.values(slot)) })
    }
    savedNodes = nodes
    savedMs = nowMs()
    try {
      await saveGraph(location, { nearest, origins, measured })
    } catch (error) {
      // A failed save only costs the time to rebuild the graph.
      options.warn(`the graph could not be saved: ${error}`)
    }
  }

  async function advance(): Promise<boolean> {
    if (!createNearest || !isCurrent) return false
    if (!wantsGraph()) {
      // Hysteresis: a graph is kept until the index has shrunk well below the threshold.
      if (graph && rows.size * dimensions < exactValuesMax / 2) dropGraph()
      if (!graph) return false
    }
    if (graph && graph.nodes - graph.live > vectorGraphDeadMax * Math.max(graph.live, pending.size)) dropGraph()
    if (!graph) {
      if (!hasTriedSavedGraph) await adopt(createNearest)
      if (!graph) {
        graph = createVectorGraph(createNearest(metric, floats))
        savedNodes = 0
        savedMs = nowMs()
      }
      takeSamples()
    }
    if (pending.size > 0) {
      fill(graph)
      // Building a large graph takes minutes, which a crash must not waste.
      if (isWorthSaving() && nowMs() - savedMs >= vectorSaveEveryMs) await save()
      if (pending.size > 0) return true
    }
    if (!isMeasured()) {
      measuring ??= createMeasuring({ graph, rows, samples, nowMs })
      const result = measuring()
      if (!result) return true
      measuring = null
      measured = result
      return true
    }
    if (isWorthSaving() && (savedNodes === 0 || nowMs() - savedMs >= saveEveryMs)) await save()
    return false
  }

  /** The library fails when memory runs out: the graph is then disabled for good. */
  async function work(): Promise<boolean> {
    try {
      return await advance()
    } catch (error) {
      dropGraph()
      createNearest = null
      options.warn(`the graph was disabled: ${error}`)
      return false
    }
  }

  return {
    apply(changes, current) {
      for (const row of changes) {
        if (row.values) put(row, row.values)
        else remove(row.key)
      }
      isCurrent ||= current
    },
    search(query) {
      const accepts = columns.compile(query.namespace, query.conditions)
      return searchGraph(query, accepts) ?? searchAll(query, accepts)
    },
    state: () => ({
      size: rows.size,
      bytes: rows.bytes + columns.bytes + (wantsGraph() ? graphBytes(rows.size, floats) : 0),
      inGraph: graph?.live ?? 0,
      byGraph,
    }),
    work,
    save,
  }
}

type SearchInput = Omit<VectorQuery, 'atLeast'>

/** Memory of the library: a node's values at half precision, its links, and its table entries. */
const graphBytes = (nodes: number, floats: number): number => nodes * (floats * 2 + nodeExtraBytes)
const nodeExtraBytes = 350
