/**
 * Optimistic writes: shown by live lists before the server has decided, and taken back where it refuses. A list stops
 * showing a write when it has received the change itself.
 */
import { later } from '../core/later.ts'
import { applyPatch } from '../records/operators.ts'
import type { QueryParts, Row } from '../records/query.ts'
import type { Table, WriteOptions } from '../records/table.ts'
import { findVersion, setVersion } from '../records/versions.ts'
import { matches } from './match.ts'
import { createRecordId } from './record-id.ts'
import type { Window } from './window.ts'

/** How long a list waits for the change of a confirmed write, in milliseconds: it may not be in the list's view. */
const changeWaitMs = 5_000

/** A list that shows writes. */
export interface Observer {
  /** Of the table. */
  readonly path: string
  readonly window: Window
  readonly parts: QueryParts
  changed(): void
}

/** A write of one record. */
export interface RecordWrite {
  readonly table: string
  /** Of the table. */
  readonly path: string
  readonly operation: 'insert' | 'update' | 'delete'
  readonly id: string
  /** The inserted row, or the patch. */
  readonly data?: object | undefined
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
}

/** Sends writes in place of the table; shows them while they wait. */
export interface WriteQueue {
  add(write: RecordWrite, options: WriteOptions | undefined): Promise<unknown>
}

interface ShownWrite extends RecordWrite {
  /** The server's answer, which is null for a deletion. */
  answer?: Row | null
  /** Lists that have received the change, or a newer one. */
  readonly seenBy: Map<Observer, number | undefined>
}

/** The row with a write applied; null where it is deleted, undefined where the write does not concern it. */
function applyWrite({ operation, id, data = {}, at }: RecordWrite, row: Row | undefined): Row | null | undefined {
  if (operation === 'insert') {
    const now = new Date(at).toISOString()
    return row ?? { createdAt: now, updatedAt: now, ...data, id }
  }
  return row && (operation === 'update' ? setVersion(applyPatch(row, data), findVersion(row)) : null)
}

/** Whether a list needs not show a write any more. */
function hasSeen({ id, answer, seenBy }: ShownWrite, observer: Observer): boolean {
  const seen = findVersion(answer && observer.window.get(id)) ?? seenBy.get(observer)
  return answer !== undefined && (seen as number) >= (findVersion(answer) ?? 0)
}

export type Writes = ReturnType<typeof createWrites>

/** The writes that lists show; `observers` are the lists in use. */
export function createWrites(observers: ReadonlySet<Observer>) {
  const writes = new Set<ShownWrite>()

  return {
    /** A list has received a change. */
    confirm(observer: Observer, id: string, version: number | undefined): void {
      for (const write of writes)
        if (write.path === observer.path && write.id === id) write.seenBy.set(observer, version)
    },

    /** The rows of a list with the writes applied. */
    rowsOf(observer: Observer): { rows: readonly Row[]; pending: number } {
      const { path, window, parts } = observer
      /** Rows as the writes so far leave them, also those that the list does not show. */
      const latest = new Map<string, Row | null | undefined>()
      let { rows } = window
      let pending = 0
      for (const write of writes) {
        const { id, answer } = write
        if (write.path !== path || hasSeen(write, observer)) continue
        const next = answer ?? applyWrite(write, latest.get(id) ?? window.get(id))
        latest.set(id, next)
        const placed = window.position(rows, id, next && matches(next, parts) ? next : null)
        if (placed !== rows) pending++
        rows = placed
      }
      return { rows, pending }
    },

    /** Shows a write until it is answered, and as the server answers it until the lists have received the change. */
    async show<Answer>(write: RecordWrite, answer: Promise<Answer>): Promise<Answer> {
      const shown: ShownWrite = { ...write, seenBy: new Map() }
      const changed = (): void => {
        for (const observer of observers) if (observer.path === write.path) observer.changed()
      }
      const drop = (): void => {
        writes.delete(shown)
        changed()
      }
      writes.add(shown)
      changed()
      try {
        shown.answer = ((await answer) ?? null) as Row | null
        later(drop, changeWaitMs)
        changed()
      } catch {
        drop()
      }
      return answer
    },
  }
}

/** `insert`, `update` and `delete` of a table, shown at once. */
export function optimisticWrites(writes: Writes, table: Table) {
  const { core, table: name, path } = table.source
  /** Where there is no id, the write is by filter, and not shown. */
  const run = (
    operation: RecordWrite['operation'],
    id: unknown,
    data: object | undefined,
    options: WriteOptions | undefined,
    send: () => Promise<unknown>,
  ): Promise<unknown> => {
    if (typeof id !== 'string') return send()
    const write = { table: name, path, operation, id, data, at: Date.now() }
    const queue = core.parts.queue as WriteQueue | undefined
    return queue ? queue.add(write, options) : writes.show(write, send())
  }
  return {
    insert(row: object, options?: WriteOptions): Promise<unknown> {
      const sent = { id: createRecordId(), ...row }
      return run('insert', sent.id, sent, options, () => table.insert(sent, options))
    },
    update: (id: string | object, patch?: object, options?: WriteOptions): Promise<unknown> =>
      run('update', id, patch, options, () => table.update(id, patch, options)),
    delete: (id?: string | object, options?: WriteOptions): Promise<unknown> =>
      run('delete', id, undefined, options, () => table.delete(id, options)),
  }
}
