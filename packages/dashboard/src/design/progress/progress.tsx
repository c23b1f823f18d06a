/** How far work has come: a bar, and the same in words. */
import type { ReactNode } from 'react'

export interface ProgressProps {
  readonly label: string
  /** What is done; null while it is unknown. */
  readonly value: number | null
  readonly max: number
  readonly tone?: 'accent' | 'good' | 'bad'
  /** Below the bar. */
  readonly children?: ReactNode
}

export function Progress({ label, value, max, tone = 'accent', children }: ProgressProps) {
  return (
    <div className={`progress progress-${tone}`}>
      <progress aria-label={label} max={Math.max(1, max)} {...(value === null ? {} : { value })} />
      {children !== undefined && <p className="progress-text">{children}</p>}
    </div>
  )
}
