/**
 * One subscription socket: parses its messages and responds to them, errors included. `socket-subscriptions` keeps its
 * subscriptions; `http/sockets` owns the connection and authentication.
 */
import { EngineError } from '../../../engines/sql/error.ts'
import { ApiError } from '../../../errors.ts'
import type { JsonObject } from '../../../http/input/body.ts'
import type { Connection, SocketHandler } from '../../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import {
  broadcastEventCharsMax,
  broadcastPayloadBytesMax,
  channelCharsMax,
  subscriptionMessageRate,
} from '../../../limits/subscriptions.ts'
import type { Broadcasts } from '../broadcasts/broadcast.ts'
import type { SubscriptionAuthSuccessMessage, SubscriptionServerMessage } from '../protocol.ts'
import { parseClientMessage, type ReceivedBroadcast, type ReceivedMessage } from './parse-message.ts'
import { SocketSubscriptions, type SocketSubscriptionsDeps } from './socket-subscriptions.ts'
import { errorMessage, SubscriptionError } from './subscription-error.ts'

export interface SessionDeps extends SocketSubscriptionsDeps {
  readonly broadcasts: Broadcasts
}

/** The query of the upgrade request. */
export interface UpgradeRequest {
  /** Null to wait for messages. */
  readonly channel: string | null
  /** A cursor to resume from. */
  readonly since?: string | undefined
  /** The address that budgets count. */
  readonly address: string
}

/** The members of `auth_success` and `auth_refreshed` about subscriptions that the authentication changed. */
type AuthChanges = Pick<SubscriptionAuthSuccessMessage, 'revokedChannels' | 'changedChannels'>

/** Subscribes to the channel of the URL as soon as the caller is known. */
export class SubscriptionSession implements SocketHandler<SubscriptionServerMessage> {
  readonly messageRate = subscriptionMessageRate
  readonly #connection: Connection<SubscriptionServerMessage>
  readonly #request: UpgradeRequest
  readonly #deps: SessionDeps
  readonly #subscriptions: SocketSubscriptions

  constructor(connection: Connection<SubscriptionServerMessage>, request: UpgradeRequest, deps: SessionDeps) {
    this.#connection = connection
    this.#request = request
    this.#deps = deps
    this.#subscriptions = new SocketSubscriptions(connection, request.address, deps)
  }

  /** The channels that it subscribes to, with their tags. */
  get channels(): Iterable<string> {
    return this.#subscriptions.channels
  }

  /** Evaluates the access of every subscription again, and reports to the client what has changed. */
  reset(): Promise<void> {
    return this.#connection.enqueue(async () => {
      const { revoked } = await this.#subscriptions.review((channel, cursor) =>
        this.#subscriptions.sendUnrecovered(channel, cursor),
      )
      for (const channel of revoked)
        this.#connection.send({ ...errorMessage('CHANNEL_ACCESS_DENIED', 'Access denied'), channel })
    })
  }

  onOpen(): void | Promise<void> {
    if (this.#connection.caller.kind === 'service') return this.#subscribeToUrl()
  }

  async onAuth(_: unknown, isRefresh: boolean): Promise<AuthChanges> {
    const { revoked, changed } = await this.#subscriptions.review()
    const changes: AuthChanges = changed.length > 0 ? { changedChannels: changed } : {}
    return isRefresh || revoked.length > 0 ? { revokedChannels: revoked, ...changes } : changes
  }

  afterAuth(isRefresh: boolean): void | Promise<void> {
    if (!isRefresh) return this.#subscribeToUrl()
  }

  onMessage(type: string, message: JsonObject): Promise<void> {
    return this.#reportErrors(message.channel, () => this.#receive(type, message))
  }

  onDrain(): void {
    this.#subscriptions.resume()
  }

  onClose(): void {
    this.#subscriptions.close()
  }

  #subscribeToUrl(): void | Promise<void> {
    const { channel, since = null } = this.#request
    if (channel === null || this.#subscriptions.has(channel)) return
    return this.#reportErrors(channel, () => this.#subscriptions.subscribe({ channel, since, previous: false }))
  }

  #receive(type: string, object: JsonObject): void | Promise<void> {
    const message = parseClientMessage(type, object)
    if (message === null) return this.#connection.error('UNKNOWN_TYPE', 'There is no message of this type')
    return this.#dispatch(message)
  }

  #dispatch(message: ReceivedMessage): void | Promise<void> {
    switch (message.type) {
      case 'subscribe':
        return this.#subscriptions.subscribe(message)
      case 'unsubscribe':
        return this.#subscriptions.unsubscribe(message.channel)
      case 'update_filters':
        return this.#subscriptions.updateFilters(message.channel, message)
      case 'broadcast':
        return this.#broadcast(message)
      default:
        message satisfies never
    }
  }

  async #broadcast({ channel, event, payload }: ReceivedBroadcast): Promise<void> {
    const { caller } = this.#connection
    // A message over the socket would leave no entry in the audit log; the endpoint does.
    if (caller.kind === 'service' && caller.admin)
      throw new SubscriptionError('CHANNEL_ACCESS_DENIED', 'Administrators broadcast over HTTP')
    await this.#deps.access.useBroadcast(caller, channel, 'publish')
    if (typeof event !== 'string' || event === '' || event.length > broadcastEventCharsMax)
      throw new SubscriptionError('INVALID_MESSAGE', `event must be text of 1 to ${broadcastEventCharsMax} characters`)
    if (Buffer.byteLength(JSON.stringify(payload)) > broadcastPayloadBytesMax)
      throw new SubscriptionError('MESSAGE_TOO_LARGE', `payload must have at most ${broadcastPayloadBytesMax} bytes`)
    this.#connection.markActive()
    try {
      this.#deps.broadcasts.send({ channel, event, payload })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw unavailable()
    }
  }

  /** Sends the error of a message, with the channel that it names. Rejects with any error that is a bug. */
  async #reportErrors(channel: unknown, handle: () => void | Promise<void>): Promise<void> {
    try {
      await handle()
    } catch (error) {
      if (!(error instanceof SubscriptionError) && !(error instanceof EngineError)) throw error
      const { code, message } = error instanceof SubscriptionError ? error : unavailable()
      const named = typeof channel === 'string' && channel.length <= channelCharsMax ? { channel } : {}
      this.#connection.send({ ...errorMessage(code, message), ...named })
      if (code === 'NOT_AUTHENTICATED') this.#connection.close(closeCodes.badMessage, code)
    }
  }
}

const unavailable = (): SubscriptionError =>
  new SubscriptionError('UNAVAILABLE', 'Not available right now; try again later')
