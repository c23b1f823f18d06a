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

export interface CellRangeState {
  readonly active: ActiveCell
  readonly range: CellRange
  /** Makes a cell the active one: of a range that it extends, or alone. */
  activate(row: number, column: number, extends_?: boolean): void
  /** Selects from the first cell to this one. */
  selectTo(last: ActiveCell): void
  /** The columns of the range in a row; null for rows outside, and for a single cell. */
  columnsIn(row: number): ColumnSpan | null
}

export function useCellRange(): CellRangeState {
  const [{ active, anchor }, setState] = useState<{ readonly active: ActiveCell; readonly anchor: ActiveCell }>({
    active: { row: 0, column: 0 },
    anchor: { row: 0, column: 0 },
  })
  const activate = useCallback((row: number, column: number, isExtended = false) => {
    setState(({ anchor: from }) => ({ active: { row, column }, anchor: isExtended ? from : { row, column } }))
  }, [])
  const selectTo = useCallback((last: ActiveCell) => setState({ active: last, anchor: { row: 0, column: 0 } }), [])
  return useMemo(() => {
    const range: CellRange = {
      top: Math.min(active.row, anchor.row),
      bottom: Math.max(active.row, anchor.row),
      left: Math.min(active.column, anchor.column),
      right: Math.max(active.column, anchor.column),
    }
    const isSingle = isOneCell(range)
    const span = [range.left, range.right] as const
    return {
      active,
      range,
      activate,
      selectTo,
      columnsIn: (row) => (isSingle || row < range.top || row > range.bottom ? null : span),
    }
  }, [active, anchor, activate, selectTo])
}
