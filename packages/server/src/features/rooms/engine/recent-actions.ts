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
  readonly #actions: RecentAction[] = []
  #chars = 0

  add(action: RecentAction): void {
    this.#actions.push(action)
    this.#chars += charsOf(action)
    while (this.#actions.length > recentActionsMax || this.#chars > recentActionsCharsMax) {
      const dropped = this.#actions.shift()
      if (!dropped) return
      this.#chars -= charsOf(dropped)
    }
  }

  /** The latest ones that fit, oldest first. */
  latest(charsMax: number): RecentAction[] {
    let left = charsMax
    const from = this.#actions.findLastIndex((action) => {
      left -= charsOf(action) + actionExtraChars
      return left < 0
    })
    return this.#actions.slice(from + 1)
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
