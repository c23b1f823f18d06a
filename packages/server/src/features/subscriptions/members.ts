/**
 * Members: one socket's part in one view, and the logs that views are of. Owns who is in which view and who is paused;
 * what is sent is `delivery`'s and `catch-up`'s.
 */
import type { Following, Place } from './feed.ts'
import type { View, Views } from './views.ts'

/** What delivery needs of a socket. */
export interface Outlet {
  send(text: string): void
  /** Bytes sent and not yet read by the other side. */
  readonly buffered: number
  readonly isOpen: boolean
  listen(topic: string): void
  unlisten(topic: string): void
}

export interface Member {
  readonly outlet: Outlet
  /** Called when changes were missed that are no longer known: the view is to be listed again. */
  readonly onLost: (cursor: string) => void
  /** Null before it joined and after it left. */
  view: View<Member> | null
  log: FollowedLog | null
  /** While paused: the place up to which it has been told everything. */
  pausedAt: Place | null
  /** The catching up that is under way; null where there is none. */
  run: object | null
}

export interface FollowedLog {
  /** Tells logs apart. */
  readonly name: string
  readonly views: Views<Member>
  readonly following: Promise<Following>
  /** Sockets' parts in it, and those on their way in. */
  members: number
}

export const createMember = (outlet: Outlet, onLost: (cursor: string) => void): Member => ({
  outlet,
  onLost,
  view: null,
  log: null,
  pausedAt: null,
  run: null,
})

export interface Membership {
  enter(member: Member, one: FollowedLog, view: View<Member>): void
  leave(member: Member): void
  /** Has the member hear nothing until it is brought up to date from the place. */
  pause(member: Member, place: Place): void
  resume(member: Member): void
  readonly paused: number
}

export function createMembership(): Membership {
  let paused = 0

  function pause(member: Member, place: Place): void {
    if (!member.pausedAt) {
      paused += 1
      if (member.view) member.outlet.unlisten(member.view.topic)
    }
    member.pausedAt = place
  }

  function resume(member: Member): void {
    if (!member.pausedAt) return
    paused -= 1
    member.pausedAt = null
    if (member.view) member.outlet.listen(member.view.topic)
  }

  function leave(member: Member): void {
    const { view, log } = member
    if (!view || !log) return
    if (member.pausedAt) paused -= 1
    Object.assign(member, { pausedAt: null, view: null, log: null, run: null })
    member.outlet.unlisten(view.topic)
    view.members.delete(member)
    log.views.drop(view)
    log.members -= 1
  }

  return {
    pause,
    resume,
    leave,
    enter(member, log, view) {
      member.run = null
      // A view goes with its last member: one that stays in it must not leave on the way.
      if (member.view === view) return resume(member)
      leave(member)
      Object.assign(member, { log, view })
      log.members += 1
      view.members.add(member)
      member.outlet.listen(view.topic)
    },
    get paused() {
      return paused
    },
  }
}
