/** The fields of a record as a form. Of many fields, only those that change are drawn again, and a search finds them. */
import { isPlinthError } from 'plinth-client'
import { memo, useState } from 'react'
import type { FieldDescription, TableDescription } from '../../../app/queries.ts'
import { Badge } from '../../../design/badge.tsx'
import { Button } from '../../../design/button.tsx'
import { Field, SearchInput, TextField } from '../../../design/field.tsx'
import type { TableAddress } from '../location.ts'
import { emptyMeansNull } from './draft.ts'
import { FieldEditor } from './field-editor.tsx'
import type { FormField, RecordForm } from './record-form.ts'

export interface FormFieldsProps {
  readonly address: TableAddress
  readonly table: TableDescription
  readonly isNew: boolean
  readonly canWrite: boolean
  readonly form: RecordForm
  /** What the server has refused. */
  readonly error: unknown
  /** Whether invalid texts are marked. */
  readonly showsErrors: boolean
}

/** More do not fit on a screen or two. */
const searchedFieldsMin = 25

/** The message that the server has for a field. */
function serverError(error: unknown, name: string): string | null {
  const data = isPlinthError(error) ? error.data : null
  const entry = (data as Readonly<Record<string, { readonly message?: unknown }>> | null)?.[name]
  return typeof entry?.message === 'string' ? entry.message : null
}

export function FormFields({ address, table, isNew, canWrite, form, error, showsErrors }: FormFieldsProps) {
  const [words, setWords] = useState('')
  const fields = form.fields.filter((one) => !isNew || !one.isReadOnly)
  const messageOf = ({ name, kind, error: own }: FormField): string | null =>
    serverError(error, name) ?? (own !== null && (showsErrors || kind === 'datetime') ? `${name} ${own}` : null)
  const wanted = words.trim().toLowerCase()
  // A field with a message is never hidden by the search.
  const shown = fields.filter((one) => one.name.toLowerCase().includes(wanted) || messageOf(one) !== null)
  return (
    <>
      {fields.length >= searchedFieldsMin && <SearchInput label="Find a field" value={words} onChange={setWords} />}
      {shown.map((one) => (
        <FormRow
          key={one.name}
          name={one.name}
          kind={one.kind}
          draft={one.draft}
          isReadOnly={one.isReadOnly}
          isMarked={one.isChanged && !isNew}
          message={messageOf(one)}
          field={table.fields[one.name] ?? null}
          address={address}
          isNew={isNew}
          canWrite={canWrite}
          set={form.set}
        />
      ))}
      {shown.length === 0 && <p className="record-found-none">No field has this in its name.</p>}
      {table.schemaless && canWrite && <AddField form={form} />}
    </>
  )
}

interface FormRowProps extends Pick<FormField, 'name' | 'kind' | 'draft' | 'isReadOnly'> {
  /** Whether it is marked as changed. */
  readonly isMarked: boolean
  readonly message: string | null
  readonly field: FieldDescription | null
  readonly address: TableAddress
  readonly isNew: boolean
  readonly canWrite: boolean
  readonly set: RecordForm['set']
}

const FormRow = memo(function FormRow(props: FormRowProps) {
  const { name, kind, draft, isReadOnly, field, isNew, canWrite, set } = props
  const isDisabled = isReadOnly || !canWrite
  const isNullable = !isDisabled && !field?.required && draft !== null
  return (
    <Field
      label={
        <>
          {name}
          {props.isMarked && <span className="record-changed" title="Changed" />}
        </>
      }
      hint={name === 'id' && isNew ? 'Leave it empty for a generated one.' : undefined}
      error={props.message}
      aside={
        <span className="record-kind">
          {isNullable && (
            <button type="button" className="record-clear" onClick={() => set(name, null)}>
              {isNew ? 'Clear' : 'Set to null'}
            </button>
          )}
          {field?.required && name !== 'id' && !isReadOnly && <span>required</span>}
          <Badge>{field === null ? 'any' : field.enum ? 'enum' : field.type}</Badge>
        </span>
      }
    >
      {(control) => (
        <FieldEditor
          name={name}
          kind={kind}
          field={field}
          draft={draft}
          control={control}
          isDisabled={isDisabled}
          address={props.address}
          onChange={(next) => set(name, emptyMeansNull(name, kind, next))}
        />
      )}
    </Field>
  )
})

/** Tables without declared fields take any. */
function AddField({ form }: { readonly form: RecordForm }) {
  const [name, setName] = useState('')
  return (
    <div className="record-add">
      <TextField
        label="Another field"
        placeholder="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button
        icon="plus"
        disabled={name.trim() === '' || form.fields.some((field) => field.name === name.trim())}
        onClick={() => {
          form.set(name.trim(), '""')
          setName('')
        }}
      >
        Add
      </Button>
    </div>
  )
}
