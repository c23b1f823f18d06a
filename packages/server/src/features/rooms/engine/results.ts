/** Idempotency of actions: keeps responses by user and `requestId`, so that a repeated request does not run again. */
import { keptResultAgeMs, keptResultsBytesMax, keptResultsMax } from '../../../limits/rooms.ts'

interface Kept {
  /** The body of the response as JSON, without the `requestId`. */
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

  /** The kept response, or null for a new request. */
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

  /** Drops expired responses. */
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
    const isOverBounds = user.kept.size > keptResultsMax || user.bytes > keptResultsBytesMax
    if (!isOverBounds && nowMs - atMs <= keptResultAgeMs) return
    user.kept.delete(requestId)
    user.bytes -= body.length
  }
}
