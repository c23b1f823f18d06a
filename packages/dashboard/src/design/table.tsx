/** A table of at most a few hundred rows. The grid of the area "Data" is for more. */
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { classNames } from './class-names.ts'

export interface Column<Row> {
  readonly id: string
  readonly title: ReactNode
  readonly cell: (row: Row) => ReactNode
  /** Aligns numbers by their digits. */
  readonly isNumeric?: boolean
  /** Leaves it out on narrow screens. */
  readonly isOptional?: boolean
}

export interface TableProps<Row> {
  /** What the rows are, for those who do not see the page around it. */
  readonly label: string
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  /** Makes rows buttons. */
  readonly onOpen?: (row: Row) => void
  readonly isSelected?: (row: Row) => boolean
}

export function Table<Row>({ label, rows, columns, keyOf, onOpen, isSelected }: TableProps<Row>) {
  const classOf = ({ isNumeric, isOptional }: Column<Row>): string =>
    classNames(isNumeric && 'is-numeric', isOptional && 'is-optional')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className="table-scroll" aria-label={label} tabIndex={0}>
      <table className="table">
        <caption className="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.id} scope="col" className={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              className={classNames(onOpen && 'is-clickable', isSelected?.(row) && 'is-selected')}
              onClick={onOpen && (() => onOpen(row))}
            >
              {columns.map((column, at) => (
                <td key={column.id} className={classOf(column)}>
                  {at === 0 && onOpen ? (
                    <button
                      type="button"
                      className="table-open"
                      onClick={(event) => {
                        event.stopPropagation()
                        onOpen(row)
                      }}
                    >
                      {column.cell(row)}
                    </button>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

export interface LoadMoreProps {
  /** The query of a list that is read in pages. */
  readonly pages: {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly fetchNextPage: () => Promise<unknown>
  }
  readonly label?: string
}

/** The button below a list that has another page. */
export function LoadMore({ pages, label = 'Load more' }: LoadMoreProps) {
  if (!pages.hasNextPage) return null
  return (
    <div className="load-more">
      <Button isBusy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
        {label}
      </Button>
    </div>
  )
}
