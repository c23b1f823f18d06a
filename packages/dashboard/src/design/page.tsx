/** The frame of every view: title with its actions, toolbar, panes beside each other, cards, and lists of facts. */
import type { ReactNode } from 'react'
import { classNames } from './class-names.ts'

export interface PageProps {
  readonly title: ReactNode
  /** One line under the title. */
  readonly description?: ReactNode
  readonly actions?: ReactNode
  readonly tabs?: ReactNode
  /** `wide` uses the full width, without margins, such as a grid. */
  readonly width?: 'reading' | 'full' | 'wide'
  readonly children: ReactNode
}

export function Page({ title, description, actions, tabs, width = 'full', children }: PageProps) {
  return (
    <div className={classNames('page', `page-${width}`)}>
      <header className="page-head">
        <div className="page-title">
          <h1>{title}</h1>
          {description !== undefined && <p>{description}</p>}
        </div>
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {tabs}
      <div className="page-body">{children}</div>
    </div>
  )
}

export const Toolbar = ({ children, label }: { readonly children: ReactNode; readonly label: string }) => (
  <div className="toolbar" role="toolbar" aria-label={label}>
    {children}
  </div>
)

/** Pushes what follows it to the end of a toolbar. */
export const Spacer = () => <span className="spacer" />

/** A narrow pane with a list and what is chosen in it. On narrow screens one of them is shown. */
export const SplitPane = ({
  side,
  children,
  isSideShown,
}: {
  readonly side: ReactNode
  readonly children: ReactNode
  /** On narrow screens: whether the list is shown instead of what is chosen. */
  readonly isSideShown: boolean
}) => (
  <div className={classNames('split-pane', isSideShown && 'is-side-shown')}>
    <div className="split-side">{side}</div>
    <div className="split-main">{children}</div>
  </div>
)

export const Card = ({
  title,
  actions,
  children,
  isFlush = false,
}: {
  readonly title?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
  /** Without a margin around the content, such as a table. */
  readonly isFlush?: boolean
}) => (
  <section className={classNames('card', isFlush && 'is-flush')}>
    {title !== undefined && (
      <header className="card-head">
        <h2>{title}</h2>
        {actions}
      </header>
    )}
    <div className="card-body">{children}</div>
  </section>
)

export type Fact = readonly [name: string, value: ReactNode]

interface FactsProps {
  readonly facts: readonly Fact[]
  /** The style of another layout. */
  readonly className?: string
}

/** Names and values, one pair per line. */
export const Facts = ({ facts, className = 'facts' }: FactsProps) => (
  <dl className={className}>
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)
