/**
 * Catching up: brings a paused subscriber (a slow socket, a client that resumes with a cursor) to the position of the
 * others, a bounded step of the log at a time. A bounded number run at once; the others wait in a queue.
 */
import { createSemaphore } from '../../../base/concurrency/semaphore.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { catchUpCharsMax, deliverySliceMs, recoveriesMax, recoveriesWaitingMax } from '../../../limits/subscriptions.ts'
import { isSamePosition, type LogPosition, type LogTail } from '../change-feed.ts'
import { createWindowCollector } from '../matching/change-window.ts'
import { type Classifier, TooManyChanges } from '../matching/classifier.ts'
import { reconcile } from '../matching/reconcile.ts'
import type { SharedQuery } from '../matching/shared-queries.ts'
import type { SubscriptionQuery } from '../matching/subscription-query.ts'
import { type ChangeEvent, coalesce, messagesOf, type Serialize } from './messages.ts'
import type { Subscriber, Subscribers, WatchedLog } from './subscribers.ts'

/** The next events of a subscriber, and the positions that they lead from and to. */
export interface Step {
  readonly from: LogPosition
  readonly end: LogPosition
  readonly events: readonly ChangeEvent[]
}

interface CatchUpDeps {
  readonly classifier: Classifier
  readonly subscribers: Subscribers
  readonly serializerOf: (watched: WatchedLog, tail: LogTail) => Serialize
  readonly formatCursor: (watched: WatchedLog, tail: LogTail, query: SubscriptionQuery, position: LogPosition) => string
  /** How many run at once, and how many wait. */
  readonly concurrency?: { readonly running: number; readonly waiting: number }
}

const defaultConcurrency = { running: recoveriesMax, waiting: recoveriesWaitingMax }

/** Whether a position is that between two batches of the log. */
export const isAt = (one: LogPosition, other: LogPosition): boolean => one.from === one.to && one.to === other.to

export class CatchUp {
  readonly #deps: CatchUpDeps
  readonly #gate: ReturnType<typeof createSemaphore>

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
    this.#gate = createSemaphore(deps.concurrency ?? defaultConcurrency)
  }

  /** Runs work that reads a log when a slot is free. Rejects with `EngineError` `busy` when too many wait. */
  schedule<T>(work: () => Promise<T>): Promise<T> {
    return this.#gate.run(work) ?? Promise.reject(new EngineError('busy', 'Too many clients are catching up'))
  }

  /** The next step towards `end`; null where too much was missed. Rejects with `EngineError`. */
  async next(query: SubscriptionQuery, tail: LogTail, from: LogPosition, end: LogPosition): Promise<Step | null> {
    if (isAt(from, end)) return { from, end, events: [] }
    try {
      return await (query.isCurrentOnly
        ? reconciledStep(query, tail, from, end)
        : this.#pageStep(query, tail, from, end))
    } catch (error) {
      if (error instanceof TooManyChanges) return null
      throw error
    }
  }

  /**
   * Sends a paused subscriber what it missed, beginning with `first`, and resumes it, unless it reads too slowly; then
   * it stays paused. To be scheduled.
   */
  async run(subscriber: Subscriber, options: { readonly isSlow: boolean; readonly first: Step | null }): Promise<void> {
    const { log: watched, query, pausedAt, catchUp } = subscriber
    if (!watched || !query || !pausedAt || catchUp) return
    const token = {}
    subscriber.catchUp = token
    try {
      const tail = await watched.tail
      const isCurrent = (): boolean =>
        subscriber.catchUp === token && subscriber.query === query && subscriber.connection.isOpen
      await this.#advanceToEnd({ subscriber, watched, query, tail, isCurrent, ...options, ready: options.first })
    } finally {
      if (subscriber.catchUp === token) subscriber.catchUp = null
    }
  }

  /** Repeats to the end of the log, which moves meanwhile, until nothing is missing while the log is held. */
  async #advanceToEnd(run: Run): Promise<void> {
    const { subscriber, tail, isCurrent } = run
    for (let isDone = false; !isDone && isCurrent(); ) {
      const near = await tail.atPosition((position) => position)
      // A subscriber may have been paused for longer than changes are kept.
      if (!run.ready && isCurrent() && !(await tail.isReachableFrom(subscriber.pausedAt ?? near, near))) {
        await tail.atPosition((end) => {
          if (isCurrent()) this.#abandon(run, end)
        })
        return
      }
      while (isCurrent() && subscriber.pausedAt && !isAt(subscriber.pausedAt, near))
        if (!(await this.#advance(run, near))) return
      isDone = await tail.atPosition(async (end) => {
        if (!isCurrent() || !(await this.#advance(run, end))) return true
        if (!subscriber.pausedAt || !isAt(subscriber.pausedAt, end)) return false
        this.#deps.subscribers.resume(subscriber)
        return true
      })
    }
  }

  /** Takes the subscriber a step towards the end; false where it cannot continue for now. */
  async #advance(run: Run, end: LogPosition): Promise<boolean> {
    const { subscriber, query, tail, isCurrent } = run
    if (!subscriber.pausedAt) return false
    const step = run.ready ?? (await this.next(query, tail, subscriber.pausedAt, end))
    run.ready = null
    if (!isCurrent()) return false
    if (step) return this.#send(run, step)
    this.#abandon(run, end)
    return false
  }

  /** Too much was missed: the client lists again, and receives what follows the end. */
  #abandon({ subscriber, watched, query, tail }: Run, end: LogPosition): void {
    this.#deps.subscribers.resume(subscriber)
    subscriber.onUnrecoverable(this.#deps.formatCursor(watched, tail, query, end))
  }

  /** Sends a step; false where the client has too much unread and stays paused. */
  #send({ subscriber, watched, query, tail, isSlow }: Run, step: Step): boolean {
    const { connection } = subscriber
    // A slow client receives the final state of each row.
    const events = isSlow && !query.isCurrentOnly ? coalesce(step.events) : step.events
    const serialize = this.#deps.serializerOf(watched, tail)
    for (const { text, position } of messagesOf(query, events, serialize, isSlow ? () => false : undefined)) {
      connection.send(text)
      // Events out of the log's order carry the position of the start: pausing there would make no progress.
      const isProgress = !isSamePosition(position, step.from)
      if (!isProgress || connection.buffered <= catchUpCharsMax) continue
      subscriber.pausedAt = position
      return false
    }
    subscriber.pausedAt = step.end
    return connection.buffered <= catchUpCharsMax
  }

  async #pageStep(query: SubscriptionQuery, tail: LogTail, from: LogPosition, end: LogPosition): Promise<Step | null> {
    const page = await tail.changesBetween(from, end)
    if (!page) return null
    const { changes, next } = page
    const events: ChangeEvent[] = []
    const nextSlice = createSlices({ sliceMs: deliverySliceMs })
    for (const change of changes) {
      const classified = this.#deps.classifier.classify(query, change, { tail, position: next })
      const type = classified instanceof Promise ? await classified : classified
      if (type) events.push({ type, change })
      const pause = nextSlice()
      if (pause) await pause
    }
    return { from, end: next, events }
  }
}

/** One run of `CatchUp`. */
interface Run {
  readonly subscriber: Subscriber
  readonly watched: WatchedLog
  readonly query: SharedQuery<Subscriber>
  readonly tail: LogTail
  readonly isSlow: boolean
  /** False once the subscriber has left, joined another query or disconnected. */
  readonly isCurrent: () => boolean
  /** A step that has been read already. */
  ready: Step | null
}

/** All changes up to the end as one step. */
async function reconciledStep(
  query: SubscriptionQuery,
  tail: LogTail,
  from: LogPosition,
  end: LogPosition,
): Promise<Step | null> {
  const collector = createWindowCollector(query, from)
  for (let position = from; !isAt(position, end); ) {
    const page = await tail.changesBetween(position, end)
    if (!page) return null
    collector.add(page.changes)
    position = page.next
  }
  return { from, end, events: await reconcile(query, collector.upTo(end), tail) }
}
