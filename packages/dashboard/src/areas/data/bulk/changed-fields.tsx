/** The fields that a bulk change sets, each with its value. */
import { useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { Field } from '../../../design/field.tsx'
import { Select } from '../../../design/select.tsx'
import type { TableAddress } from '../location.ts'
import { type Draft, editorKind, emptyMeansNull, isReadOnly, parseDraft } from '../record/draft.ts'
import { FieldEditor } from '../record/field-editor.tsx'
import type { Values } from '../record/writes.ts'

export interface ChangedField {
  readonly name: string
  readonly draft: Draft
}

/** The values; null where a text is not valid. */
export function valuesOf(table: TableDescription, fields: readonly ChangedField[]): Values | null {
  const values: Record<string, unknown> = {}
  for (const { name, draft } of fields) {
    const parsed = parse(table, name, draft)
    if ('error' in parsed) return null
    values[name] = parsed.value
  }
  return values
}

function parse(table: TableDescription, name: string, draft: Draft) {
  const field = table.fields[name] ?? null
  const kind = editorKind(name, field)
  return parseDraft(kind, emptyMeansNull(name, kind, draft), field)
}

export interface ChangedFieldsProps {
  readonly address: TableAddress
  readonly table: TableDescription
  /** All fields that are known. */
  readonly names: readonly string[]
  readonly fields: readonly ChangedField[]
  readonly onChange: (fields: readonly ChangedField[]) => void
}

export function ChangedFields({ address, table, names, fields, onChange }: ChangedFieldsProps) {
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set())
  const free = names.filter(
    (name) => !isReadOnly(name, table.fields[name] ?? null, false) && !fields.some((one) => one.name === name),
  )
  const change = (at: number, next: ChangedField): void =>
    onChange(fields.map((field, other) => (other === at ? next : field)))
  return (
    <div className="data-bulk-fields">
      {fields.map(({ name, draft }, at) => {
        const field = table.fields[name] ?? null
        const parsed = parse(table, name, draft)
        return (
          <div key={name} className="data-bulk-field">
            <Select
              label={`Field ${at + 1}`}
              value={name}
              options={[name, ...free].map((value) => ({ value, label: value }))}
              onChange={(next) => change(at, { name: next, draft: null })}
            />
            <Field
              label={<span className="visually-hidden">New value of {name}</span>}
              error={touched.has(name) && 'error' in parsed ? `${name} ${parsed.error}` : null}
            >
              {(control) => (
                <FieldEditor
                  name={name}
                  kind={editorKind(name, field)}
                  field={field}
                  draft={draft}
                  control={control}
                  isDisabled={false}
                  address={address}
                  onChange={(next) => {
                    setTouched(new Set([...touched, name]))
                    change(at, { name, draft: next })
                  }}
                />
              )}
            </Field>
            <IconButton
              icon="undo"
              label={`Set ${name} to null`}
              disabled={draft === null}
              onClick={() => change(at, { name, draft: null })}
            />
            <IconButton
              icon="close"
              label={`Leave ${name} as it is`}
              disabled={fields.length === 1}
              onClick={() => onChange(fields.filter((_, other) => other !== at))}
            />
          </div>
        )
      })}
      {free.length > 0 && (
        <Button
          size="small"
          kind="quiet"
          icon="plus"
          onClick={() => onChange([...fields, { name: free[0] as string, draft: null }])}
        >
          Another field
        </Button>
      )}
    </div>
  )
}
