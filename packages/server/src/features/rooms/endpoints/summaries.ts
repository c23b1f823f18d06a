/**
 * Rooms as HTTP shows them, on any node: metadata and occupancy, and for administrators the complete state. Rooms in
 * memory are read from their node, others from the store. Callers have been authorized before.
 */
import { roomActionAnswerMs, roomRequestTimeoutMs } from '../../../limits/rooms.ts'
import type { RoomEngine, RoomKey, RoomLoadReport, RoomOccupancy, RoomView, ViewPage } from '../engine/ports.ts'
import type { StoredRoom } from '../store.ts'
import type { ActAsPlayer, ActionOutcome, PlayerAction } from './player-actions.ts'
import { type RoomPage, takePage } from './room-page.ts'

export interface RoomSummary {
  readonly metadata: object
  readonly occupancy: RoomOccupancy
}

export interface ListedRoom {
  readonly key: RoomKey
  readonly occupancy: RoomOccupancy
  readonly load: RoomLoadReport
  /** The name of the node that runs it; null in a single process. */
  readonly node: string | null
}

/** Requests between nodes. */
type PeerRequest =
  | { readonly kind: 'summaries'; readonly namespace: string; readonly ids: readonly string[] }
  | { readonly kind: 'list'; readonly page: RoomPage }
  | { readonly kind: 'hibernate' | 'isFull'; readonly key: RoomKey }
  | { readonly kind: 'inspect'; readonly key: RoomKey; readonly page: ViewPage }
  | { readonly kind: 'kick'; readonly key: RoomKey; readonly userId: string }
  | { readonly kind: 'act'; readonly key: RoomKey; readonly action: PlayerAction }

/** What another node answers to an action; `absent` for a room that has left its memory. */
type PeerOutcome = ActionOutcome | 'absent'

export interface SummariesDeps {
  /** Of this node. */
  readonly engine: () => RoomEngine
  readonly findStored: (namespace: string, ids: readonly string[]) => Promise<ReadonlyMap<string, StoredRoom>>
  /** Names of nodes that the store records as owners. */
  readonly findNodes: () => Promise<readonly string[]>
  /** The name of this node; null in a single process, or before this node has used rooms. */
  readonly ownName: () => string | null
  readonly actAsPlayer: ActAsPlayer
  /** The response of another node, or null. */
  readonly request: (node: string, request: unknown, timeoutMs?: number) => Promise<unknown>
}

const noOccupancy: RoomOccupancy = { activeMembers: 0, activeConnections: 0 }

export class Summaries {
  constructor(private readonly deps: SummariesDeps) {}

  /** Summaries of rooms, in the order of the ids. */
  async find(namespace: string, ids: readonly string[]): Promise<readonly RoomSummary[]> {
    const found = new Map<string, RoomSummary>()
    const missing: string[] = []
    for (const id of ids) {
      const local = this.findLocal({ namespace, id })
      if (local) found.set(id, local)
      else missing.push(id)
    }
    const stored = missing.length > 0 ? await this.deps.findStored(namespace, missing) : new Map<string, StoredRoom>()
    await Promise.all(
      [...this.groupByNode(missing, stored)].map(async ([node, of]) => {
        const response = await this.request(node, { kind: 'summaries', namespace, ids: of })
        const summaries = (response ?? []) as (RoomSummary | null)[]
        for (const [at, id] of of.entries()) if (summaries[at]) found.set(id, summaries[at])
      }),
    )
    return ids.map(
      (id) => found.get(id) ?? { metadata: JSON.parse(stored.get(id)?.metadata ?? '{}'), occupancy: noOccupancy },
    )
  }

  /** A page of the rooms in memory on any node that answers, and whether more follow. */
  async list(page: RoomPage): Promise<{ rooms: readonly ListedRoom[]; hasMore: boolean }> {
    const nodes = (await this.deps.findNodes()).filter((node) => node !== this.deps.ownName())
    const responses = await Promise.all(nodes.map((node) => this.request(node, { kind: 'list', page })))
    const rooms = [...this.listLocal(page), ...responses.flatMap((response) => (response ?? []) as ListedRoom[])]
    const taken = takePage(rooms, page)
    return { rooms: taken.slice(0, page.limit), hasMore: taken.length > page.limit }
  }

  /** Null for a room that is not in memory. */
  async inspect(key: RoomKey, page: ViewPage): Promise<RoomView | null> {
    const local = this.deps.engine().find(key, page)
    return local ?? ((await this.requestOwner(key, { kind: 'inspect', key, page })) as RoomView | null)
  }

  /** Saves the room and drops it from memory. False for a room that is not in memory. */
  async hibernate(key: RoomKey): Promise<boolean> {
    return (await this.hibernateLocal(key)) || (await this.requestOwner(key, { kind: 'hibernate', key })) === true
  }

  /** Removes a player from a room. False for a room that is not in memory. */
  async kick(key: RoomKey, userId: string): Promise<boolean> {
    return this.kickLocal(key, userId) || (await this.requestOwner(key, { kind: 'kick', key, userId })) === true
  }

  /** Runs an action in the name of a player. Null for a room that is not in memory. */
  async act(key: RoomKey, action: PlayerAction): Promise<ActionOutcome | null> {
    const local = await this.deps.actAsPlayer(key, action)
    if (local) return local
    const node = await this.findOwner(key)
    if (node === null) return null
    const timeoutMs = roomActionAnswerMs + roomRequestTimeoutMs
    const response = (await this.deps.request(node, { kind: 'act', key, action }, timeoutMs)) as PeerOutcome | null
    return response === 'absent' ? null : (response ?? { kind: 'unknown' })
  }

  /** Whether connected players occupy all seats; false if that cannot be determined. */
  async isFull(key: RoomKey): Promise<boolean> {
    const engine = this.deps.engine()
    if (this.deps.ownName() === null || engine.findOccupancy(key)) return engine.isFull(key)
    const node = await this.findOwner(key).catch(() => null)
    return node !== null && (await this.request(node, { kind: 'isFull', key })) === true
  }

  /** Answers a request of another node. */
  async answer(message: unknown): Promise<unknown> {
    const engine = this.deps.engine()
    const request = message as PeerRequest
    switch (request.kind) {
      case 'summaries':
        return request.ids.map((id) => this.findLocal({ namespace: request.namespace, id }))
      case 'list':
        return this.listLocal(request.page)
      case 'inspect':
        return engine.find(request.key, request.page)
      case 'hibernate':
        return this.hibernateLocal(request.key)
      case 'isFull':
        return engine.isFull(request.key)
      case 'kick':
        return this.kickLocal(request.key, request.userId)
      case 'act':
        return (await this.deps.actAsPlayer(request.key, request.action)) ?? 'absent'
    }
  }

  private findLocal(key: RoomKey): RoomSummary | null {
    const engine = this.deps.engine()
    const [occupancy, metadata] = [engine.findOccupancy(key), engine.findMetadata(key)]
    return occupancy && metadata ? { metadata, occupancy } : null
  }

  private listLocal(page: RoomPage): ListedRoom[] {
    const engine = this.deps.engine()
    const rooms = engine.list().map((key) => ({ key }))
    const node = this.deps.ownName()
    return takePage(rooms, page).flatMap(({ key }) => {
      const [occupancy, load] = [engine.findOccupancy(key), engine.findLoad(key)]
      return occupancy && load ? [{ key, occupancy, load, node }] : []
    })
  }

  private async hibernateLocal(key: RoomKey): Promise<boolean> {
    const engine = this.deps.engine()
    if (!engine.findOccupancy(key)) return false
    await engine.release(key)
    return true
  }

  private kickLocal(key: RoomKey, userId: string): boolean {
    const engine = this.deps.engine()
    if (!engine.findOccupancy(key)) return false
    engine.receive(key, { type: 'kick', userId })
    return true
  }

  /** Ids of rooms that the store records as owned by other nodes, by node. */
  private groupByNode(ids: readonly string[], stored: ReadonlyMap<string, StoredRoom>): Map<string, string[]> {
    const groups = new Map<string, string[]>()
    for (const id of ids) {
      const node = stored.get(id)?.node ?? null
      if (node === null || node === this.deps.ownName()) continue
      const group = groups.get(node)
      if (group) group.push(id)
      else groups.set(node, [id])
    }
    return groups
  }

  /** The other node that the store records as the owner. */
  private async findOwner({ namespace, id }: RoomKey): Promise<string | null> {
    const node = (await this.deps.findStored(namespace, [id])).get(id)?.node ?? null
    return node === this.deps.ownName() ? null : node
  }

  /** Null if no other node owns the room, or if it does not answer. */
  private async requestOwner(key: RoomKey, request: PeerRequest): Promise<unknown> {
    const node = await this.findOwner(key)
    return node === null ? null : this.request(node, request)
  }

  private request(node: string, request: PeerRequest): Promise<unknown> {
    return this.deps.request(node, request)
  }
}
