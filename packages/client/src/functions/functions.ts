/** The feature `functions`: calls functions of the server, once or as a stream. */
import type { Call } from '../core/deadline.ts'
import { failure, isPlinthError, PlinthError } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'

/** The values of a stream of server-sent events. */
async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      text += decoder.decode(value, { stream: !done })
      const events = text.split('\n\n')
      text = events.pop() as string
      for (const event of events) {
        const line = /^data: ?(.*)$/m.exec(event)?.[1]
        if (line === undefined) continue
        const data = JSON.parse(line)
        if (/^event: ?error$/m.test(event)) throw new PlinthError({ ...data, status: data.code })
        yield data
      }
      // The page of a proxy, or a stream that ended within an event.
      if (done && text) throw failure('invalid-answer')
      if (done) return
    }
  } catch (cause) {
    throw isPlinthError(cause) ? cause : failure('network', 'Stream interrupted', cause)
  } finally {
    // A consumer that stops early ends the request.
    await reader.cancel().catch(() => undefined)
  }
}

const pathOf = (name: string): string => `/api/fn/${encodeURIComponent(name)}`

/** Functions of the server: `call` and `stream`. */
export const functions: Feature = (core) => ({
  call: (name: string, input: unknown = null, options?: Call) =>
    core.json('POST', pathOf(name), { ...options, body: input }),
  async *stream(name: string, input: unknown = null, options?: Call) {
    const request = { ...options, body: input, as: 'stream' as const }
    const stream = await core.json<ReadableStream<Uint8Array> | null>('POST', pathOf(name), request)
    if (stream) yield* readEvents(stream)
  },
})
