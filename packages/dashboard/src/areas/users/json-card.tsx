/** A JSON object of a user as text. Text that is not an object cannot be saved. */
import { useState } from 'react'
import { Button } from '../../design/button.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { Field } from '../../design/field.tsx'
import { Card } from '../../design/page.tsx'
import { useToasts } from '../../design/toast.tsx'
import { parseObject } from '../../text/json.ts'
import { useUserChange } from './requests.ts'

export interface JsonCardProps {
  readonly title: string
  readonly hint: string
  readonly value: object
  /** Null for those who may only read it. */
  readonly onSave: ((value: object) => Promise<unknown>) | null
}

export function JsonCard({ title, hint, value, onSave }: JsonCardProps) {
  const toasts = useToasts()
  const stored = JSON.stringify(value, null, 2)
  /** Null while it shows what is stored. */
  const [edited, setEdited] = useState<string | null>(null)
  const text = edited ?? stored
  const parsed = parseObject(text)
  const save = useUserChange(async (next: object) => onSave?.(next))
  const submit = (): void => {
    if (!('value' in parsed)) return
    save.mutate(parsed.value, {
      onSuccess: () => {
        setEdited(null)
        toasts.add({ title: `${title} saved`, tone: 'good' })
      },
    })
  }
  return (
    <Card title={title}>
      <div className="stack">
        <Field
          label={<span className="visually-hidden">{title}</span>}
          hint={hint}
          error={'problem' in parsed ? parsed.problem : null}
        >
          {(control) => (
            <textarea
              className="input users-json"
              spellCheck={false}
              readOnly={onSave === null}
              value={text}
              onChange={(event) => setEdited(event.target.value)}
              {...control}
            />
          )}
        </Field>
        {save.error !== null && <ErrorNote error={save.error} />}
        {text !== stored && (
          <div className="button-row">
            <Button onClick={() => setEdited(null)}>Discard</Button>
            <Button kind="primary" disabled={!('value' in parsed)} isBusy={save.isPending} onClick={submit}>
              Save
            </Button>
          </div>
        )}
      </div>
    </Card>
  )
}
