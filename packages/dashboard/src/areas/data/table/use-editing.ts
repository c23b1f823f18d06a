/** What is edited in a view: a cell, a record in the panel, a new record, and what is about to be deleted. */
import { useCallback, useState } from 'react'
import type { UrlState } from '../../../app/url-state.ts'
import { useToasts } from '../../../design/toast.tsx'
import { type CellEdit, isEditableInCell } from '../grid/cell-editor.tsx'
import type { Column } from '../grid/columns.ts'
import type { Step } from '../grid/keyboard.ts'
import { Conflict, type Values } from '../record/writes.ts'
import type { Row } from '../rows/row.ts'
import type { RecordActions } from './use-record-actions.ts'

interface CellConflict {
  readonly row: Row
  readonly name: string
  readonly value: unknown
  /** Null if the record was deleted. */
  readonly stored: Row | null
}

export interface Editing {
  readonly cell: CellEdit | null
  /** The first of the changes that met another version. */
  readonly conflict: CellConflict | null
  /** Ids of the records to delete once that is confirmed. */
  readonly deleting: readonly string[]
  /** Values of a new record. */
  readonly initial: Values
  editCell(row: Row, column: Column, cell: DOMRect, onStep: (step: Step) => void): void
  saveCell(row: Row, name: string, value: unknown, version?: string): void
  closeCell(): void
  closeConflict(): void
  open(row: Row): void
  insert(values: Values): void
  close(): void
  setDeleting(ids: readonly string[]): void
}

const noValues: Values = {}

/** After what was open over the grid has closed. */
export const focusGrid = (): void => document.querySelector<HTMLElement>('.data-grid')?.focus()

export function useEditing(url: UrlState, actions: RecordActions, canWrite: boolean): Editing {
  const toasts = useToasts()
  const [cell, setCell] = useState<CellEdit | null>(null)
  const [conflicts, setConflicts] = useState<readonly CellConflict[]>([])
  const [deleting, setDeleting] = useState<readonly string[]>([])
  const [initial, setInitial] = useState<Values>(noValues)

  const open = useCallback((row: Row) => url.set({ row: row.id }), [url])
  const editCell = useCallback(
    (row: Row, column: Column, at: DOMRect, onStep: (step: Step) => void) => {
      if (canWrite && isEditableInCell(column, row)) setCell({ row, column, cell: at, onStep })
      else open(row)
    },
    [canWrite, open],
  )
  return {
    cell,
    conflict: conflicts[0] ?? null,
    deleting,
    initial,
    editCell,
    open,
    setDeleting,
    async saveCell(row, name, value, version) {
      setCell(null)
      focusGrid()
      try {
        await actions.saveCell(row, name, value, version)
      } catch (error) {
        if (error instanceof Conflict) {
          const { stored } = error
          setConflicts((all) => [...all, { row, name, value, stored }])
        } else toasts.fail(`${name} was not saved`, error)
      }
    },
    closeCell() {
      setCell(null)
      focusGrid()
    },
    closeConflict: () => setConflicts((all) => all.slice(1)),
    insert(values) {
      setInitial(values)
      url.set({ new: '1', row: null })
    },
    close() {
      url.set({ row: null, new: null })
      setInitial(noValues)
    },
  }
}
