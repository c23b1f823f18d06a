/** Moving and scaling a drawing: by dragging, by the wheel, and by keys. */
import { type KeyboardEvent, type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from 'react'

export interface View {
  readonly x: number
  readonly y: number
  readonly scale: number
}

export interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const scaleMin = 0.1
const scaleMax = 2
/** Names can still be read at this scale; larger drawings begin at their start. */
const scaleReadable = 0.45
const margin = 24
const step = 80

const clamp = (value: number, from: number, to: number): number => Math.min(to, Math.max(from, value))

export interface PanZoom {
  readonly view: View
  zoom(factor: number): void
  fit(): void
  /** Moves so that an area is in the middle. */
  center(area: Area): void
  /** Moves as little as needed for an area to be in view. */
  reveal(area: Area): void
  readonly onPointerDown: (event: PointerEvent<HTMLElement>) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

export function usePanZoom(
  frame: RefObject<HTMLDivElement | null>,
  size: { readonly width: number; readonly height: number },
): PanZoom {
  const [view, setView] = useState<View>({ x: margin, y: margin, scale: 1 })
  const latest = useRef(view)
  latest.current = view

  const zoomAt = useCallback((factor: number, x: number, y: number): void => {
    setView((before) => {
      const scale = clamp(before.scale * factor, scaleMin, scaleMax)
      const ratio = scale / before.scale
      return { scale, x: x - (x - before.x) * ratio, y: y - (y - before.y) * ratio }
    })
  }, [])
  const fit = useCallback((): void => {
    const element = frame.current
    if (element === null) return
    const [width, height] = [element.clientWidth - 2 * margin, element.clientHeight - 2 * margin]
    const scale = clamp(Math.min(width / size.width, height / size.height), scaleReadable, 1)
    setView({ scale, x: Math.max(margin, margin + (width - size.width * scale) / 2), y: margin })
  }, [frame, size.width, size.height])
  useEffect(fit, [fit])

  // React listens passively, and the page must not scroll.
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      if (event.ctrlKey || event.metaKey)
        zoomAt(Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top)
      else setView((before) => ({ ...before, x: before.x - event.deltaX, y: before.y - event.deltaY }))
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [frame, zoomAt])

  const zoom = (factor: number): void =>
    zoomAt(factor, (frame.current?.clientWidth ?? 0) / 2, (frame.current?.clientHeight ?? 0) / 2)
  const center = (area: Area): void => {
    const element = frame.current
    if (element === null) return
    setView(({ scale: before }) => {
      const scale = Math.max(before, 0.8)
      return {
        scale,
        x: element.clientWidth / 2 - (area.x + area.width / 2) * scale,
        y: element.clientHeight / 2 - (area.y + area.height / 2) * scale,
      }
    })
  }
  const reveal = (area: Area): void => {
    const element = frame.current
    if (element === null) return
    const { x, y, scale } = latest.current
    const [left, top] = [x + area.x * scale, y + area.y * scale]
    const isShown =
      left >= 0 &&
      top >= 0 &&
      left + area.width * scale <= element.clientWidth &&
      top + area.height * scale <= element.clientHeight
    if (!isShown) center(area)
  }
  const onPointerDown = (event: PointerEvent<HTMLElement>): void => {
    if (event.button !== 0 || (event.target as Element).closest('a') !== null) return
    const handle = event.currentTarget
    const { clientX, clientY } = event
    const from = latest.current
    handle.setPointerCapture(event.pointerId)
    const move = (next: globalThis.PointerEvent): void =>
      setView({ ...from, x: from.x + next.clientX - clientX, y: from.y + next.clientY - clientY })
    const end = (): void => {
      handle.removeEventListener('pointermove', move)
      handle.removeEventListener('lostpointercapture', end)
    }
    handle.addEventListener('pointermove', move)
    handle.addEventListener('lostpointercapture', end)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const by = (x: number, y: number) => () => setView((before) => ({ ...before, x: before.x + x, y: before.y + y }))
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: by(step, 0),
      ArrowRight: by(-step, 0),
      ArrowUp: by(0, step),
      ArrowDown: by(0, -step),
      '+': () => zoom(1.25),
      '=': () => zoom(1.25),
      '-': () => zoom(0.8),
      '0': fit,
    }
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    action()
  }
  return { view, zoom, fit, center, reveal, onPointerDown, onKeyDown }
}
