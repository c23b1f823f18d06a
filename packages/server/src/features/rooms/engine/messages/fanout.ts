/**
 * Sends the messages of a room to its sockets: deltas, then messages, with each tick, and the initial state of a socket
 * that joins, reconnects, or was paused for backpressure. Each message is serialized once for all receivers.
 */
import {
  membersSyncBytesPerSecond,
  membersSyncDelayMaxMs,
  roomHistoryAgeMs,
  roomHistoryBytesMax,
  roomHistoryEntriesMax,
  roomOutboxBytesMax,
  roomTickMs,
} from '../../../../limits/rooms.ts'
import type { Outgoing } from '../handlers/handler-context.ts'
import type { Journal } from '../persistence/journal.ts'
import type { RoomData } from '../persistence/room-data.ts'
import type { Connection, Player } from '../players.ts'
import type { ResumePoint, RoomEngineStats, RoomKey, RoomNetwork } from '../ports.ts'
import { History } from '../state/history.ts'
import { assemble, encode, type RoomText } from './messages.ts'

export type EngineCounts = { -readonly [Name in keyof RoomEngineStats]: RoomEngineStats[Name] }

const historyBounds = {
  entriesMax: roomHistoryEntriesMax,
  bytesMax: roomHistoryBytesMax,
  ageMs: roomHistoryAgeMs,
}

export interface FanoutDeps {
  readonly key: RoomKey
  readonly epoch: string
  readonly data: RoomData
  readonly journal: Journal
  readonly network: RoomNetwork
  readonly counts: EngineCounts
}

const noTexts: readonly RoomText[] = []

export class Fanout {
  private readonly history = new History(historyBounds)
  private outbox: Outgoing[] = []
  private outboxBytes = 0
  /** Players whose presence has changed since it was last sent. */
  private readonly presence = new Set<Player>()
  /** The members or the occupancy have changed since `members_sync` was last published. */
  private areMembersChanged = false
  /** Sockets that have received the current `members_sync`. */
  private readonly upToDate = new Set<string>()
  /** Earliest time of the next `members_sync`, in monotonic milliseconds. */
  private membersDueMs = 0

  constructor(private readonly deps: FanoutDeps) {}

  /** Whether messages wait for the next tick. */
  get isWaiting(): boolean {
    return this.outbox.length > 0 || this.presence.size > 0
  }

  /** Whether `members_sync` waits to be sent by a later `flush`. */
  get isMembersSyncDue(): boolean {
    return this.areMembersChanged
  }

  /** A member or a socket came or went: `members_sync` is published with one of the next ticks. */
  membersChanged(): void {
    this.areMembersChanged = true
    this.upToDate.clear()
  }

  hasSpaceFor(messages: readonly Outgoing[]): boolean {
    let bytes = this.outboxBytes
    for (const { text } of messages) bytes += text.length
    return messages.length === 0 || bytes <= roomOutboxBytesMax
  }

  /** Queues a message for the next tick. */
  enqueue(message: Outgoing): void {
    this.outbox.push(message)
    this.outboxBytes += message.text.length
  }

  /** Queues the presence of a player for the next tick. */
  queuePresence(player: Player): void {
    this.presence.add(player)
  }

  /** Starts a socket: with the missed deltas where `resume` can be served, otherwise with the complete state. */
  attach(connection: Connection, resume: ResumePoint | null): void {
    const { network, key, epoch, data } = this.deps
    const { id, player } = connection
    connection.paused = null
    data.players.paused.delete(connection)
    const missed = resume?.epoch === epoch ? this.deltasSince(player, resume) : null
    const resumed = encode({
      type: 'resumed',
      epoch,
      sharedVersion: data.shared.version,
      playerVersion: player.state.version,
    })
    const start = missed ? [resumed, ...missed] : [this.syncMessage(player)]
    network.send(id, [...start, this.membersMessage()])
    this.upToDate.add(id)
    network.follow(key, id)
  }

  /** Pauses a client that reads too slowly: it receives no deltas, but still receives messages. */
  pause(connection: Connection): void {
    if (connection.paused) return
    const { network, key, data } = this.deps
    connection.paused = {
      sharedVersion: data.shared.version,
      playerVersion: connection.player.state.version,
    }
    data.players.paused.add(connection)
    network.unfollow(key, connection.id)
  }

  /** Resumes a paused client with the missed deltas, or with the complete state. */
  resume(connection: Connection): void {
    const { paused, player, id } = connection
    if (!paused) return
    const { network, key, data } = this.deps
    connection.paused = null
    data.players.paused.delete(connection)
    network.send(id, this.deltasSince(player, paused) ?? [this.syncMessage(player)])
    network.follow(key, id)
  }

  /** Sends changes and queued messages; nothing while all reserved versions are used. */
  flush(nowMs: number): void {
    const { data, journal } = this.deps
    if (!journal.mayUse(journal.highestVersion + 1)) return
    this.journalPrivate('server')
    this.journalPrivate('metadata')
    for (const player of data.players)
      if (player.state.isChanged && !player.isJoining) this.sendPlayerDelta(player, nowMs)
    const delta = data.shared.isChanged ? this.sharedDelta(nowMs) : noTexts
    this.publishAll(delta, noTexts)
    this.sendOutbox()
    this.publishAll(noTexts, this.takePresence())
    this.publishMembers(nowMs)
  }

  /** Limits the bandwidth of `members_sync`, which grows with the square of the members, by sending it less often. */
  private publishMembers(nowMs: number): void {
    const { network, key, data } = this.deps
    if (!this.areMembersChanged || nowMs < this.membersDueMs) return
    const { activeConnections } = data.players.occupancy
    const upToDate = [...this.upToDate]
    this.areMembersChanged = false
    this.upToDate.clear()
    if (activeConnections <= upToDate.length) return
    const text = this.membersMessage()
    const spentMs = (text.length * activeConnections * 1000) / membersSyncBytesPerSecond
    this.membersDueMs = spentMs < roomTickMs ? nowMs : nowMs + Math.min(spentMs, membersSyncDelayMaxMs)
    network.publish(key, [text], upToDate)
    for (const id of data.players.pausedConnections()) if (!upToDate.includes(id)) network.send(id, [text])
  }

  /** Journals the changes of a state that clients do not see. */
  private journalPrivate(name: 'server' | 'metadata'): void {
    const { data, journal } = this.deps
    if (!data[name].isChanged) return
    const delta = data[name].takeDelta()
    if (delta === null) journal.requireSnapshot()
    else if (delta !== '{}') journal.addText(`["${name}",${delta}]`)
  }

  private sharedDelta(nowMs: number): readonly RoomText[] {
    const { data, journal } = this.deps
    const { shared, players } = data
    const delta = shared.takeDelta()
    if (delta === '{}') return noTexts
    shared.version += 1
    journal.use(shared.version)
    if (delta === null) {
      this.history.clear()
      journal.requireSnapshot()
      for (const player of players) this.sendSync(player)
      return noTexts
    }
    const text = assemble('shared_delta', `"delta":${delta},"version":${shared.version}`)
    this.history.add(shared.version, text, nowMs)
    journal.addText(`["shared",${delta}]`)
    return [text]
  }

  private sendPlayerDelta(player: Player, nowMs: number): void {
    const { journal, network, counts } = this.deps
    const { state, history, connections, userId } = player
    const delta = state.takeDelta()
    if (delta === '{}') return
    state.version += 1
    journal.use(state.version)
    if (delta === null) {
      history.clear()
      journal.requireSnapshot()
      this.sendSync(player)
      return
    }
    const text = assemble('player_delta', `"delta":${delta},"version":${state.version}`)
    history.add(state.version, text, nowMs)
    journal.addText(`["player",${JSON.stringify(userId)},${delta}]`)
    for (const { id, paused } of connections.values()) if (!paused) network.send(id, [text])
    counts.deltas += 1
    counts.deltaBytes += text.length
  }

  private takePresence(): RoomText[] {
    const texts: RoomText[] = []
    for (const { userId, memberState, isGone } of this.presence)
      if (!isGone) texts.push(assemble('member_state', `"memberId":${JSON.stringify(userId)},"state":${memberState}`))
    this.presence.clear()
    return texts
  }

  private sendOutbox(): void {
    const { network, key, data } = this.deps
    const { outbox } = this
    this.outbox = []
    this.outboxBytes = 0
    let batch: RoomText[] = []
    for (const { text, to, except, exceptConnection, alsoConnection } of outbox) {
      if (to === null && except.length === 0 && !exceptConnection) {
        batch.push(text)
        continue
      }
      this.publishAll(noTexts, batch)
      batch = []
      const left = data.players.connectionsOf(except)
      if (exceptConnection) left.push(exceptConnection)
      if (to === null) network.publish(key, [text], left)
      const others = to === null ? data.players.pausedConnections() : data.players.connectionsOf([to])
      for (const id of others) if (!left.includes(id)) network.send(id, [text])
      if (alsoConnection && !others.includes(alsoConnection)) network.send(alsoConnection, [text])
    }
    this.publishAll(noTexts, batch)
  }

  private publishAll(deltas: readonly RoomText[], messages: readonly RoomText[]): void {
    const { network, key, data, counts } = this.deps
    if (deltas.length + messages.length === 0) return
    network.publish(key, [...deltas, ...messages])
    if (messages.length > 0) for (const { id } of data.players.paused) network.send(id, messages)
    counts.deltas += deltas.length
    for (const text of deltas) counts.deltaBytes += text.length
  }

  /** Null if the deltas are not kept any more, or are larger than the complete state. */
  private deltasSince(player: Player, from: { sharedVersion: number; playerVersion: number }): RoomText[] | null {
    const { shared } = this.deps.data
    const sharedDeltas = this.history.since(from.sharedVersion, shared.version)
    const playerDeltas = player.history.since(from.playerVersion, player.state.version)
    if (!sharedDeltas || !playerDeltas) return null
    const missed = [...sharedDeltas, ...playerDeltas]
    const length = missed.reduce((sum, text) => sum + text.length, 0)
    return missed.length > 1 && length > shared.sizeBytes + player.state.sizeBytes ? null : missed
  }

  private sendSync(player: Player): void {
    for (const { id, paused } of player.connections.values())
      if (!paused) this.deps.network.send(id, [this.syncMessage(player)])
  }

  private syncMessage({ state }: Player): RoomText {
    const { data, epoch } = this.deps
    return assemble(
      'sync',
      `"sharedState":${data.shared.toText()},"sharedVersion":${data.shared.version},` +
        `"playerState":${state.toText()},"playerVersion":${state.version},"epoch":${JSON.stringify(epoch)}`,
    )
  }

  private membersMessage(): RoomText {
    const { players } = this.deps.data
    const members: string[] = []
    for (const { userId, memberState, isJoining } of players)
      if (!isJoining) members.push(`{"memberId":${JSON.stringify(userId)},"state":${memberState}}`)
    const occupancy = JSON.stringify(players.occupancy)
    return assemble('members_sync', `"occupancy":${occupancy},"members":[${members.join(',')}]`)
  }
}
