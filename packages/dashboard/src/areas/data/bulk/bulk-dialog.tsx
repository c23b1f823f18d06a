/** Changes or deletes all records of a view: what to set, a preview, the confirmation, and then the progress. */
import { type FormEvent, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button } from '../../../design/button.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { TextField } from '../../../design/field.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import type { TableAddress } from '../location.ts'
import { isReadOnly } from '../record/draft.ts'
import type { RowQuery } from '../rows/row-query.ts'
import { describeCondition } from '../table/operators.ts'
import { type ChangedField, ChangedFields, valuesOf } from './changed-fields.tsx'
import { CancelJob, JobProgress, recordsOf } from './job-progress.tsx'
import { PreviewTable } from './preview-table.tsx'
import { type BulkChange, type BulkJob, startJob, usePreview } from './requests.ts'

export interface BulkDialogProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly action: BulkChange['action']
  readonly query: RowQuery
  /** All fields that are known, and those that the view shows. */
  readonly names: readonly string[]
  readonly shown: readonly string[]
  /** The latest job of the table. */
  readonly job: BulkJob | null
  readonly onClose: () => void
}

export function BulkDialog(props: BulkDialogProps) {
  const { action, address, job, onClose } = props
  const [startedId, setStartedId] = useState<string | null>(null)
  const isDelete = action === 'delete'
  const started = startedId !== null && job?.id === startedId ? job : null
  return (
    <Dialog
      isOpen
      onClose={onClose}
      size="large"
      isSticky
      title={isDelete ? 'Delete matching records' : 'Change matching records'}
      {...(started ? { description: 'The job runs on the server. You can close the page.' } : {})}
    >
      {started ? (
        <div className="stack">
          <JobProgress job={started} />
          <div className="button-row">
            <CancelJob address={address} job={started} />
            <Button kind="primary" onClick={onClose}>
              Close
            </Button>
          </div>
        </div>
      ) : (
        <BulkForm {...props} onStarted={setStartedId} />
      )}
    </Dialog>
  )
}

/** Fields of a preview of a deletion. */
const previewFieldsMax = 3

function BulkForm(props: BulkDialogProps & { readonly onStarted: (id: string) => void }) {
  const { address, table, action, query, names, shown, onStarted, onClose } = props
  const [fields, setFields] = useState<readonly ChangedField[]>(() => firstField(table, names))
  const [phrase, setPhrase] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const isDelete = action === 'delete'
  const values = isDelete ? null : valuesOf(table, fields)
  const previewed = isDelete
    ? shown.filter((name) => name !== 'id').slice(0, previewFieldsMax)
    : fields.map(({ name }) => name)
  const preview = usePreview(address, query, previewed)
  const total = preview.data?.total ?? null
  const isReady = total !== null && total > 0 && phrase.trim() === table.name && (isDelete || values !== null)

  const start = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (!isReady || isBusy) return
    setBusy(true)
    setError(null)
    try {
      const { filter, words } = query
      const selected = { filter, ...(words !== null && { q: words }) }
      const change = { action, ...selected, limit: total, ...(values !== null && { data: values }) }
      onStarted((await startJob(address, change)).id)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <form className="stack" onSubmit={(event) => void start(event)}>
      <Selection query={query} table={table} />
      {!isDelete && (
        <ChangedFields address={address} table={table} names={names} fields={fields} onChange={setFields} />
      )}
      {preview.error !== null ? (
        <ErrorNote error={preview.error} onRetry={() => void preview.refetch()} />
      ) : preview.data === undefined ? (
        <Skeleton lines={4} />
      ) : (
        <section className="data-bulk-preview" aria-label="Preview">
          <h3>
            {total === 0 ? 'No record matches.' : recordsOf(total ?? 0)}
            {(total ?? 0) > preview.data.rows.length && <span>, the first {preview.data.rows.length}:</span>}
          </h3>
          {preview.data.rows.length > 0 && (
            <PreviewTable table={table} rows={preview.data.rows} fields={previewed} values={values} />
          )}
        </section>
      )}
      <p className="data-bulk-note">
        {isDelete
          ? 'They cannot be restored, except from a backup. Records that others refer to are left and named.'
          : 'This cannot be undone. Records that a rule, a function or a unique value refuses are left and named.'}
      </p>
      <TextField
        label={
          <>
            Type <code className="phrase">{table.name}</code> to confirm
          </>
        }
        value={phrase}
        onChange={(event) => setPhrase(event.target.value)}
        autoComplete="off"
        spellCheck={false}
      />
      {error !== null && <ErrorNote error={error} />}
      <div className="button-row">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind={isDelete ? 'danger' : 'primary'} disabled={!isReady} isBusy={isBusy}>
          {isDelete ? 'Delete' : 'Change'} {total === null ? '' : recordsOf(total)}
        </Button>
      </div>
    </form>
  )
}

function firstField(table: TableDescription, names: readonly string[]): readonly ChangedField[] {
  const name = names.find((one) => !isReadOnly(one, table.fields[one] ?? null, false))
  return name === undefined ? [] : [{ name, draft: null }]
}

function Selection({ query: { filter, words }, table }: Pick<BulkDialogProps, 'query' | 'table'>) {
  if (filter.length === 0 && words === null)
    return (
      <p>
        No filter is set: <strong>every record of {table.name}</strong> is selected.
      </p>
    )
  return (
    <ul className="data-conditions data-bulk-conditions" aria-label="Conditions">
      {words !== null && (
        <li className="data-condition">
          Search: <span dir="auto">{words}</span>
        </li>
      )}
      {filter.map((condition) => (
        <li key={JSON.stringify(condition)} className="data-condition" dir="auto">
          {describeCondition(condition)}
        </li>
      ))}
    </ul>
  )
}
