/** A choice of a few values that are all visible. */
import { useId } from 'react'

export interface SegmentsProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly options: readonly { readonly value: Value; readonly label: string }[]
  readonly onChange: (value: Value) => void
}

export function Segments<Value extends string>({ label, value, options, onChange }: SegmentsProps<Value>) {
  const name = useId()
  return (
    <fieldset className="rules-segments">
      <legend>{label}</legend>
      <div className="rules-segments-row">
        {options.map((option) => (
          <label key={option.value} className="rules-segment">
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
