/** A JSON object as text. */
import type { ReactNode } from 'react'
import { Field } from '../../design/field.tsx'

export interface JsonFieldProps {
  readonly label: ReactNode
  readonly hint?: ReactNode
  readonly placeholder: string
  readonly value: string
  readonly problem: string | null
  readonly onChange: (text: string) => void
}

export function JsonField({ label, hint, placeholder, value, problem, onChange }: JsonFieldProps) {
  return (
    <Field label={label} hint={hint} error={problem}>
      {(control) => (
        <textarea
          className="input rules-json"
          spellCheck={false}
          placeholder={placeholder}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          {...control}
        />
      )}
    </Field>
  )
}
