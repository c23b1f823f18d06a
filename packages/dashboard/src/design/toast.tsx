/** Messages about what has just happened, each for a few seconds, some with an action such as undo. */
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import { IconButton } from './button.tsx'
import { classNames } from './class-names.ts'
import { describeError } from './describe-error.ts'
import { Icon } from './icons.tsx'

export interface ToastInput {
  readonly title: string
  readonly text?: string
  readonly tone?: 'neutral' | 'good' | 'bad'
  /** Offered for as long as the toast is shown. */
  readonly action?: { readonly label: string; readonly run: () => void }
  /** In milliseconds. Default 5,000; with an action 10,000. */
  readonly durationMs?: number
}

interface Toast extends ToastInput {
  readonly id: number
}

export interface Toasts {
  add(toast: ToastInput): void
  /** Shows what failed. */
  fail(title: string, error: unknown): void
}

const Context = createContext<Toasts | null>(null)

/** More than that would cover the page; the oldest disappears first. */
const toastsMax = 4

export function useToasts(): Toasts {
  const toasts = useContext(Context)
  if (toasts === null) throw new Error('ToastProvider is missing')
  return toasts
}

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<readonly Toast[]>([])
  const lastId = useRef(0)
  const remove = useCallback((id: number) => setShown((all) => all.filter((toast) => toast.id !== id)), [])
  const toasts = useMemo<Toasts>(() => {
    const add = (input: ToastInput): void => {
      lastId.current += 1
      const id = lastId.current
      setShown((all) => [...all, { ...input, id }].slice(-toastsMax))
    }
    return {
      add,
      fail(title, error) {
        const { title: cause, advice } = describeError(error)
        add({ title, text: [cause, advice].filter(Boolean).join(' '), tone: 'bad', durationMs: 10_000 })
      },
    }
  }, [])
  return (
    <Context value={toasts}>
      {children}
      {createPortal(
        <section className="toasts" aria-label="Notifications" aria-live="polite">
          {shown.map((toast) => (
            <ToastView key={toast.id} toast={toast} onEnd={remove} />
          ))}
        </section>,
        document.body,
      )}
    </Context>
  )
}

function ToastView({ toast, onEnd }: { readonly toast: Toast; readonly onEnd: (id: number) => void }) {
  const { id, title, text, tone = 'neutral', action } = toast
  const durationMs = toast.durationMs ?? (action ? 10_000 : 5_000)
  const [isPaused, setPaused] = useState(false)
  useEffect(() => {
    if (isPaused) return
    const timer = setTimeout(() => onEnd(id), durationMs)
    return () => clearTimeout(timer)
  }, [id, durationMs, isPaused, onEnd])
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: pausing is a convenience for the pointer only.
    <div
      className={classNames('toast', `toast-${tone}`)}
      onMouseEnter={() => setPaused(true)}
      onMouseLeave={() => setPaused(false)}
    >
      {tone !== 'neutral' && <Icon name={tone === 'good' ? 'check' : 'alert'} />}
      <div className="toast-text">
        <strong>{title}</strong>
        {text !== undefined && <p>{text}</p>}
      </div>
      {action && (
        <button
          type="button"
          className="toast-action"
          onClick={() => {
            onEnd(id)
            action.run()
          }}
        >
          {action.label}
        </button>
      )}
      <IconButton icon="close" label="Dismiss" size="small" onClick={() => onEnd(id)} />
    </div>
  )
}
