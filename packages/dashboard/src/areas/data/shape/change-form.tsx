/** The form of one change of a table: a field that is added, renamed or removed, or an index. */
import { type FormEvent, useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Checkbox, Field, TextField } from '../../../design/field.tsx'
import { Select } from '../../../design/select.tsx'
import { type ChangeDraft, canBeUnique, draftedChange, emptyDraft } from './change-draft.ts'
import { problemOf, type ShapeChange, type TableShape } from './table-shape.ts'

interface ChangeFormProps {
  /** As the table is declared, and with the changes so far. */
  readonly before: TableShape
  readonly current: TableShape
  readonly onAdd: (change: ShapeChange) => void
}

const kinds = [
  { value: 'add', label: 'Add a field' },
  { value: 'rename', label: 'Rename a field' },
  { value: 'remove', label: 'Remove a field' },
  { value: 'index', label: 'Add an index' },
  { value: 'unindex', label: 'Remove an index' },
] as const

const types = (['string', 'text', 'number', 'boolean', 'datetime', 'json', 'geo'] as const).map((value) => ({
  value,
  label: value,
}))

export function ChangeForm({ before, current, onAdd }: ChangeFormProps) {
  const [draft, setDraft] = useState(emptyDraft)
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<ChangeDraft>): void => {
    setProblem(null)
    setDraft((all) => ({ ...all, ...change }))
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    const drafted = draftedChange(draft)
    const found = 'problem' in drafted ? drafted.problem : problemOf(before, current, drafted.change)
    if (found === null && 'change' in drafted) {
      onAdd(drafted.change)
      set({ ...emptyDraft, kind: draft.kind })
    } else setProblem(found)
  }
  return (
    <form className="shape-form" onSubmit={submit}>
      <div className="shape-controls">
        <Field label="Change">
          {({ id }) => (
            <Select id={id} value={draft.kind} options={kinds} onChange={(kind) => set({ ...emptyDraft, kind })} />
          )}
        </Field>
        <Controls draft={draft} set={set} before={before} current={current} />
        <Button type="submit" icon="plus">
          Add to the patch
        </Button>
      </div>
      {problem !== null && (
        <p className="field-note is-bad" role="alert">
          {problem}
        </p>
      )}
    </form>
  )
}

interface ControlsProps extends Pick<ChangeFormProps, 'before' | 'current'> {
  readonly draft: ChangeDraft
  readonly set: (change: Partial<ChangeDraft>) => void
}

function Controls({ draft, set, before, current }: ControlsProps) {
  const { kind, name, chosen, unique } = draft
  const isThere = (wanted: string): boolean => current.fields.some((field) => field.name === wanted)
  const fields = before.fields.map((field) => field.name).filter(isThere)
  const choices = kind === 'unindex' ? current.indexes.map((index) => index.fields.join(', ')) : fields
  const isChosen = kind === 'rename' || kind === 'remove' || kind === 'unindex'
  return (
    <>
      {isChosen && (
        <Field label={kind === 'unindex' ? 'Index' : 'Field'}>
          {({ id }) => (
            <Select
              id={id}
              value={chosen}
              options={choices.map((value) => ({ value, label: value }))}
              onChange={(next) => set({ chosen: next })}
            />
          )}
        </Field>
      )}
      {(kind === 'add' || kind === 'rename' || kind === 'index') && (
        <TextField
          label={kind === 'index' ? 'Fields' : kind === 'rename' ? 'New name' : 'Name'}
          placeholder={kind === 'index' ? 'status, createdAt' : undefined}
          value={name}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => set({ name: event.target.value })}
        />
      )}
      {kind === 'add' && <FieldOptions draft={draft} set={set} />}
      {kind === 'index' && <Checkbox label="Unique" checked={unique} onChange={(next) => set({ unique: next })} />}
    </>
  )
}

function FieldOptions({ draft, set }: Pick<ControlsProps, 'draft' | 'set'>) {
  const { type, required, unique, hidden, defaultText } = draft
  return (
    <>
      <Field label="Type">
        {({ id }) => <Select id={id} value={type} options={types} onChange={(next) => set({ type: next })} />}
      </Field>
      <TextField
        label="Default"
        placeholder="none"
        value={defaultText}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => set({ defaultText: event.target.value })}
      />
      <Checkbox label="Required" checked={required} onChange={(next) => set({ required: next })} />
      <Checkbox
        label="Unique"
        checked={unique && canBeUnique(type)}
        disabled={!canBeUnique(type)}
        onChange={(next) => set({ unique: next })}
      />
      <Checkbox label="Hidden from users" checked={hidden} onChange={(next) => set({ hidden: next })} />
    </>
  )
}
