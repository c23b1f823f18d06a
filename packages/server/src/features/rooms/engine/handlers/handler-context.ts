/**
 * The context of one handler run: its `room` and `player` objects, the drafts behind them, and the effects that it
 * requested. All of them are applied together (`prepare`, then `commit`), or none.
 */
import type { Auth } from '../../../../access/caller.ts'
import type {
  Room,
  RoomDatabase,
  RoomPlayer,
  RoomPlayers,
  RoomPush,
  RoomState,
} from '../../../../config/sections/rooms/room-code.ts'
import {
  actionMessagesBytesMax,
  actionMessagesMax,
  roomTimerDataBytesMax,
  roomTimerDelayMaxMs,
  roomTimersMax,
} from '../../../../limits/rooms.ts'
import { encode, type RoomText } from '../messages/messages.ts'
import type { RoomData } from '../persistence/room-data.ts'
import type { Player } from '../players.ts'
import type { RoomKey, RoomServices } from '../ports.ts'
import type { Draft, DraftOwner } from '../state/draft.ts'
import type { LiveState } from '../state/state.ts'
import type { RoomTimer } from '../timers.ts'
import { ActionError } from './action-error.ts'

/** A message for the next tick: to one user, or (null) to all but the users in `except`. */
export interface Outgoing {
  readonly text: RoomText
  readonly to: string | null
  readonly except: readonly string[]
  /** A socket that does not receive the message, although its user does. */
  readonly exceptConnection?: string
  /** A socket that receives the message in addition. */
  readonly alsoConnection?: string
}

export interface HandlerSubject {
  readonly key: RoomKey
  readonly data: RoomData
  readonly services: RoomServices
  /** Whether a name is valid for `room.after`. */
  readonly hasTimer: (name: string) => boolean
  readonly nowMs: () => number
}

/** A state that the handler has read. */
interface Opened {
  readonly state: LiveState
  readonly draft: Draft
  /** Size of the state after the commit; null if it does not change. */
  bytes: number | null
}

export class HandlerContext implements DraftOwner {
  isLive = true
  readonly messages: Outgoing[] = []
  readonly kicked = new Set<string>()
  readonly timers: RoomTimer[] = []
  readonly room: Room
  /** An array, since most handlers read one or two states. */
  private readonly opened: Opened[] = []
  /** The player that the handler is called for: the only one that most handlers use. */
  private firstPlayer: Player | null = null
  private firstHandle: RoomPlayer | null = null
  private handles: Map<Player, RoomPlayer> | null = null
  private abort: AbortController | null = null
  private database: RoomDatabase | null = null
  private messageBytes = 0

  constructor(readonly subject: HandlerSubject) {
    this.room = new RoomHandle(this)
  }

  checkLive(): void {
    if (!this.isLive) throw new TypeError('The room cannot be used after its handler has ended')
  }

  draftOf(state: LiveState): Draft {
    this.checkLive()
    for (const opened of this.opened) if (opened.state === state) return opened.draft
    const draft = state.draft(this)
    this.opened.push({ state, draft, bytes: null })
    return draft
  }

  handleOf(player: Player): RoomPlayer {
    if (this.firstHandle && this.firstPlayer === player) return this.firstHandle
    let handle = this.handles?.get(player)
    if (handle) return handle
    handle = new PlayerHandle(this, player)
    if (this.firstHandle) {
      this.handles ??= new Map()
      this.handles.set(player, handle)
    } else {
      this.firstPlayer = player
      this.firstHandle = handle
    }
    return handle
  }

  get signal(): AbortSignal {
    this.abort ??= new AbortController()
    if (!this.isLive) this.abort.abort()
    return this.abort.signal
  }

  get db(): RoomDatabase {
    this.checkLive()
    this.database ??= this.subject.services.openDatabase(this)
    return this.database
  }

  sendMessage(messageType: unknown, data: unknown, to: string | null, except: readonly string[]): void {
    this.checkLive()
    if (typeof messageType !== 'string' || messageType === '')
      throw new TypeError('The type of a message must be a non-empty string')
    const text = encode({ type: 'message', messageType, data: data ?? null })
    this.messageBytes += Buffer.byteLength(text)
    if (this.messages.length >= actionMessagesMax || this.messageBytes > actionMessagesBytesMax)
      throw new ActionError(
        'ACTION_FAILED',
        `A handler can send at most ${actionMessagesMax} messages of ${actionMessagesBytesMax} bytes in total`,
      )
    this.messages.push({ text, to, except })
  }

  kick(userId: string): void {
    this.checkLive()
    this.kicked.add(userId)
  }

  addTimer(ms: number, name: string, payload: unknown): void {
    this.checkLive()
    const { data, hasTimer, nowMs } = this.subject
    const { timers } = data
    if (typeof ms !== 'number' || !(ms >= 0 && ms <= roomTimerDelayMaxMs))
      throw new RangeError(`The delay of a timer must be 0 to ${roomTimerDelayMaxMs} milliseconds, not ${String(ms)}`)
    if (!hasTimer(name)) throw new TypeError(`No timer is named "${String(name)}"`)
    const text = JSON.stringify(payload ?? null)
    if (Buffer.byteLength(text) > roomTimerDataBytesMax)
      throw new RangeError(`The data of a timer must be at most ${roomTimerDataBytesMax} bytes of JSON`)
    if (timers.size + this.timers.length >= roomTimersMax)
      throw new RangeError(`A room can have at most ${roomTimersMax} timers`)
    this.timers.push({ id: timers.newId(), dueAtMs: Math.ceil(nowMs() + ms), name, data: text })
  }

  /** Validates everything that was assigned; throws `ActionError`. Changes nothing yet. */
  prepare(): void {
    for (const opened of this.opened) if (opened.draft.isDirty) opened.bytes = opened.state.prepare(opened.draft)
  }

  /** Applies the prepared drafts; must not throw. */
  commit(): void {
    for (const { state, draft, bytes } of this.opened) if (bytes !== null) state.commit(draft, bytes)
  }

  /** Ends the context: objects that the handler has kept throw from now on. */
  end(): void {
    this.isLive = false
    this.abort?.abort()
  }
}

/** A service whose functions throw once the handler has ended. */
function whileLive<Service extends object>(context: HandlerContext, service: Service): Service {
  context.checkLive()
  const guard =
    (call: (...args: unknown[]) => unknown) =>
    (...args: unknown[]) => {
      context.checkLive()
      return call(...args)
    }
  return Object.fromEntries(Object.entries(service).map(([name, call]) => [name, guard(call)])) as Service
}

class PlayerHandle implements RoomPlayer {
  readonly #context: HandlerContext
  readonly #player: Player

  constructor(context: HandlerContext, player: Player) {
    this.#context = context
    this.#player = player
  }

  get id(): string {
    return this.#player.userId
  }

  get auth(): Auth {
    return this.#player.auth
  }

  get isConnected(): boolean {
    return this.#player.isJoining || this.#player.connections.size > 0
  }

  get state(): RoomState {
    return this.#context.draftOf(this.#player.state).state
  }

  set state(value: RoomState) {
    this.#context.draftOf(this.#player.state).replace(value)
  }

  send(messageType: string, data?: unknown): void {
    this.#context.sendMessage(messageType, data, this.id, [])
  }

  kick(): void {
    this.#context.kick(this.id)
  }
}

class PlayersHandle implements RoomPlayers {
  readonly #context: HandlerContext

  constructor(context: HandlerContext) {
    this.#context = context
  }

  get size(): number {
    return this.#context.subject.data.players.size
  }

  get(userId: string): RoomPlayer | undefined {
    const player = this.#context.subject.data.players.find(userId)
    return player && this.#context.handleOf(player)
  }

  *[Symbol.iterator](): Iterator<RoomPlayer> {
    for (const player of this.#context.subject.data.players) yield this.#context.handleOf(player)
  }
}

class RoomHandle implements Room {
  readonly #context: HandlerContext
  readonly players: RoomPlayers

  constructor(context: HandlerContext) {
    this.#context = context
    this.players = new PlayersHandle(context)
  }

  get id(): string {
    return this.#context.subject.key.id
  }

  get namespace(): string {
    return this.#context.subject.key.namespace
  }

  get shared(): RoomState {
    return this.#context.draftOf(this.#context.subject.data.shared).state
  }

  set shared(value: RoomState) {
    this.#context.draftOf(this.#context.subject.data.shared).replace(value)
  }

  get server(): RoomState {
    return this.#context.draftOf(this.#context.subject.data.server).state
  }

  set server(value: RoomState) {
    this.#context.draftOf(this.#context.subject.data.server).replace(value)
  }

  get metadata(): RoomState {
    return this.#context.draftOf(this.#context.subject.data.metadata).state
  }

  set metadata(value: RoomState) {
    this.setMetadata(value)
  }

  get db(): RoomDatabase {
    return this.#context.db
  }

  get push(): RoomPush {
    return whileLive(this.#context, this.#context.subject.services.push)
  }

  get signal(): AbortSignal {
    return this.#context.signal
  }

  broadcast(messageType: string, data?: unknown, options?: { readonly except?: string | readonly string[] }): void {
    const except = options?.except ?? []
    this.#context.sendMessage(messageType, data, null, typeof except === 'string' ? [except] : [...except])
  }

  setMetadata(metadata: Readonly<RoomState>): void {
    this.#context.draftOf(this.#context.subject.data.metadata).replace(metadata)
  }

  after(ms: number, name: string, data?: unknown): void {
    this.#context.addTimer(ms, name, data)
  }
}
