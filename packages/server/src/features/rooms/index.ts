/**
 * The rooms feature: wires the engine to tables, nodes, sockets and endpoints, and drives its ticks. The engine runs
 * the rooms.
 */
import type { RuleEvaluator } from '../../access/rule-evaluator.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config, Mode } from '../../config/config.ts'
import type { RoomPush } from '../../config/sections/rooms/room-code.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import { preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { pushNotConfigured } from '../../errors.ts'
import type { Endpoint, SocketEndpoint } from '../../http/endpoint.ts'
import type { Metrics } from '../../http/metrics.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { createSessionSet } from '../../http/sockets/session-set.ts'
import type { Sockets } from '../../http/sockets/sockets.ts'
import { roomDrainMs, roomSweepMs, roomTickMs } from '../../limits/rooms.ts'
import type { Feature } from '../feature.ts'
import { createRoomAccess, type RoomAccessCheck } from './access.ts'
import type { RoomDatabases } from './database.ts'
import { createAdminEndpoints } from './endpoints/admin-endpoints.ts'
import { createActAsPlayer } from './endpoints/player-actions.ts'
import { Summaries } from './endpoints/summaries.ts'
import { createSummaryEndpoints } from './endpoints/summary-endpoints.ts'
import type { RoomEngine, RoomEngineStats } from './engine/ports.ts'
import { withoutRooms } from './engine/without-rooms.ts'
import { createRoomTables, type RoomTables, roomsNamespace, roomTableSteps } from './migrations.ts'
import { createLocalMembers, type LocalMembers } from './nodes/local-members.ts'
import { type ActionResponse, NodeTransport } from './nodes/node-transport.ts'
import { Ownership } from './nodes/ownership.ts'
import { PendingResponses } from './nodes/pending-responses.ts'
import { RoomLocator } from './nodes/room-locator.ts'
import { ConnectEndpoints } from './sockets/connect-endpoints.ts'
import { RoomSession, type SessionDeps } from './sockets/session.ts'
import { createRoomStore, type SqlRoomStore } from './store.ts'

export interface RoomsDeps {
  readonly sql: Sql
  /** Null in a single process. */
  readonly cluster: Cluster | null
  readonly namespaces: () => ReadonlyMap<string, RoomNamespace>
  /** Evaluates rules that query tables. */
  readonly ruleEvaluator: RuleEvaluator
  readonly mode: () => Mode
  readonly sockets: Pick<Sockets, 'pending'>
  /** Sends a text, or a binary frame, to every socket that listens to a topic. */
  readonly publish: (topic: string, data: string | Uint8Array) => void
  /** `room.db`. */
  readonly databases: RoomDatabases
  /** `room.push`, if push is configured. */
  readonly push?: RoomPush
  /** Limit of the bytes of a JSON response. The state of one room is returned completely, whatever its size. */
  readonly responseBytes: () => number
  /** Seals cursors. */
  readonly secret: string
  readonly clock: Clock
  /** Monotonic milliseconds, for the timeouts of rooms. */
  readonly elapsedMs: () => number
  readonly log: Log
}

const noPush: RoomPush = {
  send: () => Promise.reject(pushNotConfigured()),
}

/** The rooms of this node in numbers, for administrators. */
export interface RoomsStatus extends Pick<RoomEngineStats, 'rooms' | 'players' | 'connections'> {
  /** The lease of this node, which covers all its rooms; null in a single process and before it has used rooms. */
  readonly session: string | null
}

export interface RoomsFeature extends Feature {
  describe(): RoomsStatus
}

export const openRooms = (deps: RoomsDeps): RoomsFeature => new Rooms(deps)

class Rooms implements RoomsFeature {
  readonly name = 'rooms'
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints: readonly SocketEndpoint[]
  readonly drain = { stage: 'first', run: () => this.handOver() } as const
  private readonly tables: RoomTables
  private readonly store: SqlRoomStore
  private readonly sessions = createSessionSet<RoomSession>()
  private readonly localMembers: LocalMembers
  private readonly locator: RoomLocator
  private readonly transport: NodeTransport
  private readonly ownership: Ownership
  /** Loaded when rooms are configured for the first time. */
  private engine: RoomEngine = withoutRooms
  private readonly access: RoomAccessCheck
  private readonly actionResponses = new PendingResponses<ActionResponse>({ timedOut: 'unknown', unsent: 'moved' })
  private readonly summaries: Summaries
  /** Resolves when the tables exist; null as long as no rooms are configured. */
  private prepared: Promise<void> | null = null
  private timers: ReturnType<typeof setInterval>[] = []

  constructor(private readonly deps: RoomsDeps) {
    this.tables = createRoomTables(deps.sql)
    this.store = createRoomStore(this.tables, () => deps.namespaces().keys())
    this.localMembers = createLocalMembers({
      publish: deps.publish,
      onSlow: (socket) => this.locator.send(socket, { type: 'slow', connectionId: socket.connection.id }),
    })
    this.locator = new RoomLocator({
      receive: (key, command) => this.engine.receive(key, command),
      forward: (node, key, command) => this.transport.sendCommand(node, key, command),
      takeOwner: (key) => this.ownership.takeOwner(key),
      unfollowAll: this.localMembers.unfollowAll,
    })
    this.transport = this.createTransport()
    this.ownership = new Ownership({ ...deps, tables: this.tables, nodes: this.transport.nodes })
    this.access = createRoomAccess(deps)
    this.summaries = this.createSummaries()
    const { endpoints, socketEndpoints } = this.createEndpoints()
    this.endpoints = endpoints
    this.socketEndpoints = socketEndpoints
  }

  describe(): RoomsStatus {
    const { rooms, players, connections } = this.engine.stats
    return { rooms, players, connections, session: this.transport.nodes?.current?.name ?? null }
  }

  readonly metrics = (metrics: Metrics): void => registerRoomMetrics(metrics, () => this.engine.stats)

  /** Creates the tables and the engine when rooms are configured for the first time. */
  readonly configure = async ({ rooms }: Config): Promise<void> => {
    if (rooms.size === 0) return
    this.prepared ??= this.prepare().catch((error) => {
      this.prepared = null
      throw error
    })
    await this.prepared
  }

  /** Evaluates every join rule again. */
  readonly reconfigured = (): void => {
    for (const session of this.sessions) void session.review()
  }

  readonly close = async (): Promise<void> => {
    for (const timer of this.timers) clearInterval(timer)
    await this.transport.stop()
  }

  private findNamespace(name: string): RoomNamespace | null {
    return this.deps.namespaces().get(name) ?? null
  }

  private createTransport(): NodeTransport {
    return new NodeTransport({
      cluster: this.deps.cluster,
      localMembers: this.localMembers,
      locator: this.locator,
      actionResponses: this.actionResponses,
      receive: (key, command) => this.engine.receive(key, command),
      released: (key) => this.ownership.released(key),
      answer: (request) => this.summaries.answer(request),
      // The clock of the machine, since leases are shared with other machines.
      elapsedMs: () => performance.now(),
      log: this.deps.log,
    })
  }

  private createSummaries(): Summaries {
    const { store, transport } = this
    return new Summaries({
      engine: () => this.engine,
      // Without configured rooms there are no tables.
      findStored: async (...rooms) => (this.prepared ? store.findStored(...rooms) : new Map()),
      findNodes: async () => (this.prepared ? store.findNodes() : []),
      actAsPlayer: createActAsPlayer({
        engine: () => this.engine,
        responses: this.actionResponses,
        access: this.access,
        findNamespace: (name) => this.findNamespace(name),
      }),
      ownName: () => transport.nodes?.current?.name ?? null,
      request: (node, request, timeoutMs) => transport.request(node, request, timeoutMs),
    })
  }

  private createEndpoints(): Required<Pick<Feature, 'endpoints' | 'socketEndpoints'>> {
    const { deps, summaries, access, localMembers, locator } = this
    const findNamespace = (name: string): RoomNamespace | null => this.findNamespace(name)
    const itemsBytesMax = (): number => itemBytesMax(deps.responseBytes())
    // Shared by all sessions, so that it is in a cache of the processor when a message needs it.
    const sessionDeps: SessionDeps = { findNamespace, access, localMembers, locator }
    const connect = new ConnectEndpoints({
      findNamespace,
      sockets: deps.sockets,
      isFull: (key) => summaries.isFull(key),
      openSession: (connection, key) => this.sessions.add(new RoomSession(connection, key, sessionDeps)),
    })
    return {
      endpoints: [
        connect.check,
        ...createSummaryEndpoints({ findNamespace, access, summaries, itemsBytesMax, clock: deps.clock }),
        ...createAdminEndpoints({ summaries, itemsBytesMax, secret: deps.secret }),
      ],
      socketEndpoints: [connect.socket],
    }
  }

  private async prepare(): Promise<void> {
    await this.deps.databases.load()
    await preparePlatformTables(this.tables.database, roomsNamespace, 'rooms', roomTableSteps)
    this.engine = await this.loadEngine()
    const { engine, localMembers } = this
    const ticks = setInterval(() => {
      localMembers.sendAnswers()
      engine.tick()
    }, roomTickMs)
    const sweeps = setInterval(() => {
      engine.sweep().catch((error) => this.deps.log.error('room.sweep_failed', { error }))
    }, roomSweepMs)
    this.timers = [ticks, sweeps]
    for (const timer of this.timers) timer.unref()
  }

  private async loadEngine(): Promise<RoomEngine> {
    const { createRoomEngine } = await import('./engine/rooms.ts')
    const { deps, store, transport, ownership } = this
    return createRoomEngine({
      store,
      network: transport,
      ownership,
      findDefinition: (name) => this.findNamespace(name),
      services: { openDatabase: deps.databases.open, push: deps.push ?? noPush },
      clock: deps.clock,
      elapsedMs: deps.elapsedMs,
      log: deps.log,
    })
  }

  /** Saves all rooms and hands them over to other nodes. Sockets stay open. */
  private async handOver(): Promise<void> {
    this.locator.stop()
    await this.engine.drain(roomDrainMs)
    await this.ownership.released()
  }
}

function registerRoomMetrics(metrics: Metrics, stats: () => RoomEngineStats): void {
  metrics.gauge('rooms_loaded', 'Rooms in memory.', () => stats().rooms)
  metrics.gauge('rooms_players', 'Connected players in these rooms.', () => stats().players)
  metrics.gauge('rooms_connections', 'Open sockets of these players.', () => stats().connections)
  metrics.counter('rooms_actions_total', 'Actions run.', () => stats().actions)
  metrics.counter('rooms_deltas_total', 'Deltas sent.', () => stats().deltas)
  metrics.counter('rooms_saves_total', 'Rooms saved.', () => stats().saves)
  metrics.counter('rooms_failed_saves_total', 'Saves that failed and are retried.', () => stats().failedSaves)
  const fenced = 'Saves refused because another node owns the room.'
  metrics.counter('rooms_fenced_saves_total', fenced, () => stats().fencedSaves)
}
