/** The matrix: tables by operations by kinds of callers. */
import { useState } from 'react'
import { useUrlState } from '../../app/url-state.ts'
import { Button } from '../../design/button.tsx'
import { classNames } from '../../design/class-names.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { DelayedSearch } from '../../design/field.tsx'
import { Icon, type IconName } from '../../design/icons.tsx'
import { Card, Facts, Toolbar } from '../../design/page.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Tooltip } from '../../design/tooltip.tsx'
import { CellPanel, callerTexts, callerTitles, labelOf } from './matrix-panel.tsx'
import {
  type MatrixCaller,
  type MatrixCell,
  type MatrixOperation,
  type MatrixTable,
  matrixCallers,
  matrixOperations,
  useMatrix,
} from './requests.ts'

/** How many tables are shown at first, each with twenty cells. */
const shownStep = 40

export function Matrix() {
  const url = useUrlState()
  const { data, error, refetch } = useMatrix()
  const [shownMax, setShownMax] = useState(shownStep)
  if (data === undefined)
    return error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} onRetry={() => void refetch()} />
  const search = url.get('search') ?? ''
  const found = data.tables.filter((table) => labelOf(table).toLowerCase().includes(search.toLowerCase()))
  const shown = found.slice(0, shownMax)
  const [label, operation, caller] = (url.get('cell') ?? '').split(':')
  const chosen = {
    table: data.tables.find((table) => labelOf(table) === label),
    operation: matrixOperations.find((one) => one === operation),
    caller: matrixCallers.find((one) => one === caller),
  }
  return (
    <>
      <Toolbar label="Filter">
        <DelayedSearch
          className="rules-search"
          label="Table or bucket"
          initial={search}
          maxLength={128}
          onSearch={(text) => url.set({ search: text }, { replace: true })}
        />
      </Toolbar>
      {found.length === 0 ? (
        <EmptyState icon="table" title={data.tables.length === 0 ? 'No tables yet' : 'No table found'}>
          {data.tables.length === 0
            ? 'The matrix shows the tables and buckets of your configuration.'
            : 'The search looks for a part of the name, such as a namespace.'}
        </EmptyState>
      ) : (
        <Card isFlush>
          <MatrixGrid tables={shown} onOpen={(cell) => url.set({ cell })} current={url.get('cell')} />
        </Card>
      )}
      {found.length > shown.length && (
        <div className="rules-center">
          <Button onClick={() => setShownMax(shownMax + shownStep)}>Show more tables</Button>
        </div>
      )}
      <div className="rules-callers">
        <Card title="Callers">
          <Facts facts={matrixCallers.map((kind) => [callerTitles[kind], callerTexts[kind]])} />
        </Card>
      </div>
      <CellPanel {...chosen} onClose={() => url.set({ cell: null })} />
    </>
  )
}

interface GridProps {
  readonly tables: readonly MatrixTable[]
  readonly current: string | null
  readonly onOpen: (cell: string) => void
}

function MatrixGrid({ tables, current, onOpen }: GridProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className="table-scroll" aria-label="Matrix" tabIndex={0}>
      <table className="rules-matrix">
        <caption className="visually-hidden">What kinds of callers may do with each table</caption>
        <thead>
          <tr>
            <th scope="col">Operation</th>
            {matrixCallers.map((kind) => (
              <th key={kind} scope="col">
                {callerTitles[kind]}
              </th>
            ))}
          </tr>
        </thead>
        {tables.map((table) => (
          <TableRows key={labelOf(table)} table={table} current={current} onOpen={onOpen} />
        ))}
      </table>
    </section>
  )
}

function TableRows({ table, current, onOpen }: { readonly table: MatrixTable } & Omit<GridProps, 'tables'>) {
  const label = labelOf(table)
  return (
    <tbody>
      <tr className="rules-matrix-name">
        <th scope="rowgroup" colSpan={matrixCallers.length + 1}>
          <span>
            <Icon name={table.kind === 'bucket' ? 'files' : 'table'} />
            {label}
          </span>
        </th>
      </tr>
      {matrixOperations.map((operation) => (
        <tr key={operation}>
          <th scope="row">{operation}</th>
          {matrixCallers.map((caller) => {
            const key = `${label}:${operation}:${caller}`
            return (
              <td key={caller}>
                <CellButton
                  name={`${label} ${operation} as ${callerTitles[caller].toLowerCase()}`}
                  cell={table.operations[operation][caller]}
                  isOpen={isOpenToOthers(table.operations[operation][caller], operation, caller)}
                  isCurrent={current === key}
                  onOpen={() => onOpen(key)}
                />
              </td>
            )
          })}
        </tr>
      ))}
    </tbody>
  )
}

const icons: Readonly<Record<MatrixCell['access'], IconName>> = { always: 'check', depends: 'filter', never: 'minus' }

/** Whether everyone may change records, which is rarely intended. */
const isOpenToOthers = ({ access }: MatrixCell, operation: MatrixOperation, caller: MatrixCaller): boolean =>
  access === 'always' &&
  (operation === 'update' || operation === 'delete') &&
  (caller === 'anonymous' || caller === 'otherUser' || caller === 'otherTenant')

interface CellButtonProps {
  readonly name: string
  readonly cell: MatrixCell
  readonly isOpen: boolean
  readonly isCurrent: boolean
  readonly onOpen: () => void
}

function CellButton({ name, cell, isOpen, isCurrent, onOpen }: CellButtonProps) {
  const button = (
    <button
      type="button"
      className={classNames('rules-cell', `is-${cell.access}`, isOpen && 'is-open', isCurrent && 'is-current')}
      aria-label={`${name}: ${cell.access}${isOpen ? ', open to everyone' : ''}`}
      onClick={onOpen}
    >
      <Icon name={isOpen ? 'alert' : icons[cell.access]} size={12} />
      {cell.access}
    </button>
  )
  return cell.condition === null ? button : <Tooltip text={cell.condition}>{button}</Tooltip>
}
