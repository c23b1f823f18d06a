/**
 * The users of each series in the newest minute, whose last activity need not be written again: users of one request
 * often appear in the next.
 */
import { lastSeenCachedMax } from '../../limits/analytics.ts'
import type { LastSeen } from './series.ts'

export class RecentUsers {
  readonly #seen = new Map<string, Set<string>>()
  #minute = 0
  #size = 0

  has(series: string, userId: string, minute: number): boolean {
    return minute === this.#minute && this.#seen.get(series)?.has(userId) === true
  }

  add(written: LastSeen): void {
    for (const [series, users] of written)
      for (const [userId, minute] of users) {
        if (minute > this.#minute) this.#startMinute(minute)
        if (minute === this.#minute && this.#size < lastSeenCachedMax) this.#addUser(series, userId)
      }
  }

  #startMinute(minute: number): void {
    this.#minute = minute
    this.#size = 0
    this.#seen.clear()
  }

  #addUser(series: string, userId: string): void {
    const known = this.#seen.get(series)
    if (known) known.add(userId)
    else this.#seen.set(series, new Set([userId]))
    this.#size++
  }
}
