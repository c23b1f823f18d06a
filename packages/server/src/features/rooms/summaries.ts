/**
 * Rooms as HTTP shows them, on any node: metadata and occupancy, and for administrators the complete state. Rooms in
 * memory are read from their node, others from the store. `access` has checked the caller before.
 */
import type { RoomEngine, RoomKey, RoomOccupancy, RoomView, ViewPage } from './engine/ports.ts'
import { type RoomPage, takePage } from './room-page.ts'
import type { StoredRoom } from './store.ts'

export interface RoomGlance {
  readonly metadata: object
  readonly occupancy: RoomOccupancy
}

export interface Summaries {
  /** In the order of the ids. */
  glance(namespace: string, ids: readonly string[]): Promise<readonly RoomGlance[]>
  /** A page of the rooms in memory on any node that answers, and whether more follow. */
  list(page: RoomPage): Promise<{ rooms: readonly ListedRoom[]; hasMore: boolean }>
  /** Null for a room that is not in memory. */
  inspect(key: RoomKey, page: ViewPage): Promise<RoomView | null>
  /** Saves the room and drops it from memory. False for one that is not there. */
  hibernate(key: RoomKey): Promise<boolean>
  /** Has a player leave. False for a room that is not in memory. */
  kick(key: RoomKey, userId: string): Promise<boolean>
  /** Whether all seats are taken by players with an open socket; false where that cannot be determined. */
  isFull(key: RoomKey): Promise<boolean>
  /** Answers a request of another node. */
  answer(question: unknown): Promise<unknown>
}

export interface ListedRoom {
  readonly key: RoomKey
  readonly occupancy: RoomOccupancy
}

/** Requests between nodes. */
type Question =
  | { readonly ask: 'glance'; readonly namespace: string; readonly ids: readonly string[] }
  | { readonly ask: 'list'; readonly page: RoomPage }
  | { readonly ask: 'hibernate' | 'full'; readonly key: RoomKey }
  | { readonly ask: 'inspect'; readonly key: RoomKey; readonly page: ViewPage }
  | { readonly ask: 'kick'; readonly key: RoomKey; readonly userId: string }

export interface SummariesDeps {
  readonly engine: () => RoomEngine
  readonly findStored: (namespace: string, ids: readonly string[]) => Promise<ReadonlyMap<string, StoredRoom>>
  /** Names of nodes that the store records as owners. */
  readonly findNodes: () => Promise<readonly string[]>
  /** This node's name; null where it is alone, or has nothing to do with rooms. */
  readonly ownName: () => string | null
  /** What another node answers, or null. */
  readonly ask: (node: string, question: unknown) => Promise<unknown>
}

const nobody: RoomOccupancy = { activeMembers: 0, activeConnections: 0 }

export function createSummaries(deps: SummariesDeps): Summaries {
  const { engine, findStored, findNodes, ownName, ask } = deps

  function glanceHere(key: RoomKey): RoomGlance | null {
    const occupancy = engine().findOccupancy(key)
    const metadata = engine().findMetadata(key)
    return occupancy && metadata ? { metadata, occupancy } : null
  }

  const listHere = (page: RoomPage): ListedRoom[] =>
    takePage(
      engine()
        .list()
        .map((key) => ({ key })),
      page,
    ).map(({ key }) => ({ key, occupancy: engine().findOccupancy(key) ?? nobody }))

  async function hibernateHere(key: RoomKey): Promise<boolean> {
    if (!engine().findOccupancy(key)) return false
    await engine().release(key)
    return true
  }

  function kickHere(key: RoomKey, userId: string): boolean {
    if (!engine().findOccupancy(key)) return false
    engine().receive(key, { type: 'kick', userId })
    return true
  }

  /** The other node that the store records as the owner. */
  async function nodeOf({ namespace, id }: RoomKey): Promise<string | null> {
    const node = (await findStored(namespace, [id])).get(id)?.node ?? null
    return node === ownName() ? null : node
  }

  async function glance(namespace: string, ids: readonly string[]): Promise<readonly RoomGlance[]> {
    const found = new Map<string, RoomGlance>()
    const elsewhere = ids.filter((id) => {
      const here = glanceHere({ namespace, id })
      if (here) found.set(id, here)
      return !here
    })
    const stored = elsewhere.length > 0 ? await findStored(namespace, elsewhere) : new Map<string, StoredRoom>()
    const byNode = Map.groupBy(
      elsewhere.filter((id) => (stored.get(id)?.node ?? null) !== null),
      (id) => stored.get(id)?.node as string,
    )
    byNode.delete(ownName() ?? '')
    await Promise.all(
      [...byNode].map(async ([node, of]) => {
        const question: Question = { ask: 'glance', namespace, ids: of }
        const answer = (await ask(node, question)) as (RoomGlance | null)[] | null
        for (const [at, id] of of.entries()) if (answer?.[at]) found.set(id, answer[at])
      }),
    )
    return ids.map(
      (id) => found.get(id) ?? { metadata: JSON.parse(stored.get(id)?.metadata ?? '{}'), occupancy: nobody },
    )
  }

  return {
    glance,
    async list(page) {
      const others = (await findNodes()).filter((node) => node !== ownName())
      const answers = await Promise.all(others.map((node) => ask(node, { ask: 'list', page } satisfies Question)))
      const rooms = [...listHere(page), ...answers.flatMap((answer) => (answer ?? []) as ListedRoom[])]
      const taken = takePage(rooms, page)
      return { rooms: taken.slice(0, page.limit), hasMore: taken.length > page.limit }
    },
    async inspect(key, page) {
      const here = engine().find(key, page)
      if (here) return here
      const node = await nodeOf(key)
      if (node === null) return null
      return (await ask(node, { ask: 'inspect', key, page } satisfies Question)) as RoomView | null
    },
    async hibernate(key) {
      if (await hibernateHere(key)) return true
      const node = await nodeOf(key)
      return node !== null && (await ask(node, { ask: 'hibernate', key } satisfies Question)) === true
    },
    async kick(key, userId) {
      if (kickHere(key, userId)) return true
      const node = await nodeOf(key)
      return node !== null && (await ask(node, { ask: 'kick', key, userId } satisfies Question)) === true
    },
    async isFull(key) {
      if (ownName() === null || engine().findOccupancy(key)) return engine().isFull(key)
      const node = await nodeOf(key).catch(() => null)
      return node !== null && (await ask(node, { ask: 'full', key } satisfies Question)) === true
    },
    async answer(asked) {
      const question = asked as Question
      switch (question.ask) {
        case 'glance':
          return question.ids.map((id) => glanceHere({ namespace: question.namespace, id }))
        case 'list':
          return listHere(question.page)
        case 'inspect':
          return engine().find(question.key, question.page)
        case 'hibernate':
          return hibernateHere(question.key)
        case 'full':
          return engine().isFull(question.key)
        case 'kick':
          return kickHere(question.key, question.userId)
      }
    },
  }
}
