/** The last requests of all nodes: each keeps its own, and answers the others. */
import { peerCharsMax, peerRequestsMax } from '../../../limits/dashboard.ts'
import type { FoundRequest, RecentRequest, RecentRequests, RequestFilter } from './recent-requests.ts'
import type { Sampler } from './sampler.ts'

export type PeerQuestion =
  | {
      readonly kind: 'list'
      readonly filter: RequestFilter
      readonly limit: number
      /** Whether an administrator watches, so that every request is traced. */
      readonly watch: boolean
    }
  | { readonly kind: 'find'; readonly requestId: string }

export interface PeerNode {
  /** Of this run of its process. */
  readonly id: string
  readonly host: string
}

export interface PeerAnswer {
  readonly node: PeerNode
  /** Of a list. */
  readonly items: readonly RecentRequest[]
  /** Null for a list, and where the node does not keep the request. */
  readonly found: FoundRequest | null
}

/** What all nodes that answer have; this node comes first. */
export type QueryPeers = (question: PeerQuestion) => Promise<readonly PeerAnswer[]>

/** The first of the requests that fit into a message between nodes. */
function bounded(items: readonly RecentRequest[]): readonly RecentRequest[] {
  let chars = 0
  return items.slice(0, peerRequestsMax).filter((item) => {
    chars += JSON.stringify(item).length
    return chars <= peerCharsMax
  })
}

/** Answers for this node. `isOwn`: to itself, which needs no bound. */
export const createAnswer =
  (node: PeerNode, recent: RecentRequests, sampler: Sampler) =>
  (question: PeerQuestion, isOwn: boolean): PeerAnswer => {
    if (question.kind === 'find') return { node, items: [], found: recent.find(question.requestId) }
    const { filter, limit, watch } = question
    if (watch) sampler.watch()
    const items = recent.list(filter, limit)
    return { node, items: isOwn ? items : bounded(items), found: null }
  }

export interface NodeRequest extends RecentRequest {
  readonly node: PeerNode
}

/** Newest first; requests of the same millisecond are in the order of their nodes. */
export function mergeRequests(answers: readonly PeerAnswer[], limit: number): readonly NodeRequest[] {
  const all = answers.flatMap(({ node, items }) => items.map((item) => ({ ...item, node })))
  return all.sort((one, other) => (one.at > other.at ? -1 : one.at < other.at ? 1 : 0)).slice(0, limit)
}
