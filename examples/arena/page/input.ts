/** The direction that the player requests: of the last pressed key, or of the pointer. */

import { find } from '../../page-dom.ts'
import type { Direction } from '../game.ts'

const directions = new Map<string, Direction>([
  ['ArrowUp', 'up'],
  ['KeyW', 'up'],
  ['ArrowDown', 'down'],
  ['KeyS', 'down'],
  ['ArrowLeft', 'left'],
  ['KeyA', 'left'],
  ['ArrowRight', 'right'],
  ['KeyD', 'right'],
])

/**
 * Returns a function that reads the current direction, null without one. A key that was released before it was read
 * counts once. `directionTo` is the direction of a point of the window; `onBegin` is called with each press.
 */
export function watchInput(
  directionTo: (event: PointerEvent) => Direction | null,
  onBegin: () => void,
): () => Direction | null {
  const pressed: string[] = []
  let tapped: string | undefined
  let pointer: PointerEvent | null = null
  window.addEventListener('keydown', (event) => {
    const { code, target } = event
    if (!directions.has(code) || target === find('name') || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    if (event.repeat) return
    pressed.push(code)
    tapped = code
    onBegin()
  })
  window.addEventListener('keyup', ({ code }) => {
    if (pressed.includes(code)) pressed.splice(pressed.indexOf(code), 1)
  })
  window.addEventListener('blur', () => pressed.splice(0))
  const field = find('field')
  field.onpointerdown = (event) => {
    field.setPointerCapture(event.pointerId)
    pointer = event
    onBegin()
  }
  field.onpointermove = (event) => {
    if (pointer) pointer = event
  }
  field.onpointerup = field.onpointercancel = () => {
    pointer = null
  }
  return () => {
    const code = tapped ?? pressed.at(-1)
    tapped = undefined
    return directions.get(code ?? '') ?? (pointer && directionTo(pointer))
  }
}
