/**
 * A grid over any number of rows and columns, of which only those in view are in the document. One cell is active and
 * moves with the keys; the grid itself has the focus. What is shown comes from a `RowCache`.
 */
import { type ClipboardEvent, type KeyboardEvent, useCallback, useEffect, useId, useRef } from 'react'
import type { LiveRows } from '../live/live-rows.ts'
import type { Row } from '../rows/row.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { type Column, markerWidth } from './columns.ts'
import { GridHeader } from './grid-header.tsx'
import { GridRow } from './grid-row.tsx'
import { moved } from './keyboard.ts'
import { type CellRange, type CellRangeState, isOneCell, useCellRange } from './use-cell-range.ts'
import { type ColumnWindow, useColumnWindow } from './use-column-window.ts'
import { type RowWindow, useRowWindow } from './use-row-window.ts'
import { type SelectRow, useSelection } from './use-selection.ts'

const rowHeight = 34
const headerHeight = 36

export interface GridProps {
  readonly label: string
  readonly cache: RowCache
  /** Changes with every change of the cache. */
  readonly revision: number
  readonly columns: readonly Column[]
  readonly sort: string | null
  readonly canSort: (column: Column) => boolean
  readonly selected: ReadonlySet<string>
  readonly openId: string | null
  readonly onSelect: (selected: ReadonlySet<string>) => void
  readonly onSort: (name: string) => void
  readonly onResize: (name: string, width: number) => void
  /** The active cell was opened: with Enter, F2 or a double click. */
  readonly onEdit: (row: Row, column: Column, cell: DOMRect) => void
  /** The record was opened: with the space bar. */
  readonly onOpen: (row: Row) => void
  /** A reference was looked at: with P or its button. */
  readonly onPeek: (row: Row, column: Column, cell: DOMRect) => void
  readonly onCopy: (row: Row, column: Column) => void
  readonly onDelete: () => void
  /** Several cells were copied. */
  readonly onCopyRange: (range: CellRange) => void
  /** The first row of a range is to be repeated in the others. */
  readonly onFill: (range: CellRange) => void
  readonly onPaste: (range: CellRange, data: DataTransfer) => void
  /** Marks of what changes while the rows are followed. */
  readonly live?: LiveRows | undefined
}

/** What a key does with the row and column of the active cell; undefined for other keys. */
function actionOf(
  event: KeyboardEvent,
  { onCopy, onDelete, onOpen, onSelect }: GridProps,
  {
    row,
    column,
    edit,
    peek,
    toggle,
  }: { row: Row; column: Column; edit: () => void; peek: () => void; toggle: () => void },
): (() => void) | undefined {
  if ((event.ctrlKey || event.metaKey) && event.key === 'c') return () => onCopy(row, column)
  const actions: Readonly<Record<string, () => void>> = {
    Enter: edit,
    F2: edit,
    ' ': event.shiftKey || event.ctrlKey ? toggle : () => onOpen(row),
    x: toggle,
    p: peek,
    Delete: onDelete,
    Escape: () => onSelect(new Set()),
  }
  return actions[event.key]
}

/** Copies or fills the range, or selects all cells; returns whether the key does one of them. */
function rangeAction(event: KeyboardEvent, props: GridProps, { range, selectTo }: CellRangeState): boolean {
  if (!(event.ctrlKey || event.metaKey)) return false
  const last = { row: props.cache.length - 1, column: props.columns.length - 1 }
  if (event.key === 'a' && last.row >= 0) selectTo(last)
  else if (event.key === 'd') props.onFill(range)
  else if (event.key === 'c' && !isOneCell(range)) props.onCopyRange(range)
  else return false
  event.preventDefault()
  return true
}

/** Text that is pasted into a form over the grid is not for its cells. */
function pasteInto(event: ClipboardEvent, { onPaste }: GridProps, { range }: CellRangeState): void {
  if (event.target !== event.currentTarget) return
  event.preventDefault()
  onPaste(range, event.clipboardData)
}

function runFor(event: KeyboardEvent, action: () => void): void {
  event.preventDefault()
  action()
}

/** Not a key of a control in it; a cell that was clicked has the focus itself. */
const isOfGrid = ({ target, currentTarget }: KeyboardEvent): boolean =>
  target === currentTarget || (target as Element).matches('.data-cell')

/** Calls what is done with a cell, which is active and therefore in the document, with its position on the screen. */
function useCellHandler(
  cache: RowCache,
  columns: readonly Column[],
  activeId: string,
  handle: GridProps['onEdit'],
): (index: number, at: number) => void {
  return useCallback(
    (index, at) => {
      const [row, column, cell] = [cache.rowAt(index), columns[at], document.getElementById(activeId)]
      if (row && column && cell) handle(row, column, cell.getBoundingClientRect())
    },
    [cache, columns, activeId, handle],
  )
}

export function Grid(props: GridProps) {
  const { label, cache, revision, columns, selected, onSelect, onEdit, onPeek } = props
  const scroller = useRef<HTMLDivElement>(null)
  const activeId = useId()
  const count = cache.length
  const rows = useRowWindow(scroller, { count, rowHeight, headerHeight })
  const shown = useColumnWindow(scroller, columns)
  const cells = useCellRange()
  const { active, activate } = cells
  const { select, startRange } = useSelection(cache, selected, onSelect)
  const width = (columns.at(-1)?.left ?? markerWidth) + (columns.at(-1)?.width ?? 0)

  const groups = [...new Set(columns.slice(shown.first, shown.end).map(({ group }) => group))].join()
  useEffect(() => {
    cache.show({
      first: rows.first,
      last: Math.max(rows.first, rows.end - 1),
      groups: groups === '' ? [0] : groups.split(',').map(Number),
    })
  }, [cache, revision, rows.first, rows.end, groups])

  const edit = useCellHandler(cache, columns, activeId, onEdit)
  const peek = useCellHandler(cache, columns, activeId, onPeek)
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOfGrid(event) || rangeAction(event, props, cells)) return
    const perPage = Math.max(1, rows.end - rows.first - 12)
    const next = moved(active, event, { rows: count, columns: columns.length, perPage })
    const [row, column] = [cache.rowAt(active.row), columns[active.column]]
    if (next) {
      event.preventDefault()
      activate(next.row, next.column, event.shiftKey)
      rows.reveal(next.row)
      shown.reveal(next.column)
    } else if (row && column) {
      const toggle = (): void => select(active.row, !selected.has(row.id), false)
      const action = actionOf(event, props, {
        row,
        column,
        toggle,
        edit: edit.bind(null, active.row, active.column),
        peek: peek.bind(null, active.row, active.column),
      })
      if (action) runFor(event, action)
    }
  }
  // A cell that is not in view is not in the document.
  const isActiveShown =
    active.row >= rows.first && active.row < rows.end && active.column >= shown.first && active.column < shown.end
  return (
    <div
      className="data-grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable="true"
      aria-activedescendant={isActiveShown ? activeId : undefined}
      tabIndex={0}
      ref={scroller}
      onKeyDown={onKeyDown}
      onPaste={(event) => pasteInto(event, props, cells)}
      onScroll={() => {
        rows.onScroll()
        shown.onScroll()
      }}
    >
      <Header {...props} rows={rows} shown={shown} width={width} select={select} startRange={startRange} />
      <div className="data-rows" role="rowgroup" style={{ height: rows.height, width }}>
        {range(rows.first, rows.end).map((index) => {
          const row = cache.rowAt(index)
          return (
            <GridRow
              key={index}
              index={index}
              row={row}
              top={rows.topOf(index)}
              width={width}
              columns={columns}
              firstColumn={shown.first}
              endColumn={shown.end}
              activeColumn={index === active.row ? active.column : null}
              activeId={activeId}
              span={cells.columnsIn(index)}
              isSelected={row !== undefined && selected.has(row.id)}
              isOpen={row !== undefined && row.id === props.openId}
              flash={row && props.live?.flashOf(row.id)}
              isStruck={row !== undefined && (props.live?.isStruck(row.id) ?? false)}
              onSelect={select}
              onActivate={activate}
              onOpen={edit}
              onPeek={peek}
            />
          )
        })}
      </div>
    </div>
  )
}

interface HeaderProps extends GridProps {
  readonly rows: RowWindow
  readonly shown: ColumnWindow
  readonly width: number
  readonly select: SelectRow
  readonly startRange: (index: number) => void
}

function Header(props: HeaderProps) {
  const { cache, columns, selected, rows, shown, width } = props
  const inView = range(rows.first, rows.end)
  const isAll = inView.length > 0 && inView.every((at) => selected.has(cache.rowAt(at)?.id ?? ''))
  return (
    <GridHeader
      columns={columns.slice(shown.first, shown.end)}
      firstColumn={shown.first}
      width={width}
      sort={props.sort}
      canSort={props.canSort}
      selection={isAll ? 'all' : selected.size > 0 ? 'some' : 'none'}
      onSelectAll={(isSelected) => {
        props.startRange(rows.first)
        if (isSelected) props.select(rows.end - 1, true, true)
        else props.onSelect(new Set())
      }}
      onSort={props.onSort}
      onResize={props.onResize}
    />
  )
}

const range = (first: number, end: number): number[] =>
  Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at)
