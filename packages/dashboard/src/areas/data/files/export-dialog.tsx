/** Exports the records of a view as a file. */
import { useEffect, useRef, useState } from 'react'
import type { RecordFormat } from '../../../../../server/src/query/record-files/record-text.ts'
import type { TableDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field } from '../../../design/field.tsx'
import { Progress } from '../../../design/progress/progress.tsx'
import { Select } from '../../../design/select.tsx'
import { useToasts } from '../../../design/toast.tsx'
import type { TableAddress } from '../location.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { describeBytes } from './import-dialog.tsx'
import { downloadExport, saveFile } from './requests.ts'

export interface ExportDialogProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly query: RowQuery
  /** The number of records that match; null while it is unknown. */
  readonly total: number | null
  /** The fields that the view shows. */
  readonly shown: readonly string[]
  readonly onClose: () => void
}

const formats = [
  { value: 'csv', label: 'CSV, for spreadsheets' },
  { value: 'ndjson', label: 'NDJSON, one record per line' },
  { value: 'json', label: 'JSON, one array' },
] as const

type Columns = 'shown' | 'visible' | 'all'

export function ExportDialog({ address, table, query, total, shown, onClose }: ExportDialogProps) {
  const toasts = useToasts()
  const [format, setFormat] = useState<RecordFormat>('csv')
  const [columns, setColumns] = useState<Columns>('visible')
  const [bytes, setBytes] = useState<number | null>(null)
  const [error, setError] = useState<unknown>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const names = Object.keys(table.fields)
  const hasHidden = names.some((name) => table.fields[name]?.hidden)
  const fieldsOf = { shown, visible: null, all: names } as const

  const perform = async (): Promise<void> => {
    const controller = new AbortController()
    running.current = controller
    setError(null)
    setBytes(0)
    try {
      const options = { format, fields: fieldsOf[columns] }
      const content = await downloadExport(address, query, options, { signal: controller.signal, onBytes: setBytes })
      saveFile(content, `${table.name}.${format}`)
      toasts.add({ title: `Exported ${table.name}.${format}, ${describeBytes(content.size)}`, tone: 'good' })
      onClose()
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
      setBytes(null)
    }
  }
  const isBusy = bytes !== null
  return (
    <Dialog
      isOpen
      onClose={onClose}
      size="small"
      isSticky
      title={`Export ${table.name}`}
      description={`${total === null ? 'The records' : total === 1 ? '1 record' : `${total.toLocaleString('en')} records`} of this view, ${query.words === null ? 'in its order' : 'in the order of their ids'}`}
    >
      <div className="stack">
        <Field label="Format">
          {({ id }) => <Select id={id} value={format} options={formats} disabled={isBusy} onChange={setFormat} />}
        </Field>
        <Field label="Fields">
          {({ id }) => (
            <Select<Columns>
              id={id}
              value={columns}
              disabled={isBusy}
              options={[
                { value: 'visible', label: hasHidden ? 'All but hidden fields' : 'All fields' },
                { value: 'shown', label: 'Columns of this view' },
                ...(hasHidden ? [{ value: 'all' as const, label: 'All, hidden fields too' }] : []),
              ]}
              onChange={setColumns}
            />
          )}
        </Field>
        {format === 'csv' && (
          <p className="data-import-note">
            Text that a spreadsheet would run as a formula begins with an apostrophe, which an import removes.
          </p>
        )}
        {isBusy && (
          <Progress label="Received" value={null} max={1}>
            {describeBytes(bytes)} received
          </Progress>
        )}
        {error !== null && <ErrorNote error={error} />}
        <div className="button-row">
          <Button onClick={() => (isBusy ? running.current?.abort() : onClose())}>Cancel</Button>
          <Button kind="primary" icon="download" isBusy={isBusy} onClick={() => void perform()}>
            Export
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
