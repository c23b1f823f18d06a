/** The range of cells of a grid: from the cell where it began to the active one. */
import { useCallback, useMemo, useState } from 'react'
import type { ActiveCell } from './keyboard.ts'

/** Rows and columns, the last ones included. */
export interface CellRange {
  readonly top: number
  readonly left: number
  readonly bottom: number
  readonly right: number
}

/** The first and the last column. */
export type ColumnSpan = readonly [first: number, last: number]

export const isOneCell = ({ top, left, bottom, right }: CellRange): boolean => top === bottom && left === right

/** The smallest range with both. */
export const unionOf = (one: CellRange, other: CellRange): CellRange => ({
  top: Math.min(one.top, other.top),
  left: Math.min(one.left, other.left),
  bottom: Math.max(one.bottom, other.bottom),
  right: Math.max(one.right, other.right),
})

export interface CellRangeState {
  readonly active: ActiveCell
  readonly range: CellRange
  /** The column where a series of Tab began; null outside one. */
  readonly entry: number | null
  /** Makes a cell the active one: of a range that it extends, or alone. */
  activate(row: number, column: number, isExtended?: boolean): void
  /** Makes a cell the active one after an edit of another. */
  enter(cell: ActiveCell, entry: number | null): void
  /** Selects from one cell to another, which becomes the active one. */
  select(from: ActiveCell, to: ActiveCell): void
  /** The columns of the range in a row; null for rows outside, and for a single cell. */
  columnsIn(row: number): ColumnSpan | null
}

interface State {
  readonly active: ActiveCell
  readonly anchor: ActiveCell
  readonly entry: number | null
}

const firstCell: ActiveCell = { row: 0, column: 0 }

export function useCellRange(): CellRangeState {
  const [{ active, anchor, entry }, setState] = useState<State>({ active: firstCell, anchor: firstCell, entry: null })
  const activate = useCallback((row: number, column: number, isExtended = false) => {
    const cell = { row, column }
    setState(({ anchor: from }) => ({ active: cell, anchor: isExtended ? from : cell, entry: null }))
  }, [])
  const enter = useCallback(
    (cell: ActiveCell, next: number | null) => setState({ active: cell, anchor: cell, entry: next }),
    [],
  )
  const select = useCallback(
    (from: ActiveCell, to: ActiveCell) => setState({ active: to, anchor: from, entry: null }),
    [],
  )
  return useMemo(() => {
    const cellOf = ({ row, column }: ActiveCell): CellRange => ({ top: row, bottom: row, left: column, right: column })
    const range = unionOf(cellOf(active), cellOf(anchor))
    const isSingle = isOneCell(range)
    const span = [range.left, range.right] as const
    return {
      active,
      range,
      entry,
      activate,
      enter,
      select,
      columnsIn: (row) => (isSingle || row < range.top || row > range.bottom ? null : span),
    }
  }, [active, anchor, entry, activate, enter, select])
}
