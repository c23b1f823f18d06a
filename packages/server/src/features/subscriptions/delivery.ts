/**
 * Delivery: brings the committed changes of a log to the sockets whose views they concern, in order, serialized once.
 * Sockets that read too slowly are paused and catch up when they have read; a client that comes back with a cursor
 * catches up from there before it gets anything new. Both are the same thing (`catch-up`).
 */
import type { Log } from '../../base/log.ts'
import type { DatabaseAddress } from '../../engines/sql/sql.ts'
import { dependentViewsMax, slowCheckChars, socketSlowBytes } from '../../limits/subscriptions.ts'
import { createCatchUp, createSlices, isAt, type Step } from './catch-up.ts'
import type { Cursors } from './cursors.ts'
import { type Feed, type Following, isSamePlace, type Place, type Span } from './feed.ts'
import { gather } from './gather.ts'
import { createJudge, TooMuchChanged } from './judge.ts'
import { createMembership, type FollowedLog, type Member } from './members.ts'
import { createWriter, messagesOf, resyncText, type Told, type Write } from './messages.ts'
import { reconcile } from './reconcile.ts'
import type { Sight } from './sight.ts'
import { createViews, type View } from './views.ts'

export interface Joined {
  readonly cursor: string
  /** Whether everything since the given cursor is told; undefined without one. */
  readonly recovered?: boolean
}

export interface Delivery {
  /**
   * Makes the member part of a view, or moves it from another of the same table: it hears every change behind the
   * cursor that `onJoined` is told in the same turn, before anything is sent. With `since`, a cursor from before, first
   * what was missed. Rejects with `EngineError` when the log cannot be read; where `onJoined` has been called then, the
   * socket is to be closed.
   */
  join(member: Member, sight: Sight, since: string | null, onJoined: (joined: Joined) => void): Promise<void>
  leave(member: Member): void
  /** To be called when a member's socket has read everything it was sent. Rejects like `join`. */
  resume(member: Member): Promise<void>
  /** How many views there are, and how many members are paused. */
  readonly views: number
  readonly held: number
}

interface DeliveryDeps {
  readonly feed: Feed
  readonly cursors: Cursors
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: string) => void
  readonly log: Log
}

/** What views are told of a page, and those that are told to list again. */
interface News {
  readonly told: Map<View<Member>, readonly Told[]>
  readonly lost: Set<View<Member>>
}

export function createDelivery({ feed, cursors, publish, log }: DeliveryDeps): Delivery {
  const logs = new Map<string, FollowedLog>()
  const judge = createJudge(log)
  const membership = createMembership()

  const nameOf = ({ name }: FollowedLog, { history }: Following): string => `${name}\n${history}`
  const format = (one: FollowedLog, following: Following, { access }: Pick<Sight, 'access'>, place: Place): string =>
    cursors.format(nameOf(one, following), access, place)
  const writerOf = (one: FollowedLog, following: Following): Write =>
    createWriter((access, place) => format(one, following, { access }, place))
  const catchUp = createCatchUp({ judge, membership, writerOf, format })

  function open(address: DatabaseAddress): FollowedLog {
    const own = feed.logOf(address)
    const name = `${own.namespace}\n${own.instanceId ?? ''}`
    const found = logs.get(name)
    if (found) return found
    const opened: FollowedLog = {
      name,
      views: createViews<Member>(judge),
      following: feed.follow(address, (span) => deliver(opened, span)),
      members: 0,
    }
    logs.set(name, opened)
    return opened
  }

  /** One that could not be followed is tried again by the next member. */
  function letGo(one: FollowedLog): void {
    if (one.members > 0) return
    if (logs.get(one.name) === one) logs.delete(one.name)
    one.following.then(
      (following) => following.stop(),
      () => undefined,
    )
  }

  async function deliver(one: FollowedLog, span: Span): Promise<void> {
    const following = await one.following
    const slices = createSlices()
    const { told, lost } = await judgeSpan(one, span, following)
    const write = writerOf(one, following)
    for (const view of lost) {
      tell(view, resyncText(view.channel, format(one, following, view, span.to)))
      told.delete(view)
    }
    for (const [view, events] of told) {
      let unchecked = 0
      for (const { text, place } of messagesOf(view, events, write)) {
        tell(view, text)
        unchecked += text.length
        // Within what was gathered there is no place to go on from.
        if (unchecked >= slowCheckChars && !isSamePlace(place, span.from)) unchecked = pauseSlow(view, place)
        if (slices.isOver) await slices.next()
      }
      const place = events.at(-1)?.change.place
      if (place) pauseSlow(view, place)
    }
  }

  async function judgeSpan(one: FollowedLog, span: Span, following: Following): Promise<News> {
    const slices = createSlices()
    const at = { following, place: span.to }
    const told = new Map<View<Member>, Told[]>()
    const lost = new Set<View<Member>>()
    const dependents = one.views.dependents(span.changes)
    for (const change of span.changes) {
      const concerned = one.views.concerned(change, at, dependents)
      for (const [view, verdict] of concerned instanceof Promise ? await concerned : concerned) {
        const events = told.get(view)
        if (verdict === 'lost') lost.add(view)
        else if (events) events.push({ type: verdict, change })
        else told.set(view, [{ type: verdict, change }])
      }
      if (slices.isOver) await slices.next()
    }
    const news: News = { told, lost }
    let count = 0
    for (const view of dependents) {
      count += 1
      if (count > dependentViewsMax) lost.add(view)
      else await judgeDependent(view, span, following, news)
    }
    return news
  }

  /** A failure hides what the view would be told of, and harms no other. */
  async function judgeDependent(
    view: View<Member>,
    span: Span,
    following: Following,
    { told, lost }: News,
  ): Promise<void> {
    try {
      const events = await reconcile(view, gather(view, span), following)
      if (events.length > 0) told.set(view, events)
    } catch (error) {
      if (!(error instanceof TooMuchChanged))
        log.error('subscriptions.reconcile_failed', { channel: view.channel, error })
      lost.add(view)
    }
  }

  /** Sends a text to the members of a view that are not paused. */
  function tell(view: View<Member>, text: string): void {
    const [only] = view.members
    if (view.members.size > 1) publish(view.topic, text)
    else if (only && !only.pausedAt) only.outlet.send(text)
  }

  /** Pauses members that have not read what was sent up to the place. Gives what is unchecked then. */
  function pauseSlow(view: View<Member>, place: Place): 0 {
    for (const member of view.members)
      if (!member.pausedAt && member.outlet.buffered > socketSlowBytes) membership.pause(member, place)
    return 0
  }

  /** What follows a cursor for a sight; null where that is not known. */
  async function stepSince(one: FollowedLog, following: Following, sight: Sight, since: string): Promise<Step | null> {
    await following.look()
    let from = cursors.parse(nameOf(one, following), sight.access, since)
    const near = await following.between((place) => place)
    if (!from || !(await following.reaches(from, near))) return null
    for (;;) {
      const step = await catchUp.next(sight, following, from, near)
      // The cursor says what has been told before what follows, so it moves on over what the sight does not show.
      if (!step || step.told.length > 0 || isAt(step.end, near)) return step
      from = step.end
    }
  }

  async function joinSince(
    one: FollowedLog,
    member: Member,
    sight: Sight,
    since: string,
    onJoined: (joined: Joined) => void,
  ): Promise<void> {
    const following = await one.following
    const first = await stepSince(one, following, sight, since)
    const isPaused = await following.between(async (end) => {
      if (!member.outlet.isOpen) return false
      const isEmpty = first?.told.length === 0
      const late = first && isEmpty ? await catchUp.next(sight, following, first.end, end) : null
      const isUpToDate = !first || (late !== null && late.told.length === 0 && isAt(late.end, end))
      if (!member.outlet.isOpen) return false
      membership.enter(member, one, one.views.get(sight))
      const from = isEmpty ? first.end : (first?.from ?? end)
      if (!isUpToDate) membership.pause(member, from)
      onJoined({ cursor: format(one, following, sight, isUpToDate ? end : from), recovered: first !== null })
      return !isUpToDate
    })
    if (isPaused) await catchUp.run(member, { isSlow: false, first: first?.told.length ? first : null })
  }

  async function joinNow(
    one: FollowedLog,
    member: Member,
    sight: Sight,
    onJoined: (joined: Joined) => void,
  ): Promise<void> {
    const following = await one.following
    await following.between((end) => {
      if (!member.outlet.isOpen) return
      // A member that moves while it is paused is owed what it has not been told yet.
      const { pausedAt } = member
      membership.enter(member, one, one.views.get(sight))
      if (pausedAt) membership.pause(member, pausedAt)
      onJoined({ cursor: format(one, following, sight, pausedAt ?? end) })
    })
    if (member.pausedAt) await catchUp.inTurn(() => catchUp.run(member, { isSlow: true, first: null }))
  }

  return {
    get views() {
      let count = 0
      for (const { views } of logs.values()) count += views.size
      return count
    },
    get held() {
      return membership.paused
    },
    async join(member, sight, since, onJoined) {
      const one = open(sight.call.address)
      one.members += 1
      try {
        if (since === null) await joinNow(one, member, sight, onJoined)
        else await catchUp.inTurn(() => joinSince(one, member, sight, since, onJoined))
      } finally {
        one.members -= 1
        letGo(one)
      }
    },
    leave(member) {
      const one = member.log
      membership.leave(member)
      if (one) letGo(one)
    },
    async resume(member) {
      if (member.pausedAt && !member.run) await catchUp.inTurn(() => catchUp.run(member, { isSlow: true, first: null }))
    },
  }
}
