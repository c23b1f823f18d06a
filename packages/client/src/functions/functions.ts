/** The feature `functions`: calls functions of the server, once or as a stream. */
import { PlinthError } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import type { Call } from '../core/transport.ts'

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
        const data = JSON.parse(/^data: ?(.*)$/m.exec(event)?.[1] ?? 'null')
        if (/^event: ?error$/m.test(event)) throw new PlinthError({ ...data, status: data.code })
        if (/^data:/m.test(event)) yield data
      }
      if (done) return
    }
  } finally {
    // A consumer that stops early ends the request.
    await reader.cancel().catch(() => undefined)
  }
}

/** Functions of the server: `call` and `stream`. */
export const functions: Feature = {
  name: 'functions',
  install: ({ transport }) => ({
    async call(name: string, input?: unknown, options?: Call) {
      return (await transport.send('POST', `/api/fn/${encodeURIComponent(name)}`, { ...options, body: input ?? null }))
        .data
    },
    async *stream(name: string, input?: unknown, options?: Call) {
      const request = { ...options, body: input ?? null, as: 'stream' as const }
      const { data } = await transport.send('POST', `/api/fn/${encodeURIComponent(name)}`, request)
      if (data) yield* readEvents(data as ReadableStream<Uint8Array>)
    },
  }),
}
