/** Two versions of a record: what was about to be saved, and what is stored meanwhile. Neither is lost unseen. */

import type { TableDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { CellValue } from '../grid/cell-value.tsx'
import type { Row } from '../rows/row.ts'
import type { Values } from './writes.ts'

export interface ConflictDialogProps {
  /** What was to be written. */
  readonly mine: Values
  /** Null if the record was deleted. */
  readonly stored: Row | null
  readonly table: TableDescription
  readonly onOverwrite: () => void
  readonly onDiscard: () => void
  readonly onClose: () => void
}

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

export function ConflictDialog({ mine, stored, table, onOverwrite, onDiscard, onClose }: ConflictDialogProps) {
  const names = Object.keys(mine)
  return (
    <Dialog
      isOpen
      isSticky
      size="large"
      title={stored === null ? 'The record was deleted meanwhile' : 'The record was changed meanwhile'}
      description={
        stored === null
          ? 'Your changes were not saved. Copy what you need, or insert it as a new record.'
          : 'Another change was saved after you opened the record. Yours was not saved yet.'
      }
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Continue editing</Button>
          {stored !== null && (
            <>
              <Button onClick={onDiscard}>Take the stored version</Button>
              <Button kind="danger" onClick={onOverwrite}>
                Overwrite with mine
              </Button>
            </>
          )}
        </>
      }
    >
      <table className="table record-versions">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Mine</th>
            {stored !== null && <th scope="col">Stored</th>}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name} className={stored !== null && !same(mine[name], stored.values[name]) ? 'is-different' : ''}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                <CellValue value={mine[name]} field={table.fields[name] ?? null} />
              </td>
              {stored !== null && (
                <td>
                  <CellValue value={stored.values[name]} field={table.fields[name] ?? null} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  )
}
