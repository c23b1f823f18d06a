/**
 * Processes the commands and tasks of a room one at a time: admits players, runs handlers, and applies their effects
 * atomically. `room` decides the order.
 */
import type { RoomCode, RoomLeaveReason } from '../../../config/sections/rooms/room-code.ts'
import { type CloseCode, closeCodes } from '../../../http/sockets/socket-protocol.ts'
import { actionResultBytesMax, memberStateBytesMax, recentActionsMax } from '../../../limits/rooms.ts'
import { ActionError } from './action-error.ts'
import { describeFailure } from './failure.ts'
import type { EngineCounts, Fanout } from './fanout.ts'
import { HandlerContext, type HandlerSubject } from './handler-context.ts'
import type { Journal } from './journal.ts'
import { jsonText } from './json.ts'
import { assemble, encode, errorText } from './messages.ts'
import type { Connection, Player } from './players.ts'
import type { RecentAction, RoomCommand, RoomDefinition, RoomKey, RoomsDeps } from './ports.ts'
import { rejectCommand, responseText, signalText } from './responses.ts'
import type { RoomData } from './room-data.ts'
import { type Outcome, Runner } from './runner.ts'
import type { RoomTimer } from './timers.ts'

/** Work that the room schedules for itself. */
export type Task =
  | { readonly kind: 'create' }
  | { readonly kind: 'destroy' }
  | { readonly kind: 'timer'; readonly timer: RoomTimer }
  | { readonly kind: 'leave'; readonly player: Player; readonly reason: RoomLeaveReason }

type CommandOf<Type extends RoomCommand['type']> = Extract<RoomCommand, { type: Type }>

/** A handler run, with the steps that follow it. */
interface Step {
  readonly name: string
  invoke(turn: HandlerContext): unknown
  /** The handler has succeeded, and nothing has changed yet; may throw to refuse it. */
  accept?(value: unknown): void
  /** The changes are committed, or (with an error) discarded. */
  done(error: { readonly code: string; readonly message: string } | null): void
}

export interface CommandProcessorDeps extends Pick<RoomsDeps, 'network' | 'clock' | 'elapsedMs' | 'log' | 'services'> {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly contents: RoomData
  readonly journal: Journal
  readonly fanout: Fanout
  readonly counts: EngineCounts
  /** False once another node may own the room: nothing may be changed or sent. */
  readonly mayGoOn: () => boolean
  /** `onCreate` or `onDestroy` has ended. */
  readonly onMilestone: (kind: 'create' | 'destroy', isDone: boolean) => void
  readonly onChanged: () => void
  /** A handler that had to wait has ended. */
  readonly onIdle: () => void
}

const own = <T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  record && Object.hasOwn(record, name) ? record[name] : undefined

export class CommandProcessor {
  readonly tasks: Task[] = []
  readonly recent: RecentAction[] = []
  readonly runner: Runner
  private readonly subject: HandlerSubject
  private readonly code: RoomCode
  /** The command whose handler runs. An aborted one stays here: it has had no effect. */
  private current: RoomCommand | null = null

  constructor(private readonly deps: CommandProcessorDeps) {
    const { key, contents, services, definition, clock } = deps
    this.code = definition.code
    this.runner = new Runner(deps.elapsedMs, deps.onIdle)
    this.subject = {
      key,
      contents,
      services,
      hasTimer: (name) => own(this.code.timers, name) !== undefined,
      nowMs: () => clock.now(),
    }
  }

  /** The command that `cut` dropped, or that could not be concluded. */
  get undone(): RoomCommand | null {
    return this.current
  }

  perform(command: RoomCommand): void {
    // Others have no handler, and may come while the one of another command waits.
    if (command.type === 'join' || command.type === 'act') this.current = command
    this.dispatch(command)
    if (!this.runner.isBusy && this.deps.mayGoOn()) this.current = null
  }

  private dispatch(command: RoomCommand): void {
    if (command.type === 'join') {
      this.join(command)
      return
    }
    if (command.type === 'kick') {
      const player = this.deps.contents.players.find(command.userId)
      if (player) this.kick(player)
      return
    }
    const connection = this.deps.contents.players.findConnection(command.connectionId)
    if (connection) this.performFor(connection, command)
    else if (command.type === 'act' || command.type === 'signal' || command.type === 'member_state')
      rejectCommand(this.deps.network, command, 'NOT_JOINED', 'Join the room first')
  }

  performTask(task: Task): void {
    switch (task.kind) {
      case 'create':
      case 'destroy': {
        const hook = task.kind === 'create' ? this.code.onCreate : this.code.onDestroy
        this.run({
          name: task.kind === 'create' ? 'onCreate' : 'onDestroy',
          invoke: ({ room }) => hook?.(room),
          done: (error) => this.deps.onMilestone(task.kind, error === null),
        })
        break
      }
      case 'timer':
        this.runTimer(task.timer)
        break
      case 'leave':
        this.runLeave(task.player, task.reason)
    }
  }

  /** Drops the running handler without any effect. */
  cut(): void {
    this.runner.cut()
    for (const player of this.deps.contents.players) if (player.isJoining) this.deps.contents.players.remove(player)
  }

  private performFor(connection: Connection, command: Exclude<RoomCommand, CommandOf<'join' | 'kick'>>): void {
    const { contents, fanout, elapsedMs } = this.deps
    switch (command.type) {
      case 'act':
        this.act(connection, command)
        break
      case 'leave':
        this.dismiss(connection.player, 'left', closeCodes.left)
        break
      case 'disconnect':
        contents.players.disconnect(connection, elapsedMs())
        this.membersChanged()
        break
      case 'auth':
        connection.player.auth = command.auth
        break
      case 'member_state':
        this.setMemberState(connection, command)
        break
      case 'signal':
        this.relaySignal(connection, command)
        break
      case 'slow':
        fanout.setAside(connection)
        break
      case 'drained':
        fanout.takeUp(connection)
    }
  }

  private join({ connectionId, auth, resume }: CommandOf<'join'>): void {
    const { contents, fanout, definition, journal } = this.deps
    const { players } = contents
    const known = players.findConnection(connectionId)
    const player = known?.player ?? players.find(auth.id)
    if (player) {
      player.auth = auth
      const connection = known ?? players.connect(player, connectionId)
      if (!known) this.membersChanged()
      fanout.attach(connection, resume)
    } else if (players.size >= definition.maxPlayers) {
      this.turnAway(connectionId, 'ROOM_FULL', 'The room is full')
    } else this.admit(contents.createPlayer(auth.id, auth, {}, journal.takeVersion()), connectionId)
  }

  private admit(player: Player, connectionId: string): void {
    const { contents, fanout, journal } = this.deps
    const { userId, auth, state } = player
    player.isJoining = true
    contents.players.add(player)
    this.run({
      name: 'onJoin',
      invoke: (turn) => this.code.onJoin?.(turn.room, turn.handleOf(player)),
      done: (error) => {
        player.isJoining = false
        if (error) {
          contents.players.remove(player)
          this.turnAway(connectionId, 'JOIN_DENIED', error.message)
          return
        }
        // The player receives the complete state, so the changes of `onJoin` are not sent as a delta.
        state.takeDelta()
        journal.addText(`["join",${JSON.stringify(userId)},${JSON.stringify(auth)},${state.toText()}]`)
        const connection = contents.players.connect(player, connectionId)
        this.membersChanged()
        fanout.attach(connection, null)
        fanout.say({
          text: assemble('member_join', `"memberId":${JSON.stringify(userId)},"state":${player.memberState}`),
          to: null,
          except: [userId],
        })
      },
    })
  }

  private turnAway(connectionId: string, code: 'ROOM_FULL' | 'JOIN_DENIED', message: string): void {
    this.deps.network.send(connectionId, [errorText(code, message)])
    this.deps.network.close(connectionId, closeCodes.joinDenied, code)
  }

  private act({ id, player }: Connection, command: CommandOf<'act'>): void {
    const { network, contents, journal, elapsedMs, counts } = this.deps
    const { actionType, requestId, payload } = command
    const { userId } = player
    const known = contents.results.find(userId, requestId)
    if (known !== null) {
      network.send(id, [responseText(requestId, known)])
      return
    }
    const handler = own(this.code.actions, actionType)
    if (!handler) {
      rejectCommand(network, command, 'NO_HANDLER', 'There is no such action')
      return
    }
    const startedAtMs = elapsedMs()
    let body = ''
    this.run({
      name: `action ${actionType}`,
      invoke: (turn) => handler(turn.room, turn.handleOf(player), payload),
      accept: (value) => {
        // Values without a JSON form, such as functions, become null.
        body = `{"result":${JSON.stringify(value) ?? 'null'},"actionType":${JSON.stringify(actionType)}}`
        if (Buffer.byteLength(body) > actionResultBytesMax)
          throw new ActionError('ACTION_FAILED', 'The result of an action may not be so large')
      },
      done: (error) => {
        if (error) body = JSON.stringify({ actionType, ...error })
        contents.results.keep(userId, requestId, body, elapsedMs())
        journal.addText(`["result",${jsonText(userId)},${jsonText(requestId)},${body}]`)
        counts.actions += 1
        this.remember(userId, actionType, elapsedMs() - startedAtMs, error?.message ?? null)
        network.send(id, [responseText(requestId, body)])
      },
    })
  }

  private remember(userId: string, actionType: string, durationMs: number, error: string | null): void {
    if (this.recent.length >= recentActionsMax) this.recent.shift()
    this.recent.push({ atMs: this.deps.clock.now(), userId, actionType, durationMs, error })
  }

  private setMemberState({ id, player }: Connection, { state }: CommandOf<'member_state'>): void {
    const text = JSON.stringify(state ?? {})
    if (Buffer.byteLength(text) > memberStateBytesMax) {
      this.deps.network.send(id, [
        errorText('INVALID_STATE', `A member state has at most ${memberStateBytesMax} bytes`),
      ])
      return
    }
    player.memberState = text
    this.deps.fanout.tellPresence(player)
    this.deps.onChanged()
  }

  private membersChanged(): void {
    this.deps.fanout.membersChanged()
    this.deps.onChanged()
  }

  private relaySignal({ id, player }: Connection, command: CommandOf<'signal'>): void {
    const { network, contents, fanout, clock, onChanged } = this.deps
    const { to, includeSelf, requestId } = command
    const target = to === null ? null : contents.players.find(to)
    if (target === undefined || target?.isJoining) {
      rejectCommand(network, command, 'MEMBER_NOT_FOUND', 'There is no such member in the room')
      return
    }
    const text = signalText(player.userId, command, clock.now())
    const self = includeSelf ? { alsoConnection: id } : { exceptConnection: id }
    // A signal to all members includes the sender.
    const message = { text, to, except: [], ...(to === null && includeSelf ? {} : self) }
    if (!fanout.hasSpaceFor([message])) {
      rejectCommand(network, command, 'RATE_LIMITED', 'The room has too much to do')
      return
    }
    fanout.say(message)
    onChanged()
    if (requestId !== null) network.send(id, [encode({ type: 'signal_sent', requestId })])
  }

  private kick(player: Player): void {
    // Earlier deltas and messages are sent first.
    this.deps.fanout.flush(this.deps.elapsedMs())
    for (const id of player.connections.keys()) this.deps.network.send(id, [encode({ type: 'kicked' })])
    this.dismiss(player, 'kicked', closeCodes.kicked)
  }

  /** Closes a player's sockets and schedules `onLeave` before all other work. */
  private dismiss(player: Player, reason: 'left' | 'kicked', closeCode: CloseCode): void {
    const { network, key, contents, elapsedMs } = this.deps
    for (const connection of [...player.connections.values()]) {
      network.unfollow(key, connection.id)
      network.close(connection.id, closeCode, reason.toUpperCase())
      contents.players.disconnect(connection, elapsedMs())
    }
    this.membersChanged()
    player.isLeaving = true
    this.tasks.unshift({ kind: 'leave', player, reason })
  }

  private runLeave(player: Player, reason: RoomLeaveReason): void {
    const { contents, fanout, journal } = this.deps
    const { userId } = player
    // The player has reconnected before the task ran, or has left already.
    if (!player.isLeaving || contents.players.find(userId) !== player) return
    this.run({
      name: 'onLeave',
      invoke: (turn) => this.code.onLeave?.(turn.room, turn.handleOf(player), reason),
      done: () => {
        contents.players.remove(player)
        this.membersChanged()
        journal.add(['leave', userId])
        fanout.say({ text: encode({ type: 'member_leave', memberId: userId, reason }), to: null, except: [] })
      },
    })
  }

  /** A timer is done once its handler has ended, whichever way; until then it is saved as waiting. */
  private runTimer(timer: RoomTimer): void {
    const { contents, journal } = this.deps
    const handler = own(this.code.timers, timer.name)
    this.run({
      name: `timer ${timer.name}`,
      invoke: ({ room }) => handler?.(room, JSON.parse(timer.data)),
      done: () => {
        contents.timers.done(timer.id)
        journal.add(['done', timer.id])
      },
    })
  }

  private run(step: Step): void {
    const turn = new HandlerContext(this.subject)
    this.runner.start(
      turn,
      () => step.invoke(turn),
      (outcome) => this.conclude(turn, step, outcome),
    )
  }

  private conclude(turn: HandlerContext, step: Step, outcome: Outcome): void {
    const error = this.judge(turn, step, outcome)
    turn.end()
    if (!this.deps.mayGoOn()) return
    this.current = null
    if (error) {
      const { isBug, ...failure } = describeFailure(error.thrown)
      if (isBug || !step.name.startsWith('action '))
        this.deps.log.error('room.handler_failed', { ...this.deps.key, handler: step.name, error: error.thrown })
      step.done(failure)
    } else {
      turn.commit()
      step.done(null)
      this.followUp(turn)
    }
    this.deps.onChanged()
  }

  /** Null when the handler has succeeded and its changes are possible. */
  private judge(turn: HandlerContext, step: Step, outcome: Outcome): { readonly thrown: unknown } | null {
    if ('error' in outcome) return { thrown: outcome.error }
    try {
      step.accept?.(outcome.value)
      if (!this.deps.fanout.hasSpaceFor(turn.messages))
        throw new ActionError('RATE_LIMITED', 'Too many messages wait to be sent')
      turn.prepare()
      return null
    } catch (thrown) {
      return { thrown }
    }
  }

  private followUp({ messages, timers, kicked }: HandlerContext): void {
    const { contents, journal, fanout } = this.deps
    for (const timer of timers) {
      contents.timers.add(timer)
      journal.add(['timer', timer])
    }
    for (const message of messages) fanout.say(message)
    for (const userId of kicked) {
      const player = contents.players.find(userId)
      if (player && !player.isLeaving) this.kick(player)
    }
  }
}
