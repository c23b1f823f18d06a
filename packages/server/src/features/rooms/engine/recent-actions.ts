/** The latest actions of a room, for administrators: bounded by count and characters. */
import { redactedJson } from '../../../base/log.ts'
import {
  recentActionPayloadChars,
  recentActionReadBytesMax,
  recentActionsCharsMax,
  recentActionsMax,
} from '../../../limits/rooms.ts'
import type { RecentAction } from './ports.ts'

const charsOf = ({ userId, actionType, payload, error, sentBy }: RecentAction): number =>
  userId.length + actionType.length + (payload?.length ?? 0) + (error?.length ?? 0) + (sentBy?.length ?? 0)

export class RecentActions {
  /** Null where one was dropped, up to `#first`. */
  #actions: (RecentAction | null)[] = []
  /** Characters of each. */
  #sizes: number[] = []
  #first = 0
  #chars = 0

  add(action: RecentAction): void {
    const chars = charsOf(action)
    this.#actions.push(action)
    this.#sizes.push(chars)
    this.#chars += chars
    while (this.#actions.length - this.#first > recentActionsMax || this.#chars > recentActionsCharsMax) {
      this.#chars -= this.#sizes[this.#first] ?? 0
      this.#actions[this.#first] = null
      this.#first += 1
    }
    // Their places are removed together: to remove them one by one would move all others each time.
    if (this.#first < recentActionsMax) return
    this.#actions = this.#actions.slice(this.#first)
    this.#sizes = this.#sizes.slice(this.#first)
    this.#first = 0
  }

  /** The latest ones that fit, oldest first. */
  latest(charsMax: number): RecentAction[] {
    let left = charsMax
    const kept = this.#actions.slice(this.#first) as RecentAction[]
    const from = kept.findLastIndex((action) => {
      left -= charsOf(action) + actionExtraChars
      return left < 0
    })
    return kept.slice(from + 1)
  }
}

/** Of an action as JSON, besides its texts. */
const actionExtraChars = 160

/** The payload of an action as it is kept; before its handler runs, which may change it. */
export function shownPayload(payload: unknown, messageBytes: number): string | null {
  if (payload === undefined || messageBytes > recentActionReadBytesMax) return null
  const text = redactedJson(payload)
  return text.length <= recentActionPayloadChars ? text : `${text.slice(0, recentActionPayloadChars)}…`
}
