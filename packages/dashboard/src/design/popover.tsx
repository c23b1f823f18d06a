/** Controls beside the button that opens them. */
import { Popover as Base } from '@base-ui/react/popover'
import type { ReactElement, ReactNode } from 'react'

export interface PopoverProps {
  readonly trigger: ReactElement<Record<string, unknown>>
  readonly title: string
  readonly children: ReactNode
  readonly align?: 'start' | 'end'
  readonly isOpen?: boolean
  readonly onOpenChange?: (isOpen: boolean) => void
}

export function Popover({ trigger, title, children, align = 'start', isOpen, onOpenChange }: PopoverProps) {
  return (
    <Base.Root
      {...(isOpen === undefined ? {} : { open: isOpen })}
      onOpenChange={(next) => {
        onOpenChange?.(next)
      }}
    >
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} align={align} className="layer" collisionPadding={8}>
          <Base.Popup className="popover">
            <Base.Title className="visually-hidden">{title}</Base.Title>
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
