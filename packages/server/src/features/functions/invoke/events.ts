/** Server-sent events of a function that yields: one `data:` line of JSON each, and `event: error` where it fails. */
import { ApiError, internal } from '../../../errors.ts'
import { functionKeepAliveMs } from '../../../limits/functions.ts'
import { toApiError } from './failures.ts'

const encoder = new TextEncoder()
const comment = encoder.encode(':\n\n')

/** The text of the error event. */
function errorEvent(error: unknown): string {
  const known = toApiError(error)
  const body = (known instanceof ApiError ? known : internal()).body()
  return `event: error\ndata: ${JSON.stringify(body)}\n\n`
}

/** Reads values as the client reads events; cancels the function when the client leaves. */
export function eventStream(values: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = values[Symbol.asyncIterator]()
  let timer: ReturnType<typeof setInterval> | undefined
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        timer = setInterval(() => {
          if ((controller.desiredSize ?? 0) >= 0) controller.enqueue(comment)
        }, functionKeepAliveMs)
        timer.unref?.()
      },
      async pull(controller) {
        try {
          const { done, value } = await iterator.next()
          if (!done) return controller.enqueue(encoder.encode(`data: ${value}\n\n`))
        } catch (error) {
          controller.enqueue(encoder.encode(errorEvent(error)))
        }
        clearInterval(timer)
        controller.close()
      },
      async cancel() {
        clearInterval(timer)
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
