/** One entry of a key-value namespace: its value as JSON, and its lifetime. */
import { useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { ConfirmDialog, Dialog } from '../../../design/dialog.tsx'
import { ErrorNote } from '../../../design/error-note.tsx'
import { Field, TextField } from '../../../design/field.tsx'
import { formatBytes } from '../../../design/format/number.ts'
import { formatAge, formatTime } from '../../../design/format-time.ts'
import { Facts } from '../../../design/page.tsx'
import { Skeleton } from '../../../design/skeleton.tsx'
import { useToasts } from '../../../design/toast.tsx'
import { parseJson } from '../../../text/json.ts'
import { type KvEntry, useKvChange, useKvEntry } from '../requests.ts'
import { isExact, parseLifetime, secondsUntil } from './entry-text.ts'

interface EntryFormProps {
  readonly namespace: string
  /** Null for a new one, whose key is an input. */
  readonly entry: KvEntry | null
  readonly mayWrite: boolean
  readonly onSaved: (key: string) => void
}

export interface EntryPanelProps {
  readonly namespace: string
  readonly entryKey: string
  readonly mayWrite: boolean
  readonly onClose: () => void
}

export function EntryPanel({ namespace, entryKey, mayWrite, onClose }: EntryPanelProps) {
  const { data: entry, error, refetch } = useKvEntry(namespace, entryKey)
  const [isDeleting, setDeleting] = useState(false)
  const toasts = useToasts()
  const change = useKvChange(namespace)
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={<code className="stores-key">{entryKey}</code>}
      shape="panel"
      isModal={false}
    >
      <div className="stack">
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {entry === undefined && error === null && <Skeleton lines={6} />}
        {entry !== undefined && (
          <>
            <Facts
              facts={[
                ['Size', formatBytes(entry.valueBytes)],
                ['Written', formatTime(entry.writtenAt)],
                ['Expires', entry.expiresAt === null ? 'Never' : formatAge(entry.expiresAt)],
              ]}
            />
            <EntryForm
              namespace={namespace}
              entry={entry}
              mayWrite={mayWrite}
              onSaved={() => toasts.add({ title: 'Entry saved', tone: 'good' })}
            />
            {mayWrite && (
              <div>
                <Button icon="trash" onClick={() => setDeleting(true)}>
                  Delete entry…
                </Button>
              </div>
            )}
          </>
        )}
      </div>
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title="Delete this entry?"
        action="Delete entry"
        onConfirm={async () => {
          await change.mutateAsync({ action: 'delete', key: entryKey })
          toasts.add({ title: 'Entry deleted', tone: 'good' })
          onClose()
        }}
      >
        <code>{entryKey}</code> is removed at once. This cannot be undone.
      </ConfirmDialog>
    </Dialog>
  )
}

export interface NewEntryPanelProps {
  readonly namespace: string
  readonly onClose: () => void
  readonly onCreated: (key: string) => void
}

export const NewEntryPanel = ({ namespace, onClose, onCreated }: NewEntryPanelProps) => (
  <Dialog isOpen onClose={onClose} title="New entry" shape="panel" isModal={false}>
    <EntryForm namespace={namespace} entry={null} mayWrite onSaved={onCreated} />
  </Dialog>
)

function EntryForm({ namespace, entry, mayWrite, onSaved }: EntryFormProps) {
  const [key, setKey] = useState(entry?.key ?? '')
  /** Null while they show what is stored, so that another write does not replace what was typed. */
  const [editedText, setText] = useState<string | null>(null)
  const [editedLifetime, setLifetime] = useState<string | null>(null)
  const text = editedText ?? (entry === null ? '{}' : JSON.stringify(entry.value, null, 2))
  const lifetime = editedLifetime ?? secondsUntil(entry?.expiresAt ?? null)
  const change = useKvChange(namespace)
  const parsed = parseJson(text)
  const seconds = parseLifetime(lifetime)
  const isReady = 'value' in parsed && seconds !== undefined && key !== ''
  const submit = async (): Promise<void> => {
    if (!('value' in parsed) || seconds === undefined) return
    const ttl = seconds === null ? {} : { ttl: seconds }
    await change.mutateAsync({ action: 'set', key, value: parsed.value, ...ttl })
    setText(null)
    setLifetime(null)
    onSaved(key)
  }
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        // The mutation keeps the error, which is shown below.
        void submit().catch(() => undefined)
      }}
    >
      {entry === null && (
        <TextField
          label="Key"
          value={key}
          required
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setKey(event.target.value)}
        />
      )}
      <Field label="Value" hint="Any JSON." error={'problem' in parsed ? parsed.problem : null}>
        {(control) => (
          <textarea
            className="input stores-value"
            spellCheck={false}
            readOnly={!mayWrite}
            value={text}
            onChange={(event) => setText(event.target.value)}
            {...control}
          />
        )}
      </Field>
      {'value' in parsed && !isExact(parsed.value) && (
        <p className="stores-note">Integers beyond 2⁵³ are rounded here. Change this entry with a script.</p>
      )}
      {mayWrite && (
        <>
          <TextField
            label="Lifetime in seconds"
            value={lifetime}
            inputMode="numeric"
            autoComplete="off"
            placeholder="Never expires"
            hint="60 or more, counted from the moment it is saved. Empty for an entry that never expires."
            error={seconds === undefined ? 'Must be a whole number from 60 to 315,360,000.' : null}
            onChange={(event) => setLifetime(event.target.value)}
          />
          {change.error !== null && <ErrorNote error={change.error} />}
          <div className="button-row">
            <Button type="submit" kind="primary" disabled={!isReady} isBusy={change.isPending}>
              Save
            </Button>
          </div>
        </>
      )}
    </form>
  )
}
