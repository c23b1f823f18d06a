/**
 * Optimistic writes: shown by live lists before the server has decided, and taken back where it refuses. A list stops
 * showing a write when it has received the change itself.
 */
import { later } from '../core/later.ts'
import type { QueryParts, Row } from '../records/query.ts'
import type { Table, WriteOptions } from '../records/table.ts'
import { findVersion, isOlder, setVersion } from '../records/versions.ts'
import { matches } from './match.ts'
import { createRecordId } from './record-id.ts'
import type { Window } from './window.ts'

/** How long a list waits for the change of a confirmed write, in milliseconds: it may not be in the list's view. */
const changeWaitMs = 5_000

/** A list that shows writes. */
export interface Observer {
  readonly window: Window
  readonly parts: QueryParts
  changed(): void
}

interface Write {
  readonly id: string
  /**
   * The row with the write applied, then the server's answer; null where it is deleted, undefined where the write does
   * not concern it.
   */
  apply: (row: Row | undefined) => Row | null | undefined
  /** Of the server's answer. */
  version?: number | undefined
  isAnswered: boolean
  /** Lists that have received the change, or a newer one. */
  readonly seenBy: Map<Observer, number | undefined>
}

/** A patch with its operators computed on the known row. */
function applyPatch(row: Row, patch: object): Row {
  const patched: Record<string, unknown> = { ...row }
  for (const [field, value] of Object.entries(patch)) {
    const { $op, value: by } = (value ?? {}) as { $op?: string; value?: number }
    if ($op === 'increment') patched[field] = Number(patched[field] ?? 0) + Number(by)
    else patched[field] = $op === 'deleteField' ? null : value
  }
  return setVersion(patched as Row, findVersion(row))
}

export type TableWrites = ReturnType<typeof createTableWrites>

/** The writes of a table that its lists show. */
export function createTableWrites() {
  let writes: Write[] = []
  const observers = new Set<Observer>()

  const set = (next: Write[]): void => {
    writes = next
    for (const { changed } of observers) changed()
  }

  return {
    /** Calls `changed` of the observer whenever the writes change. */
    watch(observer: Observer): () => void {
      observers.add(observer)
      return () => observers.delete(observer)
    },

    /** A list has received a change. */
    confirm(observer: Observer, id: string, version: number | undefined): void {
      for (const write of writes) if (write.id === id) write.seenBy.set(observer, version)
    },

    /** The rows of a list with the writes applied. */
    show(observer: Observer): { rows: readonly Row[]; pending: number } {
      const { window, parts } = observer
      const changed = new Map<string, Row | null>()
      let pending = 0
      for (const write of writes) {
        if (hasSeen(write, observer)) continue
        const { id } = write
        const next = write.apply(changed.get(id) ?? window.get(id))
        if (next === undefined) continue
        const isShown = next && matches(next, parts) && window.covers(next)
        if (isShown || window.get(id) || changed.has(id)) pending++
        changed.set(id, isShown ? next : null)
      }
      if (changed.size === 0) return { rows: window.rows, pending }
      const rows = window.rows.filter(({ id }) => !changed.has(id))
      for (const row of changed.values()) if (row) rows.push(row)
      return { rows: rows.sort(window.compare), pending }
    },

    /** Shows a write while `send` is under way. */
    async run<Answer>(id: string, apply: Write['apply'], send: () => Promise<Answer>): Promise<Answer> {
      const write: Write = { id, apply, isAnswered: false, seenBy: new Map() }
      const drop = (): void => set(writes.filter((other) => other !== write))
      set([...writes, write])
      try {
        const answer = await send()
        write.isAnswered = true
        if (answer) {
          write.version = findVersion(answer)
          write.apply = () => answer as unknown as Row
        }
        later(drop, changeWaitMs)
        set(writes)
        return answer
      } catch (error) {
        drop()
        throw error
      }
    },
  }
}

function hasSeen({ isAnswered, version, seenBy, id }: Write, observer: Observer): boolean {
  const row = observer.window.get(id)
  return (
    isAnswered &&
    ((row && version !== undefined && !isOlder(findVersion(row), version)) ||
      (seenBy.has(observer) && !isOlder(seenBy.get(observer), version)))
  )
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

/** How a list shows a write. */
export function effectOf({ operation, id, data = {}, at }: RecordWrite): Write['apply'] {
  if (operation === 'update') return (row) => row && applyPatch(row, data)
  if (operation === 'delete') return (row) => row && null
  const now = new Date(at).toISOString()
  const shown = { createdAt: now, updatedAt: now, ...data, id }
  return (known) => known ?? shown
}

/** `insert`, `update` and `delete` of a table, shown at once. */
export function optimisticWrites(writes: TableWrites, table: Table) {
  const { source } = table
  const run = (
    operation: RecordWrite['operation'],
    id: string,
    data: object | undefined,
    options: WriteOptions | undefined,
    send: () => Promise<unknown>,
  ): Promise<unknown> => {
    const write = { table: source.table, path: source.path, operation, id, data, at: Date.now() }
    const queue = source.core.parts.queue as WriteQueue | undefined
    return queue ? queue.add(write, options) : writes.run(id, effectOf(write), send)
  }
  return {
    insert(row: object, options?: WriteOptions): Promise<unknown> {
      const sent = { id: createRecordId(), ...row }
      return run('insert', sent.id, sent, options, () => table.insert(sent, options))
    },
    update(id: string | object, patch?: object, options?: WriteOptions): Promise<unknown> {
      const send = () => table.update(id, patch, options)
      return typeof id === 'string' ? run('update', id, patch, options, send) : send()
    },
    delete(id?: string | object, options?: WriteOptions): Promise<unknown> {
      const send = () => table.delete(id, options)
      return typeof id === 'string' ? run('delete', id, undefined, options, send) : send()
    },
  }
}
