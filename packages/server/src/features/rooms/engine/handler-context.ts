/**
 * The context of one handler run: its `room` and `player` objects, the drafts behind them, and the effects that it
 * requested. All of them are applied together (`prepare`, then `commit`), or none.
 */
import type { Auth } from '../../../access/caller.ts'
import type {
  Room,
  RoomDatabase,
  RoomPlayer,
  RoomPlayers,
  RoomPush,
  RoomState,
} from '../../../config/sections/rooms/room-code.ts'
import {
  actionMessagesBytesMax,
  actionMessagesMax,
  roomTimerDataBytesMax,
  roomTimerDelayMaxMs,
  roomTimersMax,
} from '../../../limits/rooms.ts'
import { ActionError } from './action-error.ts'
import type { Draft, Turn } from './draft.ts'
import { encode, type RoomText } from './messages.ts'
import type { Player } from './players.ts'
import type { RoomKey } from './ports.ts'
import type { RoomData } from './room-data.ts'
import type { LiveState } from './state.ts'
import type { RoomTimer } from './timers.ts'

/** A message for the next tick: to one user, or (null) to all but the users in `except`. */
export interface Outgoing {
  readonly text: RoomText
  readonly to: string | null
  readonly except: readonly string[]
  /** A socket that is left out, though its user is not. */
  readonly exceptConnection?: string
  /** A socket that receives it besides. */
  readonly alsoConnection?: string
}

export interface HandlerSubject {
  readonly key: RoomKey
  readonly contents: RoomData
  readonly services: { readonly db: RoomDatabase; readonly push: RoomPush }
  /** Names that `after` may be given. */
  readonly hasTimer: (name: string) => boolean
  readonly nowMs: () => number
}

/** A state that the handler has read. */
interface Opened {
  readonly state: LiveState
  readonly draft: Draft
  /** The size that the state will have; null for one that does not change. */
  bytes: number | null
}

export class HandlerContext implements Turn {
  isLive = true
  readonly messages: Outgoing[] = []
  readonly kicked = new Set<string>()
  readonly timers: RoomTimer[] = []
  readonly room: Room
  /** Few: most handlers read one or two. */
  private readonly opened: Opened[] = []
  private handles: Map<Player, RoomPlayer> | null = null
  private abort: AbortController | null = null
  private messageBytes = 0

  constructor(readonly subject: HandlerSubject) {
    this.room = new RoomHandle(this)
  }

  checkLive(): void {
    if (!this.isLive) throw new TypeError('The room cannot be used after its handler has ended')
  }

  draftOf(state: LiveState): Draft {
    this.checkLive()
    for (const known of this.opened) if (known.state === state) return known.draft
    const draft = state.draft(this)
    this.opened.push({ state, draft, bytes: null })
    return draft
  }

  handleOf(player: Player): RoomPlayer {
    this.handles ??= new Map()
    let handle = this.handles.get(player)
    if (!handle) {
      handle = new PlayerHandle(this, player)
      this.handles.set(player, handle)
    }
    return handle
  }

  get signal(): AbortSignal {
    this.abort ??= new AbortController()
    if (!this.isLive) this.abort.abort()
    return this.abort.signal
  }

  say(messageType: unknown, data: unknown, to: string | null, except: readonly string[]): void {
    this.checkLive()
    if (typeof messageType !== 'string' || messageType === '') throw new TypeError('A message needs a type')
    const text = encode({ type: 'message', messageType, data: data ?? null })
    this.messageBytes += Buffer.byteLength(text)
    if (this.messages.length >= actionMessagesMax || this.messageBytes > actionMessagesBytesMax)
      throw new ActionError('ACTION_FAILED', 'Too many messages from one action')
    this.messages.push({ text, to, except })
  }

  kick(userId: string): void {
    this.checkLive()
    this.kicked.add(userId)
  }

  addTimer(ms: number, name: string, data: unknown): void {
    this.checkLive()
    const { contents, hasTimer, nowMs } = this.subject
    if (typeof ms !== 'number' || !(ms >= 0 && ms <= roomTimerDelayMaxMs)) throw new RangeError('Invalid delay')
    if (!hasTimer(name)) throw new TypeError(`No timer named ${String(name)}`)
    const text = JSON.stringify(data ?? null)
    if (Buffer.byteLength(text) > roomTimerDataBytesMax) throw new RangeError('The data of a timer is too large')
    if (contents.timers.size + this.timers.length >= roomTimersMax) throw new RangeError('Too many timers')
    this.timers.push({ id: contents.timers.newId(), dueAtMs: Math.ceil(nowMs() + ms), name, data: text })
  }

  /** Validates everything that was assigned; throws `ActionError`. Changes nothing yet. */
  prepare(): void {
    for (const one of this.opened) if (one.draft.isDirty) one.bytes = one.state.prepare(one.draft)
  }

  /** Applies the prepared drafts. Cannot fail. */
  commit(): void {
    for (const { state, draft, bytes } of this.opened) if (bytes !== null) state.commit(draft, bytes)
  }

  /** The handler has ended or timed out: every object that it kept is unusable. */
  end(): void {
    this.isLive = false
    this.abort?.abort()
  }
}

/** A service whose functions are of no use once the handler has ended, though it may have kept them. */
function whileLive<Service extends object>(turn: HandlerContext, service: Service): Service {
  turn.checkLive()
  const guard =
    (call: (...args: unknown[]) => unknown) =>
    (...args: unknown[]) => {
      turn.checkLive()
      return call(...args)
    }
  return Object.fromEntries(Object.entries(service).map(([name, call]) => [name, guard(call)])) as Service
}

class PlayerHandle implements RoomPlayer {
  readonly #turn: HandlerContext
  readonly #player: Player

  constructor(turn: HandlerContext, player: Player) {
    this.#turn = turn
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
    return this.#turn.draftOf(this.#player.state).state
  }

  set state(value: RoomState) {
    this.#turn.draftOf(this.#player.state).replace(value)
  }

  send(messageType: string, data?: unknown): void {
    this.#turn.say(messageType, data, this.id, [])
  }

  kick(): void {
    this.#turn.kick(this.id)
  }
}

class PlayersHandle implements RoomPlayers {
  readonly #turn: HandlerContext

  constructor(turn: HandlerContext) {
    this.#turn = turn
  }

  get size(): number {
    return this.#turn.subject.contents.players.size
  }

  get(userId: string): RoomPlayer | undefined {
    const player = this.#turn.subject.contents.players.find(userId)
    return player && this.#turn.handleOf(player)
  }

  *[Symbol.iterator](): Iterator<RoomPlayer> {
    for (const player of this.#turn.subject.contents.players) yield this.#turn.handleOf(player)
  }
}

class RoomHandle implements Room {
  readonly #turn: HandlerContext
  readonly players: RoomPlayers

  constructor(turn: HandlerContext) {
    this.#turn = turn
    this.players = new PlayersHandle(turn)
  }

  get id(): string {
    return this.#turn.subject.key.id
  }

  get namespace(): string {
    return this.#turn.subject.key.namespace
  }

  get shared(): RoomState {
    return this.#turn.draftOf(this.#turn.subject.contents.shared).state
  }

  set shared(value: RoomState) {
    this.#turn.draftOf(this.#turn.subject.contents.shared).replace(value)
  }

  get server(): RoomState {
    return this.#turn.draftOf(this.#turn.subject.contents.server).state
  }

  set server(value: RoomState) {
    this.#turn.draftOf(this.#turn.subject.contents.server).replace(value)
  }

  get metadata(): RoomState {
    return this.#turn.draftOf(this.#turn.subject.contents.metadata).state
  }

  set metadata(value: RoomState) {
    this.setMetadata(value)
  }

  get db(): RoomDatabase {
    return whileLive(this.#turn, this.#turn.subject.services.db)
  }

  get push(): RoomPush {
    return whileLive(this.#turn, this.#turn.subject.services.push)
  }

  get signal(): AbortSignal {
    return this.#turn.signal
  }

  broadcast(messageType: string, data?: unknown, options?: { readonly except?: string | readonly string[] }): void {
    const except = options?.except ?? []
    this.#turn.say(messageType, data, null, typeof except === 'string' ? [except] : [...except])
  }

  setMetadata(metadata: Readonly<RoomState>): void {
    this.#turn.draftOf(this.#turn.subject.contents.metadata).replace(metadata)
  }

  after(ms: number, name: string, data?: unknown): void {
    this.#turn.addTimer(ms, name, data)
  }
}
