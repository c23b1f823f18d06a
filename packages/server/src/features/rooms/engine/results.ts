/** Answers to actions by user and `requestId`, kept for a while so that an action sent again runs once. */
import { keptResultAgeMs, keptResultsBytesMax, keptResultsMax } from '../../../limits/rooms.ts'

interface Kept {
  /** The body of the answer in JSON, without the `requestId`. */
  readonly body: string
  readonly atMs: number
}

interface UserResults {
  /** Oldest first. */
  readonly kept: Map<string, Kept>
  bytes: number
}

export class Results {
  private readonly users = new Map<string, UserResults>()

  /** The kept answer, or null for a new action. */
  find(userId: string, requestId: string): string | null {
    return this.users.get(userId)?.kept.get(requestId)?.body ?? null
  }

  keep(userId: string, requestId: string, body: string, nowMs: number): void {
    let user = this.users.get(userId)
    if (!user) {
      user = { kept: new Map(), bytes: 0 }
      this.users.set(userId, user)
    }
    user.kept.set(requestId, { body, atMs: nowMs })
    user.bytes += body.length
    trim(user, nowMs)
  }

  /** Forgets what has become too old. */
  sweep(nowMs: number): void {
    for (const [userId, user] of this.users) {
      trim(user, nowMs)
      if (user.kept.size === 0) this.users.delete(userId)
    }
  }

  *entries(): Generator<readonly [userId: string, requestId: string, body: string]> {
    for (const [userId, { kept }] of this.users)
      for (const [requestId, { body }] of kept) yield [userId, requestId, body]
  }
}

function trim(user: UserResults, nowMs: number): void {
  for (const [requestId, { body, atMs }] of user.kept) {
    const isTooMuch = user.kept.size > keptResultsMax || user.bytes > keptResultsBytesMax
    if (!isTooMuch && nowMs - atMs <= keptResultAgeMs) return
    user.kept.delete(requestId)
    user.bytes -= body.length
  }
}
