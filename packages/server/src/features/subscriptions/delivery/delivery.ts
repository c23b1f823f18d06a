/**
 * Delivery: serializes each change once per shared query and publishes it in order. Slow clients are paused and caught
 * up; clients that resume with a cursor take the same path (`catch-up`).
 */

import { createSlices } from '../../../base/concurrency/slices.ts'
import type { Log } from '../../../base/log.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { deliverySliceMs, slowCheckChars, socketSlowBytes } from '../../../limits/subscriptions.ts'
import { type Feed, isSamePosition, type LogPosition, type LogTail, type Span } from '../change-feed.ts'
import { type Classifier, createClassifier } from '../matching/classifier.ts'
import { SharedQueries, type SharedQuery } from '../matching/shared-queries.ts'
import type { SubscriptionQuery } from '../matching/subscription-query.ts'
import { CatchUp, isAt, type Step } from './catch-up.ts'
import type { CursorCodec } from './cursor-codec.ts'
import { createSerializer, messagesOf, resyncText, type Serialize, type SubscriptionText } from './messages.ts'
import { classifyPage } from './page-events.ts'
import { type Subscriber, Subscribers, type WatchedLog } from './subscribers.ts'

export interface Joined {
  readonly cursor: string
  /** Whether all changes since the given cursor follow; undefined without one. */
  readonly recovered?: boolean
}

type OnJoined = (joined: Joined) => void

interface DeliveryDeps {
  readonly feed: Feed
  readonly cursors: CursorCodec
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: SubscriptionText) => void
  readonly log: Log
}

export class Delivery {
  readonly #deps: DeliveryDeps
  readonly #logs = new Map<string, WatchedLog>()
  readonly #classifier: Classifier
  readonly #subscribers = new Subscribers()
  readonly #catchUp: CatchUp

  constructor(deps: DeliveryDeps) {
    this.#deps = deps
    this.#classifier = createClassifier(deps.log)
    this.#catchUp = new CatchUp({
      classifier: this.#classifier,
      subscribers: this.#subscribers,
      serializerOf: (watched, tail) => this.#serializerOf(watched, tail),
      formatCursor: (watched, tail, query, position) => this.#formatCursor(watched, tail, query, position),
    })
  }

  /** Number of distinct subscriptions. */
  get sharedQueries(): number {
    let count = 0
    for (const { queries } of this.#logs.values()) count += queries.size
    return count
  }

  /** Number of subscribers that are paused. */
  get paused(): number {
    return this.#subscribers.paused
  }

  /**
   * Adds the subscriber to a query, or moves it from another query of the same table: it receives every change after
   * the cursor that `onJoined` is called with before anything is sent. With `since`, an earlier cursor, what was missed
   * comes first. Rejects with `EngineError` when the log cannot be read; where `onJoined` has been called by then, the
   * socket has to be closed.
   */
  async join(
    subscriber: Subscriber,
    query: SubscriptionQuery,
    since: string | null,
    onJoined: OnJoined,
  ): Promise<void> {
    const watched = this.#watch(query.call.address)
    watched.subscribers += 1
    try {
      if (since === null) await this.#joinAtEnd(watched, subscriber, query, onJoined)
      else await this.#catchUp.schedule(() => this.#joinSince(watched, subscriber, query, since, onJoined))
    } finally {
      watched.subscribers -= 1
      this.#release(watched)
    }
  }

  leave(subscriber: Subscriber): void {
    const watched = subscriber.log
    this.#subscribers.leave(subscriber)
    if (watched) this.#release(watched)
  }

  /** To be called when the subscriber's socket has read everything it was sent. Rejects like `join`. */
  async resume(subscriber: Subscriber): Promise<void> {
    if (subscriber.pausedAt && !subscriber.catchUp)
      await this.#catchUp.schedule(() => this.#catchUp.run(subscriber, { isSlow: true, first: null }))
  }

  #watch(address: DatabaseAddress): WatchedLog {
    const { feed } = this.#deps
    const own = feed.logOf(address)
    const name = `${own.namespace}\n${own.instanceId ?? ''}`
    const found = this.#logs.get(name)
    if (found) return found
    const watched: WatchedLog = {
      name,
      queries: new SharedQueries<Subscriber>(this.#classifier),
      tail: feed.follow(address, (span) => this.#deliver(watched, span)),
      subscribers: 0,
    }
    this.#logs.set(name, watched)
    return watched
  }

  /** Stops following a log without subscribers. The next subscriber follows it again, also one that failed to open. */
  #release(watched: WatchedLog): void {
    if (watched.subscribers > 0) return
    if (this.#logs.get(watched.name) === watched) this.#logs.delete(watched.name)
    watched.tail.then(
      (tail) => tail.stop(),
      () => undefined,
    )
  }

  async #deliver(watched: WatchedLog, span: Span): Promise<void> {
    const tail = await watched.tail
    const nextSlice = createSlices({ sliceMs: deliverySliceMs })
    const { events, resync } = await classifyPage(watched.queries, span, tail, this.#deps.log)
    const serialize = this.#serializerOf(watched, tail)
    for (const query of resync) {
      this.#fanOut(query, resyncText(query.channel, this.#formatCursor(watched, tail, query, span.to)))
      events.delete(query)
    }
    for (const [query, own] of events) {
      let unchecked = 0
      for (const { text, position } of messagesOf(query, own, serialize)) {
        this.#fanOut(query, text)
        unchecked += text.length
        // A reconciled event carries the position of the start: pausing there would repeat the whole page.
        if (unchecked >= slowCheckChars && !isSamePosition(position, span.from)) {
          this.#pauseSlowConsumers(query, position)
          unchecked = 0
        }
        const pause = nextSlice()
        if (pause) await pause
      }
      const position = own.at(-1)?.change.position
      if (position) this.#pauseSlowConsumers(query, position)
    }
  }

  /** Sends a text to the subscribers of a query that are not paused. */
  #fanOut(query: SharedQuery<Subscriber>, text: SubscriptionText): void {
    const [only] = query.subscribers
    if (query.subscribers.size > 1) this.#deps.publish(query.topic, text)
    else if (only && !only.pausedAt) only.connection.send(text)
  }

  /** Pauses subscribers whose clients have not read what was sent up to the position. */
  #pauseSlowConsumers(query: SharedQuery<Subscriber>, position: LogPosition): void {
    for (const subscriber of query.subscribers)
      if (!subscriber.pausedAt && subscriber.connection.buffered > socketSlowBytes)
        this.#subscribers.pause(subscriber, position)
  }

  /** What follows a cursor for a query; null where that is not known. */
  async #stepSince(watched: WatchedLog, tail: LogTail, query: SubscriptionQuery, since: string): Promise<Step | null> {
    await tail.refreshHistory()
    let from = this.#deps.cursors.parse(historyName(watched, tail), query.access, since)
    const near = await tail.atPosition((position) => position)
    if (!from || !(await tail.isReachableFrom(from, near))) return null
    for (;;) {
      const step = await this.#catchUp.next(query, tail, from, near)
      // Changes that the query does not show are skipped, so that the cursor moves past them.
      if (!step || step.events.length > 0 || isAt(step.end, near)) return step
      from = step.end
    }
  }

  async #joinSince(
    watched: WatchedLog,
    subscriber: Subscriber,
    query: SubscriptionQuery,
    since: string,
    onJoined: OnJoined,
  ): Promise<void> {
    const tail = await watched.tail
    const first = await this.#stepSince(watched, tail, query, since)
    const isPaused = await tail.atPosition(async (end) => {
      if (!subscriber.connection.isOpen) return false
      const isEmpty = first?.events.length === 0
      const rest = first && isEmpty ? await this.#catchUp.next(query, tail, first.end, end) : null
      const isUpToDate = !first || (rest !== null && rest.events.length === 0 && isAt(rest.end, end))
      if (!subscriber.connection.isOpen) return false
      this.#subscribers.enter(subscriber, watched, watched.queries.get(query))
      const from = isEmpty ? first.end : (first?.from ?? end)
      if (!isUpToDate) this.#subscribers.pause(subscriber, from)
      const cursor = this.#formatCursor(watched, tail, query, isUpToDate ? end : from)
      onJoined({ cursor, recovered: first !== null })
      return !isUpToDate
    })
    if (isPaused) await this.#catchUp.run(subscriber, { isSlow: false, first: first?.events.length ? first : null })
  }

  async #joinAtEnd(
    watched: WatchedLog,
    subscriber: Subscriber,
    query: SubscriptionQuery,
    onJoined: OnJoined,
  ): Promise<void> {
    const tail = await watched.tail
    await tail.atPosition((end) => {
      if (!subscriber.connection.isOpen) return
      // A subscriber that moves while it is paused has not received everything up to the end yet.
      const { pausedAt } = subscriber
      this.#subscribers.enter(subscriber, watched, watched.queries.get(query))
      if (pausedAt) this.#subscribers.pause(subscriber, pausedAt)
      onJoined({ cursor: this.#formatCursor(watched, tail, query, pausedAt ?? end) })
    })
    if (subscriber.pausedAt)
      await this.#catchUp.schedule(() => this.#catchUp.run(subscriber, { isSlow: true, first: null }))
  }

  #formatCursor(
    watched: WatchedLog,
    tail: LogTail,
    { access }: Pick<SubscriptionQuery, 'access'>,
    position: LogPosition,
  ): string {
    return this.#deps.cursors.format(historyName(watched, tail), access, position)
  }

  #serializerOf(watched: WatchedLog, tail: LogTail): Serialize {
    return createSerializer((access, position) => this.#formatCursor(watched, tail, { access }, position))
  }
}

/** Identifies a log and its history in cursors. */
const historyName = ({ name }: WatchedLog, { history }: LogTail): string => `${name}\n${history}`
