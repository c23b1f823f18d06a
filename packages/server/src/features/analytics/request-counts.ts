/** Requests counted in memory until they are written: sums per minute and endpoint, and rows of single requests. */
import { requestMinutesWaitingMax, requestRowsPerFlushMax, requestUsersPerFlushMax } from '../../limits/analytics.ts'
import { minuteOf } from './time.ts'

export interface RequestRow {
  /** Time of the response, in milliseconds since 1970. */
  readonly ms: number
  readonly endpoint: string
  readonly method: string
  readonly status: number
  readonly durationUs: number
  readonly userId: string | null
}

/** Requests to one endpoint within a minute. */
interface Tally {
  count: number
  errors: number
  durationUs: number
  readonly users: Set<string>
}

/** A minute in progress. */
export interface Minute {
  readonly minute: number
  readonly tallies: Map<string, Tally>
}

export interface CountedRequests {
  /** In order of time. */
  readonly minutes: readonly Minute[]
  readonly rows: readonly RequestRow[]
}

export class RequestCounts {
  #minutes: Minute[] = []
  #rows: RequestRow[] = []
  #dropped = 0

  /** Number of rows that were omitted and of minutes that could not be written in time. */
  get dropped(): number {
    return this.#dropped
  }

  /** Called for every request: the arguments are no object, which would be wasted once there is no room for rows. */
  add(ms: number, endpoint: string, method: string, status: number, durationUs: number, userId: string | null): void {
    const tally = tallyOf(this.#minuteAt(ms), endpoint)
    tally.count++
    tally.durationUs += durationUs
    if (status >= 400) tally.errors++
    if (userId !== null && tally.users.size < requestUsersPerFlushMax) tally.users.add(userId)
    if (this.#rows.length < requestRowsPerFlushMax)
      this.#rows.push({ ms, endpoint, method, status, durationUs, userId })
    else this.#dropped++
  }

  /** Removes and returns everything; null if there is nothing. */
  take(): CountedRequests | null {
    if (this.#minutes.length === 0) return null
    const taken = { minutes: this.#minutes, rows: this.#rows }
    this.#minutes = []
    this.#rows = []
    return taken
  }

  /** Merges what could not be written with what came later. */
  putBack(taken: CountedRequests): void {
    const merged = new Map(taken.minutes.map((minute) => [minute.minute, minute]))
    for (const { minute, tallies } of this.#minutes) {
      const known = merged.get(minute)
      if (!known) merged.set(minute, { minute, tallies })
      else for (const [endpoint, tally] of tallies) addTally(tallyOf(known, endpoint), tally)
    }
    const minutes = [...merged.values()].sort((a, b) => a.minute - b.minute)
    const rows = [...taken.rows, ...this.#rows]
    this.#minutes = minutes.slice(-requestMinutesWaitingMax)
    this.#rows = rows.slice(0, requestRowsPerFlushMax)
    this.#dropped += minutes.length - this.#minutes.length + rows.length - this.#rows.length
  }

  #minuteAt(nowMs: number): Minute {
    const minute = minuteOf(nowMs)
    const last = this.#minutes.at(-1)
    if (last?.minute === minute) return last
    const begun: Minute = { minute, tallies: new Map() }
    this.#minutes.push(begun)
    if (this.#minutes.length > requestMinutesWaitingMax) {
      this.#minutes.shift()
      this.#dropped++
    }
    return begun
  }
}

function tallyOf({ tallies }: Minute, endpoint: string): Tally {
  let tally = tallies.get(endpoint)
  if (!tally) {
    tally = { count: 0, errors: 0, durationUs: 0, users: new Set() }
    tallies.set(endpoint, tally)
  }
  return tally
}

function addTally(to: Tally, from: Tally): void {
  to.count += from.count
  to.errors += from.errors
  to.durationUs += from.durationUs
  for (const userId of from.users) to.users.add(userId)
}
