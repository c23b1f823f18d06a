/** The figures at the head of a page of insights, with their names. */
import type { ReactNode } from 'react'

export type Figure = readonly [name: string, value: ReactNode]

export function Figures({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl className="insights-figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
