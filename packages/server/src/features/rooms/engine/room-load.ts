/** The load of one room: messages that it receives, and how long its ticks take, over the last seconds. */
import { roomLoadWindowMs } from '../../../limits/rooms.ts'
import type { RoomLoadReport } from './ports.ts'

interface Window {
  messages: number
  ticks: number
  tickMs: number
}

const emptyWindow = (): Window => ({ messages: 0, ticks: 0, tickMs: 0 })

export class RoomLoad {
  readonly #elapsedMs: () => number
  readonly #startedMs: number
  #windowStartMs: number
  #current = emptyWindow()
  #previous = emptyWindow()

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs
    this.#startedMs = elapsedMs()
    this.#windowStartMs = this.#startedMs
  }

  received(nowMs: number): void {
    this.#rotate(nowMs)
    this.#current.messages += 1
  }

  /** Runs a tick and measures it. */
  tick(run: () => void): void {
    const startMs = this.#elapsedMs()
    run()
    const endMs = this.#elapsedMs()
    this.#rotate(endMs)
    this.#current.ticks += 1
    this.#current.tickMs += endMs - startMs
  }

  /** Means over the last window, of which the part in the previous one is estimated. */
  report(): Omit<RoomLoadReport, 'stateBytes'> {
    const nowMs = this.#elapsedMs()
    this.#rotate(nowMs)
    const past = 1 - (nowMs - this.#windowStartMs) / roomLoadWindowMs
    const sum = (of: keyof Window): number => this.#current[of] + this.#previous[of] * past
    const seconds = Math.max(1000, Math.min(roomLoadWindowMs, nowMs - this.#startedMs)) / 1000
    const ticks = sum('ticks')
    return {
      messagesPerSecond: rounded(sum('messages') / seconds),
      tickMs: ticks === 0 ? 0 : rounded(sum('tickMs') / ticks),
    }
  }

  #rotate(nowMs: number): void {
    const elapsed = nowMs - this.#windowStartMs
    if (elapsed < roomLoadWindowMs) return
    this.#previous = elapsed < 2 * roomLoadWindowMs ? this.#current : emptyWindow()
    this.#current = emptyWindow()
    this.#windowStartMs = nowMs - (elapsed % roomLoadWindowMs)
  }
}

const rounded = (value: number): number => Math.round(value * 1000) / 1000
