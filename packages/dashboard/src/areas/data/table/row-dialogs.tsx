/** What is open over the rows: the editor of a cell, a conflict, the panel of a record, and the deletion. */
import type { TableDescription } from '../../../app/queries.ts'
import { ConfirmDialog } from '../../../design/dialog.tsx'
import { CellEditor } from '../grid/cell-editor.tsx'
import type { TableAddress } from '../location.ts'
import { ConflictDialog } from '../record/conflict-dialog.tsx'
import { RecordPanel } from '../record/record-panel.tsx'
import type { Row } from '../rows/row.ts'
import type { Editing } from './use-editing.ts'
import { insertable, type RecordActions } from './use-record-actions.ts'

export interface RowDialogsProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly canWrite: boolean
  /** The record in the panel. */
  readonly openId: string | null
  readonly isNew: boolean
  readonly editing: Editing
  readonly actions: RecordActions
  readonly onInserted: (row: Row) => void
  /** The rows have changed elsewhere. */
  readonly onStale: () => void
  readonly onDeleted: () => void
}

export function RowDialogs(props: RowDialogsProps) {
  const { address, table, canWrite, openId, isNew, editing, actions } = props
  const { cell, conflict } = editing
  return (
    <>
      {cell !== null && (
        <CellEditor
          {...cell}
          onClose={editing.closeCell}
          onSave={(value) => editing.saveCell(cell.row, cell.column.name, value)}
        />
      )}
      {conflict !== null && (
        <ConflictDialog
          key={`${conflict.row.id} ${conflict.name}`}
          mine={{ [conflict.name]: conflict.value }}
          stored={conflict.stored}
          table={table}
          onClose={editing.closeConflict}
          onDiscard={() => {
            editing.closeConflict()
            props.onStale()
          }}
          onOverwrite={() => {
            editing.closeConflict()
            editing.saveCell(conflict.row, conflict.name, conflict.value, conflict.stored?.version)
          }}
        />
      )}
      {(openId !== null || isNew) && (
        <RecordPanel
          key={openId ?? 'new'}
          address={address}
          table={table}
          id={openId}
          initial={editing.initial}
          canWrite={canWrite}
          onClose={editing.close}
          onSaved={(row, before) => {
            actions.saved(row, before)
            if (before === null) props.onInserted(row)
          }}
          onDelete={(row) => editing.setDeleting([row.id])}
          onDuplicate={(values) => {
            const { id: _, ...copy } = insertable(values)
            editing.insert(copy)
          }}
          copyActions={actions.copyActions}
        />
      )}
      <DeleteDialog {...props} />
    </>
  )
}

function DeleteDialog({ table, openId, editing, actions, onDeleted }: RowDialogsProps) {
  const { deleting } = editing
  const count = deleting.length.toLocaleString('en')
  const isOne = deleting.length === 1
  return (
    <ConfirmDialog
      isOpen={deleting.length > 0}
      onClose={() => editing.setDeleting([])}
      title={isOne ? 'Delete this record?' : `Delete ${count} records?`}
      action={isOne ? 'Delete' : `Delete ${count} records`}
      {...(isOne ? {} : { phrase: table.name })}
      onConfirm={async () => {
        await actions.remove(deleting)
        onDeleted()
        if (openId !== null && deleting.includes(openId)) editing.close()
      }}
    >
      {isOne
        ? 'You can undo it for ten seconds.'
        : 'They cannot be restored, except from a backup. Records that others refer to are not deleted.'}
    </ConfirmDialog>
  )
}
