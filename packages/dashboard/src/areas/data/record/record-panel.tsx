/** The panel of one record: all fields in full length, editing with the version that was read, and what can be done. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { isPlinthError } from 'plinth-client'
import { type KeyboardEvent, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { ConfirmDialog, Dialog } from '../../../design/dialog.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Menu, type MenuActions } from '../../../design/menu.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { useToasts } from '../../../design/toast.tsx'
import { apiPath, type TableAddress } from '../location.ts'
import type { Row } from '../rows/row.ts'
import { BackwardRelations } from './backward-relations.tsx'
import { ConflictDialog } from './conflict-dialog.tsx'
import { FormFields } from './form-fields.tsx'
import { useRecordForm } from './record-form.ts'
import { Conflict, getRecord, insertRecord, updateRecord, type Values } from './writes.ts'

export interface RecordPanelProps {
  readonly address: TableAddress
  readonly table: TableDescription
  /** Null for a new record. */
  readonly id: string | null
  /** Values of a new record, such as those of the one it is a copy of. */
  readonly initial: Values
  readonly canWrite: boolean
  readonly onClose: () => void
  /** A record was written; `before` are the earlier values of the fields, null for a new record. */
  readonly onSaved: (row: Row, before: Values | null) => void
  readonly onDelete: (row: Row) => void
  readonly onDuplicate: (values: Values) => void
  readonly copyActions: (row: Row) => MenuActions
}

export const recordKey = (address: TableAddress, id: string): readonly unknown[] => ['record', apiPath(address), id]

export function RecordPanel(props: RecordPanelProps) {
  const { address, id, onClose } = props
  const { data, error, refetch } = useQuery({
    queryKey: id === null ? ['record', 'new'] : recordKey(address, id),
    enabled: id !== null,
    // A form must not change while it is edited.
    refetchOnWindowFocus: false,
    queryFn: () => getRecord(address, id ?? ''),
  })
  if (id === null) return <OpenPanel {...props} row={null} />
  if (data !== undefined) return <OpenPanel key={`${id} ${data.version}`} {...props} row={data} />
  return (
    <Dialog isOpen shape="panel" title={<code>{id}</code>} onClose={onClose}>
      {error === null ? (
        <Skeleton lines={8} />
      ) : isPlinthError(error, 'not-found') ? (
        <EmptyState icon="search" title="There is no such record">
          It may have been deleted, or its id is misspelled.
        </EmptyState>
      ) : (
        <ErrorNote error={error} onRetry={() => void refetch()} />
      )}
    </Dialog>
  )
}

function OpenPanel(props: RecordPanelProps & { readonly row: Row | null }) {
  const { address, table, row, initial, canWrite, onClose, onSaved } = props
  const toasts = useToasts()
  const queries = useQueryClient()
  const form = useRecordForm(table, row, initial)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [conflict, setConflict] = useState<Row | null | undefined>(undefined)
  const [isLeaving, setLeaving] = useState(false)
  const [isChecked, setChecked] = useState(false)

  const save = async (version = row?.version ?? ''): Promise<void> => {
    setChecked(true)
    if (form.changes === null) return
    setBusy(true)
    setError(null)
    try {
      const before =
        row && Object.fromEntries(Object.keys(form.changes).map((name) => [name, row.values[name] ?? null]))
      const saved = row
        ? await updateRecord(address, { id: row.id, version }, form.changes)
        : await insertRecord(address, form.changes)
      setConflict(undefined)
      // The panel shows what the server has made of it.
      if (row) queries.setQueryData(recordKey(address, row.id), saved)
      onSaved(saved, before)
    } catch (failure) {
      if (failure instanceof Conflict) setConflict(failure.stored)
      else setError(failure)
    } finally {
      setBusy(false)
    }
  }
  const leave = (): void => (form.isChanged ? setLeaving(true) : onClose())
  const takeStored = (): void => {
    if (row && conflict) queries.setQueryData(recordKey(address, row.id), conflict)
    form.reset()
    setConflict(undefined)
    toasts.add({ title: 'The stored version is shown.' })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if ((event.metaKey || event.ctrlKey) && (event.key === 's' || event.key === 'Enter')) {
      event.preventDefault()
      if (form.isChanged) void save()
    }
  }
  return (
    <Dialog
      isOpen
      shape="panel"
      isSticky={form.isChanged}
      title={row ? <code className="record-id">{row.id}</code> : 'New record'}
      description={`${table.name} in ${address.instanceId ?? address.namespace}`}
      actions={row && <PanelActions {...props} row={row} />}
      onClose={leave}
      footer={
        canWrite && (
          <>
            {form.isChanged && <Button onClick={form.reset}>Discard</Button>}
            <Button kind="primary" disabled={!form.isChanged} isBusy={isBusy} onClick={() => void save()}>
              {row ? 'Save' : 'Insert'}
            </Button>
          </>
        )
      }
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: only forwards a shortcut of the form. */}
      <div className="stack" onKeyDown={onKeyDown}>
        {error !== null && <ErrorNote error={error} />}
        <FormFields
          address={address}
          table={table}
          isNew={row === null}
          canWrite={canWrite}
          form={form}
          error={error}
          showsErrors={isChecked}
        />
        {row && <BackwardRelations address={address} id={row.id} />}
      </div>
      {conflict !== undefined && form.changes !== null && (
        <ConflictDialog
          mine={form.changes}
          stored={conflict}
          table={table}
          onClose={() => setConflict(undefined)}
          onDiscard={takeStored}
          onOverwrite={() => void save(conflict?.version)}
        />
      )}
      <ConfirmDialog
        isOpen={isLeaving}
        title="Discard the changes?"
        action="Discard"
        onClose={() => setLeaving(false)}
        onConfirm={async () => onClose()}
      >
        They have not been saved.
      </ConfirmDialog>
    </Dialog>
  )
}

function PanelActions({ row, canWrite, onDelete, onDuplicate, copyActions }: RecordPanelProps & { readonly row: Row }) {
  const writing: MenuActions = canWrite
    ? [
        { label: 'Duplicate', icon: 'copy', run: () => onDuplicate(row.values) },
        null,
        { label: 'Delete', icon: 'trash', isDangerous: true, run: () => onDelete(row) },
      ]
    : []
  return (
    <Menu
      align="end"
      trigger={<IconButton icon="more" label="Actions" size="small" />}
      actions={[...copyActions(row), ...writing]}
    />
  )
}
