/** One row of the grid: its checkbox, and the cells of the columns in view. */
import { memo, type PointerEvent } from 'react'
import { classNames } from '../../../design/class-names.ts'
import { Icon } from '../../../design/icons.tsx'
import type { Flash } from '../live/live-rows.ts'
import type { Row } from '../rows/row.ts'
import { CellValue } from './cell-value.tsx'
import type { Column } from './columns.ts'
import type { ColumnSpan } from './use-cell-range.ts'

export interface GridRowProps {
  readonly index: number
  readonly row: Row | undefined
  readonly top: number
  readonly width: number
  readonly columns: readonly Column[]
  /** The columns in view: the first, and one past the last. */
  readonly firstColumn: number
  readonly endColumn: number
  /** The active column; null where another row is active. */
  readonly activeColumn: number | null
  readonly isSelected: boolean
  readonly isOpen: boolean
  /** Of a row that has just changed. */
  readonly flash?: Flash | undefined
  /** Whether the row has just been deleted. */
  readonly isStruck?: boolean
  /** The id of the active cell, for `aria-activedescendant`. */
  readonly activeId: string
  readonly onSelect: (index: number, isSelected: boolean, isRange: boolean) => void
  /** The columns of the range of cells; null where the row has none. */
  readonly span: ColumnSpan | null
  readonly onActivate: (index: number, column: number, isExtended: boolean) => void
  readonly onOpen: (index: number, column: number) => void
  readonly onPeek: (index: number, column: number) => void
  /** The column with the handle that fills cells; null where the row has none. */
  readonly handleColumn: number | null
  readonly onFillStart: (event: PointerEvent) => void
}

export const GridRow = memo(function GridRow({
  index,
  row,
  top,
  width,
  columns,
  firstColumn,
  endColumn,
  activeColumn,
  isSelected,
  isOpen,
  flash,
  isStruck = false,
  activeId,
  span,
  onSelect,
  onActivate,
  onOpen,
  onPeek,
  handleColumn,
  onFillStart,
}: GridRowProps) {
  const onPointerDown = (event: PointerEvent, column: number): void => {
    if (event.button === 0) onActivate(index, column, event.shiftKey)
  }
  const onPointerEnter = (event: PointerEvent, column: number): void => {
    if (event.buttons === 1) onActivate(index, column, true)
  }
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      className={classNames('data-row', isSelected && 'is-selected', isOpen && 'is-open', isStruck && 'is-struck')}
      style={{ top, width }}
    >
      <div
        role="gridcell"
        aria-colindex={1}
        className="data-marker"
        onClickCapture={(event) => {
          event.preventDefault()
          if (row !== undefined) onSelect(index, !isSelected, event.shiftKey)
        }}
      >
        {row !== undefined && (
          <input
            type="checkbox"
            className="data-check"
            aria-label={`Select record ${row.id}`}
            tabIndex={-1}
            checked={isSelected}
            readOnly
          />
        )}
      </div>
      {columns.slice(firstColumn, endColumn).map((column, at) => {
        const number = firstColumn + at
        const isActive = number === activeColumn
        const isInRange = span !== null && number >= span[0] && number <= span[1]
        const isFlashing = flash?.names.has(column.name) ?? false
        const isThere = row !== undefined && column.name in row.values
        return (
          <div
            // A new element starts the animation again.
            key={isFlashing ? `${column.name} ${flash?.count}` : column.name}
            role="gridcell"
            tabIndex={-1}
            aria-colindex={number + 2}
            aria-selected={isInRange || undefined}
            id={isActive ? activeId : undefined}
            className={classNames(
              'data-cell',
              isActive && 'is-active',
              isInRange && 'is-in-range',
              isFlashing && 'is-flashing',
              column.field?.type === 'number' && 'is-numeric',
            )}
            style={{ left: column.left, width: column.width }}
            onPointerDown={(event) => onPointerDown(event, number)}
            onPointerEnter={(event) => onPointerEnter(event, number)}
            // The grid has the keys, also after the cell has left the document.
            onFocus={(event) => event.currentTarget.closest<HTMLElement>('.data-grid')?.focus({ preventScroll: true })}
            onDoubleClick={() => onOpen(index, number)}
          >
            {isThere ? (
              <CellValue value={row.values[column.name]} field={column.field} isCut={row.cut.has(column.name)} />
            ) : (
              row === undefined && <span className="data-pending" />
            )}
            {isThere && column.field?.references !== undefined && row.values[column.name] !== null && (
              <button
                type="button"
                className="data-peek-button"
                tabIndex={-1}
                aria-label={`Look at ${String(row.values[column.name])}`}
                onClick={() => onPeek(index, number)}
              >
                <Icon name="eye" size={13} />
              </button>
            )}
            {number === handleColumn && (
              <span className="data-fill-handle" aria-hidden="true" onPointerDown={onFillStart} />
            )}
          </div>
        )
      })}
    </div>
  )
})
