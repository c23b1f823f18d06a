/** What an empty view is for, and the next step. */
import type { ReactNode } from 'react'
import { Icon, type IconName } from './icons.tsx'

export function EmptyState({
  icon,
  title,
  children,
  action,
}: {
  readonly icon: IconName
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}) {
  return (
    <div className="empty-state">
      <span className="empty-state-icon">
        <Icon name={icon} size={20} />
      </span>
      <h3>{title}</h3>
      {children !== undefined && <div className="prose">{children}</div>}
      {action !== undefined && <div className="button-row">{action}</div>}
    </div>
  )
}
