/** Registers the names of events, and enforces their limit. */
import { sql } from '../../engines/sql/sql-text.ts'
import { eventNamesKnownMs, eventNamesMax } from '../../limits/analytics.ts'
import type { Store } from './migrations.ts'
import { addSeries, allEvents, eventBytes, eventSeries, within } from './series.ts'
import { minuteOf } from './time.ts'

export class EventNames {
  readonly #store: Store
  /** Accepted names and the time of acceptance: the roll-up removes names that were unused for months. */
  #known = new Set<string>()
  #knownSinceMs = 0

  constructor(store: Store) {
    this.#store = store
  }

  /** Returns the names beyond the limit, in which case none is registered. A trusted caller has no limit. */
  async admit(names: ReadonlySet<string>, isTrusted: boolean, nowMs: number): Promise<ReadonlySet<string>> {
    if (nowMs - this.#knownSinceMs >= eventNamesKnownMs) {
      this.#known = new Set()
      this.#knownSinceMs = nowMs
    }
    const unknown = [...names].filter((name) => !this.#known.has(name))
    if (unknown.length === 0) return new Set()
    const refused = await this.#register(unknown, isTrusted, minuteOf(nowMs))
    if (refused.size === 0) for (const name of unknown) this.#known.add(name)
    return refused
  }

  #register(names: readonly string[], isTrusted: boolean, minute: number): Promise<ReadonlySet<string>> {
    const { database, series } = this.#store
    const wanted = names.map(eventSeries)
    return database.write(async (tx) => {
      await tx.lock('analytics names')
      const found = await tx.all<{ series: string }>(
        sql`SELECT series FROM ${series} WHERE ${database.dialect.inList(sql`series`, wanted, 'text')}`,
      )
      const there = new Set(found.map((row) => row.series))
      const [row] = await tx.all<{ n: unknown }>(
        sql`SELECT count(*) AS n FROM ${series} WHERE ${within(sql`series`, eventSeries(''))}`,
      )
      const room = isTrusted ? names.length : Math.max(0, eventNamesMax - Number(row?.n))
      const fresh = names.filter((name) => !there.has(eventSeries(name)))
      // A rejected request registers nothing. Existing names are renewed, so that none expires now.
      if (fresh.length <= room) addSeries(tx, this.#store, [allEvents, eventBytes, ...wanted], minute)
      return new Set(fresh.slice(room))
    })
  }
}
