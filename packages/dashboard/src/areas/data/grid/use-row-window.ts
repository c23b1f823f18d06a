/**
 * Which rows are in view, for any number of rows. Browsers limit the height of an element; beyond that limit the
 * scrollbar is scaled: a wheel or a key moves by pixels as usual, and dragging the scrollbar moves by its proportion.
 */
import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from 'react'

/** Below the limits of all browsers (Firefox: 17.9 million pixels). */
const heightMax = 8_000_000

export interface RowWindow {
  /** The height of the scrolled element, in pixels. */
  readonly height: number
  /** Rows in view, with some beside them: the first and one past the last. */
  readonly first: number
  readonly end: number
  /** Where a row is drawn, in pixels from the top of the scrolled element. */
  topOf(row: number): number
  /** Scrolls so that a row is in view. */
  reveal(row: number): void
  readonly onScroll: () => void
}

/** Rows drawn beyond each edge, so that a quick scroll shows rows before they are drawn again. */
const overscan = 6

export function useRowWindow(
  scroller: RefObject<HTMLDivElement | null>,
  {
    count,
    rowHeight,
    headerHeight,
  }: { readonly count: number; readonly rowHeight: number; readonly headerHeight: number },
): RowWindow {
  const full = count * rowHeight
  const height = Math.min(full, heightMax)
  const isScaled = full > height
  const [viewport, setViewport] = useState(600)
  // `top` is where the view is among all rows; `scrolled` the position of the scrollbar that belongs to it.
  const [position, setPosition] = useState({ top: 0, scrolled: 0 })
  const latest = useRef(position)

  const move = useCallback((next: { top: number; scrolled: number }) => {
    latest.current = next
    setPosition(next)
  }, [])

  const topMax = Math.max(0, full - viewport)
  const scrollMax = Math.max(0, height - viewport)

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (element === null) return
    const scrolled = element.scrollTop
    const { top, scrolled: before } = latest.current
    if (!isScaled) return move({ top: scrolled, scrolled })
    const step = scrolled - before
    const isNear = Math.abs(step) < viewport * 2
    const isAtEdge = scrolled <= 0 || scrolled >= scrollMax - 1
    const proportional = scrollMax === 0 ? 0 : (scrolled / scrollMax) * topMax
    move({ top: Math.min(topMax, Math.max(0, isNear && !isAtEdge ? top + step : proportional)), scrolled })
  }, [scroller, isScaled, viewport, topMax, scrollMax, move])

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null) return
    const measure = (): void => setViewport(Math.max(rowHeight, element.clientHeight - headerHeight))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [scroller, rowHeight, headerHeight])

  const top = Math.min(position.top, topMax)
  const reveal = useCallback(
    (row: number) => {
      const element = scroller.current
      if (element === null) return
      const { top: current, scrolled } = latest.current
      const rowTop = row * rowHeight
      const wanted =
        rowTop < current ? rowTop : rowTop + rowHeight > current + viewport ? rowTop + rowHeight - viewport : current
      if (wanted === current) return
      const target = Math.min(topMax, Math.max(0, wanted))
      const to = !isScaled
        ? target
        : Math.abs(target - current) < viewport * 2
          ? scrolled + target - current
          : (target / topMax) * scrollMax
      const clamped = Math.min(scrollMax, Math.max(0, to))
      move({ top: target, scrolled: clamped })
      element.scrollTop = clamped
    },
    [scroller, rowHeight, viewport, isScaled, topMax, scrollMax, move],
  )

  const offset = isScaled ? position.scrolled - top : 0
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan)
  const end = Math.min(count, Math.ceil((top + viewport) / rowHeight) + overscan)
  return { height, first, end, topOf: (row) => row * rowHeight + offset, reveal, onScroll }
}
