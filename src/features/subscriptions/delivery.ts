/**
 * Delivery: brings the committed changes of a log to the sockets whose views they concern, in order, written down once
 * for all. Sockets that read too slowly are set aside and brought up to date when they have read what they were sent;
 * one that was away is brought up to date from its place before it hears anything new. Both are the same thing.
 */
import type { Log } from '../../base/log.ts'
import type { DatabaseAddress } from '../../engines/sql.ts'
import { catchUpChangesMax, catchUpCharsMax, deliverySliceMs, slowCheckChars, socketSlowBytes } from '../../limits.ts'
import type { Change, Feed, Following, Place } from './feed.ts'
import { coalesce, createWriter, messagesOf, type Told, type Write } from './messages.ts'
import type { Places } from './places.ts'
import { createViews, type Sight, type View, type Views } from './views.ts'

/** What delivery needs of a socket. */
export interface Outlet {
  send(text: string): void
  /** Bytes sent and not yet read by the other side. */
  readonly buffered: number
  readonly isOpen: boolean
  listen(topic: string): void
  unlisten(topic: string): void
}

/** One socket's part in one view. */
export interface Member {
  readonly outlet: Outlet
  /** Told when changes were missed that are no longer known: the view is to be read anew. */
  readonly onLost: (cursor: string) => void
  /** The view it has now; null before it joined and after it left. */
  view: View<Member> | null
  log: FollowedLog | null
  /** While set aside: the place up to which it has been told everything. */
  heldAt: Place | null
}

interface FollowedLog {
  /** Tells logs apart in cursors. */
  readonly name: string
  readonly views: Views<Member>
  readonly following: Promise<Following>
  /** Sockets' parts in it, and those on their way in. */
  members: number
}

export interface Joined {
  readonly cursor: string
  /** Whether everything since the given cursor is told; undefined without one. */
  readonly recovered?: boolean
}

export interface Delivery {
  /**
   * Makes the member part of a view, or moves it from another of the same table: it hears every change behind the
   * cursor that `onJoined` is told in the same turn, before anything is sent. With `since`, a cursor from before, first
   * what was missed. Rejects with `EngineError` when the log cannot be read; then the member is where it was.
   */
  join(member: Member, sight: Sight, since: string | null, onJoined: (joined: Joined) => void): Promise<void>
  leave(member: Member): void
  /** To be called when a member's socket has read everything it was sent. Rejects like `join`. */
  resume(member: Member): Promise<void>
  /** How many views there are, and how many members are set aside. */
  readonly views: number
  readonly held: number
}

interface DeliveryDeps {
  readonly feed: Feed
  readonly places: Places
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: string) => void
  readonly log: Log
}

export const createMember = (outlet: Outlet, onLost: (cursor: string) => void): Member => ({
  outlet,
  onLost,
  view: null,
  log: null,
  heldAt: null,
})

/** Tells when the loop has been ours for long enough. */
function createSlices(): { readonly isOver: boolean; next(): Promise<void> } {
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

export function createDelivery({ feed, places, publish, log }: DeliveryDeps): Delivery {
  const logs = new Map<string, FollowedLog>()
  let held = 0

  function open(address: DatabaseAddress): FollowedLog {
    const own = feed.logOf(address)
    const name = `${own.namespace}\n${own.instanceId ?? ''}`
    const found = logs.get(name)
    if (found) return found
    const views = createViews<Member>(log)
    const opened: FollowedLog = {
      name,
      views,
      following: feed.follow(address, (changes) => deliver(opened, changes)),
      members: 0,
    }
    logs.set(name, opened)
    return opened
  }

  /** One that could not be followed is tried anew by whoever comes next. */
  function letGo(one: FollowedLog): void {
    if (one.members > 0) return
    if (logs.get(one.name) === one) logs.delete(one.name)
    one.following.then(
      (following) => following.stop(),
      () => undefined,
    )
  }

  const writerOf = ({ name }: FollowedLog): Write => createWriter((place) => places.format(name, place))

  async function deliver(one: FollowedLog, changes: readonly Change[]): Promise<void> {
    const slices = createSlices()
    const told = new Map<View<Member>, Told[]>()
    for (const change of changes) {
      const concerned = one.views.concerned(change)
      for (const [view, type] of concerned instanceof Promise ? await concerned : concerned) {
        const events = told.get(view)
        if (events) events.push({ type, change })
        else told.set(view, [{ type, change }])
      }
      if (slices.isOver) await slices.next()
    }
    const write = writerOf(one)
    for (const [view, events] of told) {
      let unchecked = 0
      for (const { text, place } of messagesOf(view.channel, view.call.table, events, write)) {
        tell(view, text)
        unchecked += text.length
        if (unchecked >= slowCheckChars) unchecked = holdSlow(view, place)
        if (slices.isOver) await slices.next()
      }
      const place = events.at(-1)?.change.place
      if (place) holdSlow(view, place)
    }
  }

  /** Sends a text to whoever has the view and is not set aside. */
  function tell(view: View<Member>, text: string): void {
    const [only] = view.members
    if (view.members.size > 1) publish(view.topic, text)
    else if (only && !only.heldAt) only.outlet.send(text)
  }

  /** Sets aside who has not read what was sent up to the place. Gives what is unchecked then. */
  function holdSlow(view: View<Member>, place: Place): 0 {
    for (const member of view.members)
      if (!member.heldAt && member.outlet.buffered > socketSlowBytes) hold(member, view, place)
    return 0
  }

  function hold(member: Member, view: View<Member>, place: Place): void {
    held += 1
    member.heldAt = place
    member.outlet.unlisten(view.topic)
  }

  function letHear(member: Member, view: View<Member>): void {
    if (!member.heldAt) return
    held -= 1
    member.heldAt = null
    member.outlet.listen(view.topic)
  }

  /** What one sight is told of changes that others have been told of already. */
  async function toldOf({ views }: FollowedLog, sight: Sight, changes: readonly Change[]): Promise<Told[]> {
    const told: Told[] = []
    const slices = createSlices()
    for (const change of changes) {
      const judged = views.judge(sight, change)
      const type = judged instanceof Promise ? await judged : judged
      if (type) told.push({ type, change })
      if (slices.isOver) await slices.next()
    }
    return told
  }

  function enter(member: Member, one: FollowedLog, view: View<Member>): void {
    // A view goes with its last member: whoever stays in it must not leave on the way.
    if (member.view === view) {
      letHear(member, view)
      return
    }
    leaveView(member)
    member.log = one
    member.view = view
    one.members += 1
    view.members.add(member)
    member.outlet.listen(view.topic)
  }

  function leaveView(member: Member): void {
    const { view, log: one } = member
    if (!view || !one) return
    if (member.heldAt) held -= 1
    member.heldAt = null
    member.view = null
    member.log = null
    member.outlet.unlisten(view.topic)
    view.members.delete(member)
    one.views.drop(view)
    one.members -= 1
  }

  /** Sends what a member has missed until it is behind with reading; then it is set aside, and the rest waits. */
  function catchUp(member: Member, one: FollowedLog, view: View<Member>, told: readonly Told[]): void {
    const write = writerOf(one)
    for (const { text, place } of messagesOf(view.channel, view.call.table, told, write)) {
      member.outlet.send(text)
      if (member.outlet.buffered <= catchUpCharsMax) continue
      hold(member, view, place)
      return
    }
  }

  /** The same for one that has been behind before: each row's last word is enough. */
  function catchUpSlow(member: Member, one: FollowedLog, view: View<Member>, told: readonly Told[]): void {
    const write = writerOf(one)
    for (const slice of slicesOf(told)) {
      for (const { text } of messagesOf(view.channel, view.call.table, coalesce(slice), write, () => false))
        member.outlet.send(text)
      const place = slice.at(-1)?.change.place
      if (!place || member.outlet.buffered <= catchUpCharsMax) continue
      member.heldAt = place
      return
    }
    letHear(member, view)
  }

  return {
    get views() {
      let count = 0
      for (const { views } of logs.values()) count += views.size
      return count
    },
    get held() {
      return held
    },
    async join(member, sight, since, onJoined) {
      const one = open(sight.call.address)
      one.members += 1
      try {
        const following = await one.following
        // Whoever moves while set aside is owed what it has not been told yet.
        const from = since === null ? member.heldAt : places.find(one.name, since)
        // Most of what was missed is read and judged while the others go on; only the rest keeps them waiting.
        const near = from ? await following.between((place) => place) : null
        const early = from && near ? await following.missed(from, near) : null
        const told = early ? await toldOf(one, sight, early) : []
        await following.between(async (end) => {
          const late = early && near ? await following.missed(near, end) : null
          if (late) told.push(...(await toldOf(one, sight, late)))
          if (!member.outlet.isOpen) return
          const view = one.views.get(sight)
          enter(member, one, view)
          // The cursor says what has been told before whatever follows, so that it is always safe to come back with.
          const cursor = places.format(one.name, from && late && told.length > 0 ? from : end)
          onJoined(since === null ? { cursor } : { cursor, recovered: late !== null })
          if (late) catchUp(member, one, view, told)
          else if (from && since === null) member.onLost(cursor)
        })
      } finally {
        one.members -= 1
        letGo(one)
      }
    },
    leave(member) {
      const one = member.log
      leaveView(member)
      if (one) letGo(one)
    },
    async resume(member) {
      const { log: one, heldAt: from, view } = member
      if (!one || !from || !view) return
      const isStill = (): boolean => member.heldAt === from && member.view === view && member.outlet.isOpen
      const following = await one.following
      const near = await following.between((place) => place)
      const early = await following.missed(from, near)
      const told = early ? await toldOf(one, view, early) : []
      await following.between(async (end) => {
        const late = early && (await following.missed(near, end))
        if (late) told.push(...(await toldOf(one, view, late)))
        if (!isStill()) return
        if (late) return catchUpSlow(member, one, view, told)
        letHear(member, view)
        member.onLost(places.format(one.name, end))
      })
    },
  }
}

/** Cuts what was missed into parts, each small enough to be sent at once. */
function* slicesOf(told: readonly Told[]): Generator<readonly Told[]> {
  let start = 0
  let chars = 0
  for (const [at, { change }] of told.entries()) {
    chars += change.afterText?.length ?? 0
    if (at + 1 < told.length && at + 1 - start < catchUpChangesMax && chars < catchUpCharsMax) continue
    yield told.slice(start, at + 1)
    start = at + 1
    chars = 0
  }
}
