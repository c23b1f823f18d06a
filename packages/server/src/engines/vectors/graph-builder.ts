/**
 * The graph of one index: loads or builds it in slices, measures it, saves it, and drops it when too much of it is
 * dead. Owns which slots are in the graph; `core` searches it.
 */
import {
  vectorExactValuesMax,
  vectorGraphDeadMax,
  vectorGraphGrowth,
  vectorGraphSamples,
  vectorGraphSamplesShare,
  vectorGraphSliceMs,
  vectorSaveEveryMs,
  vectorSaveShareMin,
} from '../../limits/resources.ts'
import { type CreateNearestNodes, createVectorGraph, type VectorGraph } from './graph.ts'
import {
  findSavedGraph,
  type GraphLocation,
  hashOfRow,
  type NodeOrigin,
  type SavedGraph,
  saveGraph,
} from './graph-files.ts'
import { createMeasuring, type Measured } from './graph-measure.ts'
import { rowFloats, type VectorRows } from './rows.ts'
import type { VectorMetric } from './vectors.ts'

export interface GraphOptions {
  /** Name of the index. */
  readonly name: string
  readonly dimensions: number
  readonly metric: VectorMetric
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

export class GraphBuilder {
  readonly #rows: VectorRows
  readonly #dimensions: number
  readonly #location: GraphLocation
  readonly #exactValuesMax: number
  readonly #saveEveryMs: number
  readonly #warn: (message: string) => void
  readonly #nowMs: () => number
  #createNearest: CreateNearestNodes | null
  /** Slots not yet in the graph. */
  readonly #pending = new Set<number>()
  /** Slots held out of the graph, to measure it with. */
  readonly #samples = new Set<number>()
  #graph: VectorGraph | null = null
  #measured: Measured | null = null
  #measuring: (() => Measured | null) | null = null
  #hasTriedSavedGraph = false
  #savedNodes = 0
  #savedMs = 0

  constructor(rows: VectorRows, options: GraphOptions) {
    const { name, dimensions, metric, folder } = options
    this.#rows = rows
    this.#dimensions = dimensions
    this.#location = { folder, name, metric, floats: rowFloats(dimensions) }
    this.#exactValuesMax = options.exactValuesMax ?? vectorExactValuesMax
    this.#saveEveryMs = options.saveEveryMs ?? vectorSaveEveryMs
    this.#warn = options.warn
    this.#nowMs = options.nowMs
    this.#createNearest = options.createNearest
  }

  get graph(): VectorGraph | null {
    return this.#graph
  }

  /** What searches of the graph cost; null until it has been measured. */
  get measured(): Measured | null {
    return this.#measured
  }

  /** Live slots that are not in the graph. */
  get outside(): readonly ReadonlySet<number>[] {
    return [this.#pending, this.#samples]
  }

  /** Memory of the graph that an index of this size has or will have. */
  get bytes(): number {
    return this.#isWanted ? this.#rows.size * (this.#location.floats * 2 + nodeExtraBytes) : 0
  }

  /** The slot has a new vector. */
  put(slot: number): void {
    this.#graph?.forget(slot)
    if (this.#samples.has(slot)) return
    if (this.#graph && this.#samples.size < this.#samplesMax) this.#samples.add(slot)
    else this.#pending.add(slot)
  }

  /** The slot has no vector any more. */
  remove(slot: number): void {
    this.#graph?.forget(slot)
    this.#pending.delete(slot)
    this.#samples.delete(slot)
  }

  /**
   * Runs a slice of work; returns false when there is none. One call at a time. The library fails when memory runs out:
   * the graph is then disabled for good.
   */
  async work(): Promise<boolean> {
    try {
      return await this.#advance()
    } catch (error) {
      this.#drop()
      this.#createNearest = null
      this.#warn(`the graph was disabled: ${error}`)
      return false
    }
  }

  /** Saves the graph if enough of it is unsaved. */
  async save(): Promise<void> {
    const graph = this.#graph
    if (!graph || !this.#isWorthSaving) return
    const { nearest, nodes } = graph
    const origins: NodeOrigin[] = []
    for (let node = 0; node < nodes; node++) origins.push(this.#originOf(graph.slotOf(node)))
    this.#savedNodes = nodes
    this.#savedMs = this.#nowMs()
    try {
      await saveGraph(this.#location, { nearest, origins, measured: this.#measured })
    } catch (error) {
      // A failed save only costs the time to rebuild the graph.
      this.#warn(`the graph could not be saved: ${error}`)
    }
  }

  async #advance(): Promise<boolean> {
    if (!this.#createNearest) return false
    const isWanted = this.#isWanted
    if (!isWanted || this.#isMostlyDead) this.#drop()
    if (!isWanted) return false
    const graph = this.#graph ?? (await this.#open(this.#createNearest))
    if (this.#pending.size > 0) {
      this.#fill(graph)
      // Building a large graph takes minutes, which a crash must not waste.
      if (this.#isSaveDue(vectorSaveEveryMs)) await this.save()
      if (this.#pending.size > 0) return true
    }
    if (!this.#isMeasured) {
      this.#measure(graph)
      return true
    }
    if (this.#savedNodes === 0 || this.#isSaveDue(this.#saveEveryMs)) await this.save()
    return false
  }

  #drop(): void {
    if (!this.#graph) return
    this.#graph = null
    this.#measured = null
    this.#measuring = null
    this.#pending.clear()
    this.#samples.clear()
    const rows = this.#rows
    for (let slot = 0; slot < rows.slotsEnd; slot++) if (rows.isLive(slot)) this.#pending.add(slot)
  }

  /** Opens the graph saved last if there is one, otherwise an empty graph. */
  async #open(create: CreateNearestNodes): Promise<VectorGraph> {
    const saved = this.#hasTriedSavedGraph ? null : await findSavedGraph(this.#location, create)
    this.#hasTriedSavedGraph = true
    const { metric, floats } = this.#location
    const graph = saved ? this.#adopt(saved) : createVectorGraph(create(metric, floats))
    this.#graph = graph
    this.#savedNodes = graph.nodes
    this.#savedMs = this.#nowMs()
    this.#takeSamples()
    return graph
  }

  /** Nodes whose vectors have changed since the graph was saved are dead. */
  #adopt(saved: SavedGraph): VectorGraph {
    const rows = this.#rows
    const slots = Int32Array.from(saved.origins, ({ key, hash }) => {
      const slot = rows.find(key)
      return slot !== undefined && hashOfRow(rows.values(slot)) === hash ? slot : -1
    })
    const graph = createVectorGraph(saved.nearest, slots)
    for (const slot of slots) this.#pending.delete(slot)
    this.#measured = saved.measured
    return graph
  }

  /** Holds out a sample of the pending slots, evenly. */
  #takeSamples(): void {
    const step = Math.max(1, Math.floor(this.#pending.size / this.#samplesMax))
    for (const [index, slot] of [...this.#pending].entries()) {
      if (this.#samples.size >= this.#samplesMax) return
      if (index % step !== 0) continue
      this.#samples.add(slot)
      this.#pending.delete(slot)
    }
  }

  #fill(graph: VectorGraph): void {
    const untilMs = this.#nowMs() + vectorGraphSliceMs
    for (const slot of this.#pending) {
      if (this.#nowMs() >= untilMs) return
      graph.add(slot, this.#rows.values(slot))
      this.#pending.delete(slot)
    }
  }

  #measure(graph: VectorGraph): void {
    this.#measuring ??= createMeasuring({ graph, rows: this.#rows, samples: this.#samples, nowMs: this.#nowMs })
    const measured = this.#measuring()
    if (!measured) return
    this.#measuring = null
    this.#measured = measured
  }

  #originOf(slot: number): NodeOrigin {
    return slot < 0 ? { key: 0, hash: 0 } : { key: this.#rows.keyOf(slot), hash: hashOfRow(this.#rows.values(slot)) }
  }

  /** Hysteresis: a graph is kept until the index has shrunk well below the threshold. */
  get #isWanted(): boolean {
    const valuesMin = this.#graph ? this.#exactValuesMax / 2 : this.#exactValuesMax
    return this.#createNearest !== null && this.#rows.size * this.#dimensions >= valuesMin
  }

  get #isMostlyDead(): boolean {
    const graph = this.#graph
    return graph !== null && graph.nodes - graph.live > vectorGraphDeadMax * Math.max(graph.live, this.#pending.size)
  }

  get #samplesMax(): number {
    return Math.min(vectorGraphSamples, Math.floor(this.#rows.size * vectorGraphSamplesShare))
  }

  get #isMeasured(): boolean {
    return this.#measured !== null && (this.#graph?.nodes ?? 0) < this.#measured.nodes * vectorGraphGrowth
  }

  get #isWorthSaving(): boolean {
    return this.#graph !== null && this.#graph.nodes - this.#savedNodes > vectorSaveShareMin * this.#graph.nodes
  }

  #isSaveDue(everyMs: number): boolean {
    return this.#isWorthSaving && this.#nowMs() - this.#savedMs >= everyMs
  }
}

/** Memory of the library for a node beside its values at half precision: its links and its table entries. */
const nodeExtraBytes = 350
