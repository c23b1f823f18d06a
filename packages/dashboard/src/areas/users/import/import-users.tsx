/** Imports users from a file: JSON or CSV, with passwords or their hashes; what is wrong is named for each user. */
import { useState } from 'react'
import { Badge } from '../../../design/badge.tsx'
import { Button } from '../../../design/button.tsx'
import { CodeBlock } from '../../../design/code-block.tsx'
import { Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field } from '../../../design/field.tsx'
import { type Column, Table } from '../../../design/table.tsx'
import { importUsers, type Outcome, type Report, useUserChange } from '../requests.ts'
import { readUsers, type UserEntry } from './user-file.ts'

export function ImportUsersDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Import users" size="large" isSticky>
      <ImportUsers onClose={onClose} />
    </Dialog>
  )
}

const sample = `email,passwordHash,displayName,verified
ada@example.com,$2b$10$…,Ada,true`

/** Mounted for as long as the dialog is open, so that each opening begins empty. */
function ImportUsers({ onClose }: { readonly onClose: () => void }) {
  const [entries, setEntries] = useState<readonly UserEntry[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [done, setDone] = useState(0)
  const run = useUserChange((users: readonly UserEntry[]) => importUsers(users, setDone))
  const read = async (file: File | undefined): Promise<void> => {
    setEntries(null)
    setError(null)
    run.reset()
    if (!file) return
    try {
      setEntries(await readUsers(file))
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <div className="stack">
      <p>
        A JSON list of users, or CSV with a header. Known columns are id, email, password, passwordHash, displayName,
        avatarUrl, role, verified, metadata and appMetadata. Hashes are bcrypt or PBKDF2. Existing users stay as they
        are, so that a file can be imported again.
      </p>
      <CodeBlock label="CSV" code={sample} />
      <Field label="File">
        {(control) => (
          <input
            {...control}
            className="input users-file"
            type="file"
            accept=".json,.csv,application/json,text/csv"
            disabled={run.isPending}
            onChange={(event) => void read(event.target.files?.[0])}
          />
        )}
      </Field>
      {error !== null && <ErrorNote error={error} />}
      {run.error !== null && <ErrorNote error={run.error} />}
      {run.isPending && (
        <p role="status">
          {done} of {entries?.length ?? 0} users…
        </p>
      )}
      {run.data && <ImportResult report={run.data} />}
      <div className="button-row">
        <Button onClick={onClose}>{run.data ? 'Close' : 'Cancel'}</Button>
        {!run.data && (
          <Button
            kind="primary"
            icon="upload"
            disabled={entries === null}
            isBusy={run.isPending}
            onClick={() => entries !== null && run.mutate(entries)}
          >
            {entries === null ? 'Import' : `Import ${entries.length.toLocaleString('en')} users`}
          </Button>
        )}
      </div>
    </div>
  )
}

const columns: readonly Column<Outcome>[] = [
  { id: 'user', title: 'User', cell: ({ email, id }) => email ?? id ?? 'Without an address' },
  { id: 'result', title: 'Result', cell: ({ status }) => <Badge tone="bad">{status}</Badge> },
  { id: 'reason', title: 'Reason', cell: ({ error }) => <span className="users-reason">{error}</span> },
]

/** Failures that are listed; the others are counted. */
const listedMax = 100

function ImportResult({ report: { imported, skipped, errors, results } }: { readonly report: Report }) {
  const failures = results.filter(({ status }) => status === 'error').slice(0, listedMax)
  return (
    <>
      <p role="status">
        {imported.toLocaleString('en')} imported, {skipped.toLocaleString('en')} existed already,{' '}
        {errors.toLocaleString('en')} not imported.
      </p>
      {failures.length > 0 && (
        <Table
          label="Users that were not imported"
          rows={failures}
          columns={columns}
          keyOf={(one) => String(failures.indexOf(one))}
        />
      )}
    </>
  )
}
