/** Views of one subject. Which one is shown is in the URL, so a tab is a link. */
import { Link } from 'wouter'
import { classNames } from './class-names.ts'

export interface Tab {
  readonly id: string
  readonly label: string
  readonly href: string
  readonly count?: number
}

export function Tabs({
  tabs,
  current,
  label,
}: {
  readonly tabs: readonly Tab[]
  readonly current: string
  readonly label: string
}) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link
          key={tab.id}
          href={tab.href}
          className={classNames('tab', tab.id === current && 'is-current')}
          aria-current={tab.id === current ? 'page' : undefined}
        >
          {tab.label}
          {tab.count !== undefined && <span className="tab-count">{tab.count.toLocaleString('en')}</span>}
        </Link>
      ))}
    </nav>
  )
}
