/**
 * A room: a mirror of its state, actions that are answered exactly once across reconnects, presence and signals.
 *
 * States: closed → joining → joined ⇄ reconnecting; closed again after `leave`, a refusal, a kick, or a change of the
 * signed-in user.
 */
import type { Core } from '../core/core.ts'
import { type Call, limitCall } from '../core/deadline.ts'
import { type Deferred, deferred } from '../core/deferred.ts'
import { failure, type PlinthError } from '../core/error.ts'
import { later } from '../core/later.ts'
import { createListeners } from '../core/listeners.ts'
import { queryString } from '../core/request.ts'
import { type Message, ReconnectingSocket } from '../core/socket.ts'
import type { RoomOptions } from '../types/rooms.ts'
import { Actions, type Predictor } from './actions.ts'
import { applyDelta, freeze, type State } from './state.ts'
import { StateMirror } from './state-mirror.ts'

type Status = 'closed' | 'joining' | 'joined' | 'reconnecting'

interface Member {
  readonly memberId: string
  readonly state: unknown
}

/** The error of a message, whose code `ROOM_FULL` is the slug `room-full`. */
const errorOf = ({ code, message }: Message): PlinthError =>
  failure(String(code).toLowerCase().replace(/_/g, '-'), String(message))

/** How long a room without users stays joined, in milliseconds: components unmount and mount again. */
const lingerMs = 1_000

export class Room {
  me: { readonly id: string } | null = null
  readonly shared = new StateMirror<State>({})
  readonly player = new StateMirror<State>({})
  readonly members = new StateMirror<readonly Member[]>([])
  readonly #status = new StateMirror<Status>('closed')
  readonly #socket: ReconnectingSocket
  readonly #actions = new Actions(
    (message) => this.#sendJoined(message),
    () => this.#show(),
  )
  readonly #messages = createListeners<[message: Message]>()
  #presence: unknown
  readonly #users = new Set<object>()
  /** The shared state without predictions. */
  #truth = this.shared.current
  #epoch: unknown
  /** The last error, which explains a close that follows. */
  #error: PlinthError | undefined
  #joining: Deferred<void> | undefined

  constructor(core: Core, namespace: string, id: string, { batch }: RoomOptions = {}) {
    this.#socket = new ReconnectingSocket(core, `/api/room${queryString({ namespace, id })}`, {
      auth: { caps: batch ? ['resume', 'multi', 'batch'] : ['resume', 'multi'] },
      onReady: () => {
        const lastSharedVersion = this.shared.version
        const lastPlayerVersion = this.player.version
        this.#socket.send({ type: 'join', epoch: this.#epoch, lastSharedVersion, lastPlayerVersion })
      },
      onMessage: (message) => this.#receive(message),
      onDown: () => {
        if (this.status === 'joined') this.#status.set('reconnecting')
      },
      onEnd: () => this.#end(this.#error),
    })
    core.identity.add(() => {
      if (this.me) this.#startOver()
      else this.#socket.restart()
      if (this.#users.size > 0) this.#joinQuietly()
    })
    core.closing.add(() => this.#end())
  }

  get status(): Status {
    return this.#status.current
  }

  subscribe(listener: () => void): () => void {
    return this.#status.subscribe(listener)
  }

  /** Resolves when the room is joined. Rejects if the server refuses; while it is away, waits. */
  async join(options: Call = {}): Promise<void> {
    if (this.status === 'joined' || this.status === 'reconnecting') return
    this.#socket.start()
    this.#joining ??= deferred()
    const { promise } = this.#joining
    if (this.status === 'closed') this.#error = undefined
    this.#status.set('joining')
    const stop = limitCall(options, (error) => this.#end(error))
    return promise.finally(stop)
  }

  /** Leaves at once, with all tabs of the user. */
  async leave(): Promise<void> {
    this.#socket.send({ type: 'leave' })
    this.#end()
  }

  /** Disconnects; the player keeps the seat for the room's reconnect grace, and other tabs stay. */
  disconnect(): void {
    this.#end()
  }

  /** Keeps the room joined, also as each user who signs in, until the returned function is called. */
  retain(): () => void {
    const user = {}
    this.#users.add(user)
    this.#joinQuietly()
    const disconnect = (): void => {
      if (this.#users.size === 0) this.disconnect()
    }
    return () => {
      if (this.#users.delete(user)) later(disconnect, lingerMs)
    }
  }

  /** A refusal is visible in the status. */
  #joinQuietly(): void {
    this.join().catch(() => undefined)
  }

  /** Runs an action. Sent again after a reconnect, under the same id, so that it runs once. */
  async send(action: string, payload?: unknown, options?: Call): Promise<unknown> {
    if (this.status === 'closed') throw failure('not-joined')
    return this.#actions.add(action, payload, options)
  }

  on(event: string, listener: (payload: unknown) => void): () => void {
    return this.#messages.add(({ type, messageType, data }) => {
      if (type === 'message' && messageType === event) listener(data)
    })
  }

  /** Signals of other members; `meta` names the sender. */
  onSignal(name: string, listener: (payload: unknown, meta: unknown) => void): () => void {
    return this.#messages.add(({ type, event, payload, meta }) => {
      if (type === 'signal' && event === name) listener(payload, meta)
    })
  }

  signal(event: string, payload?: unknown, { to }: { readonly to?: string } = {}): void {
    this.#sendJoined({ type: 'signal', event, payload, to })
  }

  /** Sets what other members see of this one; kept across reconnects. */
  setPresence(state: unknown): void {
    this.#presence = state
    this.#sendJoined({ type: 'member_state', state })
  }

  predict(action: string, apply: Predictor): void {
    this.#actions.predictors.set(action, apply)
  }

  #sendJoined(message: object): void {
    if (this.status === 'joined') this.#socket.send(message)
  }

  #receive(message: Message): void {
    switch (message.type) {
      case 'auth_success':
        this.me = { id: String(message.userId) }
        break
      case 'sync':
        this.shared.version = message.sharedVersion as number
        this.player.version = message.playerVersion as number
        this.player.set(message.playerState as State)
        this.#confirm(message.sharedState as State)
        this.#joined(message)
        break
      case 'resumed':
        this.#joined(message)
        break
      case 'shared_delta':
        if (this.#advance(this.shared, message)) this.#confirm(applyDelta(this.#truth, message.delta as State))
        break
      case 'player_delta':
        if (this.#advance(this.player, message))
          this.player.set(applyDelta(this.player.current, message.delta as State))
        break
      case 'action_result':
        this.#actions.succeed(message.requestId as string, message.result)
        break
      case 'action_error':
        this.#actions.fail(message.requestId as string, errorOf(message))
        break
      case 'kicked':
        this.#error = failure('kicked')
        break
      case 'error':
        this.#error = errorOf(message)
        break
      case 'signal':
        break
      default:
        this.#receiveMembers(message)
    }
    this.#messages.emit(message)
  }

  #receiveMembers({ type, memberId, state, members }: Message): void {
    const known = new Map(this.members.current.map((member) => [member.memberId, member]))
    if (type === 'member_leave') known.delete(memberId as string)
    else if (memberId) known.set(memberId as string, { memberId: memberId as string, state })
    else if (!members) return
    this.members.set((members as Member[] | undefined) ?? [...known.values()])
  }

  /** Whether a delta is the next one. After a gap, the room is joined again. */
  #advance(mirror: StateMirror<State>, { version }: Message): boolean {
    const isNext = version === mirror.version + 1
    if (isNext) mirror.version++
    else if ((version as number) > mirror.version) this.#socket.restart()
    return isNext
  }

  /** Shows a state of the server, which contains the effects of the actions that were answered before. */
  #confirm(truth: State): void {
    this.#truth = freeze(truth)
    this.#actions.confirm()
    this.#show()
  }

  #joined({ epoch }: Message): void {
    this.#epoch = epoch
    this.#status.set('joined')
    if (this.#presence !== undefined) this.setPresence(this.#presence)
    this.#actions.resend()
    this.#joining?.resolve()
    this.#joining = undefined
  }

  /** Shows the state with the predictions of pending actions. */
  #show(): void {
    this.shared.set(this.#actions.predict(this.#truth, this.me?.id ?? ''))
  }

  #end(error = failure('aborted', 'Room left')): void {
    this.#socket.stop()
    this.me = null
    this.#epoch = this.#presence = undefined
    this.#actions.failAll(error)
    this.#joining?.reject(error)
    this.#joining = undefined
    this.#status.set('closed')
  }

  /** Another user is signed in: shows nothing of the previous one. */
  #startOver(): void {
    this.#end()
    this.shared.version = this.player.version = 0
    this.player.set({})
    this.members.set([])
    this.#confirm({})
  }
}
