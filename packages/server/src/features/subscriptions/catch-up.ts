/**
 * Catching up: brings a paused member (a socket that reads slowly, a client that comes back with a cursor) to where the
 * other members are, a bounded step of the log at a time. A few run at once; the others wait.
 */
import { createGate } from '../../base/concurrency/gate.ts'
import { EngineError } from '../../engines/sql/error.ts'
import { catchUpCharsMax, deliverySliceMs, recoveriesMax, recoveriesWaitingMax } from '../../limits/subscriptions.ts'
import { type Following, isSamePlace, type Place } from './feed.ts'
import { createGathering } from './gather.ts'
import { type Judge, TooMuchChanged } from './judge.ts'
import type { FollowedLog, Member, Membership } from './members.ts'
import { coalesce, messagesOf, type Told, type Write } from './messages.ts'
import { reconcile } from './reconcile.ts'
import type { Sight } from './sight.ts'
import type { View } from './views.ts'

/** What a member is told next, and the places it goes from and to. */
export interface Step {
  readonly from: Place
  readonly end: Place
  readonly told: readonly Told[]
}

export interface CatchUp {
  /** Runs work that reads a log, when it is its turn. Rejects with `EngineError` `busy` when too many wait. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** The next step towards `end`; null where too much was missed. Rejects with `EngineError`. */
  next(sight: Sight, following: Following, from: Place, end: Place): Promise<Step | null>
  /**
   * Tells a paused member what it has missed, `first` to begin with, and resumes it, unless it reads too slowly; then
   * it stays paused. To be run in turn.
   */
  run(member: Member, options: { readonly isSlow: boolean; readonly first: Step | null }): Promise<void>
}

interface CatchUpDeps {
  readonly judge: Judge
  readonly membership: Membership
  readonly writerOf: (one: FollowedLog, following: Following) => Write
  readonly format: (one: FollowedLog, following: Following, sight: Sight, place: Place) => string
  /** How many run at once, and how many wait. */
  readonly turns?: { readonly running: number; readonly waiting: number }
}

const defaultTurns = { running: recoveriesMax, waiting: recoveriesWaitingMax }

export const isAt = (one: Place, other: Place): boolean => one.from === one.to && one.to === other.to

/** Says when this work has had the event loop for long enough. */
export function createSlices(): { readonly isOver: boolean; next(): Promise<void> } {
  let startMs = performance.now()
  return {
    get isOver() {
      return performance.now() - startMs >= deliverySliceMs
    },
    async next() {
      await new Promise<void>((resolve) => setImmediate(resolve))
      startMs = performance.now()
    },
  }
}

export function createCatchUp(deps: CatchUpDeps): CatchUp {
  const { judge, membership, writerOf, format, turns = defaultTurns } = deps
  const gate = createGate(turns)

  /** All changes up to the end as one step. */
  async function gatherStep(sight: Sight, following: Following, from: Place, end: Place): Promise<Step | null> {
    const gathering = createGathering(sight, from)
    for (let place = from; !isAt(place, end); ) {
      const page = await following.read(place, end)
      if (!page) return null
      gathering.add(page.changes)
      place = page.next
    }
    return { from, end, told: await reconcile(sight, gathering.to(end), following) }
  }

  async function pageStep(sight: Sight, following: Following, from: Place, end: Place): Promise<Step | null> {
    const page = await following.read(from, end)
    if (!page) return null
    const { changes, next } = page
    const told: Told[] = []
    const slices = createSlices()
    for (const change of changes) {
      const judged = judge.judge(sight, change, { following, place: next })
      const type = judged instanceof Promise ? await judged : judged
      if (type) told.push({ type, change })
      if (slices.isOver) await slices.next()
    }
    return { from, end: next, told }
  }

  async function next(sight: Sight, following: Following, from: Place, end: Place): Promise<Step | null> {
    if (isAt(from, end)) return { from, end, told: [] }
    try {
      return await (sight.isCurrentOnly ? gatherStep : pageStep)(sight, following, from, end)
    } catch (error) {
      if (error instanceof TooMuchChanged) return null
      throw error
    }
  }

  /** Sends a step; false where the member is behind with reading and stays paused. */
  function send(member: Member, view: View<Member>, step: Step, write: Write, isSlow: boolean): boolean {
    // A slow socket gets each row's last word.
    const told = isSlow && !view.isCurrentOnly ? coalesce(step.told) : step.told
    for (const { text, place } of messagesOf(view, told, write, isSlow ? () => false : undefined)) {
      member.outlet.send(text)
      // What is told out of order comes first, at the place of the start: nothing goes on from within it.
      const isSafe = !isSamePlace(place, step.from)
      if (!isSafe || member.outlet.buffered <= catchUpCharsMax) continue
      member.pausedAt = place
      return false
    }
    member.pausedAt = step.end
    return member.outlet.buffered <= catchUpCharsMax
  }

  async function run(member: Member, { isSlow, first }: { isSlow: boolean; first: Step | null }): Promise<void> {
    const { log: one, view } = member
    if (!one || !view || !member.pausedAt || member.run) return
    const own = {}
    member.run = own
    const isStill = (): boolean => member.run === own && member.view === view && member.outlet.isOpen
    const following = await one.following
    let ready = first

    /** Takes the member a step towards the end; false where it goes no further for now. */
    async function advance(end: Place): Promise<boolean> {
      const { pausedAt } = member
      if (!pausedAt || !one || !view) return false
      const step = ready ?? (await next(view, following, pausedAt, end))
      ready = null
      if (!isStill()) return false
      if (step) return send(member, view, step, writerOf(one, following), isSlow)
      lose(end)
      return false
    }

    function lose(end: Place): void {
      if (!one || !view) return
      membership.resume(member)
      member.onLost(format(one, following, view, end))
    }

    try {
      for (let isDone = false; !isDone && isStill(); ) {
        const near = await following.between((place) => place)
        // A member may have been paused for longer than the log reaches back.
        if (!ready && isStill() && !(await following.reaches(member.pausedAt ?? near, near))) {
          await following.between((end) => {
            if (isStill()) lose(end)
          })
          return
        }
        while (isStill() && member.pausedAt && !isAt(member.pausedAt, near)) if (!(await advance(near))) return
        isDone = await following.between(async (end) => {
          if (!isStill()) return true
          if (!(await advance(end))) return true
          if (!member.pausedAt || !isAt(member.pausedAt, end)) return false
          membership.resume(member)
          return true
        })
      }
    } finally {
      if (member.run === own) member.run = null
    }
  }

  return {
    inTurn(work) {
      return gate.enter(work) ?? Promise.reject(new EngineError('busy', 'Too many clients are catching up'))
    },
    next,
    run,
  }
}
