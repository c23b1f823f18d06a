/** A list item that shows an upload: its name, progress, speed and buttons. */
import { find, make } from '../../page-dom.ts'
import { formatBytes, formatShare } from './format.ts'

export type LineState = 'queued' | 'sending' | 'paused' | 'interrupted' | 'failed'

export interface UploadLine {
  progress(sent: number): void
  /** Shows the state, which style sheets can select, with a note and the available actions. */
  show(state: LineState, note: string, ...actions: HTMLElement[]): void
  remove(): void
}

export const button = (text: string, onclick: () => void): HTMLButtonElement =>
  make('button', { type: 'button', onclick }, text)

export function createLine({ name, size }: { readonly name: string; readonly size: number }): UploadLine {
  const bar = make('progress', { max: Math.max(size, 1), value: 0, ariaLabel: name })
  const status = make('span', { className: 'status' })
  const buttons = make('span', { className: 'buttons' })
  const item = make('li', { className: 'upload' }, make('strong', {}, name), status, bar, buttons)
  item.dataset.upload = name
  find('pending').append(item)
  find('uploads').hidden = false
  const started = { ms: performance.now(), sent: 0 }
  let sent = 0
  let note = ''

  function render(): void {
    const seconds = (performance.now() - started.ms) / 1000
    const isMoving = item.dataset.state === 'sending' && seconds > 0.5 && sent > started.sent
    const speed = isMoving ? ` · ${formatBytes((sent - started.sent) / seconds)}/s` : ''
    const share = `${formatBytes(sent)} of ${formatBytes(size)} · ${formatShare(sent, size)}${speed}`
    status.textContent = note === '' ? share : `${share} · ${note}`
  }

  return {
    progress(now) {
      sent = now
      bar.value = now
      item.dataset.sent = String(now)
      render()
    },
    show(state, text, ...actions) {
      if (state === 'sending') Object.assign(started, { ms: performance.now(), sent })
      item.dataset.state = state
      note = text
      buttons.replaceChildren(...actions)
      render()
    },
    remove() {
      item.remove()
      find('uploads').hidden = find('pending').children.length === 0
    },
  }
}
