/** What says, in the top bar, that the page shows data as a user sees it; and the way back. */
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { Icon } from '../../design/icons.tsx'
import { useToasts } from '../../design/toast.tsx'
import { loadSession, stopViewing } from '../session-requests.ts'
import type { Viewing } from '../session-store.ts'

const minuteMs = 60_000

/** Whole minutes that are left, at least one. At the end the session is read again, which ends the view. */
function useMinutesLeft(endsAt: string): number {
  const [nowMs, setNowMs] = useState(Date.now)
  const leftMs = Date.parse(endsAt) - nowMs
  useEffect(() => {
    if (leftMs <= 0) void loadSession().catch(() => {})
    // After the end the server may be a moment behind the clock of this machine.
    const timer = setTimeout(() => setNowMs(Date.now()), leftMs <= 0 ? 5_000 : Math.min(leftMs, minuteMs / 4))
    return () => clearTimeout(timer)
  }, [leftMs])
  return Math.max(1, Math.ceil(leftMs / minuteMs))
}

export function ViewingPill({ viewing }: { readonly viewing: Viewing }) {
  const [, navigate] = useLocation()
  const toasts = useToasts()
  const minutes = useMinutesLeft(viewing.endsAt)
  const [isBusy, setBusy] = useState(false)
  const name = viewing.email ?? viewing.displayName ?? viewing.id
  const stop = async (): Promise<void> => {
    setBusy(true)
    try {
      await stopViewing()
      navigate(`/users/${encodeURIComponent(viewing.id)}`)
    } catch (error) {
      setBusy(false)
      toasts.fail('The view was not ended', error)
    }
  }
  return (
    <section className="viewing-pill" aria-label="Viewing as a user">
      <Icon name="eye" />
      <span className="viewing-pill-text" title={`Viewing as ${name}: read-only, ${minutes} min left`}>
        <span className="viewing-pill-label">Viewing as </span>
        <strong>{name}</strong>
      </span>
      <span className="viewing-pill-rest">Read-only, {minutes} min left</span>
      <button type="button" className="viewing-pill-stop" disabled={isBusy} onClick={() => void stop()}>
        Stop
      </button>
    </section>
  )
}
