/** The rows of a table: toolbar, grid, the editor of a cell, and the panel of a record. */
import { useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { CodeBlock } from '../../../design/code-block.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { useToasts } from '../../../design/toast.tsx'
import { useClipboard } from '../clipboard/use-clipboard.tsx'
import type { Column } from '../grid/columns.ts'
import { Grid } from '../grid/grid.tsx'
import { useLiveMode } from '../live/live-mode.tsx'
import type { TableAddress } from '../location.ts'
import { usePeek } from '../relations/peek-card.tsx'
import type { RowCache } from '../rows/row-cache.ts'
import { formatConditions, nextSort, type RowQuery } from '../rows/row-query.ts'
import { ViewsPopover } from '../views/views-popover.tsx'
import { formatColumns } from './columns-text.ts'
import { RowDialogs } from './row-dialogs.tsx'
import { RowsToolbar } from './rows-toolbar.tsx'
import { clientInsert, clientList, curlList } from './snippets.ts'
import { useAllRecords } from './use-all-records.tsx'
import { useEditing } from './use-editing.ts'
import { copyText, useRecordActions } from './use-record-actions.ts'
import { useView } from './use-view.ts'

export interface RowsTabProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly canWrite: boolean
}

const none: ReadonlySet<string> = new Set()

export function RowsTab({ address, table, canWrite }: RowsTabProps) {
  const url = useUrlState()
  const toasts = useToasts()
  const view = useView(address, table, url)
  const { query, cache, columns } = view
  const actions = useRecordActions(address, cache)
  const editing = useEditing(url, actions, canWrite)
  const peek = usePeek(address)
  const [selected, setSelected] = useState<ReadonlySet<string>>(none)
  const clipboard = useClipboard({ address, cache, columns, canWrite })
  const all = useAllRecords(address, table, view, canWrite)
  const live = useLiveMode(address, query, cache, url)
  const insert = (): void => editing.insert({})
  return (
    <div className="data-rows-tab">
      <RowsToolbar
        table={table}
        fields={view.names}
        query={query}
        shown={view.shown}
        total={cache.total}
        isEstimated={cache.isEstimated}
        selectedCount={selected.size}
        canWrite={canWrite}
        copyActions={copyActionsOf(address, query, (text, what) => void copyText(text, what, toasts))}
        moreActions={all.actions}
        onFilter={(conditions) => url.set({ filter: formatConditions(conditions), row: null })}
        onSearch={(text) => url.set({ q: text, row: null }, { replace: true })}
        onColumns={(next) => url.set({ columns: next && formatColumns(next, view.names) }, { replace: true })}
        onReload={() => cache.invalidate()}
        viewsPopover={<ViewsPopover table={table} url={url} {...view.settings} />}
        liveSwitch={live.toggle}
        onInsert={insert}
        onDelete={() => editing.setDeleting([...selected])}
        onClearSelection={() => setSelected(none)}
      />
      {all.content}
      {clipboard.content}
      {live.bar}
      {cache.error !== null && <RowsError cache={cache} />}
      {cache.isReady && cache.length === 0 ? (
        <NoRows
          address={address}
          query={query}
          canWrite={canWrite}
          onInsert={insert}
          onClear={() => url.set({ filter: null, q: null })}
        />
      ) : (
        <Grid
          label={`Rows of ${table.name}`}
          cache={cache}
          revision={view.revision}
          columns={columns}
          live={live.rows}
          sort={query.sort}
          canSort={(column) => query.words === null && isSortable(column)}
          selected={selected}
          openId={url.get('row')}
          onSelect={setSelected}
          onSort={(name) => url.set({ sort: nextSort(query.sort, name) })}
          {...clipboard.handlers}
          canFill={canWrite}
          onResize={view.settings.resize}
          onEdit={editing.editCell}
          onOpen={editing.open}
          onPeek={peek.open}
          onCopy={(row, { name }) => void copyText(textOf(row.values[name]), name, toasts)}
          onDelete={() => canWrite && editing.setDeleting([...selected])}
        />
      )}
      {peek.card}
      <RowDialogs
        address={address}
        table={table}
        canWrite={canWrite}
        openId={url.get('row')}
        isNew={canWrite && url.get('new') !== null}
        editing={editing}
        actions={actions}
        onInserted={(row) => url.set({ new: null, row: row.id }, { replace: true })}
        onStale={() => cache.invalidate()}
        onDeleted={() => setSelected(none)}
      />
    </div>
  )
}

const RowsError = ({ cache }: { readonly cache: RowCache }) => (
  <div className="data-error">
    <ErrorNote error={cache.error} onRetry={() => cache.invalidate()} />
  </div>
)

const isSortable = ({ field }: Column): boolean => field !== null && field.type !== 'json' && field.type !== 'geo'

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

const copyActionsOf = (address: TableAddress, query: RowQuery, copy: (text: string, what: string) => void) =>
  [
    { label: 'Copy as client code', icon: 'code', run: () => copy(clientList(address, query), 'the code') },
    { label: 'Copy as curl', icon: 'copy', run: () => copy(curlList(address, query, location.origin), 'the command') },
    { label: 'Copy the filter', icon: 'filter', run: () => copy(formatConditions(query.filter) ?? '[]', 'the filter') },
    { label: 'Copy the link', icon: 'link', run: () => copy(location.href, 'the link') },
  ] as const

interface NoRowsProps {
  readonly address: TableAddress
  readonly query: RowQuery
  readonly canWrite: boolean
  readonly onInsert: () => void
  readonly onClear: () => void
}

function NoRows({ address, query, canWrite, onInsert, onClear }: NoRowsProps) {
  const isFiltered = query.filter.length > 0 || query.words !== null
  return isFiltered ? (
    <EmptyState
      icon="filter"
      title="No record matches"
      action={<Button onClick={onClear}>Clear filter and search</Button>}
    >
      Fields without a value match no comparison; use “is null” to find them.
    </EmptyState>
  ) : (
    <EmptyState
      icon="table"
      title="No records yet"
      action={
        canWrite && (
          <Button kind="primary" icon="plus" onClick={onInsert}>
            Insert record
          </Button>
        )
      }
    >
      <p>Insert the first one here, or from your program:</p>
      <CodeBlock code={clientInsert(address, {})} />
    </EmptyState>
  )
}
