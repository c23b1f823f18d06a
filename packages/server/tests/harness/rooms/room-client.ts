/**
 * A client of the protocol: keeps copies of the states from `sync` and deltas only, repeats pending actions, and
 * reports messages that violate the protocol. Independent of the engine.
 */
import type { Auth } from '../../../src/access/caller.ts'
import type { RoomCommand } from '../../../src/features/rooms/engine/ports.ts'

export const anAuth = (id: string): Auth => ({
  id,
  email: null,
  emailVerified: false,
  displayName: null,
  role: 'user',
  isAnonymous: false,
  custom: {},
})

// biome-ignore lint/suspicious/noExplicitAny: messages of the server are not typed here.
type Message = Record<string, any>
type State = Message

export class RoomClient {
  connectionId: string | null = null
  closeCode: number | null = null
  epoch: string | null = null
  shared: State = {}
  player: State = {}
  sharedVersion = 0
  playerVersion = 0
  isJoined = false
  /** Messages of the current connection, oldest first. */
  messages: Message[] = []
  /** Actions without a response, by `requestId`. */
  readonly pending = new Map<string, { actionType: string; payload: unknown }>()
  readonly answers = new Map<string, Message>()
  readonly problems: string[] = []
  /** Called with the `requestId` of each `action_result` when it is received. */
  onResult: (requestId: string) => void = () => {}
  private connections = 0
  private requests = 0
  /** Unread messages of a stalled socket; null for a socket that reads at once. */
  private backlog: Message[] | null = null

  constructor(
    readonly userId: string,
    readonly canResume = true,
  ) {}

  open(): string {
    this.connections += 1
    this.connectionId = `${this.userId}#${this.connections}`
    this.messages = []
    this.isJoined = false
    this.closeCode = null
    this.backlog = null
    return this.connectionId
  }

  close(): void {
    this.connectionId = null
    this.isJoined = false
    this.backlog = null
  }

  joinCommand(): RoomCommand {
    const { connectionId, userId, epoch, sharedVersion, playerVersion, canResume } = this
    const resume = canResume && epoch !== null ? { epoch, sharedVersion, playerVersion } : null
    return { type: 'join', connectionId: connectionId ?? '', auth: anAuth(userId), resume }
  }

  act(actionType: string, payload: unknown = {}, requestId = `${this.userId}-${++this.requests}`): RoomCommand {
    this.pending.set(requestId, { actionType, payload })
    return this.resend(requestId)
  }

  resend(requestId: string): RoomCommand {
    const { actionType = '', payload } = this.pending.get(requestId) ?? {}
    return { type: 'act', connectionId: this.connectionId ?? '', actionType, payload, requestId, bytes: 100 }
  }

  /** Stops reading. */
  stall(): void {
    this.backlog ??= []
  }

  /** Reads all unread messages. */
  catchUp(): void {
    const { backlog } = this
    this.backlog = null
    for (const message of backlog ?? []) this.read(message)
  }

  get isSlow(): boolean {
    return this.backlog !== null
  }

  ofType(type: string): Message[] {
    return this.messages.filter((message) => message.type === type)
  }

  receive(connectionId: string, text: string): void {
    if (connectionId !== this.connectionId) return
    const message: Message = JSON.parse(text)
    if (message.type === 'action_result') this.onResult(message.requestId)
    if (this.backlog) this.backlog.push(message)
    else this.read(message)
  }

  private read(message: Message): void {
    this.messages.push(message)
    this.take(message)
  }

  private take(message: Message): void {
    switch (message.type) {
      case 'sync':
        if (message.sharedVersion < this.sharedVersion || message.playerVersion < this.playerVersion)
          this.problems.push(`${this.userId}: a version went back with ${JSON.stringify(message)}`)
        this.epoch = message.epoch
        this.shared = message.sharedState
        this.player = message.playerState
        this.sharedVersion = message.sharedVersion
        this.playerVersion = message.playerVersion
        this.isJoined = true
        break
      case 'resumed':
        if (message.epoch !== this.epoch) this.problems.push(`${this.userId}: resumed in another epoch`)
        this.isJoined = true
        break
      case 'shared_delta':
        this.follow(message, 'sharedVersion')
        this.apply(this.shared, message.delta)
        break
      case 'player_delta':
        this.follow(message, 'playerVersion')
        this.apply(this.player, message.delta)
        break
      case 'action_result':
      case 'action_error':
        this.answer(message)
    }
  }

  private answer(message: Message): void {
    const { requestId } = message
    // The action has not run and can be repeated.
    if (message.code !== 'NOT_JOINED' && message.code !== 'RATE_LIMITED') this.pending.delete(requestId)
    this.answers.set(requestId, message)
  }

  private follow({ version }: Message, name: 'sharedVersion' | 'playerVersion'): void {
    if (!this.isJoined) this.problems.push(`${this.userId}: a delta before the state`)
    if (version !== this[name] + 1) this.problems.push(`${this.userId}: ${name} ${version} after ${this[name]}`)
    this[name] = version
  }

  private apply(state: State, delta: Record<string, unknown>): void {
    for (const [path, value] of Object.entries(delta)) {
      const keys = path.split('.')
      const last = keys.pop() as string
      if (keys.length > 4) this.problems.push(`${this.userId}: the path ${path} is too deep`)
      let at = state
      for (const key of keys) at = at?.[key]
      if (typeof at !== 'object' || at === null || Array.isArray(at)) {
        this.problems.push(`${this.userId}: there is no ${path}`)
        continue
      }
      if (value === null) delete at[last]
      else at[last] = value
    }
  }
}
