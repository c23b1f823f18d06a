/** Sends the result of a function: a value, a stream of values, or a response. */
import { functionResultBytesMax, hostStreamWindow } from '../limits/functions.ts'
import { send } from './channel.ts'

/** Bounds how far a stream runs ahead of its consumer. */
export class StreamWindow {
  #free = hostStreamWindow
  #wake: (() => void) | null = null

  /** The consumer has read a chunk. */
  release(): void {
    this.#free++
    this.#wake?.()
    this.#wake = null
  }

  /** Resolves once a chunk may be sent, or the signal is aborted. */
  async reserve(signal: AbortSignal): Promise<void> {
    while (this.#free === 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    this.#free--
  }
}

/** The JSON of a value; null if it has none. Throws a `RangeError` if it is too large. */
export function toJson(value: unknown): string | null {
  const text = JSON.stringify(value)
  if (text === undefined) return null
  if (text.length > functionResultBytesMax)
    throw new RangeError(`The result is larger than ${functionResultBytesMax} bytes`)
  return text
}

export type Values = AsyncIterable<unknown> | Iterable<unknown>

/** Whether a function yields: what it returned is a generator. */
export const isStream = (value: unknown): value is Values =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as Partial<Generator>).next === 'function' &&
  (Symbol.asyncIterator in value || Symbol.iterator in value)

/** Sends what a generator yields; ends it when the invocation is aborted. */
export async function sendStream(id: string, values: Values, window: StreamWindow, signal: AbortSignal): Promise<void> {
  send({ type: 'stream', id })
  for await (const value of values) {
    await window.reserve(signal)
    // Leaving the loop runs the generator's `finally`.
    if (signal.aborted) break
    send({ type: 'chunk', id, chunk: toJson(value) ?? 'null' })
  }
  send({ type: 'end', id })
}

const pieceBytes = 256 * 1024

/** Sends a response, and its body in pieces; cancels the body when the invocation is aborted. */
export async function sendResponse(
  id: string,
  result: Response,
  window: StreamWindow,
  signal: AbortSignal,
): Promise<void> {
  const { body, status } = result
  send({ type: 'http', id, status, headers: [...result.headers], hasBody: body !== null })
  if (body === null) return
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  // A body that has nothing to send would otherwise never learn of it. An error that it throws then has no reader.
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined)
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel, { once: true })
  for (let next = await reader.read(); !next.done; next = await reader.read())
    for (let at = 0; at < next.value.length; at += pieceBytes) {
      await window.reserve(signal)
      if (signal.aborted) return send({ type: 'end', id })
      send({ type: 'chunk', id, chunk: next.value.slice(at, at + pieceBytes) })
    }
  send({ type: 'end', id })
}
