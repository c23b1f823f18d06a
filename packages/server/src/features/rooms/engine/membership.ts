/**
 * Who is in a room: joins, leaves and kicks, with the handlers `onJoin` and `onLeave`. Applies each change to the
 * players, the journal and the sockets together.
 */
import type { RoomLeaveReason } from '../../../config/sections/rooms/room-code.ts'
import { type CloseCode, closeCodes } from '../../../http/sockets/socket-protocol.ts'
import type { HandlerExecutor } from './handlers/handler-executor.ts'
import type { Fanout } from './messages/fanout.ts'
import { assemble, encode, errorText } from './messages/messages.ts'
import type { Journal } from './persistence/journal.ts'
import type { RoomData } from './persistence/room-data.ts'
import type { Connection, Player } from './players.ts'
import type { RoomCommand, RoomDefinition, RoomKey, RoomsDeps } from './ports.ts'

export interface MembershipDeps extends Pick<RoomsDeps, 'network' | 'elapsedMs'> {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly data: RoomData
  readonly journal: Journal
  readonly fanout: Fanout
  readonly executor: HandlerExecutor
  /** Schedules `runLeave` before all other work. */
  readonly scheduleLeave: (player: Player, reason: RoomLeaveReason) => void
  readonly onChanged: () => void
}

export class Membership {
  constructor(private readonly deps: MembershipDeps) {}

  /** Admits a user, or connects another socket of a player. */
  join({ connectionId, auth, resume }: Extract<RoomCommand, { type: 'join' }>): void {
    const { data, fanout, definition, journal } = this.deps
    const { players } = data
    const known = players.findConnection(connectionId)
    const player = known?.player ?? players.find(auth.id)
    if (player) {
      player.auth = auth
      const connection = known ?? players.connect(player, connectionId)
      if (!known) this.announce()
      fanout.attach(connection, resume)
    } else if (players.size >= definition.maxPlayers) {
      this.rejectJoin(connectionId, 'ROOM_FULL', 'The room is full')
    } else this.admit(data.createPlayer(auth.id, auth, {}, journal.takeVersion()), connectionId)
  }

  disconnect(connection: Connection): void {
    this.deps.data.players.disconnect(connection, this.deps.elapsedMs())
    this.announce()
  }

  kick(player: Player): void {
    const { network, fanout, elapsedMs } = this.deps
    // Earlier deltas and messages are sent first.
    fanout.flush(elapsedMs())
    for (const id of player.connections.keys()) network.send(id, [encode({ type: 'kicked' })])
    this.remove(player, 'kicked', closeCodes.kicked)
  }

  /** Closes a player's sockets and schedules `onLeave`. */
  remove(player: Player, reason: 'left' | 'kicked', closeCode: CloseCode): void {
    const { network, key, data, elapsedMs, scheduleLeave } = this.deps
    for (const connection of [...player.connections.values()]) {
      network.unfollow(key, connection.id)
      network.close(connection.id, closeCode, reason.toUpperCase())
      data.players.disconnect(connection, elapsedMs())
    }
    this.announce()
    player.isLeaving = true
    scheduleLeave(player, reason)
  }

  runLeave(player: Player, reason: RoomLeaveReason): void {
    const { data, fanout, journal, executor } = this.deps
    const { userId } = player
    // The player has reconnected before the task ran, or has left already.
    if (!player.isLeaving || data.players.find(userId) !== player) return
    executor.run({
      name: 'onLeave',
      invoke: (context) => executor.code.onLeave?.(context.room, context.handleOf(player), reason),
      done: () => {
        data.players.remove(player)
        this.announce()
        journal.add(['leave', userId])
        fanout.enqueue({ text: encode({ type: 'member_leave', memberId: userId, reason }), to: null, except: [] })
      },
    })
  }

  /** Removes the player whose `onJoin` was aborted. */
  abortJoin(): void {
    const { players } = this.deps.data
    for (const player of players) if (player.isJoining) players.remove(player)
  }

  private admit(player: Player, connectionId: string): void {
    const { data, executor } = this.deps
    player.isJoining = true
    data.players.add(player)
    executor.run({
      name: 'onJoin',
      invoke: (context) => executor.code.onJoin?.(context.room, context.handleOf(player)),
      done: (error) => {
        player.isJoining = false
        if (error) {
          data.players.remove(player)
          this.rejectJoin(connectionId, 'JOIN_DENIED', error.message)
        } else this.completeJoin(player, connectionId)
      },
    })
  }

  private completeJoin(player: Player, connectionId: string): void {
    const { data, fanout, journal } = this.deps
    const { userId, auth, state } = player
    // The player receives the complete state, so the changes of `onJoin` are not sent as a delta.
    state.takeDelta()
    journal.addText(`["join",${JSON.stringify(userId)},${JSON.stringify(auth)},${state.toText()}]`)
    const connection = data.players.connect(player, connectionId)
    this.announce()
    fanout.attach(connection, null)
    fanout.enqueue({
      text: assemble('member_join', `"memberId":${JSON.stringify(userId)},"state":${player.memberState}`),
      to: null,
      except: [userId],
    })
  }

  private rejectJoin(connectionId: string, code: 'ROOM_FULL' | 'JOIN_DENIED', message: string): void {
    this.deps.network.send(connectionId, [errorText(code, message)])
    this.deps.network.close(connectionId, closeCodes.joinDenied, code)
  }

  private announce(): void {
    this.deps.fanout.membersChanged()
    this.deps.onChanged()
  }
}
