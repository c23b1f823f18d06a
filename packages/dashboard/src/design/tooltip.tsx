/** A short name for what the pointer or the focus is on. Never the only place of an information. */
import { Tooltip as Base } from '@base-ui/react/tooltip'
import type { ReactElement } from 'react'

export interface TooltipProps {
  readonly text: string
  readonly shortcut?: string
  /** The element that it names. */
  readonly children: ReactElement<Record<string, unknown>>
}

export const TooltipProvider = Base.Provider

export function Tooltip({ text, shortcut, children }: TooltipProps) {
  return (
    <Base.Root>
      <Base.Trigger render={children} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} className="layer">
          <Base.Popup className="tooltip">
            {text}
            {shortcut !== undefined && <kbd className="kbd">{shortcut}</kbd>}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
