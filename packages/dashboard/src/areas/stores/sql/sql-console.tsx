/** Runs statements on a declared SQL database. */
import { useMutation } from '@tanstack/react-query'
import { type KeyboardEvent, useRef, useState } from 'react'
import { session } from '../../../app/session-store.ts'
import { useStore } from '../../../app/store.ts'
import { useUrlState } from '../../../app/url-state.ts'
import { Button } from '../../../design/button.tsx'
import { ConfirmDialog } from '../../../design/dialog.tsx'
import { EmptyState } from '../../../design/empty-state.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field } from '../../../design/field.tsx'
import { Spacer, Toolbar } from '../../../design/page.tsx'
import { runStatement } from '../requests.ts'
import { type StoreChoice, StoreSelect } from '../store-select.tsx'
import { SqlResult } from './sql-result.tsx'
import { mayWrite, type Position, positionOf } from './statement.ts'

export interface SqlConsoleProps {
  readonly database: string
  readonly choice: StoreChoice
}

/** Longer statements are not in the URL: servers and proxies refuse long ones. */
const urlCharsMax = 2000

export function SqlConsole({ database, choice }: SqlConsoleProps) {
  const url = useUrlState()
  const isRelease = useStore(session.current)?.mode !== 'development'
  const editor = useRef<HTMLTextAreaElement>(null)
  const [statement, setStatement] = useState(url.get('query') ?? '')
  const [isConfirming, setConfirming] = useState(false)
  const run = useMutation({ mutationFn: (query: string) => runStatement(database, query) })
  const position = run.error === null ? null : positionOf(run.error.message, run.variables)

  const start = (): void => {
    url.set({ query: statement.length <= urlCharsMax ? statement : null }, { replace: true })
    run.mutate(statement)
  }
  const request = (): void => {
    if (statement.trim() === '' || run.isPending) return
    if (isRelease && mayWrite(statement)) setConfirming(true)
    else start()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    request()
  }
  const goTo = ({ begin, end }: Position): void => {
    editor.current?.focus()
    editor.current?.setSelectionRange(begin, end)
  }
  return (
    <div className="stack">
      <Toolbar label="Statement">
        <StoreSelect label="Database" current={database} choice={choice} />
        <Spacer />
        <Button kind="primary" icon="bolt" isBusy={run.isPending} disabled={statement.trim() === ''} onClick={request}>
          Run
        </Button>
      </Toolbar>
      <Field label={<span className="visually-hidden">Statement</span>} hint="One statement. Ctrl+Enter runs it.">
        {(control) => (
          <textarea
            ref={editor}
            className="input stores-sql"
            spellCheck={false}
            placeholder="SELECT …"
            value={statement}
            onChange={(event) => setStatement(event.target.value)}
            onKeyDown={onKeyDown}
            {...control}
          />
        )}
      </Field>
      {run.error !== null && <ErrorNote error={run.error} />}
      {position !== null && run.variables === statement && (
        <div className="stores-note">
          Line {position.line}, column {position.column}{' '}
          <Button size="small" onClick={() => goTo(position)}>
            Select it
          </Button>
        </div>
      )}
      {run.data !== undefined && <SqlResult answer={run.data} />}
      {run.isIdle && (
        <EmptyState icon="table" title="Run a statement">
          Only this database can be reached; the tables of the application and of the platform cannot.
        </EmptyState>
      )}
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        title="Change the database?"
        action="Run statement"
        onConfirm={async () => start()}
      >
        This server is in release mode, and the statement may change <code>{database}</code>. There is no undo.
      </ConfirmDialog>
    </div>
  )
}
