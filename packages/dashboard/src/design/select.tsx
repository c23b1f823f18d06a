/** Chooses one of a few values from a list. */
import { Select as Base } from '@base-ui/react/select'
import type { ReactNode } from 'react'
import { classNames } from './class-names.ts'
import { Icon } from './icons.tsx'

export interface Option<Value extends string> {
  readonly value: Value
  readonly label: ReactNode
}

export interface SelectProps<Value extends string> {
  readonly value: Value
  readonly options: readonly Option<Value>[]
  readonly onChange: (value: Value) => void
  /** Its name where no visible label is connected by `id`. */
  readonly label?: string
  readonly id?: string
  readonly className?: string
  readonly disabled?: boolean
  readonly placeholder?: string
}

export function Select<Value extends string>({
  value,
  options,
  onChange,
  label,
  id,
  className,
  disabled = false,
  placeholder = 'Choose…',
}: SelectProps<Value>) {
  return (
    <Base.Root<Value>
      value={value}
      items={options.map((option) => ({ ...option }))}
      disabled={disabled}
      onValueChange={(next) => {
        if (next !== null) onChange(next)
      }}
    >
      <Base.Trigger className={classNames('select', className)} aria-label={label} id={id}>
        <Base.Value>
          {(current: Value) => options.find((one) => one.value === current)?.label ?? placeholder}
        </Base.Value>
        <Base.Icon className="select-icon">
          <Icon name="chevrons" size={14} />
        </Base.Icon>
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner sideOffset={4} className="layer" alignItemWithTrigger={false}>
          <Base.Popup className="menu menu-select">
            {options.map((option) => (
              <Base.Item key={option.value} value={option.value} className="menu-item">
                <span className="menu-check">
                  <Base.ItemIndicator>
                    <Icon name="check" size={14} />
                  </Base.ItemIndicator>
                </span>
                <Base.ItemText className="menu-text">{option.label}</Base.ItemText>
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
