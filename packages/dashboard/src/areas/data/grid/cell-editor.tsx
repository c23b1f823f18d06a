/** Edits one value where it is shown. Enter and Tab save and move on, Escape leaves it as it was. */
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import { classNames } from '../../../design/class-names.ts'
import { type Draft, draftOf, type EditorKind, editorKind, isReadOnly, parseDraft } from '../record/draft.ts'
import type { Row } from '../rows/row.ts'
import type { Column } from './columns.ts'
import { type Step, stepOf } from './keyboard.ts'

export interface CellEdit {
  readonly row: Row
  readonly column: Column
  /** Where the cell is on the screen. */
  readonly cell: DOMRect
  /** Moves the active cell of the grid. */
  readonly onStep: (step: Step) => void
}

export interface CellEditorProps extends CellEdit {
  readonly onSave: (value: unknown) => void
  readonly onClose: () => void
}

/** Whether a value is edited in its cell; others are edited in the panel of the record. */
export function isEditableInCell({ name, field }: Column, { values, cut }: Row): boolean {
  // Columns that are still read have no value yet.
  if (!(name in values) || cut.has(name) || field === null || isReadOnly(name, field, false)) return false
  return !['json', 'geo', 'reference'].includes(editorKind(name, field))
}

/** Breaks the line at the cursor of a long text, and returns the text; null in other editors. */
function withLineBreak(area: HTMLTextAreaElement | null, kind: EditorKind): string | null {
  if (kind !== 'text' || area === null) return null
  area.setRangeText('\n', area.selectionStart, area.selectionEnd, 'end')
  return area.value
}

export function CellEditor({ row, column, cell, onSave, onClose, onStep }: CellEditorProps) {
  const { name, field } = column
  const kind = editorKind(name, field)
  const initial = draftOf(kind, row.values[name])
  const [draft, setDraft] = useState<Draft>(initial)
  const [error, setError] = useState<string | null>(null)
  const control = useRef<HTMLInputElement & HTMLSelectElement & HTMLTextAreaElement>(null)
  // Arrow keys change a closed select with every step; only a choice by the pointer saves at once.
  const isByKey = useRef(true)
  useEffect(() => {
    control.current?.focus()
    if (control.current && 'select' in control.current) control.current.select?.()
  }, [])

  // Closing takes the focus away, which would save again.
  const isDone = useRef(false)
  const close = (): void => {
    isDone.current = true
    onClose()
  }
  const save = (next: Draft = draft, step: Step | null = null): void => {
    if (isDone.current) return
    if (next === initial) {
      if (step !== null) onStep(step)
      close()
      return
    }
    const isEmpty = next === '' && (kind === 'number' || kind === 'datetime' || kind === 'boolean' || kind === 'enum')
    const parsed = parseDraft(kind, isEmpty ? null : next, field)
    if ('error' in parsed) {
      setError(parsed.error)
      return
    }
    isDone.current = true
    if (step !== null) onStep(step)
    onSave(parsed.value)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    isByKey.current = true
    if (event.nativeEvent.isComposing) return
    const step = stepOf(event)
    if (event.key === 'Escape') close()
    else if (event.key === 'Enter' && event.altKey) setDraft(withLineBreak(control.current, kind) ?? draft)
    else if (step !== null) save(draft, step)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const choices = kind === 'boolean' ? ['true', 'false'] : kind === 'enum' ? (field?.enum ?? []).map(String) : null
  const shared = {
    ref: control,
    className: classNames('cell-editor', error !== null && 'is-bad'),
    'aria-label': `${name} of ${row.id}`,
    'aria-invalid': error !== null || undefined,
    onKeyDown,
    onBlur: () => save(),
    style: {
      left: cell.left,
      top: cell.top,
      width: Math.max(cell.width + 1, kind === 'text' ? 320 : 0),
      height: kind === 'text' ? 120 : cell.height + 1,
    },
  }
  return createPortal(
    <>
      {choices ? (
        <select
          {...shared}
          value={draft ?? ''}
          onPointerDown={() => {
            isByKey.current = false
          }}
          onChange={(event) => {
            setDraft(event.target.value)
            if (!isByKey.current) save(event.target.value)
          }}
        >
          <option value="">null</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : kind === 'text' ? (
        <textarea {...shared} dir="auto" value={draft ?? ''} onChange={(event) => setDraft(event.target.value)} />
      ) : (
        <input
          {...shared}
          dir={kind === 'line' ? 'auto' : undefined}
          value={draft ?? ''}
          onChange={(event) => {
            setDraft(event.target.value)
            setError(null)
          }}
        />
      )}
      {error !== null && (
        <p className="cell-error" role="alert" style={{ left: cell.left, top: cell.bottom + 4 }}>
          {error}
        </p>
      )}
    </>,
    document.body,
  )
}
