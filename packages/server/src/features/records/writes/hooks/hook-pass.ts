/**
 * Runs the hooks of a request's writes outside of its transaction. The work of the request runs in passes: a write of a
 * row that the hooks have not decided is noted, and the transaction is rolled back; the hooks run for what was noted,
 * and the work runs again. A decision holds for one version of the row, so a row that changes meanwhile is decided
 * again.
 */
import { ApiError, badRequest, conflict } from '../../../../errors.ts'
import { hookAttemptsMax, hookPassesMax } from '../../../../limits/writes.ts'
import { complete } from '../../../../query/computed/computed-fields.ts'
import type { Table } from '../../../../query/table.ts'
import {
  type HookEvent,
  type HookedRow,
  type HookOperation,
  HookRefusal,
  type HookRequest,
  type NamespaceHooks,
} from '../../../before-hooks.ts'
import type { TableCall } from '../../resolve-table.ts'
import type { RecordRow } from '../../rows.ts'
import type { VersionedRow } from '../../version.ts'
import { type Decision, parseHooked, refusalAt } from './hooked-row.ts'
import type { LockedRows, LockRows } from './row-locks.ts'

/** Rolls back a transaction whose rows are not all decided. */
class Undecided extends Error {}

/** The write of a row, in the place where the row would be written. */
export interface ProposedWrite {
  readonly call: TableCall
  /** Path in a batch. */
  readonly at: string
  readonly operation: HookOperation
  readonly previous: VersionedRow | null
  readonly row: RecordRow
}

/** The passes of one request. */
export interface HookPass {
  /**
   * What the hooks decided about a write; undefined without a hook for it, and null if it is not decided: it is noted,
   * and what the work does from then on is rolled back.
   */
  decide(proposed: ProposedWrite): Decision | null | undefined
}

interface Note {
  readonly table: Table
  readonly at: string
  readonly event: HookEvent
  readonly previousText: string | null
  /** Version of `event.previous`. */
  readonly version: number
  rowText: string | null
}

interface Decided extends Note {
  readonly decision: Decision
}

/** An insert has the same row in each pass; that of an update is another object. */
function isSameRow(one: Note, event: HookEvent): boolean {
  if (one.event.row === event.row) return true
  one.rowText ??= JSON.stringify(one.event.row)
  return one.rowText === JSON.stringify(event.row)
}

const unchanged = (table: Table, row: HookEvent['row']): Decision => ({
  row: complete(table, row),
  text: null,
  altered: new Set(),
  fail: (problem) => badRequest(problem),
})

export class HookPasses implements HookPass {
  readonly #hooks: NamespaceHooks
  readonly #request: HookRequest
  readonly #lockRows: LockRows
  /** Created with the first row to lock: inserts have none. */
  #rows: LockedRows | null = null
  /** By the id of the row. */
  #decisions = new Map<unknown, Decided[]>()
  #notes: Note[] = []
  #matched: Decided[] = []

  constructor(hooks: NamespaceHooks, request: HookRequest, lockRows: LockRows) {
    this.#hooks = hooks
    this.#request = request
    this.#lockRows = lockRows
  }

  decide({ call, at, operation, previous, row }: ProposedWrite): Decision | null | undefined {
    const { table, address } = call
    if (!this.#hooks.covers(table.name, operation)) return undefined
    const { namespace, instanceId } = address
    const event: HookEvent = {
      namespace,
      instanceId,
      table: table.name,
      operation,
      previous: previous?.row ?? null,
      row,
    }
    const version = previous?.version ?? 0
    const previousText = previous && JSON.stringify(previous.row)
    const decided = this.#decisions
      .get(row.id)
      ?.find(
        (one) =>
          one.table.name === table.name &&
          one.event.operation === operation &&
          one.version === version &&
          one.previousText === previousText &&
          isSameRow(one, event),
      )
    if (decided) {
      this.#matched.push(decided)
      return decided.decision
    }
    this.#notes.push({ table, at, event, previousText, version, rowText: null })
    return null
  }

  /** Runs the work once and throws `Undecided` if it wrote a row that is not decided. */
  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    this.#notes = []
    this.#matched = []
    try {
      const result = await work()
      if (this.#notes.length === 0) return result
    } catch (error) {
      // It may come from a row that the hooks have yet to change.
      if (this.#notes.length === 0 || !(error instanceof ApiError)) throw error
    }
    throw new Undecided('A row that is written has not been decided by its hooks')
  }

  async #runHooks(): Promise<void> {
    const notes = this.#notes
    const hooked = await this.#callHooks(notes)
    const decided = notes.map((note, index): Decided => {
      const { table, event } = note
      const one = hooked[index] ?? null
      // What remains of a row that is deleted is nothing.
      const decision =
        one && event.operation !== 'delete' ? parseHooked(table, event.row, one) : unchanged(table, event.row)
      return { ...note, decision }
    })
    this.#decisions = new Map()
    for (const one of [...this.#matched, ...decided])
      this.#decisions.getOrInsertComputed(one.event.row.id, () => []).push(one)
  }

  async #callHooks(notes: readonly Note[]): Promise<readonly (HookedRow | null)[]> {
    try {
      return await this.#hooks.run(
        notes.map(({ event }) => event),
        this.#request,
      )
    } catch (error) {
      throw error instanceof HookRefusal ? refusalAt(error.error, notes[error.index]?.at ?? '') : error
    }
  }

  /** The work of one pass, for its transaction. */
  pass<Args extends unknown[], T>(work: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
    return (...args) => this.#attempt(() => work(...args))
  }

  /**
   * Runs the transaction, whose work is a `pass`, until all rows are decided. `rehearse` decides about its rows, so
   * that the hooks may run before the transaction; null where that is not possible. Throws what the transaction throws,
   * and 409 if a row has changed each time while the hooks ran.
   */
  async run<T>(transaction: () => Promise<T>, rehearse: (() => unknown) | null): Promise<T> {
    try {
      if (rehearse) await this.#foresee(rehearse)
      return await this.#repeat(transaction)
    } finally {
      this.#rows?.release()
    }
  }

  /**
   * Locks the rows that were noted and exist. Gives whether it had to wait, so that what was noted may be outdated.
   */
  #lock(): Promise<boolean> | false {
    const changed = this.#notes.filter(({ event }) => event.previous !== null)
    if (changed.length === 0) return false
    this.#rows ??= this.#lockRows(this.#request)
    return this.#rows.lock(changed.map(({ event }) => event))
  }

  /** `rehearse` may be synchronous. */
  async #foresee(rehearse: () => unknown): Promise<void> {
    do {
      this.#notes = []
      try {
        await rehearse()
      } catch {
        // The transaction decides about errors.
      }
    } while (await this.#lock())
    if (this.#notes.length > 0) await this.#runHooks()
  }

  async #repeat<T>(transaction: () => Promise<T>): Promise<T> {
    let isFirst = this.#decisions.size === 0
    let best = 0
    let stale = 0
    for (let passes = 0; passes < hookPassesMax; passes++) {
      try {
        return await transaction()
      } catch (error) {
        if (!(error instanceof Undecided)) throw error
      }
      // A wait is bounded in time, and each one is for rows that were not locked before.
      if (await this.#lock()) {
        passes -= 1
        continue
      }
      if (this.#matched.length > best) {
        best = this.#matched.length
        stale = 0
      } else if (!isFirst && ++stale >= hookAttemptsMax)
        throw conflict('The record changed each time while the hooks of this write ran')
      isFirst = false
      await this.#runHooks()
    }
    throw badRequest('The request writes a record too often whose hooks change it each time')
  }
}
