/**
 * Keeps the connection of a call open while its function is silent: the runtime closes a connection without traffic
 * after at most 255 seconds, and a function may take longer. The time limit of the function is the bound.
 */
import type { Call } from '../../../http/endpoint.ts'
import { connectionIdleSeconds } from '../../../limits/api.ts'
import { hostGraceMs } from '../../../limits/functions.ts'

/** Call it once the body is read. Returns the function that restores the timeout, which may be called repeatedly. */
export function keepConnection(call: Pick<Call, 'setIdleSeconds'>, timeoutMs: number): () => void {
  let isKept = true
  const release = (): void => {
    if (!isKept) return
    isKept = false
    clearTimeout(timer)
    call.setIdleSeconds?.(connectionIdleSeconds)
  }
  // The end of a stream that the client does not read is not known.
  const timer = setTimeout(release, timeoutMs + hostGraceMs)
  timer.unref?.()
  call.setIdleSeconds?.(0)
  return release
}

/** The same bytes; `release` is called at their end and when the client leaves. */
export function releasingAtEnd(stream: ReadableStream<Uint8Array>, release: () => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          release()
          throw error
        }
        release()
        controller.close()
      },
      async cancel(reason) {
        release()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
