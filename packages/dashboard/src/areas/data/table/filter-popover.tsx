/** The conditions of a view, edited together and applied at once. */
import { type FormEvent, useState } from 'react'
import type { TableDescription } from '../../../app/queries.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { Input } from '../../../design/field.tsx'
import { Popover } from '../../../design/popover.tsx'
import { Select } from '../../../design/select.tsx'
import type { Condition } from '../rows/row-query.ts'
import { conditionOf, draftOf, type FilterDraft, hasValue, operatorNames, operatorsOf } from './operators.ts'

export interface FilterPopoverProps {
  readonly table: TableDescription
  readonly fields: readonly string[]
  readonly conditions: readonly Condition[]
  readonly onApply: (conditions: readonly Condition[]) => void
}

export function FilterPopover(props: FilterPopoverProps) {
  const [isOpen, setOpen] = useState(false)
  const count = props.conditions.length
  return (
    <Popover
      title="Filter"
      isOpen={isOpen}
      onOpenChange={setOpen}
      trigger={
        <Button size="small" icon="filter">
          Filter
          {count > 0 && <span className="tab-count">{count}</span>}
        </Button>
      }
    >
      <FilterForm
        {...props}
        onApply={(conditions) => {
          props.onApply(conditions)
          setOpen(false)
        }}
      />
    </Popover>
  )
}

const booleans = [
  { value: 'true', label: 'true' },
  { value: 'false', label: 'false' },
] as const

interface Line extends FilterDraft {
  readonly key: number
}

function FilterForm({ table, fields, conditions, onApply }: FilterPopoverProps) {
  const first: FilterDraft = { field: fields.find((name) => name !== 'id') ?? 'id', operator: '==', text: '' }
  const [lines, setLines] = useState<readonly Line[]>(() =>
    (conditions.length === 0 ? [first] : conditions.map(draftOf)).map((draft, key) => ({ ...draft, key })),
  )
  const change = (key: number, values: Partial<FilterDraft>): void =>
    setLines((before) => before.map((line) => (line.key === key ? { ...line, ...values } : line)))
  const fieldOf = (name: string) => table.fields[name] ?? null
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    onApply(
      lines
        .filter(({ operator, text }) => !hasValue(operator) || text !== '')
        .map((line) => conditionOf(line, fieldOf(line.field))),
    )
  }
  return (
    <form className="data-filter" onSubmit={submit}>
      {lines.map(({ key, field, operator, text }) => {
        const description = fieldOf(field)
        const choices =
          description?.type === 'boolean'
            ? booleans
            : description?.enum && operator !== 'in' && operator !== 'not in'
              ? description.enum.map((one) => ({ value: String(one), label: String(one) }))
              : null
        return (
          <div className="data-filter-line" key={key}>
            <Select
              label="Field"
              value={field}
              options={fields.map((name) => ({ value: name, label: name }))}
              onChange={(next) => {
                const operators = operatorsOf(fieldOf(next))
                change(key, { field: next, operator: operators.includes(operator) ? operator : (operators[0] ?? '==') })
              }}
            />
            <Select
              label="Operator"
              value={operator}
              options={operatorsOf(description).map((id) => ({ value: id, label: operatorNames[id] }))}
              onChange={(next) => change(key, { operator: next })}
            />
            {!hasValue(operator) ? (
              <span />
            ) : choices ? (
              <Select label="Value" value={text} options={choices} onChange={(next) => change(key, { text: next })} />
            ) : (
              <Input
                aria-label="Value"
                placeholder={operator === 'in' || operator === 'not in' ? 'a, b, c' : 'Value'}
                value={text}
                onChange={(event) => change(key, { text: event.target.value })}
              />
            )}
            <IconButton
              icon="close"
              label="Remove the condition"
              size="small"
              onClick={() => setLines((before) => before.filter((line) => line.key !== key))}
            />
          </div>
        )
      })}
      <div className="data-filter-foot">
        <Button
          kind="quiet"
          size="small"
          icon="plus"
          onClick={() => setLines((before) => [...before, { ...first, key: (before.at(-1)?.key ?? -1) + 1 }])}
        >
          Add condition
        </Button>
        <span className="spacer" />
        <Button size="small" onClick={() => onApply([])}>
          Clear
        </Button>
        <Button size="small" kind="primary" type="submit">
          Apply
        </Button>
      </div>
    </form>
  )
}
