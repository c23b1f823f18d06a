/** A short state or kind beside a name. */
import type { ReactNode } from 'react'
import { classNames } from './class-names.ts'

export type Tone = 'neutral' | 'accent' | 'good' | 'warn' | 'bad' | 'violet'

export function Badge({
  tone = 'neutral',
  hasDot = false,
  children,
}: {
  readonly tone?: Tone
  readonly hasDot?: boolean
  readonly children: ReactNode
}) {
  return (
    <span className={classNames('badge', `tone-${tone}`)}>
      {hasDot && <span className="dot" aria-hidden="true" />}
      {children}
    </span>
  )
}
