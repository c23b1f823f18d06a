/** Chooses one of the stores of a kind. */
import { useLocation } from 'wouter'
import { Select } from '../../design/select.tsx'

export interface StoreChoice {
  readonly names: readonly string[]
  readonly hrefOf: (name: string) => string
}

export interface StoreSelectProps {
  readonly label: string
  readonly current: string
  readonly choice: StoreChoice
}

export function StoreSelect({ label, current, choice }: StoreSelectProps) {
  const [, navigate] = useLocation()
  return (
    <Select
      className="stores-select"
      label={label}
      value={current}
      options={choice.names.map((name) => ({ value: name, label: name }))}
      onChange={(name: string) => navigate(choice.hrefOf(name))}
    />
  )
}
