/** A reference to a record of another table: its id, a glance at it, a search, and the way to it. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { useSchema } from '../../../app/queries.ts'
import { api } from '../../../app/transport.ts'
import { Button } from '../../../design/button.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { type ControlProps, SearchInput } from '../../../design/field.tsx'
import { Icon } from '../../../design/icons.tsx'
import { Popover } from '../../../design/popover.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { apiPath, findTable, pagePath, type TableAddress } from '../location.ts'
import type { Draft } from './draft.ts'
import { getRecord, type Values } from './writes.ts'

export interface ReferenceEditorProps {
  /** The table that is referred to. */
  readonly address: TableAddress
  readonly text: string
  readonly control: ControlProps
  readonly isDisabled: boolean
  readonly onChange: (draft: Draft) => void
}

const nameFields = ['name', 'title', 'displayName', 'email', 'label', 'slug']

/** The text by which people recognize a record. */
export function titleOf(record: Values): string {
  const named = nameFields.map((name) => record[name]).find((value) => typeof value === 'string' && value !== '')
  return typeof named === 'string' ? named : String(record.id)
}

/** Opens a record in its table. */
export const recordHref = (address: TableAddress, id: string): string =>
  `${pagePath(address)}?row=${encodeURIComponent(id)}`

export function ReferenceEditor({ address, text, control, isDisabled, onChange }: ReferenceEditorProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="record-reference">
      <div className="record-reference-line">
        <input
          className="input"
          {...control}
          spellCheck={false}
          autoComplete="off"
          placeholder="null"
          disabled={isDisabled}
          value={text}
          onChange={(event) => onChange(event.target.value === '' ? null : event.target.value)}
        />
        {!isDisabled && (
          <Popover
            title={`Choose from ${address.table}`}
            align="end"
            isOpen={isOpen}
            onOpenChange={setOpen}
            trigger={<Button icon="search">Choose</Button>}
          >
            <Finder
              address={address}
              onChoose={(id) => {
                onChange(id)
                setOpen(false)
              }}
            />
          </Popover>
        )}
      </div>
      {text !== '' && <Glance address={address} id={text} />}
    </div>
  )
}

/** What the reference leads to. */
function Glance({ address, id }: { readonly address: TableAddress; readonly id: string }) {
  const { data, error } = useQuery({
    queryKey: ['glance', apiPath(address), id],
    queryFn: () => getRecord(address, id),
  })
  if (error !== null) return <p className="record-glance is-missing">No record of {address.table} has this id.</p>
  if (data === undefined) return <p className="record-glance">…</p>
  return (
    <Link className="record-glance" href={recordHref(address, id)}>
      <Icon name="link" size={13} />
      <span dir="auto">{titleOf(data.values)}</span>
      <span className="record-glance-table">{address.table}</span>
      <Icon name="arrow-right" size={13} />
    </Link>
  )
}

interface Found {
  readonly items: readonly Values[]
}

const foundMax = 20

function Finder({ address, onChoose }: { readonly address: TableAddress; readonly onChoose: (id: string) => void }) {
  const { data: schema } = useSchema()
  const [words, setWords] = useState('')
  const table = schema && findTable(schema, address.namespace, address.table)
  const isSearch = words.trim() !== '' && (table?.search.length ?? 0) > 0
  const { data, error } = useQuery({
    queryKey: ['references', apiPath(address), words, isSearch],
    queryFn: ({ signal }) => {
      const byId = words.trim() === '' || isSearch ? {} : { filter: [['id', '==', words.trim()]] }
      const query = { limit: foundMax, ...(isSearch ? { q: words } : { after: '', ...byId }) }
      return api.get<Found>(`${apiPath(address)}${isSearch ? '/search' : ''}`, { query, signal })
    },
  })
  return (
    <div className="record-finder">
      <SearchInput
        label={(table?.search.length ?? 0) > 0 ? `Search ${address.table}` : 'Id'}
        value={words}
        onChange={setWords}
        autoFocus
      />
      {error !== null && <ErrorNote error={error} />}
      {data === undefined && error === null && <Skeleton />}
      <ul>
        {data?.items.map((item) => (
          <li key={String(item.id)}>
            <button type="button" className="menu-item record-found" onClick={() => onChoose(String(item.id))}>
              <span className="menu-text" dir="auto">
                {titleOf(item)}
              </span>
              <code>{String(item.id)}</code>
            </button>
          </li>
        ))}
      </ul>
      {data?.items.length === 0 && <p className="record-found-none">Nothing found.</p>}
    </div>
  )
}
