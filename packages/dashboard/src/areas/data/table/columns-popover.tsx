/** Which columns a view shows. The choice is part of its URL. */
import { useState } from 'react'
import { Button } from '../../../design/button.tsx'
import { Checkbox, SearchInput } from '../../../design/field.tsx'
import { Popover } from '../../../design/popover.tsx'

export interface ColumnsPopoverProps {
  readonly fields: readonly string[]
  /** Null for all. */
  readonly shown: readonly string[] | null
  readonly onChange: (shown: readonly string[] | null) => void
}

export function ColumnsPopover({ fields, shown, onChange }: ColumnsPopoverProps) {
  const [words, setWords] = useState('')
  const chosen = new Set(shown ?? fields)
  const toggle = (name: string, isShown: boolean): void => {
    const next = fields.filter((one) => (one === name ? isShown : chosen.has(one)))
    onChange(next.length === fields.length ? null : next)
  }
  const found = fields.filter((name) => name.toLowerCase().includes(words.trim().toLowerCase()))
  return (
    <Popover
      title="Columns"
      trigger={
        <Button size="small" icon="columns">
          Columns
          {shown !== null && (
            <span className="tab-count">
              {chosen.size}/{fields.length}
            </span>
          )}
        </Button>
      }
    >
      <div className="data-columns">
        <SearchInput label="Find a column" value={words} onChange={setWords} />
        <ul>
          {found.map((name) => (
            <li key={name}>
              <Checkbox
                label={name}
                checked={chosen.has(name)}
                disabled={chosen.size === 1 && chosen.has(name)}
                onChange={(isShown) => toggle(name, isShown)}
              />
            </li>
          ))}
        </ul>
        <div className="data-filter-foot">
          <Button size="small" disabled={shown === null} onClick={() => onChange(null)}>
            Show all
          </Button>
        </div>
      </div>
    </Popover>
  )
}
