/** Idempotency of actions: keeps responses by user and `requestId`, so that a repeated request does not run again. */
import { keptResultAgeMs, keptResultsBytesMax, keptResultsMax } from '../../../limits/rooms.ts'
import { jsonText } from './state/json.ts'

/**
 * Responses of a user by `requestId`, in the form in which they are saved: user id, `requestId` and body as JSON,
 * separated by commas. New ones are added to the recent generation, which replaces the older one when it is full or
 * old: a busy room keeps thousands of responses, and to remove them one by one costs as much as to keep them.
 */
interface UserResults {
  /** The id of the user as JSON. */
  readonly idText: string
  recent: Map<string, string>
  older: Map<string, string>
  /** Characters of the recent ones. */
  chars: number
  /** When the recent generation began. */
  sinceMs: number
}

export class Results {
  private readonly users = new Map<string, UserResults>()

  /** The body of the kept response as JSON, without the `requestId`; null for a new request. */
  find(userId: string, requestId: string): string | null {
    const user = this.users.get(userId)
    const text = user?.recent.get(requestId) ?? user?.older.get(requestId)
    return user && text !== undefined ? text.slice(savedText(user, requestId, '').length) : null
  }

  /** Keeps a response. Returns it as it is saved: user id, `requestId` and body as JSON, separated by commas. */
  keep(userId: string, requestId: string, body: string, nowMs: number): string {
    let user = this.users.get(userId)
    if (!user) {
      user = { idText: jsonText(userId), recent: new Map(), older: new Map(), chars: 0, sinceMs: nowMs }
      this.users.set(userId, user)
    }
    const text = savedText(user, requestId, body)
    if (isFull(user, text.length, nowMs)) rotate(user, nowMs)
    user.recent.set(requestId, text)
    user.chars += text.length
    return text
  }

  /** Drops expired responses: all are kept for `keptResultAgeMs`, and for twice as long at most. */
  sweep(nowMs: number): void {
    for (const [userId, user] of this.users) {
      if (nowMs - user.sinceMs > keptResultAgeMs) rotate(user, nowMs)
      if (user.recent.size + user.older.size === 0) this.users.delete(userId)
    }
  }

  /** All kept responses, as a JSON array of arrays of user id, `requestId` and body. */
  toText(): string {
    const texts: string[] = []
    for (const { older, recent } of this.users.values()) texts.push(...older.values(), ...recent.values())
    return texts.length === 0 ? '[]' : `[[${texts.join('],[')}]]`
  }
}

/** Joined, since a concatenation would keep its parts in memory as well. */
const savedText = ({ idText }: UserResults, requestId: string, body: string): string =>
  [idText, jsonText(requestId), body].join()

const isFull = ({ recent, chars, sinceMs }: UserResults, more: number, nowMs: number): boolean =>
  recent.size >= keptResultsMax || chars + more > keptResultsBytesMax / 2 || nowMs - sinceMs > keptResultAgeMs

function rotate(user: UserResults, nowMs: number): void {
  user.older = user.recent
  user.recent = new Map()
  user.chars = 0
  user.sinceMs = nowMs
}
