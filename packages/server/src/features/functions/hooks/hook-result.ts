/** What the hooks of an event returned, as a function host reported it. */
import type { BeforeResult } from '../../../engines/hosts/hosts.ts'
import type { ApiError } from '../../../errors.ts'
import type { HookEvent, HookedRow, RowDifference } from '../../before-hooks.ts'

export class HookResult implements HookedRow {
  readonly #result: BeforeResult
  readonly #event: HookEvent
  readonly #report: (hook: string, problem: string) => ApiError

  /** `report` logs a problem of a hook. */
  constructor(result: BeforeResult, event: HookEvent, report: (hook: string, problem: string) => ApiError) {
    this.#result = result
    this.#event = event
    this.#report = report
  }

  get difference(): RowDifference | null {
    return 'returned' in this.#result ? null : this.#result
  }

  get row(): unknown {
    const result = this.#result
    if ('returned' in result) return result.returned
    // Without a prototype, a field called `__proto__` is a name like any other.
    const row: Record<string, unknown> = Object.assign(Object.create(null), this.#event.row, result.changed)
    for (const name of result.removed) delete row[name]
    return row
  }

  readonly fail = (problem: string): ApiError => this.#report(this.#result.hook, problem)
}
