/** What is done with records from the grid and the panel: saving with undo, deleting, and copying as code. */
import { useMemo } from 'react'
import type { MenuActions } from '../../../design/menu.tsx'
import { type Toasts, useToasts } from '../../../design/toast.tsx'
import type { TableAddress } from '../location.ts'
import { WriteQueue } from '../record/write-queue.ts'
import { Conflict, deleteRecords, getRecord, insertRecord, updateRecord, type Values } from '../record/writes.ts'
import type { Row } from '../rows/row.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { clientGet, curlGet } from './snippets.ts'

/** How long a change can be undone. */
const undoMs = 10_000

/** Deleted records that can be inserted again; of more, a backup is the way back. */
export const undoneDeletesMax = 1

export async function copyText(text: string, what: string, toasts: Toasts): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toasts.add({ title: `Copied ${what}.`, tone: 'good', durationMs: 2_000 })
  } catch {
    toasts.add({ title: 'The browser did not allow access to the clipboard.', tone: 'bad' })
  }
}

/** Without the fields that the server sets. */
export function insertable({ createdAt, updatedAt, ...values }: Values): Values {
  return values
}

export interface RecordActions {
  /** Shows a saved row, and offers to undo it. */
  saved(row: Row, before: Values | null): void
  /** Saves one field of a row that the grid shows. Rejects with `Conflict`. */
  saveCell(row: Row, name: string, value: unknown, version?: string): Promise<void>
  remove(ids: readonly string[]): Promise<void>
  copyActions(row: Row): MenuActions
}

export function useRecordActions(address: TableAddress, cache: RowCache): RecordActions {
  const toasts = useToasts()
  return useMemo(() => {
    const queue = new WriteQueue()
    const update = (row: Pick<Row, 'id' | 'version'>, values: Values): Promise<Row> =>
      queue.write(row, Object.keys(values), (version) => updateRecord(address, { id: row.id, version }, values))
    const restore = (row: Row, before: Values): Promise<Row> => {
      if (queue.hasChanged(row, Object.keys(before))) throw new Error('It was changed again. It was not undone.')
      return update(row, before)
    }
    const undo = async (work: () => Promise<unknown>): Promise<void> => {
      try {
        await work()
        toasts.add({ title: 'Undone.', tone: 'good', durationMs: 2_500 })
      } catch (error) {
        const reason = error instanceof Conflict ? new Error(`${error.message} It was not undone.`) : error
        toasts.fail('Undo failed', reason)
      }
      cache.invalidate()
    }
    const saved = (row: Row, before: Values | null): void => {
      if (before === null) cache.invalidate()
      else cache.patch(row)
      const names = before === null ? [] : Object.keys(before)
      const isComputed = names.length > 0 && before !== null
      toasts.add({
        title: before === null ? 'Record inserted' : `${names.join(', ')} saved`,
        tone: 'good',
        durationMs: undoMs,
        action: {
          label: 'Undo',
          run: () => void undo(async () => (isComputed ? restore(row, before) : deleteRecords(address, [row.id]))),
        },
      })
    }
    return {
      saved,
      async saveCell(row, name, value, version = row.version) {
        const before = { [name]: row.values[name] ?? null }
        saved(await update({ id: row.id, version }, { [name]: value }), before)
      },
      async remove(ids) {
        const kept = ids.length <= undoneDeletesMax ? await Promise.all(ids.map((id) => getRecord(address, id))) : []
        await deleteRecords(address, ids)
        cache.invalidate()
        const title = ids.length === 1 ? 'Record deleted' : `${ids.length.toLocaleString('en')} records deleted`
        const run = (): void =>
          void undo(() => Promise.all(kept.map(({ values }) => insertRecord(address, insertable(values)))))
        toasts.add({
          title,
          tone: 'good',
          ...(kept.length > 0 ? { durationMs: undoMs, action: { label: 'Undo', run } } : {}),
        })
      },
      copyActions: (row) => [
        { label: 'Copy id', icon: 'key', run: () => void copyText(row.id, 'the id', toasts) },
        {
          label: 'Copy as JSON',
          icon: 'json',
          run: () => void copyText(JSON.stringify(row.values, null, 2), 'the record', toasts),
        },
        {
          label: 'Copy as client code',
          icon: 'code',
          run: () => void copyText(clientGet(address, row.id), 'the code', toasts),
        },
        {
          label: 'Copy as curl',
          icon: 'copy',
          run: () => void copyText(curlGet(address, row.id, location.origin), 'the command', toasts),
        },
        null,
      ],
    }
  }, [address, cache, toasts])
}
