/**
 * A grid over any number of rows and columns, of which only those in view are in the document. One cell is active and
 * moves with the keys; the grid itself has the focus. What is shown comes from a `RowCache`.
 */
import { type ClipboardEvent, type KeyboardEvent, type RefObject, useCallback, useEffect, useId, useRef } from 'react'
import { classNames } from '../../../design/class-names.ts'
import type { LiveRows } from '../live/live-rows.ts'
import type { Row } from '../rows/row.ts'
import type { RowCache } from '../rows/row-cache.ts'
import { type Column, markerWidth } from './columns.ts'
import { GridHeader } from './grid-header.tsx'
import { GridRow } from './grid-row.tsx'
import { moved, type Step, stepped } from './keyboard.ts'
import { type CellRange, type CellRangeState, isOneCell, unionOf, useCellRange } from './use-cell-range.ts'
import { type ColumnWindow, useColumnWindow } from './use-column-window.ts'
import { type FillDrag, useFillDrag } from './use-fill-drag.ts'
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
  /** The active cell was opened: with Enter, F2 or a double click. `onStep` moves the active cell after the edit. */
  readonly onEdit: (row: Row, column: Column, cell: DOMRect, onStep: (step: Step) => void) => void
  /** The record was opened: with the space bar. */
  readonly onOpen: (row: Row) => void
  /** A reference was looked at: with P or its button. */
  readonly onPeek: (row: Row, column: Column, cell: DOMRect) => void
  readonly onCopy: (row: Row, column: Column) => void
  readonly onDelete: () => void
  /** Several cells were copied. */
  readonly onCopyRange: (range: CellRange) => void
  /** The values of a range are to be repeated in the cells beside it. */
  readonly onFill: (source: CellRange, target: CellRange) => void
  readonly canFill: boolean
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

/** Repeats the first row of a range in the others, or in one row the row above it. */
function fillDown({ onFill }: GridProps, range: CellRange): void {
  const { top, bottom } = range
  const source = top === bottom ? top - 1 : top
  if (source >= 0) onFill({ ...range, top: source, bottom: source }, { ...range, top: source + 1 })
}

/** Copies or fills the range, or selects all cells; returns whether the key does one of them. */
function rangeAction(event: KeyboardEvent, props: GridProps, { range, select }: CellRangeState): boolean {
  if (!(event.ctrlKey || event.metaKey)) return false
  const last = { row: props.cache.length - 1, column: props.columns.length - 1 }
  if (event.key === 'a' && last.row >= 0) select({ row: 0, column: 0 }, last)
  else if (event.key === 'd') fillDown(props, range)
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
  { cache, columns }: GridProps,
  activeId: string,
  handle: GridProps['onPeek'],
): (index: number, at: number) => void {
  return useCallback(
    (index, at) => {
      const [row, column, cell] = [cache.rowAt(index), columns[at], document.getElementById(activeId)]
      if (row && column && cell) handle(row, column, cell.getBoundingClientRect())
    },
    [cache, columns, activeId, handle],
  )
}

/** Requests what is in view, again after each change of the cache. */
function useShownRows({ cache, revision, columns }: GridProps, { first, end }: RowWindow, shown: ColumnWindow): void {
  const groups = [...new Set(columns.slice(shown.first, shown.end).map(({ group }) => group))].join()
  useEffect(() => {
    cache.show({
      first,
      last: Math.max(first, end - 1),
      groups: groups === '' ? [0] : groups.split(',').map(Number),
    })
  }, [cache, revision, first, end, groups])
}

/** Opens the editor of a cell, which moves the active cell as it ends. The function stays the same. */
function useEdit(
  { cache, columns, onEdit }: GridProps,
  { active, entry, enter }: CellRangeState,
  rows: RowWindow,
  shown: ColumnWindow,
): GridProps['onPeek'] {
  const onStep = useRef((_: Step): void => {})
  onStep.current = (step) => {
    const next = stepped(active, step, entry, { rows: cache.length, columns: columns.length })
    enter(next.cell, next.entry)
    rows.reveal(next.cell.row)
    shown.reveal(next.cell.column)
  }
  return useCallback((row, column, cell) => onEdit(row, column, cell, (step) => onStep.current(step)), [onEdit])
}

/** Fills the cells over which the handle of the range is dragged, and selects them with the range. */
function useRangeFill(
  scroller: RefObject<HTMLDivElement | null>,
  props: GridProps,
  { range, select }: CellRangeState,
  rows: RowWindow,
): FillDrag {
  const { cache, columns } = props
  const onFill = (source: CellRange, target: CellRange): void => {
    const { top, left, bottom, right } = unionOf(source, target)
    select({ row: top, column: left }, { row: bottom, column: right })
    props.onFill(source, target)
  }
  return useFillDrag(scroller, { rows, count: cache.length, columns, range, rowHeight, headerHeight, onFill })
}

export function Grid(props: GridProps) {
  const { cache, columns, selected } = props
  const scroller = useRef<HTMLDivElement>(null)
  const activeId = useId()
  const count = cache.length
  const rows = useRowWindow(scroller, { count, rowHeight, headerHeight })
  const shown = useColumnWindow(scroller, columns)
  const cells = useCellRange()
  const { active, activate } = cells
  const { select, startRange } = useSelection(cache, selected, props.onSelect)
  const width = widthOf(columns)
  useShownRows(props, rows, shown)
  const edit = useCellHandler(props, activeId, useEdit(props, cells, rows, shown))
  const peek = useCellHandler(props, activeId, props.onPeek)
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
  const fill = useRangeFill(scroller, props, cells, rows)
  return (
    <div
      className={classNames('data-grid', shown.isScrolled && 'is-scrolled')}
      role="grid"
      aria-label={props.label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable="true"
      // A cell that is not in view is not in the document.
      aria-activedescendant={isWithin(active.row, rows) && isWithin(active.column, shown) ? activeId : undefined}
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
              handleColumn={props.canFill && index === cells.range.bottom ? cells.range.right : null}
              onFillStart={fill.onStart}
            />
          )
        })}
        {fill.target !== null && <FillOutline target={fill.target} columns={columns} rows={rows} />}
      </div>
    </div>
  )
}

const widthOf = (columns: readonly Column[]): number =>
  (columns.at(-1)?.left ?? markerWidth) + (columns.at(-1)?.width ?? 0)

const isWithin = (at: number, { first, end }: { readonly first: number; readonly end: number }): boolean =>
  at >= first && at < end

interface FillOutlineProps {
  readonly target: CellRange
  readonly columns: readonly Column[]
  readonly rows: RowWindow
}

function FillOutline({ target: { top, left, bottom, right }, columns, rows }: FillOutlineProps) {
  const [first, last] = [columns[left], columns[right]]
  if (!first || !last) return null
  const style = {
    left: first.left,
    width: last.left + last.width - first.left,
    top: rows.topOf(top),
    height: rows.topOf(bottom + 1) - rows.topOf(top),
  }
  return <div className="data-fill-outline" aria-hidden="true" style={style} />
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
