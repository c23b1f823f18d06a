/**
 * A deterministic environment for the room engine: time, a store that can fail, hang or lose its response, nodes that
 * crash, pause and hand over, and clients that keep copies of the state. Nothing is random; a test or a seeded schedule
 * decides every step.
 */
import { silentLog } from '../../../src/base/log.ts'
import type { RoomCode } from '../../../src/config/sections/rooms/room-code.ts'
import {
  type RoomCommand,
  type RoomDefinition,
  type RoomEngine,
  type RoomKey,
  type RoomLease,
  type RoomNetwork,
  type RoomOwnership,
  type RoomSave,
  type RoomStore,
  roomName,
} from '../../../src/features/rooms/engine/ports.ts'
import { createRoomEngine } from '../../../src/features/rooms/engine/rooms.ts'
import { roomTickMs } from '../../../src/limits/rooms.ts'
import type { RoomClient } from './room-client.ts'

export const leaseTtlMs = 10_000
/** An owner stops relying on its lease before others can claim it. */
const leaseTrustMs = 8000

export const aDefinition = (code: RoomCode, more: Partial<RoomDefinition> = {}): RoomDefinition => ({
  code,
  maxPlayers: 100,
  maxStateBytes: 1024 * 1024,
  actionTimeoutMs: 5000,
  reconnectGraceMs: 30_000,
  hibernateAfterMs: 300_000,
  saveIntervalMs: 60_000,
  stateTtlMs: 24 * 60 * 60 * 1000,
  durability: 'tick',
  ...more,
})

interface Row {
  fence: number
  snapshot: string | null
  journal: Map<number, string>
  versionBound: number
  metadata: string
  wakeAtMs: number | null
  expiresAtMs: number
}

/** The outcome of the next calls of the store. */
export type StoreMode = 'works' | 'fails' | 'does but fails' | 'hangs'

export class WorldNode {
  readonly engine: RoomEngine
  isAlive = true
  isPaused = false
  /** Called when the node resumes. */
  private waiting: (() => void)[] = []
  readonly ownLeases = new Map<string, { fence: number; untilMs: number }>()

  constructor(
    readonly name: string,
    readonly world: RoomWorld,
  ) {
    this.engine = createRoomEngine({
      store: world.storeFor(this),
      network: world.networkFor(this),
      ownership: world.ownershipFor(this),
      findDefinition: (namespace) => (namespace === world.key.namespace ? world.definition : null),
      services: { openDatabase: () => ({}) as never, push: {} as never },
      clock: { now: () => world.wallMs },
      elapsedMs: () => world.elapsedMs,
      log: {
        ...silentLog,
        error: (event, fields) => world.logged.push(`${event} ${'error' in fields ? fields.error : ''}`),
      },
    })
  }

  /** Resolves when the node runs; never for a crashed node. */
  async running(): Promise<void> {
    while (this.isPaused) await new Promise<void>((resolve) => this.waiting.push(resolve))
    if (!this.isAlive) await new Promise<void>(() => {})
  }

  resume(): void {
    this.isPaused = false
    for (const wake of this.waiting.splice(0)) wake()
  }
}

export class RoomWorld {
  readonly key: RoomKey = { namespace: 'game', id: 'r1' }
  elapsedMs = 0
  wallMs = Date.UTC(2026, 0, 31, 12)
  readonly nodes: WorldNode[] = []
  readonly rows = new Map<string, Row>()
  readonly logged: string[] = []
  storeMode: StoreMode = 'works'
  /** Start of the last save that succeeded. */
  lastSavedMs = Number.NEGATIVE_INFINITY
  saves: RoomSave[] = []
  /** Violated invariants. */
  readonly violations: string[] = []
  readonly clients = new Map<string, RoomClient>()
  /** The node that each socket follows. */
  readonly followed = new Map<string, WorldNode>()
  /** Commands in flight; delivered by `deliverAll`. */
  private mail: { node: WorldNode; command: RoomCommand }[] = []
  /** Commands for the next owner of the room; retried with every tick. */
  private later: { from: WorldNode; command: RoomCommand }[] = []
  private hanging: (() => void)[] = []
  private gates: { node: WorldNode; open: () => void }[] = []
  private readonly leases = new Map<string, { node: WorldNode; untilMs: number }>()
  private fence = 0

  constructor(public definition: RoomDefinition) {}

  addNode(name = `n${this.nodes.length}`): WorldNode {
    const node = new WorldNode(name, this)
    this.nodes.push(node)
    return node
  }

  /** The node with a valid lease on the room, or null. */
  get owner(): WorldNode | null {
    const lease = this.leases.get(roomName(this.key))
    return lease && lease.untilMs > this.elapsedMs && lease.node.isAlive ? lease.node : null
  }

  /** Whether the store works and no call hangs. */
  get isStoreHealthy(): boolean {
    return this.storeMode === 'works' && this.hanging.length === 0
  }

  // Time

  /** Moves time on, tick by tick, with every node that runs. */
  async pass(ms: number): Promise<void> {
    const endMs = this.elapsedMs + ms
    while (this.elapsedMs < endMs) {
      const stepMs = Math.min(roomTickMs - (this.elapsedMs % roomTickMs), endMs - this.elapsedMs)
      this.elapsedMs += stepMs
      this.wallMs += stepMs
      if (this.elapsedMs % roomTickMs === 0) {
        for (const { from, command } of this.later.splice(0)) this.post(command, this.another(from))
        for (const node of this.nodes) {
          if (!node.isAlive || node.isPaused) continue
          if (this.elapsedMs % 2000 === 0) this.renew(node)
          node.engine.tick()
        }
      }
      await this.deliverAll()
    }
  }

  /** Advances time at once, without ticks in between. */
  async leap(ms: number): Promise<void> {
    this.elapsedMs += ms - (ms % roomTickMs)
    this.wallMs += ms - (ms % roomTickMs)
    for (const node of this.nodes) if (node.isAlive && !node.isPaused) this.renew(node)
    await this.pass(roomTickMs)
  }

  /** Delivers all messages in flight, until nothing happens without time passing. */
  async deliverAll(): Promise<void> {
    for (let quiet = 0; quiet < 12; quiet++) {
      await Promise.resolve()
      const due = this.mail.filter(({ node }) => !node.isPaused)
      if (due.length === 0) continue
      quiet = 0
      this.mail = this.mail.filter(({ node }) => node.isPaused)
      for (const { node, command } of due) if (node.isAlive) node.engine.receive(this.key, command)
    }
  }

  private renew(node: WorldNode): void {
    for (const [name, own] of node.ownLeases) {
      const lease = this.leases.get(name)
      if (lease?.node !== node || lease.untilMs <= this.elapsedMs) continue
      lease.untilMs = this.elapsedMs + leaseTtlMs
      own.untilMs = this.elapsedMs + leaseTrustMs
    }
  }

  // Nodes

  crash(node: WorldNode): void {
    node.isAlive = false
    for (const [connectionId, followed] of this.followed) if (followed === node) this.followed.delete(connectionId)
    // Sockets are on gateways, which send them to the next owner once the lease has expired.
  }

  pause(node: WorldNode): void {
    node.isPaused = true
  }

  // Clients

  /** Sends a command to the room's owner, or to `node` where it has none. */
  post(command: RoomCommand, node: WorldNode): void {
    this.mail.push({ node: this.owner ?? node, command })
  }

  async join(client: RoomClient, node: WorldNode = this.nodes[0] as WorldNode): Promise<RoomClient> {
    this.clients.set(client.open(), client)
    this.post(client.joinCommand(), node)
    await this.deliverAll()
    return client
  }

  /** A promise for a handler to wait for, opened by `openGates`. */
  gate(): Promise<void> {
    const node = this.owner
    if (!node) return Promise.resolve()
    return new Promise((resolve) => this.gates.push({ node, open: resolve }))
  }

  async openGates(): Promise<void> {
    const open = this.gates.filter(({ node }) => node.isAlive && !node.isPaused)
    this.gates = this.gates.filter(({ node }) => node.isAlive && node.isPaused)
    for (const gate of open) gate.open()
    await this.deliverAll()
  }

  // Ports

  networkFor(node: WorldNode): RoomNetwork {
    const isCut = (): boolean => !node.isAlive || node.isPaused
    const deliver = (connectionId: string, texts: readonly string[]): void => {
      if (isCut()) return
      const client = this.clients.get(connectionId)
      for (const text of texts) client?.receive(connectionId, text)
    }
    return {
      send: (connectionId, texts) => {
        if (texts.some((text) => text.startsWith('{"type":"action_result"'))) this.checkOwner(node, 'a response')
        deliver(connectionId, texts)
      },
      publish: (_key, texts, except = []) => {
        this.checkOwner(node, 'a delta')
        for (const [connectionId, followed] of this.followed)
          if (followed === node && !except.includes(connectionId)) deliver(connectionId, texts)
      },
      follow: (_key, connectionId) => void this.followed.set(connectionId, node),
      unfollow: (_key, connectionId) => {
        if (this.followed.get(connectionId) === node) this.followed.delete(connectionId)
      },
      close: (connectionId, code) => {
        const client = this.clients.get(connectionId)
        if (!client || isCut()) return
        this.hangUp(client)
        client.closeCode = code
      },
      moved: (_key, waiting) => {
        if (isCut()) return
        for (const [connectionId, followed] of this.followed)
          if (followed === node) {
            this.followed.delete(connectionId)
            const client = this.clients.get(connectionId)
            if (client) this.later.push({ from: node, command: client.joinCommand() })
          }
        for (const command of waiting) this.later.push({ from: node, command })
      },
    }
  }

  /** Closes the client's socket and notifies the room. */
  hangUp(client: RoomClient): void {
    const { connectionId } = client
    if (connectionId === null) return
    this.clients.delete(connectionId)
    const node = this.followed.get(connectionId)
    this.followed.delete(connectionId)
    client.close()
    const to = node ?? this.owner
    if (to) this.mail.push({ node: to, command: { type: 'disconnect', connectionId } })
  }

  private another(node: WorldNode): WorldNode {
    return this.nodes.find((other) => other !== node && other.isAlive && !other.isPaused) ?? node
  }

  /** Only the owner of the lease may send messages of the room. */
  private checkOwner(node: WorldNode, what: string): void {
    const own = node.ownLeases.get(roomName(this.key))
    if (!node.isPaused && node.isAlive && !(own && own.untilMs > this.elapsedMs))
      this.violations.push(`${node.name} sent ${what} without the lease at ${this.elapsedMs}`)
  }

  ownershipFor(node: WorldNode): RoomOwnership {
    return {
      claim: async (key) => {
        await node.running()
        const name = roomName(key)
        const lease = this.leases.get(name)
        if (lease && lease.node !== node && lease.untilMs > this.elapsedMs) return null
        this.leases.set(name, { node, untilMs: this.elapsedMs + leaseTtlMs })
        this.fence += 1
        const own = { fence: this.fence, untilMs: this.elapsedMs + leaseTrustMs }
        node.ownLeases.set(name, own)
        const granted: RoomLease = { fence: own.fence, isValid: () => own.untilMs > this.elapsedMs }
        return granted
      },
      release: (key, { fence }) => {
        const name = roomName(key)
        const own = node.ownLeases.get(name)
        if (own?.fence !== fence) return
        // The lease ends for this node as well, whatever is in flight.
        own.untilMs = Number.NEGATIVE_INFINITY
        node.ownLeases.delete(name)
        if (this.leases.get(name)?.node === node) this.leases.delete(name)
      },
    }
  }

  storeFor(node: WorldNode): RoomStore {
    const perform = async <T>(run: () => T): Promise<T> => {
      const mode = this.storeMode
      if (mode === 'hangs') await new Promise<void>((resolve) => this.hanging.push(resolve))
      await Promise.resolve()
      if (mode === 'fails') {
        await node.running()
        throw new Error('the store is unavailable')
      }
      const result = run()
      await node.running()
      if (mode === 'does but fails') throw new Error('the store did not answer')
      return result
    }
    return {
      load: (key, fence, versions, expiresAtMs) =>
        perform(() => {
          const name = roomName(key)
          const row = this.rows.get(name) ?? emptyRow(expiresAtMs)
          if (row.fence > fence) return null
          this.rows.set(name, row)
          const { versionBound } = row
          row.fence = fence
          row.versionBound += versions
          const journal = [...row.journal].sort(([a], [b]) => a - b).map(([, entry]) => entry)
          return { snapshot: row.snapshot, journal, versionBound, expiresAtMs: row.expiresAtMs }
        }),
      save: (saves) => {
        const begunMs = this.elapsedMs
        return perform(() => saves.filter((save) => !this.write(save, begunMs)).map(({ key }) => key))
      },
      remove: (key, fence) =>
        perform(() => {
          if ((this.rows.get(roomName(key))?.fence ?? 0) <= fence) this.rows.delete(roomName(key))
        }),
      findDue: (nowMs) => perform(() => this.keysWhere(({ wakeAtMs }) => wakeAtMs !== null && wakeAtMs <= nowMs)),
      findExpired: (nowMs) => perform(() => this.keysWhere(({ expiresAtMs }) => expiresAtMs <= nowMs)),
    }
  }

  /** Releases all hanging calls. */
  async unhang(): Promise<void> {
    for (const release of this.hanging.splice(0)) release()
    await this.deliverAll()
  }

  private write(save: RoomSave, begunMs: number): boolean {
    const row = this.rows.get(roomName(save.key))
    if (!row || row.fence > save.fence) return false
    if (row.versionBound > save.versionBound + 10_000) this.violations.push('a save lowered the bound of versions')
    if (save.snapshot !== null) {
      row.snapshot = save.snapshot
      row.journal.clear()
    }
    if (save.entry !== null) row.journal.set(save.seq, save.entry)
    row.versionBound = Math.max(row.versionBound, save.versionBound)
    row.metadata = save.metadata
    row.wakeAtMs = save.wakeAtMs
    row.expiresAtMs = save.expiresAtMs
    this.saves.push(save)
    this.lastSavedMs = Math.max(this.lastSavedMs, begunMs)
    return true
  }

  private keysWhere(is: (row: Row) => boolean): RoomKey[] {
    return [...this.rows]
      .filter(([, row]) => is(row))
      .map(([name]) => {
        const slash = name.indexOf('/')
        return { namespace: name.slice(0, slash), id: name.slice(slash + 1) }
      })
  }
}

const emptyRow = (expiresAtMs: number): Row => ({
  fence: 0,
  snapshot: null,
  journal: new Map(),
  versionBound: 0,
  metadata: '{}',
  wakeAtMs: null,
  expiresAtMs,
})
