/** Which columns a view shows, in which order. The choice is part of its URL. */
import { useState } from 'react'
import { Button, IconButton } from '../../../design/button.tsx'
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
  const order = shown ?? fields
  const apply = (next: readonly string[]): void => onChange(next.join() === fields.join() ? null : next)
  const toggle = (name: string, isShown: boolean): void =>
    apply(isShown ? [...order, name] : order.filter((one) => one !== name))
  const move = (name: string, by: 1 | -1): void => {
    const at = order.indexOf(name)
    const others = order.filter((one) => one !== name)
    apply(others.toSpliced(at + by, 0, name))
  }
  const inOrder = [...order, ...fields.filter((name) => !chosen.has(name))]
  const found = inOrder.filter((name) => name.toLowerCase().includes(words.trim().toLowerCase()))
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
            <li key={name} className="data-column">
              <Checkbox
                label={name}
                checked={chosen.has(name)}
                disabled={chosen.size === 1 && chosen.has(name)}
                onChange={(isShown) => toggle(name, isShown)}
              />
              {chosen.has(name) && (
                <>
                  <IconButton
                    icon="arrow-up"
                    label={`Move ${name} to the left`}
                    size="small"
                    disabled={name === order[0]}
                    onClick={() => move(name, -1)}
                  />
                  <IconButton
                    icon="arrow-down"
                    label={`Move ${name} to the right`}
                    size="small"
                    disabled={name === order.at(-1)}
                    onClick={() => move(name, 1)}
                  />
                </>
              )}
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
