/**
 * Nearest-neighbor graph (HNSW, by `usearch`) over the slots of an index: finds candidates in nearly constant time.
 * Every added vector stays a node; one whose vector has changed or was deleted is dead and skipped. `core` decides when
 * to build, trust and save a graph.
 */
import { vectorGraphConnectivity, vectorGraphExpansion } from '../../limits/resources.ts'
import { grown } from './rows.ts'
import type { VectorMetric } from './vectors.ts'

/** The part of the library in use. */
export interface NearestNodes {
  add(nodes: BigUint64Array, values: Float32Array, threads: number): void
  search(query: Float32Array, count: number, threads: number): { readonly keys: BigUint64Array }
  size(): number
  dimensions(): number
  /** Both block, and throw on failure. A damaged file may end the process: check it first. */
  save(path: string): void
  load(path: string): void
}

export type CreateNearestNodes = (metric: VectorMetric, floats: number) => NearestNodes

/** Null if the library has no build for this machine. */
export async function loadGraphLibrary(): Promise<CreateNearestNodes | null> {
  try {
    const { default: library } = await import('usearch')
    const { Cos, IP, L2sq } = library.MetricKind
    const kinds = { cosine: Cos, 'dot-product': IP, euclidean: L2sq }
    return (metric, floats) =>
      new library.Index({
        dimensions: floats,
        metric: kinds[metric],
        // Half the memory and time of full floats; candidates are compared again at full precision.
        quantization: library.ScalarKind.BF16,
        connectivity: vectorGraphConnectivity,
        expansion_add: vectorGraphExpansion,
        // The width of a search is the number of candidates it requests.
        expansion_search: 1,
        multi: false,
      })
  } catch {
    return null
  }
}

export interface VectorGraph {
  /** Nodes ever added. */
  readonly nodes: number
  /** Nodes whose vector is still the one that was added. */
  readonly live: number
  readonly nearest: NearestNodes
  has(slot: number): boolean
  /** The slot must not be in the graph yet. */
  add(slot: number, values: Float32Array): void
  /** The slot's vector has changed or was deleted. */
  forget(slot: number): void
  /** The slots of the live nodes among the `width` nearest. */
  search(query: Float32Array, width: number): number[]
  /** The slot of a node; -1 if it is dead. */
  slotOf(node: number): number
}

/** An empty graph, or one over the nodes loaded into `nearest`: `slots` maps each to its slot, or -1. */
export function createVectorGraph(nearest: NearestNodes, slots: Int32Array = new Int32Array(0)): VectorGraph {
  let slotOfNode = grown(slots, new Int32Array(Math.max(64, slots.length))) as Int32Array
  let nodeOfSlot = new Int32Array(64).fill(-1)
  let nodes = slots.length
  let live = 0

  function assign(slot: number, node: number): void {
    while (slot >= nodeOfSlot.length)
      nodeOfSlot = grown(nodeOfSlot, new Int32Array(nodeOfSlot.length * 2).fill(-1, nodeOfSlot.length))
    nodeOfSlot[slot] = node
    live += 1
  }
  for (const [node, slot] of slots.entries()) if (slot >= 0) assign(slot, node)

  return {
    get nodes() {
      return nodes
    },
    get live() {
      return live
    },
    nearest,
    has: (slot) => (nodeOfSlot[slot] ?? -1) >= 0,
    add(slot, values) {
      nearest.add(BigUint64Array.of(BigInt(nodes)), values, 1)
      if (nodes === slotOfNode.length) slotOfNode = grown(slotOfNode, new Int32Array(nodes * 2))
      slotOfNode[nodes] = slot
      assign(slot, nodes)
      nodes += 1
    },
    forget(slot) {
      const node = nodeOfSlot[slot] ?? -1
      if (node < 0) return
      nodeOfSlot[slot] = -1
      slotOfNode[node] = -1
      live -= 1
    },
    search(query, width) {
      const found: number[] = []
      for (const key of nearest.search(query, width, 1).keys) {
        const slot = slotOfNode[Number(key)] ?? -1
        if (slot >= 0) found.push(slot)
      }
      return found
    },
    slotOf: (node) => slotOfNode[node] ?? -1,
  }
}
