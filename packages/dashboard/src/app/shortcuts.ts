/** Keys that work everywhere: ⌘K or Ctrl K for the palette, and `g` followed by the letter of an area. */
import { useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import type { Area } from './areas.ts'

/** After `g`, the second key is expected within this time. */
const sequenceMs = 1_200

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

export function useShortcuts({
  areas,
  openPalette,
}: {
  readonly areas: readonly Area[]
  readonly openPalette: () => void
}): void {
  const [, navigate] = useLocation()
  const latest = useRef({ areas, openPalette, navigate })
  latest.current = { areas, openPalette, navigate }
  useEffect(() => {
    let startedAt = Number.NEGATIVE_INFINITY
    const onKeyDown = (event: KeyboardEvent): void => {
      const { areas, openPalette, navigate } = latest.current
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        openPalette()
        return
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      if (event.key === 'g') {
        startedAt = event.timeStamp
        return
      }
      const isSecond = event.timeStamp - startedAt < sequenceMs
      startedAt = Number.NEGATIVE_INFINITY
      if (!isSecond) return
      const area = areas.find(({ id }) => id.startsWith(event.key))
      if (!area) return
      event.preventDefault()
      navigate(area.path)
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
}
