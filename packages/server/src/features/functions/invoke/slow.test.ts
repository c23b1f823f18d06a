/** Silent functions on a server that closes connections without traffic after a second. */
import { expect, test } from 'bun:test'
import type { Call, Endpoint } from '../../../http/endpoint.ts'
import { connectRaw, serve, tiny } from '../../../http/harness.test.ts'
import { bytes, json } from '../../../http/replies/reply.ts'
import { connectionIdleSeconds } from '../../../limits/api.ts'
import { keepConnection, releasingAtEnd } from './kept-connection.ts'

/** An endpoint that is silent until `release`, as a value and as a stream, and the idle timeouts that it has set. */
function silent() {
  const started = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const timeouts: number[] = []
  const kept = (call: Call): (() => void) => {
    const setIdleSeconds = (seconds: number): void => {
      timeouts.push(seconds)
      call.setIdleSeconds?.(seconds)
    }
    started.resolve()
    return keepConnection({ setIdleSeconds }, 60_000)
  }
  const value = tiny({
    name: 'value',
    paths: ['/value'],
    async handle(call) {
      const release = kept(call)
      await ended.promise
      release()
      return json({ done: true })
    },
  })
  const stream = tiny({
    name: 'stream',
    paths: ['/stream'],
    handle(call) {
      const release = kept(call)
      const source = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await ended.promise
          controller.enqueue(new TextEncoder().encode('done'))
          controller.close()
        },
      })
      return bytes({ kind: 'stream', stream: releasingAtEnd(source, release) }, 200, {})
    },
  })
  const endpoints: Readonly<Record<string, Endpoint>> = { value, stream }
  return { endpoints, started: started.promise, end: ended.resolve, timeouts }
}

for (const name of ['value', 'stream'])
  test(`[FN-18] the connection of a function without output is kept: ${name}`, async () => {
    const { endpoints, started, end, timeouts } = silent()
    const { server, request } = serve([endpoints[name] as Endpoint], { idleSeconds: 1 })
    const running = request(`/${name}`)
    await started
    // Another connection is closed for want of traffic.
    const idle = connectRaw(server)
    idle.write('GET /none HTTP/1.1\r\nHost: h\r\n\r\n')
    await idle.closed
    expect(timeouts).toEqual([0])
    end()
    expect(await (await running).text()).toContain('done')
    expect(timeouts).toEqual([0, connectionIdleSeconds])
  })

test('[FN-18] a client that leaves a stream ends it', async () => {
  const { endpoints, started, timeouts } = silent()
  const { server } = serve([endpoints.stream as Endpoint], { idleSeconds: 1 })
  const connection = connectRaw(server)
  connection.write('GET /stream HTTP/1.1\r\nHost: h\r\n\r\n')
  await started
  connection.socket.destroy()
  while (timeouts.length < 2) await new Promise(setImmediate)
  expect(timeouts).toEqual([0, connectionIdleSeconds])
})
