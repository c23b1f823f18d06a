/**
 * All rooms of this node: claims and loads them, drives their ticks, and removes them when they end. Owns no sockets
 * and no timers: the caller invokes `tick` and `sweep`.
 */
import type { Auth } from '../../../access/caller.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import { roomsPerSweepMax, roomVersionsReserved } from '../../../limits/rooms.ts'
import { Inbox } from './inbox.ts'
import type { EngineCounts } from './messages/fanout.ts'
import { errorText } from './messages/messages.ts'
import { rejectCommand, rejectOverload } from './messages/responses.ts'
import { Journal } from './persistence/journal.ts'
import { readRoomData } from './persistence/room-data.ts'
import { SaveQueue } from './persistence/save-queue.ts'
import {
  type RoomCommand,
  type RoomDefinition,
  type RoomEngine,
  type RoomEngineStats,
  type RoomKey,
  type RoomLease,
  type RoomLoadReport,
  type RoomOccupancy,
  type RoomsDeps,
  type RoomView,
  roomName,
  type SavedRoom,
  type ViewPage,
} from './ports.ts'
import { Room, type RoomEnd, type RoomWorld } from './room.ts'
import { withoutRooms } from './without-rooms.ts'

/** A room that is in memory, or being loaded (`room` is null). */
interface Entry {
  readonly key: RoomKey
  readonly inbox: Inbox
  room: Room | null
  /** Called when the entry is removed. */
  readonly onGone: (() => void)[]
}

/** Why a room is opened: a user joins, a timer is due, its state has expired. */
type Purpose = 'join' | 'wake' | 'destroy'

interface Loaded {
  readonly definition: RoomDefinition
  readonly lease: RoomLease
  readonly saved: SavedRoom
}

interface Draining {
  readonly abortAtMs: number
  readonly endAtMs: number
}

export function createRoomEngine(deps: RoomsDeps): RoomEngine {
  return new Engine(deps)
}

class Engine implements RoomEngine {
  private readonly entries = new Map<string, Entry>()
  private dirty = new Set<Room>()
  private readonly counts: EngineCounts = { ...withoutRooms.stats }
  private readonly saveQueue: SaveQueue
  private readonly world: RoomWorld
  /** Monotonic times at which a drain aborts running handlers, and at which it ends. */
  private draining: Draining | null = null
  private isSweeping = false

  constructor(private readonly deps: RoomsDeps) {
    const { network, clock, elapsedMs, log, services, store } = deps
    this.saveQueue = new SaveQueue(store, this.counts, log)
    this.world = {
      network,
      clock,
      elapsedMs,
      log,
      services,
      counts: this.counts,
      onDirty: (room) => this.dirty.add(room),
      onEnd: (room, why, waiting) => this.roomEnded(room, why, waiting),
    }
  }

  receive(key: RoomKey, command: RoomCommand): void {
    const { network } = this.deps
    const entry = this.entries.get(roomName(key))
    if (entry?.room) entry.room.receive(command)
    else if (entry) {
      if (!entry.inbox.push(command)) rejectOverload(network, command)
    } else if (this.draining) network.moved(key, [command])
    else if (command.type === 'join') this.open(key, 'join', [command])
    else if (command.type === 'act' || command.type === 'signal' || command.type === 'member_state')
      rejectCommand(network, command, 'NOT_JOINED', 'Join the room first')
  }

  tick(): void {
    const nowMs = this.deps.elapsedMs()
    for (const { room } of this.entries.values())
      if (room && room.dueAtMs <= nowMs) attempt(room, () => room.runDueWork())
    const { dirty } = this
    this.dirty = new Set()
    for (const room of dirty) {
      attempt(room, () => room.flush())
      if (!room.isGone) this.saveQueue.add(room)
    }
    this.saveQueue.flush()
    if (this.draining) this.enforceDrainDeadline(nowMs, this.draining)
  }

  async sweep(): Promise<void> {
    for (const { room } of [...this.entries.values()]) {
      if (!room) continue
      if (!room.lease.isValid()) room.fence()
      else {
        room.compact()
        if (room.needsSave) this.saveQueue.add(room)
      }
    }
    if (this.isSweeping || this.draining) return
    this.isSweeping = true
    const { store, clock, log } = this.deps
    try {
      const due = await store.findDue(clock.now(), roomsPerSweepMax)
      for (const key of due) if (this.deps.findDefinition(key.namespace)) this.openIdle(key, 'wake')
      const expired = await store.findExpired(clock.now(), roomsPerSweepMax)
      for (const key of expired) this.openIdle(key, 'destroy')
    } catch (error) {
      log.error('room.sweep_failed', { error })
    }
    this.isSweeping = false
  }

  find(key: RoomKey, page: ViewPage): RoomView | null {
    return this.findRoom(key)?.view(page) ?? null
  }

  findOccupancy(key: RoomKey): RoomOccupancy | null {
    return this.findRoom(key)?.data.players.occupancy ?? null
  }

  findLoad(key: RoomKey): RoomLoadReport | null {
    return this.findRoom(key)?.loadReport ?? null
  }

  findPlayer(key: RoomKey, userId: string): Auth | null {
    const player = this.findRoom(key)?.data.players.find(userId)
    return player && !player.isJoining ? player.auth : null
  }

  findMetadata(key: RoomKey): object | null {
    const metadata = this.findRoom(key)?.data.metadata
    return metadata ? structuredClone(metadata.value) : null
  }

  isFull(key: RoomKey): boolean {
    const room = this.findRoom(key)
    return room !== null && room.data.players.present >= room.definition.maxPlayers
  }

  list(): readonly RoomKey[] {
    return [...this.entries.values()].filter(({ room }) => room).map(({ key }) => key)
  }

  release(key: RoomKey): Promise<void> {
    const entry = this.entries.get(roomName(key))
    if (!entry?.room) return Promise.resolve()
    const gone = new Promise<void>((resolve) => entry.onGone.push(resolve))
    entry.room.close()
    return gone
  }

  async drain(withinMs: number): Promise<void> {
    const nowMs = this.deps.elapsedMs()
    this.draining ??= { abortAtMs: nowMs + withinMs / 2, endAtMs: nowMs + withinMs }
    const gone = [...this.entries.values()].map(({ onGone }) => new Promise<void>((resolve) => onGone.push(resolve)))
    for (const { room } of [...this.entries.values()]) room?.close()
    this.tick()
    await Promise.all(gone)
  }

  get stats(): RoomEngineStats {
    let rooms = 0
    let players = 0
    let connections = 0
    for (const { room } of this.entries.values()) {
      if (!room) continue
      const { activeMembers, activeConnections } = room.data.players.occupancy
      rooms += 1
      players += activeMembers
      connections += activeConnections
    }
    return { ...this.counts, rooms, players, connections }
  }

  private findRoom(key: RoomKey): Room | null {
    return this.entries.get(roomName(key))?.room ?? null
  }

  private openIdle(key: RoomKey, purpose: 'wake' | 'destroy'): void {
    if (!this.entries.has(roomName(key)) && !this.draining) this.open(key, purpose, [])
  }

  private open(key: RoomKey, purpose: Purpose, commands: readonly RoomCommand[]): void {
    const entry: Entry = { key, inbox: new Inbox(), room: null, onGone: [] }
    for (const command of commands) entry.inbox.push(command)
    this.entries.set(roomName(key), entry)
    void this.load(entry, purpose)
  }

  /** Claims the room, then loads it; after the load, saves with an older fence are refused. */
  private async load(entry: Entry, purpose: Purpose): Promise<void> {
    const { ownership, store, clock, log } = this.deps
    const { key } = entry
    let lease: RoomLease | null = null
    try {
      const definition = this.deps.findDefinition(key.namespace)
      lease = await ownership.claim(key)
      const ttlMs = definition?.stateTtlMs ?? 0
      const saved = lease && (await store.load(key, lease.fence, roomVersionsReserved, clock.now() + ttlMs))
      if (!lease || !saved || !this.isKnown(entry)) {
        this.forget(entry, lease)
        if (!saved) this.deps.network.moved(key, entry.inbox.drain())
        return
      }
      // Expiry is checked at every load. A room that was never loaded cannot have expired.
      const isExpired = saved.expiresAtMs <= clock.now() && (purpose === 'destroy' || saved.versionBound > 0)
      if (purpose === 'destroy' && !isExpired) this.reopen(entry, lease)
      else if (isExpired && (saved.snapshot === null || !definition?.code.onDestroy)) await this.remove(entry, lease)
      else if (definition) this.start(entry, isExpired ? 'destroy' : purpose, { definition, lease, saved })
      else throw new Error(`The room namespace "${key.namespace}" is not configured`)
    } catch (error) {
      log.error('room.load_failed', { ...key, error })
      this.forget(entry, lease)
      this.closeWaiting(entry.inbox.drain(), 'restarting', 'UNAVAILABLE')
    }
  }

  private start(entry: Entry, purpose: Purpose, { definition, lease, saved }: Loaded): void {
    const data = readRoomData(saved, definition.maxStateBytes, this.deps.elapsedMs())
    const journal = new Journal(saved.versionBound + roomVersionsReserved, saved.versionBound)
    const { key, inbox } = entry
    const room = new Room(this.world, { key, definition, lease, data, journal, inbox })
    entry.room = room
    const isNew = saved.snapshot === null && saved.journal.length === 0
    room.begin(purpose === 'destroy' ? 'destroy' : isNew ? 'create' : null)
    if (this.draining) room.close()
  }

  private roomEnded(room: Room, why: RoomEnd, waiting: readonly RoomCommand[]): void {
    this.dirty.delete(room)
    this.saveQueue.delete(room)
    const entry = this.entries.get(roomName(room.key))
    if (entry?.room !== room) return
    entry.room = null
    if (why === 'destroyed') {
      for (const command of waiting) entry.inbox.push(command)
      void this.remove(entry, room.lease)
      return
    }
    this.forget(entry, room.lease)
    if (why === 'failed') this.closeWaiting(waiting, 'internal', 'INTERNAL')
    else if (why !== 'hibernated') this.deps.network.moved(room.key, waiting)
  }

  /** Deletes the stored room. Joins received meanwhile create a new one. */
  private async remove(entry: Entry, lease: RoomLease): Promise<void> {
    try {
      await this.deps.store.remove(entry.key, lease.fence)
    } catch (error) {
      this.deps.log.error('room.removal_failed', { ...entry.key, error })
    }
    this.reopen(entry, lease)
  }

  private reopen(entry: Entry, lease: RoomLease): void {
    this.forget(entry, lease)
    const waiting = entry.inbox.drain()
    if (waiting.some(({ type }) => type === 'join')) this.open(entry.key, 'join', waiting)
  }

  private isKnown(entry: Entry): boolean {
    return this.entries.get(roomName(entry.key)) === entry
  }

  private forget(entry: Entry, lease: RoomLease | null): void {
    if (lease) this.deps.ownership.release(entry.key, lease)
    if (this.isKnown(entry)) this.entries.delete(roomName(entry.key))
    for (const call of entry.onGone.splice(0)) call()
  }

  private closeWaiting(waiting: readonly RoomCommand[], why: 'internal' | 'restarting', reason: string): void {
    for (const command of waiting) {
      if (command.type !== 'join') continue
      if (why === 'internal')
        this.deps.network.send(command.connectionId, [errorText('JOIN_DENIED', 'The room could not be created')])
      this.deps.network.close(command.connectionId, closeCodes[why], reason)
    }
  }

  /** Aborts running handlers halfway through a drain, and at its end drops rooms that could not be saved. */
  private enforceDrainDeadline(nowMs: number, { abortAtMs, endAtMs }: Draining): void {
    if (nowMs < abortAtMs) return
    for (const entry of [...this.entries.values()]) {
      entry.room?.abortHandler()
      if (nowMs < endAtMs) continue
      if (entry.room) entry.room.fence()
      else {
        this.forget(entry, null)
        this.deps.network.moved(entry.key, entry.inbox.drain())
      }
    }
  }
}

/** Isolates the failure of one room from the others. */
function attempt(room: Room, run: () => void): void {
  try {
    run()
  } catch (error) {
    room.crash(error)
  }
}
