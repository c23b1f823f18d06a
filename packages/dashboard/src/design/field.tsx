/** Form controls with their label, hint and error. */
import { type ComponentProps, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { classNames } from './class-names.ts'
import { Icon } from './icons.tsx'

export interface FieldProps {
  readonly label: ReactNode
  readonly hint?: ReactNode
  readonly error?: string | null | undefined
  /** At the end of the line of the label, such as a link. */
  readonly aside?: ReactNode
  /** Receives what connects the control to its label, hint and error. */
  readonly children: (control: ControlProps) => ReactNode
}

export interface ControlProps {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': true | undefined
}

export function Field({ label, hint, error, aside, children }: FieldProps) {
  const id = useId()
  const noteId = `${id}-note`
  const hasNote = Boolean(error) || hint !== undefined
  return (
    <div className="field">
      <div className="field-head">
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children({
        id,
        'aria-describedby': hasNote ? noteId : undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hasNote && (
        <p id={noteId} className={classNames('field-note', error && 'is-bad')}>
          {error || hint}
        </p>
      )}
    </div>
  )
}

export interface TextFieldProps extends ComponentProps<'input'> {
  readonly label: ReactNode
  readonly hint?: ReactNode
  readonly error?: string | null | undefined
  readonly aside?: ReactNode
}

/** An input of one line with its label. */
export function TextField({ label, hint, error, aside, className, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error} aside={aside}>
      {(control) => <input className={classNames('input', className)} {...control} {...rest} />}
    </Field>
  )
}

export type InputProps = ComponentProps<'input'>

export function Input({ className, ...rest }: InputProps) {
  return <input className={classNames('input', className)} {...rest} />
}

export interface SearchInputProps extends Omit<ComponentProps<'input'>, 'type' | 'onChange'> {
  readonly label: string
  readonly onChange: (value: string) => void
}

export function SearchInput({ label, onChange, className, ...rest }: SearchInputProps) {
  return (
    <span className={classNames('search-input', className)}>
      <Icon name="search" />
      <input
        className="input"
        type="search"
        aria-label={label}
        placeholder={label}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
        {...rest}
      />
    </span>
  )
}

/** How long typing must pause before it is searched for. */
const typingPauseMs = 250

export interface DelayedSearchProps extends Omit<SearchInputProps, 'onChange' | 'value'> {
  /** What is searched for already. */
  readonly initial: string
  /** Called with the trimmed text, once typing has paused. */
  readonly onSearch: (text: string) => void
}

/** A search that follows typing with a pause, so that not every letter is a request. */
export function DelayedSearch({ initial, onSearch, ...rest }: DelayedSearchProps) {
  const [text, setText] = useState(initial)
  const search = useRef(onSearch)
  search.current = onSearch
  useEffect(() => {
    if (text.trim() === initial) return
    const timer = setTimeout(() => search.current(text.trim()), typingPauseMs)
    // A search that has not begun must not lead back to a view that was left meanwhile.
    return () => clearTimeout(timer)
  }, [text, initial])
  return <SearchInput value={text} onChange={setText} {...rest} />
}

export interface CheckboxProps extends Omit<ComponentProps<'input'>, 'type' | 'onChange'> {
  readonly label: ReactNode
  /** Leaves the label to those who do not see the control's surroundings. */
  readonly isLabelHidden?: boolean
  /** Neither all nor none of what it stands for. */
  readonly isMixed?: boolean
  readonly onChange: (checked: boolean) => void
}

export function Checkbox({ label, isLabelHidden = false, isMixed = false, onChange, ...rest }: CheckboxProps) {
  return (
    <label className="checkbox">
      <input
        type="checkbox"
        ref={(input) => {
          if (input) input.indeterminate = isMixed
        }}
        onChange={(event) => onChange(event.target.checked)}
        {...rest}
      />
      <span className="checkbox-box" aria-hidden="true">
        <Icon name={isMixed ? 'minus' : 'check'} size={12} />
      </span>
      <span className={isLabelHidden ? 'visually-hidden' : undefined}>{label}</span>
    </label>
  )
}

export interface SwitchProps {
  readonly label: ReactNode
  readonly checked: boolean
  readonly disabled?: boolean
  readonly onChange: (checked: boolean) => void
}

export function Switch({ label, checked, disabled = false, onChange }: SwitchProps) {
  return (
    <label className="switch">
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className="switch-track" aria-hidden="true" />
      <span>{label}</span>
    </label>
  )
}
