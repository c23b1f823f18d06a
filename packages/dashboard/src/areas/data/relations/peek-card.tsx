/** A glance at the record that a reference in a cell leads to, without leaving the rows. */
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import { Link } from 'wouter'
import { type Schema, useSchema } from '../../../app/queries.ts'
import { api } from '../../../app/transport.ts'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Icon } from '../../../design/icons.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { CellValue } from '../grid/cell-value.tsx'
import type { Column } from '../grid/columns.ts'
import { apiPath, findTable, type TableAddress } from '../location.ts'
import { recordHref, titleOf } from '../record/reference-editor.tsx'
import { type Row, rowOf } from '../rows/row.ts'
import { focusGrid } from '../table/use-editing.ts'

interface Peek {
  /** The table that is referred to. */
  readonly address: TableAddress
  readonly id: string
  /** Where the cell is on the screen. */
  readonly cell: DOMRect
}

const fieldsShown = 8
const previewChars = 160
const cardWidth = 340
const cardHeight = 320

/** The card is below its cell, or above it where there is no room. */
const placeOf = (cell: DOMRect): { left: number; top?: number; bottom?: number } => {
  const left = Math.max(8, Math.min(cell.left, innerWidth - cardWidth - 8))
  return cell.bottom + cardHeight < innerHeight
    ? { left, top: cell.bottom + 4 }
    : { left, bottom: innerHeight - cell.top + 4 }
}

function PeekCard({ address, id, cell, onClose }: Peek & { readonly onClose: () => void }) {
  const { data: schema } = useSchema()
  const card = useRef<HTMLDivElement>(null)
  useEffect(() => {
    card.current?.focus()
    const onPointerDown = (event: PointerEvent): void => {
      if (!card.current?.contains(event.target as Node)) onClose()
    }
    document.addEventListener('pointerdown', onPointerDown)
    return () => document.removeEventListener('pointerdown', onPointerDown)
  }, [onClose])
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return
    event.stopPropagation()
    onClose()
  }
  return createPortal(
    <div
      className="data-peek"
      role="dialog"
      aria-label={`${address.table} ${id}`}
      tabIndex={-1}
      ref={card}
      style={placeOf(cell)}
      onKeyDown={onKeyDown}
    >
      {schema && <Content address={address} id={id} schema={schema} />}
    </div>,
    document.body,
  )
}

/** The card, and what opens it: nothing for a cell that is no reference. */
export function usePeek(address: TableAddress): {
  readonly open: (row: Row, column: Column, cell: DOMRect) => void
  readonly card: ReactNode
} {
  const [peek, setPeek] = useState<Peek | null>(null)
  const open = useCallback(
    (row: Row, { name, field }: Column, cell: DOMRect): void => {
      const id = row.values[name]
      if (field?.references === undefined || id === null || id === undefined) return
      setPeek({ address: { ...address, table: field.references }, id: String(id), cell })
    },
    [address],
  )
  const close = useCallback((): void => {
    setPeek(null)
    focusGrid()
  }, [])
  return { open, card: peek && <PeekCard {...peek} onClose={close} /> }
}

interface Found {
  readonly items: readonly Readonly<Record<string, unknown>>[]
}

function Content({ address, id, schema }: Pick<Peek, 'address' | 'id'> & { readonly schema: Schema }) {
  const table = findTable(schema, address.namespace, address.table)
  const { data, error, refetch } = useQuery({
    queryKey: ['peek', apiPath(address), id],
    queryFn: ({ signal }) => {
      const query = { filter: JSON.stringify([['id', '==', id]]), after: '', limit: 1, preview: previewChars }
      return api.get<Found>(apiPath(address), { query, signal })
    },
  })
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={4} />
  const [item] = data.items
  if (!item) return <p className="data-peek-none">No record of {address.table} has this id.</p>
  const { values, cut } = rowOf(item, null)
  const names = Object.keys(values).filter((name) => name !== 'id' && values[name] !== null)
  return (
    <>
      <Link className="data-peek-title" href={recordHref(address, id)}>
        <span dir="auto">{titleOf(values)}</span>
        <span className="record-glance-table">{address.table}</span>
        <Icon name="arrow-right" size={13} />
      </Link>
      <dl>
        {names.slice(0, fieldsShown).map((name) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <CellValue value={values[name]} field={table?.fields[name] ?? null} isCut={cut.has(name)} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}
