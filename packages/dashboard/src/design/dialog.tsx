/** Dialogs over the page, panels at its side, and the confirmation of what cannot be undone. */
import { Dialog as Base } from '@base-ui/react/dialog'
import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { classNames } from './class-names.ts'
import { ErrorNote } from './error-note.tsx'
import { TextField } from './field.tsx'

export interface DialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: ReactNode
  readonly description?: ReactNode
  readonly children?: ReactNode
  /** The buttons at the end. */
  readonly footer?: ReactNode
  readonly size?: 'small' | 'medium' | 'large'
  /** `panel` covers the side of the page in full height. */
  readonly shape?: 'dialog' | 'panel'
  /** Leaves the page behind usable, for a panel that follows a selection. */
  readonly isModal?: boolean
  /** Keeps it open when the page behind is clicked, for forms with input. */
  readonly isSticky?: boolean
  /** Beside the button that closes it. */
  readonly actions?: ReactNode
}

/** Receives the focus when a dialog opens. `autoFocus` would take it before the dialog knows where to return it. */
const firstControl = '.dialog-body :is(input, textarea, [role="textbox"]):not([readonly], [disabled])'

export function Dialog({
  isOpen,
  onClose,
  title,
  description,
  children,
  footer,
  size = 'medium',
  shape = 'dialog',
  isModal = true,
  isSticky = false,
  actions,
}: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  return (
    <Base.Root
      open={isOpen}
      modal={isModal}
      disablePointerDismissal={isSticky || !isModal}
      onOpenChange={(open) => {
        if (!open) onClose()
      }}
    >
      <Base.Portal>
        {isModal && <Base.Backdrop className="backdrop" />}
        <Base.Popup
          ref={popup}
          className={classNames(shape, `${shape}-${size}`)}
          initialFocus={() => popup.current?.querySelector<HTMLElement>(firstControl) ?? popup.current}
        >
          <header className="dialog-head">
            <div className="dialog-title">
              <Base.Title>{title}</Base.Title>
              {description !== undefined && <Base.Description>{description}</Base.Description>}
            </div>
            {actions}
            <Base.Close render={<IconButton icon="close" label="Close" shortcut="Esc" size="small" />} />
          </header>
          {children !== undefined && <div className="dialog-body">{children}</div>}
          {footer !== undefined && <footer className="dialog-foot">{footer}</footer>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

export interface ConfirmDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  readonly children: ReactNode
  /** What the button says: the action itself, such as `Delete 12 records`. */
  readonly action: string
  /** What has to be typed before the action is possible. */
  readonly phrase?: string
  /** The dialog closes once it has resolved, and shows the error otherwise. */
  readonly onConfirm: () => Promise<void>
}

export function ConfirmDialog({ isOpen, onClose, title, ...rest }: ConfirmDialogProps) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={title} size="small" isSticky>
      <ConfirmForm onClose={onClose} {...rest} />
    </Dialog>
  )
}

/** Mounted for as long as the dialog is open, so that each opening begins with an empty phrase. */
function ConfirmForm({ onClose, children, action, phrase, onConfirm }: Omit<ConfirmDialogProps, 'isOpen' | 'title'>) {
  const [typed, setTyped] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const isReady = phrase === undefined || typed.trim() === phrase

  const confirm = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (!isReady) return
    setBusy(true)
    setError(null)
    try {
      await onConfirm()
      onClose()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <form className="stack" onSubmit={(event) => void confirm(event)}>
      <div className="prose">{children}</div>
      {phrase !== undefined && (
        <TextField
          label={
            <>
              Type <code className="phrase">{phrase}</code> to confirm
            </>
          }
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          autoComplete="off"
          spellCheck={false}
        />
      )}
      {error !== null && <ErrorNote error={error} />}
      <div className="button-row">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="danger" disabled={!isReady} isBusy={isBusy}>
          {action}
        </Button>
      </div>
    </form>
  )
}
