/**
 * Port: the hooks of the owner's code that run before a write and may refuse or change it. Features that write call
 * them; the feature that runs functions implements them.
 */
import type { Caller } from '../access/caller.ts'
import type { ApiError } from '../errors.ts'

export const hookOperations = ['insert', 'update', 'delete'] as const

export type HookOperation = (typeof hookOperations)[number]

/** A write that has not happened yet. Rows are complete, with hidden fields. */
export interface HookEvent {
  readonly namespace: string
  /** The instance of a dynamic namespace. */
  readonly instanceId: string | null
  /** The table, or the bucket of the namespace `storage`. */
  readonly table: string
  readonly operation: HookOperation
  /** The row before the write; null for an insert. */
  readonly previous: Readonly<Record<string, unknown>> | null
  /** The row to write; for a delete, the row to delete. */
  readonly row: Readonly<Record<string, unknown>>
}

/** What the hooks of an event returned in place of its row. Not validated. */
export interface HookedRow {
  /** How it differs from the row of the event; null if it is no row. */
  readonly difference: RowDifference | null
  /** All of it. */
  readonly row: unknown
  /** Logs that the row cannot be stored, with the place of the hook. Returns the error for the caller. */
  fail(problem: string): ApiError
}

export interface RowDifference {
  /** Members that may have another value, and new ones. */
  readonly changed: Readonly<Record<string, unknown>>
  /** Names of members of the row that are missing. */
  readonly removed: readonly string[]
}

/** The request that causes the events. */
export interface HookRequest {
  readonly caller: Caller
  readonly requestId: string
  readonly signal: AbortSignal
}

/** A hook has refused an event. */
export class HookRefusal extends Error {
  constructor(
    /** Index of the event. */
    readonly index: number,
    readonly error: ApiError,
  ) {
    super(error.message)
    this.name = 'HookRefusal'
  }
}

/** The hooks of one namespace. */
export interface NamespaceHooks {
  /** Whether a table has a hook for an operation. */
  covers(table: string, operation: HookOperation): boolean
  /**
   * Runs the hooks of the events, of each event in the order of their exports. Returns what they made of the rows, null
   * where they changed nothing. Throws `HookRefusal`, or `ApiError` where a hook or its host fails. Never called in a
   * transaction, which would wait for the hooks.
   */
  run(events: readonly HookEvent[], request: HookRequest): Promise<readonly (HookedRow | null)[]>
}

export interface BeforeHooks {
  /** Null where no table of the namespace has hooks. */
  of(namespace: string): NamespaceHooks | null
}
