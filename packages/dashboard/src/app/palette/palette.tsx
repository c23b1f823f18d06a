/** The command palette: areas, tables, users by email, and actions, found by a few letters. */
import { Dialog } from '@base-ui/react/dialog'
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { classNames } from '../../design/class-names.ts'
import { Icon } from '../../design/icons.tsx'
import type { Area } from '../areas.ts'
import { type Entry, useEntries } from './entries.ts'

export interface CommandPaletteProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly areas: readonly Area[]
}

export function CommandPalette({ isOpen, onClose, areas }: CommandPaletteProps) {
  return (
    <Dialog.Root
      open={isOpen}
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="palette" aria-label="Search">
          <Dialog.Title className="visually-hidden">Search</Dialog.Title>
          <Finder areas={areas} onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Finder({ areas, onClose }: Omit<CommandPaletteProps, 'isOpen'>) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [, navigate] = useLocation()
  const listId = useId()
  const list = useRef<HTMLDivElement>(null)
  const entries = useEntries(text, areas)
  const current = Math.min(at, entries.length - 1)
  const optionId = (index: number): string => `${listId}-${index}`

  useEffect(() => {
    list.current?.querySelector(`[data-at="${current}"]`)?.scrollIntoView({ block: 'nearest' })
  }, [current])

  const run = (entry: Entry | undefined): void => {
    if (!entry) return
    onClose()
    if (entry.href !== undefined) navigate(entry.href)
    entry.run?.()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
    const step = steps[event.key]
    if (step !== undefined && entries.length > 0) {
      event.preventDefault()
      setAt((current + step + entries.length) % entries.length)
    } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      run(entries[current])
    }
  }
  return (
    <>
      <div className="palette-head">
        <Icon name="search" />
        <input
          className="palette-input"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          placeholder="Go to an area, a table or a user…"
          aria-label="Search"
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={entries.length > 0 ? optionId(current) : undefined}
          autoComplete="off"
          spellCheck={false}
        />
        <kbd className="kbd">Esc</kbd>
      </div>
      <div className="palette-list" role="listbox" id={listId} aria-label="Results" ref={list}>
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are handled by the input, which has the focus.
          <div
            key={entry.id}
            id={optionId(index)}
            data-at={index}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            className={classNames('palette-entry', index === current && 'is-current')}
            onMouseMove={() => setAt(index)}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} />
            <span className="palette-entry-title">{entry.title}</span>
            <span className="palette-entry-kind">{entry.kind}</span>
          </div>
        ))}
        {entries.length === 0 && <p className="palette-empty">Nothing matches “{text}”.</p>}
      </div>
    </>
  )
}
