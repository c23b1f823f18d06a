/** Idempotency of actions: keeps responses by user and `requestId`, so that a repeated request does not run again. */
import { keptResultAgeMs, keptResultsBytesMax, keptResultsMax } from '../../../limits/rooms.ts'
import { jsonText } from './state/json.ts'

interface Kept {
  readonly requestId: string
  /** The `requestId` and the body, as they are saved: JSON, separated by a comma. */
  readonly item: string
  readonly bodyChars: number
  readonly atMs: number
}

interface UserResults {
  /** The id of the user as JSON. */
  readonly idText: string
  /** By `requestId`, oldest first. */
  readonly kept: Map<string, Kept>
  bytes: number
}

export class Results {
  private readonly users = new Map<string, UserResults>()

  /** The body of the kept response as JSON, without the `requestId`; null for a new request. */
  find(userId: string, requestId: string): string | null {
    const kept = this.users.get(userId)?.kept.get(requestId)
    return kept ? kept.item.slice(-kept.bodyChars) : null
  }

  /** Keeps a response. Returns it as it is saved: user id, `requestId` and body as JSON, separated by commas. */
  keep(userId: string, requestId: string, body: string, nowMs: number): string {
    let user = this.users.get(userId)
    if (!user) {
      user = { idText: jsonText(userId), kept: new Map(), bytes: 0 }
      this.users.set(userId, user)
    }
    const item = `${jsonText(requestId)},${body}`
    user.kept.set(requestId, { requestId, item, bodyChars: body.length, atMs: nowMs })
    user.bytes += body.length
    trim(user, nowMs)
    return `${user.idText},${item}`
  }

  /** Drops expired responses. */
  sweep(nowMs: number): void {
    for (const [userId, user] of this.users) {
      trim(user, nowMs)
      if (user.kept.size === 0) this.users.delete(userId)
    }
  }

  /** All kept responses, as a JSON array of arrays of user id, `requestId` and body. */
  toText(): string {
    const texts: string[] = []
    for (const { idText, kept } of this.users.values())
      for (const { item } of kept.values()) texts.push(`[${idText},${item}]`)
    return `[${texts.join(',')}]`
  }
}

function trim(user: UserResults, nowMs: number): void {
  for (const { requestId, bodyChars, atMs } of user.kept.values()) {
    const isOverBounds = user.kept.size > keptResultsMax || user.bytes > keptResultsBytesMax
    if (!isOverBounds && nowMs - atMs <= keptResultAgeMs) return
    user.kept.delete(requestId)
    user.bytes -= bodyChars
  }
}
