/**
 * Processes the commands and tasks of a room one at a time: finds the handler of each, and answers its sender. `room`
 * decides the order, `membership` admits and removes players, `handler-executor` runs handlers and applies their
 * effects.
 */

import { isLongerThan } from '../../../base/text/text.ts'
import type { RoomLeaveReason } from '../../../config/sections/rooms/room-code.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import { memberStateBytesMax } from '../../../limits/rooms.ts'
import { type ActCommand, ActionCall } from './action-call.ts'
import { HandlerExecutor, ownHandler } from './handlers/handler-executor.ts'
import { Membership } from './membership.ts'
import type { EngineCounts, Fanout } from './messages/fanout.ts'
import { encode, errorText } from './messages/messages.ts'
import { rejectCommand, rejectOverload, responseText, signalText } from './messages/responses.ts'
import type { Journal } from './persistence/journal.ts'
import type { RoomData } from './persistence/room-data.ts'
import type { Connection, Player } from './players.ts'
import type { RoomCommand, RoomDefinition, RoomKey, RoomsDeps } from './ports.ts'
import { RecentActions } from './recent-actions.ts'
import type { RoomTimer } from './timers.ts'

/** Work that the room schedules for itself. */
export type Task =
  | { readonly kind: 'create' }
  | { readonly kind: 'destroy' }
  | { readonly kind: 'timer'; readonly timer: RoomTimer }
  | { readonly kind: 'leave'; readonly player: Player; readonly reason: RoomLeaveReason }

type CommandOf<Type extends RoomCommand['type']> = Extract<RoomCommand, { type: Type }>

export interface CommandProcessorDeps extends Pick<RoomsDeps, 'network' | 'clock' | 'elapsedMs' | 'log' | 'services'> {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly data: RoomData
  readonly journal: Journal
  readonly fanout: Fanout
  readonly counts: EngineCounts
  /** Schedules a task before all other work. */
  readonly scheduleFirst: (task: Task) => void
  /** False once another node may own the room: nothing may be changed or sent. */
  readonly stillOwned: () => boolean
  /** `onCreate` or `onDestroy` has ended. */
  readonly onMilestone: (kind: 'create' | 'destroy', hasSucceeded: boolean) => void
  readonly onChanged: () => void
  /** An asynchronous handler has ended. */
  readonly onIdle: () => void
}

export class CommandProcessor {
  readonly recent = new RecentActions()
  private readonly executor: HandlerExecutor
  private readonly membership: Membership

  constructor(private readonly deps: CommandProcessorDeps) {
    this.executor = new HandlerExecutor({ ...deps, kick: (player) => this.membership.kick(player) })
    this.membership = new Membership({
      ...deps,
      executor: this.executor,
      scheduleLeave: (player, reason) => deps.scheduleFirst({ kind: 'leave', player, reason }),
    })
  }

  /** Whether a handler runs: nothing else may be processed until `onIdle`. */
  get isBusy(): boolean {
    return this.executor.isBusy
  }

  /** When the running handler was called, in monotonic milliseconds; null without one. */
  get startedAtMs(): number | null {
    return this.executor.startedAtMs
  }

  /** The command that `abortHandler` dropped, or whose effects could not be applied. */
  get unfinished(): RoomCommand | null {
    return this.executor.unfinished
  }

  perform(command: RoomCommand): void {
    // Other commands have no handler, and may arrive while an asynchronous handler runs.
    if (command.type === 'join' || command.type === 'act') this.executor.unfinished = command
    this.dispatch(command)
    if (!this.executor.isBusy && this.deps.stillOwned()) this.executor.unfinished = null
  }

  performTask(task: Task): void {
    switch (task.kind) {
      case 'create':
      case 'destroy':
        this.runHook(task.kind)
        break
      case 'timer':
        this.runTimer(task.timer)
        break
      case 'leave':
        this.membership.runLeave(task.player, task.reason)
    }
  }

  /** Fails the running handler with `ACTION_TIMEOUT`. */
  timeOut(): void {
    this.executor.timeOut()
  }

  /** Drops the running handler without any effect. */
  abortHandler(): void {
    this.executor.abort()
    this.membership.abortJoin()
  }

  private dispatch(command: RoomCommand): void {
    const { players } = this.deps.data
    if (command.type === 'join') {
      this.membership.join(command)
      return
    }
    if (command.type === 'kick') {
      const player = players.find(command.userId)
      if (player) this.membership.kick(player)
      return
    }
    if (command.type === 'act' && command.as) {
      const player = players.find(command.as.userId)
      if (player && !player.isJoining) this.act({ id: command.connectionId, player }, command)
      else rejectCommand(this.deps.network, command, 'NOT_JOINED', 'The player is not in the room')
      return
    }
    const connection = players.findConnection(command.connectionId)
    if (connection) this.performFor(connection, command)
    else if (command.type === 'act' || command.type === 'signal' || command.type === 'member_state')
      rejectCommand(this.deps.network, command, 'NOT_JOINED', 'Join the room first')
  }

  private performFor(connection: Connection, command: Exclude<RoomCommand, CommandOf<'join' | 'kick'>>): void {
    switch (command.type) {
      case 'act':
        this.act(connection, command)
        break
      case 'leave':
        this.membership.remove(connection.player, 'left', closeCodes.left)
        break
      case 'disconnect':
        this.membership.disconnect(connection)
        break
      case 'auth':
        connection.player.auth = command.auth
        break
      case 'member_state':
        this.setMemberState(connection, command)
        break
      case 'signal':
        this.forwardSignal(connection, command)
        break
      case 'slow':
        this.deps.fanout.pause(connection)
        break
      case 'drained':
        this.deps.fanout.resume(connection)
    }
  }

  private act(sender: Pick<Connection, 'id' | 'player'>, command: ActCommand): void {
    const { network, data } = this.deps
    const { actionType, requestId } = command
    const kept = data.results.find(sender.player.userId, requestId)
    if (kept !== null) {
      network.send(sender.id, [responseText(requestId, kept)])
      return
    }
    const handler = ownHandler(this.executor.code.actions, actionType)
    if (!handler) {
      rejectCommand(network, command, 'NO_HANDLER', 'No handler is defined for this action')
      return
    }
    this.executor.run(new ActionCall(this.deps, this.recent, sender, command, handler))
  }

  private setMemberState({ id, player }: Connection, { state }: CommandOf<'member_state'>): void {
    const text = JSON.stringify(state ?? {})
    if (isLongerThan(memberStateBytesMax, text)) {
      const message = `Member state must be at most ${memberStateBytesMax} bytes of JSON`
      this.deps.network.send(id, [errorText('INVALID_STATE', message)])
      return
    }
    player.memberState = text
    this.deps.fanout.queuePresence(player)
    this.deps.onChanged()
  }

  private forwardSignal({ id, player }: Connection, command: CommandOf<'signal'>): void {
    const { network, data, fanout, clock, onChanged } = this.deps
    const { to, includeSelf, requestId } = command
    const target = to === null ? null : data.players.find(to)
    if (target === undefined || target?.isJoining) {
      rejectCommand(network, command, 'MEMBER_NOT_FOUND', 'This member is not in the room')
      return
    }
    const text = signalText(player.userId, command, clock.now())
    const self = includeSelf ? { alsoConnection: id } : { exceptConnection: id }
    // A signal to all members includes the sender.
    const message = { text, to, except: [], ...(to === null && includeSelf ? {} : self) }
    if (!fanout.hasSpaceFor([message])) {
      rejectOverload(network, command)
      return
    }
    fanout.enqueue(message)
    onChanged()
    if (requestId !== null) network.send(id, [encode({ type: 'signal_sent', requestId })])
  }

  private runHook(kind: 'create' | 'destroy'): void {
    const { code } = this.executor
    const hook = kind === 'create' ? code.onCreate : code.onDestroy
    this.executor.run({
      name: kind === 'create' ? 'onCreate' : 'onDestroy',
      invoke: ({ room }) => hook?.(room),
      done: (error) => this.deps.onMilestone(kind, error === null),
    })
  }

  /** A timer runs once, whether or not its handler succeeds. Until then it is saved as waiting. */
  private runTimer(timer: RoomTimer): void {
    const { data, journal } = this.deps
    const handler = ownHandler(this.executor.code.timers, timer.name)
    this.executor.run({
      name: `timer ${timer.name}`,
      invoke: ({ room }) => handler?.(room, JSON.parse(timer.data)),
      done: () => {
        data.timers.done(timer.id)
        journal.add(['done', timer.id])
      },
    })
  }
}
