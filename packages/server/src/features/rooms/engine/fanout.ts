/**
 * Sends a room's messages to its sockets: deltas, then messages, with each tick, and the starting state of a socket
 * that joins, comes back, or was too slow. Every text is written once, however many receive it.
 */
import {
  membersSyncBytesPerSecond,
  membersSyncDelayMaxMs,
  roomHistoryAgeMs,
  roomHistoryBytesMax,
  roomHistoryEntriesMax,
  roomOutboxBytesMax,
  roomTickMs,
} from '../../../limits/rooms.ts'
import type { Outgoing } from './handler-context.ts'
import { History } from './history.ts'
import type { Journal } from './journal.ts'
import { assemble, encode, type RoomText } from './messages.ts'
import type { Connection, Player } from './players.ts'
import type { ResumePoint, RoomEngineStats, RoomKey, RoomNetwork } from './ports.ts'
import type { RoomData } from './room-data.ts'

export type EngineCounts = { -readonly [Name in keyof RoomEngineStats]: RoomEngineStats[Name] }

const historyBounds = {
  entriesMax: roomHistoryEntriesMax,
  bytesMax: roomHistoryBytesMax,
  ageMs: roomHistoryAgeMs,
}

export interface FanoutDeps {
  readonly key: RoomKey
  readonly epoch: string
  readonly contents: RoomData
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
  /** The list of members, or the occupancy, has changed since it was last sent to everyone. */
  private areMembersChanged = false
  /** Sockets that were sent the list as it is now. */
  private readonly informed = new Set<string>()
  /** Before this moment, in monotonic milliseconds, the list is not sent again. */
  private membersDueMs = 0

  constructor(private readonly deps: FanoutDeps) {}

  /** Whether messages wait for the next tick. */
  get isWaiting(): boolean {
    return this.outbox.length > 0 || this.presence.size > 0
  }

  /** The list of members waits to be sent: call `flush` with the next tick. */
  get owesMembers(): boolean {
    return this.areMembersChanged
  }

  /** A member or a socket came or went: the list is sent to all with one of the next ticks. */
  membersChanged(): void {
    this.areMembersChanged = true
    this.informed.clear()
  }

  hasSpaceFor(messages: readonly Outgoing[]): boolean {
    let bytes = this.outboxBytes
    for (const { text } of messages) bytes += text.length
    return messages.length === 0 || bytes <= roomOutboxBytesMax
  }

  /** Sends a message with the next tick. */
  say(message: Outgoing): void {
    this.outbox.push(message)
    this.outboxBytes += message.text.length
  }

  tellPresence(player: Player): void {
    this.presence.add(player)
  }

  /** Starts a socket: with the missed deltas if `resume` can be served, else with the complete state. */
  attach(connection: Connection, resume: ResumePoint | null): void {
    const { network, key, epoch, contents } = this.deps
    const { id, player } = connection
    connection.setAside = null
    contents.players.slow.delete(connection)
    const missed = resume?.epoch === epoch ? this.missedSince(player, resume) : null
    const resumed = encode({
      type: 'resumed',
      epoch,
      sharedVersion: contents.shared.version,
      playerVersion: player.state.version,
    })
    const start = missed ? [resumed, ...missed] : [this.syncText(player)]
    network.send(id, [...start, this.membersText()])
    this.informed.add(id)
    network.follow(key, id)
  }

  /** The client reads too slowly: deltas stop, messages are still sent. */
  setAside(connection: Connection): void {
    if (connection.setAside) return
    const { network, key, contents } = this.deps
    connection.setAside = {
      sharedVersion: contents.shared.version,
      playerVersion: connection.player.state.version,
    }
    contents.players.slow.add(connection)
    network.unfollow(key, connection.id)
  }

  takeUp(connection: Connection): void {
    const { setAside, player, id } = connection
    if (!setAside) return
    const { network, key, contents } = this.deps
    connection.setAside = null
    contents.players.slow.delete(connection)
    network.send(id, this.missedSince(player, setAside) ?? [this.syncText(player)])
    network.follow(key, id)
  }

  /** Sends changes and queued messages; nothing while no reserved version is left. */
  flush(nowMs: number): void {
    const { contents, journal } = this.deps
    if (!journal.mayUse(journal.highestVersion + 1)) return
    this.logUnseen('server')
    this.logUnseen('metadata')
    for (const player of contents.players)
      if (player.state.isChanged && !player.isJoining) this.tellPlayer(player, nowMs)
    const delta = contents.shared.isChanged ? this.sharedDelta(nowMs) : noTexts
    this.tellAll(delta, noTexts)
    this.sendOutbox()
    this.tellAll(noTexts, this.takePresence())
    this.tellMembers(nowMs)
  }

  /** The larger the room, the rarer the list: what it costs grows with the square of the members. */
  private tellMembers(nowMs: number): void {
    const { network, key, contents } = this.deps
    if (!this.areMembersChanged || nowMs < this.membersDueMs) return
    const { activeConnections } = contents.players.occupancy
    const informed = [...this.informed]
    this.areMembersChanged = false
    this.informed.clear()
    if (activeConnections <= informed.length) return
    const text = this.membersText()
    const spentMs = (text.length * activeConnections * 1000) / membersSyncBytesPerSecond
    this.membersDueMs = spentMs < roomTickMs ? nowMs : nowMs + Math.min(spentMs, membersSyncDelayMaxMs)
    network.publish(key, [text], informed)
    for (const id of contents.players.slowConnections()) if (!informed.includes(id)) network.send(id, [text])
  }

  private logUnseen(name: 'server' | 'metadata'): void {
    const { contents, journal } = this.deps
    if (!contents[name].isChanged) return
    const delta = contents[name].takeDelta()
    if (delta === null) journal.addWhole()
    else if (delta !== '{}') journal.addText(`["${name}",${delta}]`)
  }

  private sharedDelta(nowMs: number): readonly RoomText[] {
    const { contents, journal } = this.deps
    const { shared, players } = contents
    const delta = shared.takeDelta()
    if (delta === '{}') return noTexts
    shared.version += 1
    journal.use(shared.version)
    if (delta === null) {
      this.history.clear()
      journal.addWhole()
      for (const player of players) this.sync(player)
      return noTexts
    }
    const text = assemble('shared_delta', `"delta":${delta},"version":${shared.version}`)
    this.history.add(shared.version, text, nowMs)
    journal.addText(`["shared",${delta}]`)
    return [text]
  }

  private tellPlayer(player: Player, nowMs: number): void {
    const { journal, network, counts } = this.deps
    const { state, history, connections, userId } = player
    const delta = state.takeDelta()
    if (delta === '{}') return
    state.version += 1
    journal.use(state.version)
    if (delta === null) {
      history.clear()
      journal.addWhole()
      this.sync(player)
      return
    }
    const text = assemble('player_delta', `"delta":${delta},"version":${state.version}`)
    history.add(state.version, text, nowMs)
    journal.addText(`["player",${JSON.stringify(userId)},${delta}]`)
    for (const { id, setAside } of connections.values()) if (!setAside) network.send(id, [text])
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
    const { network, key, contents } = this.deps
    const { outbox } = this
    this.outbox = []
    this.outboxBytes = 0
    let batch: RoomText[] = []
    for (const { text, to, except, exceptConnection, alsoConnection } of outbox) {
      if (to === null && except.length === 0 && !exceptConnection) {
        batch.push(text)
        continue
      }
      this.tellAll(noTexts, batch)
      batch = []
      const left = contents.players.connectionsOf(except)
      if (exceptConnection) left.push(exceptConnection)
      if (to === null) network.publish(key, [text], left)
      const others = to === null ? contents.players.slowConnections() : contents.players.connectionsOf([to])
      for (const id of others) if (!left.includes(id)) network.send(id, [text])
      if (alsoConnection && !others.includes(alsoConnection)) network.send(alsoConnection, [text])
    }
    this.tellAll(noTexts, batch)
  }

  private tellAll(deltas: readonly RoomText[], messages: readonly RoomText[]): void {
    const { network, key, contents, counts } = this.deps
    if (deltas.length + messages.length === 0) return
    network.publish(key, [...deltas, ...messages])
    if (messages.length > 0) for (const { id } of contents.players.slow) network.send(id, messages)
    counts.deltas += deltas.length
    for (const text of deltas) counts.deltaBytes += text.length
  }

  private missedSince(player: Player, from: { sharedVersion: number; playerVersion: number }): RoomText[] | null {
    const { shared } = this.deps.contents
    const ofShared = this.history.since(from.sharedVersion, shared.version)
    const ofPlayer = player.history.since(from.playerVersion, player.state.version)
    if (!ofShared || !ofPlayer) return null
    const missed = [...ofShared, ...ofPlayer]
    const length = missed.reduce((sum, text) => sum + text.length, 0)
    return missed.length > 1 && length > shared.sizeBytes + player.state.sizeBytes ? null : missed
  }

  private sync(player: Player): void {
    for (const { id, setAside } of player.connections.values())
      if (!setAside) this.deps.network.send(id, [this.syncText(player)])
  }

  private syncText({ state }: Player): RoomText {
    const { contents, epoch } = this.deps
    return assemble(
      'sync',
      `"sharedState":${contents.shared.toText()},"sharedVersion":${contents.shared.version},` +
        `"playerState":${state.toText()},"playerVersion":${state.version},"epoch":${JSON.stringify(epoch)}`,
    )
  }

  private membersText(): RoomText {
    const { players } = this.deps.contents
    const members: string[] = []
    for (const { userId, memberState, isJoining } of players)
      if (!isJoining) members.push(`{"memberId":${JSON.stringify(userId)},"state":${memberState}}`)
    const occupancy = JSON.stringify(players.occupancy)
    return assemble('members_sync', `"occupancy":${occupancy},"members":[${members.join(',')}]`)
  }
}
