/** Subscribers: the subscription of one socket to one shared query. Records which query each has, and who is paused. */
import type { LogPosition, LogTail } from '../change-feed.ts'
import type { SharedQueries, SharedQuery } from '../matching/shared-queries.ts'
import type { SubscriptionText } from './messages.ts'

/** What delivery needs of a socket. */
export interface ClientConnection {
  send(text: SubscriptionText): void
  /** Bytes sent that the client has not read. */
  readonly buffered: number
  readonly isOpen: boolean
  subscribe(topic: string): void
  unsubscribe(topic: string): void
}

export interface Subscriber {
  readonly connection: ClientConnection
  /** Called when missed changes are no longer known: the client has to list again. */
  readonly onUnrecoverable: (cursor: string) => void
  /** Null before it joined and after it left. */
  query: SharedQuery<Subscriber> | null
  log: WatchedLog | null
  /** While paused: the position up to which it has received everything. */
  pausedAt: LogPosition | null
  /** Identifies the catch-up that runs; null where none does. */
  catchUp: object | null
}

export interface WatchedLog {
  /** Identifies the log within this process. */
  readonly name: string
  readonly queries: SharedQueries<Subscriber>
  readonly tail: Promise<LogTail>
  /** Number of subscribers, those that are joining included. */
  subscribers: number
}

export const createSubscriber = (
  connection: ClientConnection,
  onUnrecoverable: (cursor: string) => void,
): Subscriber => ({ connection, onUnrecoverable, query: null, log: null, pausedAt: null, catchUp: null })

export class Subscribers {
  #pausedCount = 0

  get paused(): number {
    return this.#pausedCount
  }

  enter(subscriber: Subscriber, log: WatchedLog, query: SharedQuery<Subscriber>): void {
    subscriber.catchUp = null
    // A query is dropped with its last subscriber: one that stays in it must not leave in between.
    if (subscriber.query === query) {
      this.resume(subscriber)
      return
    }
    this.leave(subscriber)
    Object.assign(subscriber, { log, query })
    log.subscribers += 1
    query.subscribers.add(subscriber)
    subscriber.connection.subscribe(query.topic)
  }

  leave(subscriber: Subscriber): void {
    const { query, log } = subscriber
    if (!query || !log) return
    if (subscriber.pausedAt) this.#pausedCount -= 1
    Object.assign(subscriber, { pausedAt: null, query: null, log: null, catchUp: null })
    subscriber.connection.unsubscribe(query.topic)
    query.subscribers.delete(subscriber)
    log.queries.drop(query)
    log.subscribers -= 1
  }

  /** Sends the subscriber nothing until it is caught up from the position. */
  pause(subscriber: Subscriber, position: LogPosition): void {
    if (!subscriber.pausedAt) {
      this.#pausedCount += 1
      if (subscriber.query) subscriber.connection.unsubscribe(subscriber.query.topic)
    }
    subscriber.pausedAt = position
  }

  resume(subscriber: Subscriber): void {
    if (!subscriber.pausedAt) return
    this.#pausedCount -= 1
    subscriber.pausedAt = null
    if (subscriber.query) subscriber.connection.subscribe(subscriber.query.topic)
  }
}
