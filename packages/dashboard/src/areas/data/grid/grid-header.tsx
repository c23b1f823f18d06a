/** The header of the grid: names, order, and the width of each column. */
import type { PointerEvent } from 'react'
import { classNames } from '../../../design/class-names.ts'
import { Checkbox } from '../../../design/field.tsx'
import { Icon, type IconName } from '../../../design/icons.tsx'
import { parseSortOrder } from '../rows/row-query.ts'
import { type Column, columnWidthMax, columnWidthMin } from './columns.ts'

export const iconOf = (column: Pick<Column, 'name' | 'field'>): IconName => {
  if (column.name === 'id') return 'key'
  if (column.field === null) return 'text'
  if (column.field.references !== undefined) return 'link'
  return column.field.type === 'string' ? 'text' : column.field.type
}

export interface GridHeaderProps {
  readonly columns: readonly Column[]
  readonly firstColumn: number
  readonly width: number
  readonly sort: string | null
  readonly canSort: (column: Column) => boolean
  readonly selection: 'all' | 'some' | 'none'
  readonly onSelectAll: (isSelected: boolean) => void
  readonly onSort: (name: string) => void
  readonly onResize: (name: string, width: number) => void
}

export function GridHeader(props: GridHeaderProps) {
  const { columns, firstColumn, width, sort, canSort, selection, onSelectAll, onSort, onResize } = props
  const order = parseSortOrder(sort)
  return (
    <div className="data-header" role="row" aria-rowindex={1} style={{ width }}>
      <div role="columnheader" aria-colindex={1} className="data-marker">
        <Checkbox
          label="Select all loaded records in view"
          isLabelHidden
          checked={selection === 'all'}
          isMixed={selection === 'some'}
          onChange={onSelectAll}
        />
      </div>
      {columns.map((column, at) => {
        const direction = order?.field === column.name ? order.direction : null
        return (
          <div
            key={column.name}
            role="columnheader"
            aria-colindex={firstColumn + at + 2}
            aria-sort={direction === null ? undefined : direction === 'asc' ? 'ascending' : 'descending'}
            className={classNames('data-heading', column.field?.type === 'number' && 'is-numeric')}
            style={{ left: column.left, width: column.width }}
          >
            <button
              type="button"
              className="data-heading-button"
              disabled={!canSort(column)}
              onClick={() => onSort(column.name)}
            >
              <Icon name={iconOf(column)} size={13} />
              <span className="data-heading-name">{column.name}</span>
              {direction !== null && <Icon name={direction === 'asc' ? 'arrow-up' : 'arrow-down'} size={12} />}
            </button>
            <Resizer column={column} onResize={onResize} />
          </div>
        )
      })}
    </div>
  )
}

const clamp = (width: number): number => Math.min(columnWidthMax, Math.max(columnWidthMin, Math.round(width)))

function Resizer({ column, onResize }: { readonly column: Column; readonly onResize: GridHeaderProps['onResize'] }) {
  const start = (event: PointerEvent<HTMLSpanElement>): void => {
    if (event.button !== 0) return
    event.preventDefault()
    const handle = event.currentTarget
    handle.setPointerCapture(event.pointerId)
    const from = event.clientX
    const move = ({ clientX }: globalThis.PointerEvent): void =>
      onResize(column.name, clamp(column.width + clientX - from))
    const end = (): void => {
      handle.removeEventListener('pointermove', move)
      handle.removeEventListener('lostpointercapture', end)
    }
    handle.addEventListener('pointermove', move)
    handle.addEventListener('lostpointercapture', end)
  }
  return <span className="data-resizer" aria-hidden="true" onPointerDown={start} />
}
