/** Which columns are in view, by the horizontal position of the scrolled element. */
import { type RefObject, useCallback, useLayoutEffect, useState } from 'react'
import { type Column, columnRange, markerWidth } from './columns.ts'

export interface ColumnWindow {
  /** The first column in view, and one past the last. */
  readonly first: number
  readonly end: number
  /** Whether columns are scrolled out of view at the start. */
  readonly isScrolled: boolean
  /** Scrolls so that a column is in view. */
  reveal(at: number): void
  readonly onScroll: () => void
}

export function useColumnWindow(scroller: RefObject<HTMLDivElement | null>, columns: readonly Column[]): ColumnWindow {
  const [range, setRange] = useState({ from: 0, to: 2_000 })
  const onScroll = useCallback(() => {
    const element = scroller.current
    if (element === null) return
    const [from, to] = [element.scrollLeft, element.scrollLeft + element.clientWidth]
    setRange((before) => (before.from === from && before.to === to ? before : { from, to }))
  }, [scroller])
  useLayoutEffect(() => {
    onScroll()
    const observer = new ResizeObserver(onScroll)
    if (scroller.current) observer.observe(scroller.current)
    return () => observer.disconnect()
  }, [scroller, onScroll])
  const [first, end] = columnRange(columns, range.from, range.to)
  return {
    first,
    end,
    isScrolled: range.from > 0,
    onScroll,
    reveal(at) {
      const [element, column] = [scroller.current, columns[at]]
      if (!element || !column) return
      const isBefore = column.left - markerWidth < element.scrollLeft
      if (isBefore) element.scrollLeft = column.left - markerWidth
      else if (column.left + column.width > element.scrollLeft + element.clientWidth)
        element.scrollLeft = column.left + column.width - element.clientWidth
    },
  }
}
