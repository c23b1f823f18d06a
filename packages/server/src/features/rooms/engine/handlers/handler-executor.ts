/**
 * Runs the handlers of a room, each as a transaction: a handler works on drafts and collects effects in its
 * `HandlerContext`; once it has succeeded, changes and effects are applied together, otherwise all are discarded.
 * `runner` limits the time.
 */
import type { RoomCode } from '../../../../config/sections/rooms/room-code.ts'
import type { Fanout } from '../messages/fanout.ts'
import type { Journal } from '../persistence/journal.ts'
import type { RoomData } from '../persistence/room-data.ts'
import type { Player } from '../players.ts'
import type { RoomCommand, RoomDefinition, RoomKey, RoomsDeps } from '../ports.ts'
import { ActionError } from './action-error.ts'
import { describeFailure } from './failure.ts'
import { HandlerContext, type HandlerSubject } from './handler-context.ts'
import { type Invocation, type Outcome, Runner } from './runner.ts'

/** A handler to run, with the steps that follow it. */
export interface HandlerCall extends Invocation {
  /** In the log: `onJoin`, `action move`. */
  readonly name: string
  /** Whether the caller receives the error of the handler, so that only unexpected failures are logged. */
  readonly isReported?: boolean
  /** The handler has succeeded and nothing is applied yet; may throw to reject its value. */
  accept?(value: unknown): void
  /** The changes are committed, or (with an error) discarded. */
  done(error: { readonly code: string; readonly message: string } | null): void
}

export interface HandlerExecutorDeps extends Pick<RoomsDeps, 'clock' | 'elapsedMs' | 'log' | 'services'> {
  readonly key: RoomKey
  readonly definition: RoomDefinition
  readonly data: RoomData
  readonly journal: Journal
  readonly fanout: Fanout
  /** False once another node may own the room: nothing may be changed or sent. */
  readonly stillOwned: () => boolean
  /** Removes a player that a handler has kicked. */
  readonly kick: (player: Player) => void
  readonly onChanged: () => void
  /** An asynchronous handler has ended. */
  readonly onIdle: () => void
}

/** A handler that the application defines under a name; undefined for names that objects inherit. */
export const ownHandler = <T>(handlers: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  handlers && Object.hasOwn(handlers, name) ? handlers[name] : undefined

export class HandlerExecutor {
  /** The command whose handler runs. It stays set when the handler is aborted: the command has had no effect. */
  unfinished: RoomCommand | null = null
  private readonly runner: Runner<HandlerCall>
  private readonly subject: HandlerSubject

  constructor(private readonly deps: HandlerExecutorDeps) {
    const { key, data, services, clock, elapsedMs, onIdle } = deps
    this.runner = new Runner({ elapsedMs, conclude: (...ended) => this.conclude(...ended), onIdle })
    this.subject = {
      key,
      data,
      services,
      hasTimer: (name) => ownHandler(this.code.timers, name) !== undefined,
      nowMs: () => clock.now(),
    }
  }

  get code(): RoomCode {
    return this.deps.definition.code
  }

  /** Whether a handler runs. */
  get isBusy(): boolean {
    return this.runner.isBusy
  }

  /** When the running handler was called, in monotonic milliseconds; null without one. */
  get startedAtMs(): number | null {
    return this.runner.startedAtMs
  }

  /** Runs a handler; `call.done` is called at once, or later for an asynchronous handler. */
  run(call: HandlerCall): void {
    this.runner.start(new HandlerContext(this.subject), call)
  }

  /** Fails the running handler with `ACTION_TIMEOUT`. */
  timeOut(): void {
    this.runner.interrupt(new ActionError('ACTION_TIMEOUT', 'The action took too long'))
  }

  /** Drops the running handler without any effect and without a response. */
  abort(): void {
    this.runner.drop()
  }

  private conclude(context: HandlerContext, call: HandlerCall, outcome: Outcome): void {
    const error = this.validate(context, call, outcome)
    context.end()
    if (!this.deps.stillOwned()) return
    this.unfinished = null
    if (error) this.reject(call, error.thrown)
    else {
      context.commit()
      call.done(null)
      this.applyEffects(context)
    }
    this.deps.onChanged()
  }

  /** Null when the handler has succeeded and its changes are valid. */
  private validate(context: HandlerContext, call: HandlerCall, outcome: Outcome): { readonly thrown: unknown } | null {
    if ('error' in outcome) return { thrown: outcome.error }
    try {
      call.accept?.(outcome.value)
      if (!this.deps.fanout.hasSpaceFor(context.messages))
        throw new ActionError('RATE_LIMITED', 'Too many messages are waiting to be sent; retry later')
      context.prepare()
      return null
    } catch (thrown) {
      return { thrown }
    }
  }

  private reject(call: HandlerCall, error: unknown): void {
    const { isBug, ...failure } = describeFailure(error)
    if (isBug || !call.isReported)
      this.deps.log.error('room.handler_failed', { ...this.deps.key, handler: call.name, error })
    call.done(failure)
  }

  private applyEffects({ messages, timers, kicked }: HandlerContext): void {
    const { data, journal, fanout, kick } = this.deps
    for (const timer of timers) {
      data.timers.add(timer)
      journal.add(['timer', timer])
    }
    for (const message of messages) fanout.enqueue(message)
    for (const userId of kicked) {
      const player = data.players.find(userId)
      if (player && !player.isLeaving) kick(player)
    }
  }
}
