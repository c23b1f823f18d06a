/** Copies, fills and pastes ranges of cells: with a preview where it is much, undo, and the cells that were refused. */
import { type ReactNode, useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { useToasts } from '../../../design/toast.tsx'
import type { Column } from '../grid/columns.ts'
import type { CellRange } from '../grid/use-cell-range.ts'
import type { TableAddress } from '../location.ts'
import type { Row } from '../rows/row.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { copyText } from '../table/use-record-actions.ts'
import { applyChanges, applyUpdates } from './apply.ts'
import { formatCells, parseCells, parseHtmlCells } from './cells-text.ts'
import { readComplete } from './complete-rows.ts'
import {
  type CellContents,
  type CellPlan,
  type CellProblem,
  cellsMax,
  filledContents,
  pastedContents,
  planCells,
  sizeOf,
  textOf,
} from './plan.ts'

/** More cells are shown before they are changed. */
const cellsWithoutPreview = 100
/** How long a change can be undone. */
const undoMs = 10_000
/** Problems that are shown. */
const problemsShown = 100

export interface Clipboard {
  readonly onCopyRange: (range: CellRange) => void
  readonly onFill: (source: CellRange, target: CellRange) => void
  readonly onPaste: (range: CellRange, data: DataTransfer) => void
}

interface ClipboardDeps {
  readonly address: TableAddress
  readonly cache: RowCache
  readonly columns: readonly Column[]
  readonly canWrite: boolean
}

const count = (value: number, noun: string): string => `${value.toLocaleString('en')} ${noun}${value === 1 ? '' : 's'}`

export function useClipboard(deps: ClipboardDeps): { readonly handlers: Clipboard; readonly content: ReactNode } {
  const { address, cache, columns, canWrite } = deps
  const toasts = useToasts()
  const [plan, setPlan] = useState<CellPlan | null>(null)
  const [problems, setProblems] = useState<readonly CellProblem[]>([])

  const undo = async (updates: Parameters<typeof applyUpdates>[1]): Promise<void> => {
    try {
      const restored = await applyUpdates(address, updates)
      for (const row of restored.changed) cache.patch(row)
      setProblems(restored.problems)
      toasts.add({ title: 'Undone.', tone: 'good', durationMs: 2_500 })
    } catch (error) {
      toasts.fail('Undo failed', error)
    }
  }
  const apply = async ({ changes }: CellPlan): Promise<void> => {
    setPlan(null)
    if (changes.length === 0) return
    try {
      const applied = await applyChanges(address, changes)
      for (const row of applied.changed) cache.patch(row)
      setProblems(applied.problems)
      if (applied.problems.length > 0) cache.invalidate()
      if (applied.changed.length === 0) return
      const run = (): void => void undo(applied.undo)
      const title = `${count(changes.length - applied.problems.length, 'cell')} of ${count(applied.changed.length, 'record')} saved`
      toasts.add({ title, tone: 'good', durationMs: undoMs, action: { label: 'Undo', run } })
    } catch (error) {
      toasts.fail('Not all cells were saved', error)
      cache.invalidate()
    }
  }
  /** Says that a range has too many cells, and returns whether it has. */
  const isTooLarge = (range: CellRange, action: string): boolean => {
    const rows = Math.min(range.bottom, cache.length - 1)
    const isLarge = sizeOf({ ...range, bottom: rows, right: Math.min(range.right, columns.length - 1) }) > cellsMax
    if (isLarge) toasts.add({ title: `At most ${count(cellsMax, 'cell')} are ${action} at once.`, tone: 'bad' })
    return isLarge
  }
  const change = (contents: CellContents): void => {
    if (isTooLarge(contents.target, 'changed')) return
    const next = planCells({ rowAt: (at) => cache.rowAt(at), rows: cache.length, columns }, contents)
    if (next.problems.length > 0 || next.changes.length > cellsWithoutPreview) setPlan(next)
    else void apply(next)
  }
  /** Rows of a range with the values of its columns in full length. Rejects where they are too many or too long. */
  const completeRows = ({ top, bottom, left, right }: CellRange): Promise<readonly Row[]> => {
    const loaded = Array.from({ length: bottom - top + 1 }, (_, at) => cache.rowAt(top + at))
    return readComplete(
      address,
      loaded.filter((row) => row !== undefined),
      columns.slice(left, right + 1),
    )
  }
  const copyRange = async (range: CellRange): Promise<void> => {
    if (isTooLarge(range, 'copied')) return
    const shown = columns.slice(range.left, range.right + 1)
    try {
      const rows = await completeRows(range)
      const texts = rows.map(({ values }) => shown.map((column) => textOf(column, values[column.name])))
      await copyText(formatCells(texts), count(rows.length * shown.length, 'cell'), toasts)
    } catch (error) {
      toasts.fail('Nothing was copied', error)
    }
  }
  const fill = async (source: CellRange, target: CellRange): Promise<void> => {
    if (isTooLarge(source, 'repeated') || isTooLarge(target, 'changed')) return
    try {
      const rows = await completeRows(source)
      if (rows.length <= source.bottom - source.top) throw new Error('Not all of its rows are loaded.')
      const values = rows.map((row) => row.values)
      change(filledContents(source, target, columns, values))
    } catch (error) {
      toasts.fail('Nothing was filled', error)
    }
  }
  const handlers: Clipboard = {
    onCopyRange: (range) => void copyRange(range),
    onFill(source, target) {
      if (canWrite) void fill(source, target)
    },
    onPaste(range, data) {
      const text = data.getData('text/plain')
      const texts = text === '' ? parseHtmlCells(data.getData('text/html')) : parseCells(text)
      if (canWrite && texts.length > 0) change(pastedContents(range, texts))
    },
  }
  const content = (
    <>
      {plan !== null && <PlanDialog plan={plan} onClose={() => setPlan(null)} onApply={() => void apply(plan)} />}
      {problems.length > 0 && (
        <Dialog isOpen onClose={() => setProblems([])} title={`${count(problems.length, 'cell')} not saved`}>
          <Problems problems={problems} />
        </Dialog>
      )}
    </>
  )
  return { handlers, content }
}

interface PlanDialogProps {
  readonly plan: CellPlan
  readonly onClose: () => void
  readonly onApply: () => void
}

function PlanDialog({ plan: { changes, problems }, onClose, onApply }: PlanDialogProps) {
  const records = new Set(changes.map(({ row }) => row.id)).size
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={changes.length === 0 ? 'No cell can be changed' : `Change ${count(changes.length, 'cell')}?`}
      {...(changes.length > 0 && { description: `Of ${count(records, 'record')}. You can undo it for ten seconds.` })}
    >
      <div className="stack">
        {problems.length > 0 && (
          <>
            <p>{count(problems.length, 'cell')} cannot be changed:</p>
            <Problems problems={problems} />
          </>
        )}
        <div className="button-row">
          <Button onClick={onClose}>Cancel</Button>
          {changes.length > 0 && (
            <Button kind="primary" onClick={onApply}>
              Change {count(changes.length, 'cell')}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}

const Problems = ({ problems }: { readonly problems: readonly CellProblem[] }) => (
  <ul className="data-cell-problems">
    {problems.slice(0, problemsShown).map(({ record, name, problem }) => (
      <li key={`${record} ${name}`}>
        <code dir="auto">{record}</code> <strong>{name}</strong> {problem}
      </li>
    ))}
    {problems.length > problemsShown && <li>and {problems.length - problemsShown} more</li>}
  </ul>
)
