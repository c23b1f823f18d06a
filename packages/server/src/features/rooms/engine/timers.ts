/** Timers of a room (`room.after`). They use wall time, because they survive restarts. */

export interface RoomTimer {
  readonly id: number
  readonly dueAtMs: number
  readonly name: string
  /** JSON. */
  readonly data: string
}

export class Timers {
  private readonly waiting = new Map<number, RoomTimer>()
  /** Taken by `takeDue` but not done: still saved, so that a crash does not lose them. */
  private readonly begun = new Set<number>()
  private lastId = 0
  private next: number | null = null

  get size(): number {
    return this.waiting.size
  }

  /** When the next timer that has not begun is due, in wall time; null without one. */
  get nextDueMs(): number | null {
    return this.next
  }

  /** When the earliest saved timer is due, including those that have begun; null without one. */
  get earliestMs(): number | null {
    let earliest = this.next
    for (const id of this.begun)
      earliest = Math.min(
        earliest ?? Number.POSITIVE_INFINITY,
        this.waiting.get(id)?.dueAtMs ?? Number.POSITIVE_INFINITY,
      )
    return earliest
  }

  newId(): number {
    this.lastId += 1
    return this.lastId
  }

  add(timer: RoomTimer): void {
    this.waiting.set(timer.id, timer)
    this.lastId = Math.max(this.lastId, timer.id)
    if (this.next === null || timer.dueAtMs < this.next) this.next = timer.dueAtMs
  }

  /** The due timers, earliest first. Each is kept until `done`. */
  takeDue(nowMs: number): RoomTimer[] {
    if (this.next === null || this.next > nowMs) return []
    const due = [...this.waiting.values()].filter(({ id, dueAtMs }) => dueAtMs <= nowMs && !this.begun.has(id))
    for (const { id } of due) this.begun.add(id)
    this.findNext()
    return due.sort((a, b) => a.dueAtMs - b.dueAtMs || a.id - b.id)
  }

  done(id: number): void {
    this.waiting.delete(id)
    this.begun.delete(id)
    this.findNext()
  }

  all(): Iterable<RoomTimer> {
    return this.waiting.values()
  }

  private findNext(): void {
    this.next = null
    for (const { id, dueAtMs } of this.waiting.values())
      if (!this.begun.has(id) && (this.next === null || dueAtMs < this.next)) this.next = dueAtMs
  }
}
