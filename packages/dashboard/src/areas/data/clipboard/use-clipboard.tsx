/** Copies, fills and pastes ranges of cells: with a preview where it is much, undo, and the cells that were refused. */
import { type ReactNode, useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { useToasts } from '../../../design/toast.tsx'
import type { Column } from '../grid/columns.ts'
import type { CellRange } from '../grid/use-cell-range.ts'
import type { TableAddress } from '../location.ts'
import { getRecord } from '../record/writes.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { copyText } from '../table/use-record-actions.ts'
import { applyChanges, applyUpdates } from './apply.ts'
import { formatCells, parseCells, parseHtmlCells } from './cells-text.ts'
import { type CellPlan, type CellProblem, cellsMax, planCells, textOf } from './plan.ts'

/** More cells are shown before they are changed. */
const cellsWithoutPreview = 100
/** How long a change can be undone. */
const undoMs = 10_000
/** Problems that are shown. */
const problemsShown = 100
/** Records of a copy that are read in full length. */
const fullRecordsMax = 200

export interface Clipboard {
  readonly onCopyRange: (range: CellRange) => void
  readonly onFill: (range: CellRange) => void
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
  const change = (range: CellRange, texts: readonly (readonly string[])[]): void => {
    if (!canWrite || texts.length === 0) return
    if ((range.bottom - range.top + 1) * (range.right - range.left + 1) > cellsMax) {
      toasts.add({ title: `At most ${count(cellsMax, 'cell')} are changed at once.`, tone: 'bad' })
      return
    }
    const cells = { rowAt: (index: number) => cache.rowAt(index), rows: cache.length, columns }
    const next = planCells(cells, range, texts)
    if (next.problems.length > 0 || next.changes.length > cellsWithoutPreview) setPlan(next)
    else void apply(next)
  }
  const copyRange = async ({ top, bottom, left, right }: CellRange): Promise<void> => {
    const shown = columns.slice(left, right + 1)
    const rows = []
    for (let at = top; at <= bottom; at++) {
      const row = cache.rowAt(at)
      if (row) rows.push(row)
    }
    const cut = rows.filter((row) => shown.some(({ name }) => row.cut.has(name)))
    if (cut.length > fullRecordsMax) {
      toasts.add({ title: `At most ${fullRecordsMax} records with long values are copied; export them.`, tone: 'bad' })
      return
    }
    try {
      const full = new Map(await Promise.all(cut.map(async ({ id }) => [id, await getRecord(address, id)] as const)))
      const texts = rows.map((row) =>
        shown.map((column) => textOf(column, (full.get(row.id) ?? row).values[column.name])),
      )
      await copyText(formatCells(texts), count(rows.length * shown.length, 'cell'), toasts)
    } catch (error) {
      toasts.fail('Nothing was copied', error)
    }
  }
  const handlers: Clipboard = {
    onCopyRange: (range) => void copyRange(range),
    onFill(range) {
      const row = cache.rowAt(range.top)
      const first = columns.slice(range.left, range.right + 1)
      if (row && range.bottom > range.top)
        change(range, [first.map((column) => textOf(column, row.values[column.name]))])
    },
    onPaste(range, data) {
      const text = data.getData('text/plain')
      change(range, text === '' ? parseHtmlCells(data.getData('text/html')) : parseCells(text))
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
