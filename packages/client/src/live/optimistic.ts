/**
 * Optimistic writes: shown by live lists before the server has decided, and taken back where it refuses. A list stops
 * showing a write when it has received the change itself.
 */
import type { QueryParts, Row } from '../records/query.ts'
import type { Table, WriteOptions } from '../records/table.ts'
import { findVersion, isOlder, setVersion } from '../records/versions.ts'
import { matches } from './match.ts'
import { orderOf } from './order.ts'
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
  /** The row with the write applied; null where it is deleted, undefined where the write does not concern it. */
  apply(row: Row | undefined): Row | null | undefined
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

export class Optimistic {
  readonly #writes = new Map<string, Write[]>()
  readonly #observers = new Map<string, Set<Observer>>()

  /** Calls `changed` of the observer whenever the writes of a table change. */
  watch(path: string, observer: Observer): () => void {
    const observers = this.#observers.get(path) ?? new Set()
    this.#observers.set(path, observers.add(observer))
    return () => {
      observers.delete(observer)
    }
  }

  /** A list has received a change. */
  confirm(path: string, observer: Observer, id: string, version: number | undefined): void {
    for (const write of this.#writes.get(path) ?? []) if (write.id === id) write.seenBy.set(observer, version)
  }

  /** The rows of a list with the writes of its table applied. */
  show(path: string, observer: Observer): { rows: readonly Row[]; pending: number } {
    const { window, parts } = observer
    const writes = (this.#writes.get(path) ?? []).filter((write) => !hasSeen(write, observer))
    if (writes.length === 0) return { rows: window.rows, pending: 0 }
    const changed = new Map<string, Row | null>()
    let pending = 0
    for (const { id, apply } of writes) {
      const next = apply(changed.get(id) ?? window.get(id))
      if (next === undefined) continue
      const isShown = next !== null && matches(next, parts) && window.covers(next)
      if (isShown || window.get(id) || changed.has(id)) pending++
      changed.set(id, isShown ? next : null)
    }
    const rows = window.rows.filter(({ id }) => !changed.has(id))
    for (const row of changed.values()) if (row) rows.push(row)
    return { rows: rows.sort(orderOf(parts)), pending }
  }

  /** Shows a write while `send` is under way. */
  async run<Answer>(
    path: string,
    { id, apply }: Pick<Write, 'id' | 'apply'>,
    send: () => Promise<Answer>,
  ): Promise<Answer> {
    const write: Write = { id, apply, isAnswered: false, seenBy: new Map() }
    this.#writes.set(path, [...(this.#writes.get(path) ?? []), write])
    this.#changed(path)
    const drop = (): void => {
      this.#writes.set(
        path,
        (this.#writes.get(path) ?? []).filter((other) => other !== write),
      )
      this.#changed(path)
    }
    try {
      const answer = await send()
      write.isAnswered = true
      if (answer) {
        write.version = findVersion(answer as object)
        this.#fold(path, answer as unknown as Row)
      }
      setTimeout(drop, changeWaitMs)
      this.#changed(path)
      return answer
    } catch (error) {
      drop()
      throw error
    }
  }

  /** Replaces the row in lists that have it: a later request can already build on it. */
  #fold(path: string, row: Row): void {
    for (const { window, parts } of this.#observers.get(path) ?? []) {
      const known = window.get(row.id)
      if (known && matches(row, parts) && Object.keys(known).every((field) => field in row)) window.put(row)
    }
  }

  #changed(path: string): void {
    for (const observer of this.#observers.get(path) ?? []) observer.changed()
  }
}

function hasSeen({ isAnswered, version, seenBy, id }: Write, observer: Observer): boolean {
  if (!isAnswered) return false
  const row = observer.window.get(id)
  if (row && version !== undefined && !isOlder(findVersion(row), version)) return true
  return seenBy.has(observer) && !isOlder(seenBy.get(observer), version)
}

/** `insert`, `update` and `delete` of a table, shown at once. */
export function optimisticWrites(optimistic: Optimistic, table: Table) {
  const { path } = table.source
  return {
    insert(row: object, options?: WriteOptions): Promise<Row> {
      const now = new Date().toISOString()
      const sent = { id: createRecordId(), ...row } as Row
      const shown = { createdAt: now, updatedAt: now, ...sent }
      return optimistic.run(path, { id: sent.id, apply: (known) => known ?? shown }, () => table.insert(sent, options))
    },
    update(id: string | object, patch?: object, options?: WriteOptions): Promise<unknown> {
      if (typeof id !== 'string') return table.update(id, patch)
      const apply = (row: Row | undefined) => row && applyPatch(row, patch as object)
      return optimistic.run(path, { id, apply }, () => table.update(id, patch, options))
    },
    delete(id?: string | object, options?: WriteOptions): Promise<unknown> {
      if (typeof id !== 'string') return table.delete(id)
      return optimistic.run(path, { id, apply: (row) => row && null }, () => table.delete(id, options))
    },
  }
}
