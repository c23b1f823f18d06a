/**
 * The rooms feature: wires the engine to tables, nodes and sockets, drives its ticks, and serves its endpoints. The
 * engine runs the rooms.
 */

import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { jsonBytes } from '../../base/text/json.ts'
import type { Mode } from '../../config/config.ts'
import type { RoomDatabase, RoomPush } from '../../config/sections/rooms/room-code.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import { preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { notFound, pushNotConfigured } from '../../errors.ts'
import type { Metrics } from '../../http/metrics.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json, jsonText } from '../../http/replies/reply.ts'
import { createSessionSet } from '../../http/sockets/session-set.ts'
import type { Sockets } from '../../http/sockets/sockets.ts'
import { roomDrainMs, roomMessageExtraBytes, roomSummariesAtOnce, roomSweepMs, roomTickMs } from '../../limits/rooms.ts'
import { socketAuthTimeoutMs } from '../../limits/sockets.ts'
import type { Feature } from '../feature.ts'
import { createRoomAccess } from './access.ts'
import { createConnect } from './connect.ts'
import { type RoomHandlers, roomEndpoints, roomSocketEndpoint } from './endpoints.ts'
import type { RoomEngine, RoomEngineStats, RoomKey, RoomView } from './engine/ports.ts'
import { createRoomEngine } from './engine/rooms.ts'
import { createLocalMembers } from './local-members.ts'
import { createNodeTransport, type NodeTransport } from './node-transport.ts'
import { createOwnership, type Ownership } from './ownership.ts'
import { createRoomLocator } from './room-locator.ts'
import { listNameOf } from './room-page.ts'
import { createSession, type Session } from './session.ts'
import { createRoomStore } from './store.ts'
import { createSummaries, type RoomGlance } from './summaries.ts'
import { createRoomTables, roomsNamespace, roomTableSteps } from './tables.ts'

export interface RoomsDeps {
  readonly sql: Sql
  /** Null where this process is alone. */
  readonly cluster: Cluster | null
  readonly namespaces: () => ReadonlyMap<string, RoomNamespace>
  /** Evaluates rules that query tables. */
  readonly ruleEvaluator: RuleEvaluator
  readonly mode: () => Mode
  readonly sockets: Pick<Sockets, 'pending'>
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: string) => void
  /** `room.db`. */
  readonly db: RoomDatabase
  /** `room.push`, where there is push. */
  readonly push?: RoomPush
  /** Bytes of a JSON response, at most; the state of one room is returned completely, whatever its size. */
  readonly responseBytes: () => number
  /** Seals cursors. */
  readonly secret: string
  readonly clock: Clock
  /** Monotonic milliseconds, as rooms count their timeouts. */
  readonly elapsedMs: () => number
  readonly log: Log
}

const noPush: RoomPush = {
  send: () => Promise.reject(pushNotConfigured()),
}

export function createRooms(deps: RoomsDeps): Feature {
  const { sql, cluster, namespaces, clock, elapsedMs, log } = deps
  const findNamespace = (name: string): RoomNamespace | null => namespaces().get(name) ?? null
  const tables = createRoomTables(sql)
  const store = createRoomStore(tables, () => namespaces().keys())
  const access = createRoomAccess({ mode: deps.mode, ruleEvaluator: deps.ruleEvaluator, log })
  const sessions = createSessionSet<Session>()
  const roomCursors = createListCursors<[name: string]>(deps.secret, 'rooms list')
  const playerCursors = createListCursors<[userId: string]>(deps.secret, 'rooms players')

  const audience = createLocalMembers({
    publish: deps.publish,
    onSlow: (socket) => routes.tell(socket, { type: 'slow', connectionId: socket.connection.id }),
  })
  const routes = createRoomLocator({
    receive: (key, command) => engine.receive(key, command),
    relay: (node, key, command) => relay.tell(node, key, command),
    takeOwner: (key) => ownership.takeOwner(key),
    dismiss: audience.dismiss,
  })
  const relay: NodeTransport = createNodeTransport({
    cluster,
    audience,
    routes,
    receive: (key, command) => engine.receive(key, command),
    released: (key) => ownership.released(key),
    answer: (question) => summaries.answer(question),
    // The machine's own clock: leases are shared with other machines.
    elapsedMs: () => performance.now(),
    log,
  })
  const ownership: Ownership = createOwnership({ tables, nodes: relay.nodes, clock, log })
  const engine: RoomEngine = createRoomEngine({
    store,
    network: relay.network,
    ownership,
    findDefinition: findNamespace,
    services: { db: deps.db, push: deps.push ?? noPush },
    clock,
    elapsedMs,
    log,
  })
  let prepared: Promise<void> | null = null
  const summaries = createSummaries({
    engine: () => engine,
    // A server without configured rooms has no tables for them.
    findStored: async (...rooms) => (prepared ? store.findStored(...rooms) : new Map()),
    findNodes: async () => (prepared ? store.findNodes() : []),
    ownName: () => relay.nodes?.current?.name ?? null,
    ask: relay.ask,
  })
  const connect = createConnect({ findNamespace, sockets: deps.sockets, isFull: summaries.isFull })

  let timers: ReturnType<typeof setInterval>[] = []

  function begin(): void {
    const ticks = setInterval(() => engine.tick(), roomTickMs)
    const sweeps = setInterval(() => {
      engine.sweep().catch((error) => log.error('room.sweep_failed', { error }))
    }, roomSweepMs)
    timers = [ticks, sweeps]
    for (const timer of timers) timer.unref()
  }

  async function prepareOnce(): Promise<void> {
    await preparePlatformTables(tables.database, roomsNamespace, 'rooms', roomTableSteps)
    begin()
  }

  /** Throws 404 for a namespace that is not configured. */
  function getNamespace(name: string): RoomNamespace {
    const found = findNamespace(name)
    if (!found) throw notFound('Room namespace')
    return found
  }

  const itemsMax = (): number => itemBytesMax(deps.responseBytes())

  const now = (): string => new Date(clock.now()).toISOString()

  const summaryOf = ({ namespace, id }: RoomKey, { metadata, occupancy }: RoomGlance) => ({
    namespace,
    roomId: id,
    metadata,
    occupancy,
    updatedAt: now(),
  })

  async function glance(key: RoomKey): Promise<RoomGlance> {
    const [found] = await summaries.glance(key.namespace, [key.id])
    return found as RoomGlance
  }

  /** The first of some rooms, as many as have their summaries in so many bytes. */
  async function summarize(namespace: string, ids: readonly string[], bytesMax: number) {
    const found: ReturnType<typeof summaryOf>[] = []
    let bytes = 0
    while (found.length < ids.length && bytes <= bytesMax) {
      const some = ids.slice(found.length, found.length + roomSummariesAtOnce)
      const glances = await summaries.glance(namespace, some)
      const shown = some.map((id, at) => summaryOf({ namespace, id }, glances[at] as RoomGlance))
      bytes += jsonBytes(shown)
      found.push(...shown)
    }
    const { items, isCut } = await fitItems(found, bytesMax)
    return { items, isCut: isCut || items.length < ids.length }
  }

  function openSession(connection: Parameters<typeof createSession>[0], key: RoomKey): Session {
    return sessions.add(createSession(connection, key, { findNamespace, access, audience, routes }))
  }

  const handlers: RoomHandlers = {
    check: connect.check,
    async open(call) {
      const room = await connect.admit(call)
      return 'status' in room ? room : (connection) => openSession(connection, room)
    },
    refuseCrowd: connect.refuseCrowd,
    authTimeoutMs: ({ query }) => findNamespace(query.namespace ?? '')?.authTimeoutMs ?? socketAuthTimeoutMs,
    messageBytesMax: ({ query }) =>
      2 * (findNamespace(query.namespace ?? '')?.maxStateBytes ?? 0) + roomMessageExtraBytes,
    async summary({ query, caller }) {
      await access.requireMetadata(getNamespace(query.namespace), query.id, caller)
      return json(summaryOf(query, await glance(query)))
    },
    async summaries({ body, caller }) {
      const { namespace: name } = body
      const namespace = getNamespace(name)
      const ids = [...new Set(body.ids)]
      const allowed = await Promise.all(ids.map((id) => access.maySeeMetadata(namespace, id, caller)))
      const deniedIds = ids.filter((_, at) => !allowed[at])
      const shown = ids.filter((_, at) => allowed[at])
      const { items, isCut } = await summarize(name, shown, Math.max(1, itemsMax() - jsonBytes(deniedIds)))
      return json({ namespace: name, items, deniedIds, updatedAt: now(), ...(isCut ? { truncated: true } : {}) })
    },
    async metadata({ query, caller }) {
      await access.requireMetadata(getNamespace(query.namespace), query.id, caller)
      return json((await glance(query)).metadata)
    },
    async list({ query }) {
      const [after] = query.cursor === undefined ? [null] : roomCursors.parse([], query.cursor)
      const { rooms: found, hasMore } = await summaries.list({ limit: query.limit, after })
      const named = found.map(({ key, occupancy }) => ({ namespace: key.namespace, roomId: key.id, occupancy }))
      const { items: rooms, isCut } = await fitItems(named, itemsMax())
      const last = isCut || hasMore ? found[rooms.length - 1] : undefined
      const cursor = last ? roomCursors.format([], [listNameOf(last.key)]) : null
      return json({ rooms, cursor, ...(isCut ? { truncated: true } : {}) })
    },
    async inspect({ query }) {
      const { cursor, ...key } = query
      const list = [key.namespace, key.id]
      const [after] = cursor === undefined ? [null] : playerCursors.parse(list, cursor)
      const view = await summaries.inspect(key, { after, bytesMax: itemsMax() })
      if (!view) throw notFound('Room')
      return jsonText(writeView(view, (userId) => playerCursors.format(list, [userId])))
    },
    async kick({ body: { userId, ...key } }) {
      if (!(await summaries.kick(key, userId))) throw notFound('Room')
      return json({ ok: true })
    },
    async hibernate({ body }) {
      if (!(await summaries.hibernate(body))) throw notFound('Room')
      return json({ ok: true })
    },
  }

  return {
    name: 'rooms',
    endpoints: roomEndpoints(handlers),
    socketEndpoints: [roomSocketEndpoint(handlers)],
    metrics: (metrics) => countRooms(metrics, () => engine.stats),
    /** Creates the tables once there are rooms. */
    async configure({ rooms: configured }) {
      if (configured.size === 0) return
      prepared ??= prepareOnce().catch((error) => {
        prepared = null
        throw error
      })
      await prepared
    },
    /** Evaluates every join rule again. */
    reconfigured() {
      for (const session of sessions) void session.review()
    },
    drain: {
      stage: 'first',
      /** Saves all rooms and hands them over. Sockets stay open. */
      async run() {
        routes.stop()
        await engine.drain(roomDrainMs)
        await ownership.released()
      },
    },
    async close() {
      for (const timer of timers) clearInterval(timer)
      await relay.stop()
    },
  }
}

function countRooms(metrics: Metrics, stats: () => RoomEngineStats): void {
  metrics.gauge('rooms_loaded', 'Rooms in memory.', () => stats().rooms)
  metrics.gauge('rooms_players', 'Players in these rooms.', () => stats().players)
  metrics.gauge('rooms_connections', 'Sockets of these players.', () => stats().connections)
  metrics.counter('rooms_actions_total', 'Actions that were begun.', () => stats().actions)
  metrics.counter('rooms_deltas_total', 'Deltas that were sent.', () => stats().deltas)
  metrics.counter('rooms_saves_total', 'Saves of a room.', () => stats().saves)
  metrics.counter('rooms_failed_saves_total', 'Saves that have to be tried again.', () => stats().failedSaves)
  const fenced = 'Saves refused since another node has the room.'
  metrics.counter('rooms_fenced_saves_total', fenced, () => stats().fencedSaves)
}

/** A room as administrators see it, as JSON; its states are JSON already. */
function writeView(
  { key, shared, server, metadata, players, actions, isCut, ...view }: RoomView,
  cursorAfter: (userId: string) => string,
): string {
  const last = players.at(-1)
  const rest = {
    namespace: key.namespace,
    roomId: key.id,
    ...view,
    actions: actions.map(({ atMs, ...action }) => ({ at: new Date(atMs).toISOString(), ...action })),
    ...(isCut && last ? { truncated: true, cursor: cursorAfter(last.userId) } : { cursor: null }),
  }
  const writtenPlayers = players.map(
    ({ state, ...player }) => `${JSON.stringify(player).slice(0, -1)},"state":${state}}`,
  )
  const states = `"shared":${shared},"server":${server},"metadata":${metadata},"players":[${writtenPlayers.join(',')}]`
  return `${JSON.stringify(rest).slice(0, -1)},${states}}`
}
