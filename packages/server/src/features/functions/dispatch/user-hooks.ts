/** The jobs of functions that run after a user was created, deleted or disabled. */
import type { UserEvent, UserEventRow } from '../../auth-hooks.ts'
import type { NewJob } from '../jobs/job.ts'
import { causeOf } from './cause.ts'
import type { Change } from './change-logs.ts'

/** A function that runs after events of users. */
export interface UserHook {
  readonly name: string
  readonly on: ReadonlySet<UserEvent>
}

/** The jobs of a row of `userEventsLog`; those of one user run in order. */
export function jobsOfUserEvent(change: Change, hooks: readonly UserHook[], nowMs: number): NewJob[] {
  const row = change.after as UserEventRow | null
  if (!row) return []
  const { event, user } = row
  const input = JSON.stringify({ event, user, change: { id: change.id, at: new Date(change.atMs).toISOString() } })
  return hooks
    .filter(({ on }) => on.has(event))
    .map(({ name }) => ({
      id: `${change.id}-${name}`,
      function: name,
      kind: 'onUser',
      key: user.id,
      uniqueKey: null,
      input,
      runAtMs: nowMs,
      depth: (causeOf(change.requestId)?.depth ?? 0) + 1,
    }))
}
