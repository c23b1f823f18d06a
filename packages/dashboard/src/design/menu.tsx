/** A list of actions behind a button. */
import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'
import { classNames } from './class-names.ts'
import { Icon, type IconName } from './icons.tsx'

export interface MenuAction {
  readonly label: ReactNode
  readonly icon?: IconName
  readonly shortcut?: string
  readonly isDangerous?: boolean
  readonly isDisabled?: boolean
  /** Whether it is the current choice. */
  readonly isChosen?: boolean
  readonly run: () => void
}

/** Actions, and `null` for a line between two groups. */
export type MenuActions = readonly (MenuAction | null)[]

export interface MenuProps {
  readonly trigger: ReactElement<Record<string, unknown>>
  readonly actions: MenuActions
  /** Above the actions. */
  readonly heading?: ReactNode
  readonly align?: 'start' | 'end'
}

export function Menu({ trigger, actions, heading, align = 'start' }: MenuProps) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align={align} className="layer">
          <Base.Popup className="menu">
            {heading !== undefined && <div className="menu-heading">{heading}</div>}
            {actions.map((action, at) =>
              action === null ? (
                <Base.Separator key={at} className="menu-line" />
              ) : (
                <Base.Item
                  key={at}
                  className={classNames('menu-item', action.isDangerous && 'is-dangerous')}
                  disabled={action.isDisabled ?? false}
                  onClick={action.run}
                >
                  {action.icon && <Icon name={action.icon} />}
                  <span className="menu-text">{action.label}</span>
                  {action.shortcut !== undefined && <kbd className="kbd">{action.shortcut}</kbd>}
                  {action.isChosen && <Icon name="check" size={14} label="chosen" />}
                </Base.Item>
              ),
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
