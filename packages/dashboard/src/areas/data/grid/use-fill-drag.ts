/**
 * Dragging the handle at the corner of a range: the cells beyond one of its edges get its values. Near the edge of the
 * grid the rows and columns move on. Escape ends it without a change.
 */
import { type PointerEvent as ReactPointerEvent, type RefObject, useCallback, useRef, useState } from 'react'
import { type Column, markerWidth } from './columns.ts'
import type { CellRange } from './use-cell-range.ts'
import type { RowWindow } from './use-row-window.ts'

export interface FillDrag {
  /** The cells that would be filled; null where nothing is dragged, or not beyond the range. */
  readonly target: CellRange | null
  readonly onStart: (event: ReactPointerEvent) => void
}

export interface FillDragOptions {
  readonly rows: RowWindow
  readonly count: number
  readonly columns: readonly Column[]
  readonly range: CellRange
  readonly rowHeight: number
  readonly headerHeight: number
  readonly onFill: (source: CellRange, target: CellRange) => void
}

/** So near to an edge of the grid it scrolls, in pixels. */
const edge = 28
/** Pixels per frame at the most: a row or so. */
const scrollMax = 40

/** A position in the rows: the cell, and how far it is beyond the range. */
interface Pointed {
  readonly row: number
  readonly column: number
  readonly isSideways: boolean
}

/** The cells between a range and a position beyond it, in the direction of the pointer; null inside the range. */
export function fillTarget(source: CellRange, { row, column, isSideways }: Pointed): CellRange | null {
  const { top, bottom, left, right } = source
  if (isSideways) {
    if (column > right) return { ...source, left: right + 1, right: column }
    return column < left ? { ...source, left: column, right: left - 1 } : null
  }
  if (row > bottom) return { ...source, top: bottom + 1, bottom: row }
  return row < top ? { ...source, top: row, bottom: top - 1 } : null
}

const beyond = (at: number, from: number, to: number): number => Math.max(from - at, at - to, 0)
const clamp = (at: number, min: number, max: number): number => Math.min(max, Math.max(min, at))

/** The cell at a position of the screen. */
function pointedAt(body: Element, x: number, y: number, options: FillDragOptions): Pointed {
  const { rows, count, columns, range, rowHeight } = options
  const { left, top } = body.getBoundingClientRect()
  const [across, down] = [x - left, y - top]
  const after = columns.findIndex((column) => column.left > across)
  const column = clamp((after < 0 ? columns.length : after) - 1, 0, columns.length - 1)
  const row = clamp(Math.floor((down - rows.topOf(0)) / rowHeight), 0, count - 1)
  const [first, last] = [columns[range.left], columns[range.right]]
  const sideways = beyond(across, first?.left ?? 0, (last?.left ?? 0) + (last?.width ?? 0))
  const lengthways = beyond(down, rows.topOf(range.top), rows.topOf(range.bottom + 1))
  return { row, column, isSideways: sideways > lengthways }
}

/** Pixels to scroll by for a pointer near an edge. */
const scrollStep = (at: number, from: number, to: number): number =>
  at < from + edge ? -clamp(from + edge - at, 0, scrollMax) : clamp(at - (to - edge), 0, scrollMax)

export function useFillDrag(scroller: RefObject<HTMLDivElement | null>, options: FillDragOptions): FillDrag {
  const [target, setTarget] = useState<CellRange | null>(null)
  const latest = useRef(options)
  latest.current = options

  const onStart = useCallback(
    (event: ReactPointerEvent) => {
      const [grid, body] = [scroller.current, scroller.current?.querySelector('.data-rows')]
      if (event.button !== 0 || !grid || !body) return
      // The cell below is not activated, and cells that the pointer enters extend no range.
      event.preventDefault()
      event.stopPropagation()
      grid.focus({ preventScroll: true })
      grid.setPointerCapture(event.pointerId)
      const source = latest.current.range
      const pointer = { x: event.clientX, y: event.clientY }
      let filled: CellRange | null = null
      let frame = 0
      const ended = new AbortController()
      const update = (): void => {
        filled = fillTarget(source, pointedAt(body, pointer.x, pointer.y, latest.current))
        setTarget(filled)
      }
      const scroll = (): void => {
        const { left, right, top, bottom } = grid.getBoundingClientRect()
        grid.scrollBy(
          scrollStep(pointer.x, left + markerWidth, right),
          scrollStep(pointer.y, top + latest.current.headerHeight, bottom),
        )
        update()
        frame = requestAnimationFrame(scroll)
      }
      const end = (isDone: boolean): void => {
        ended.abort()
        cancelAnimationFrame(frame)
        setTarget(null)
        if (isDone && filled !== null) latest.current.onFill(source, filled)
      }
      const on = <Name extends keyof HTMLElementEventMap>(
        name: Name,
        listener: (event: HTMLElementEventMap[Name]) => void,
      ): void => grid.addEventListener(name, listener, { signal: ended.signal, capture: true })
      on('pointermove', ({ clientX, clientY }) => {
        Object.assign(pointer, { x: clientX, y: clientY })
        if (frame === 0) scroll()
      })
      on('pointerup', ({ clientX, clientY }) => {
        Object.assign(pointer, { x: clientX, y: clientY })
        if (frame !== 0) update()
        end(true)
      })
      on('lostpointercapture', () => end(false))
      on('keydown', (pressed) => {
        pressed.preventDefault()
        pressed.stopPropagation()
        if (pressed.key === 'Escape') end(false)
      })
    },
    [scroller],
  )
  return { target, onStart }
}
