/** A server replaced while running, and drained. */
import { describe, expect, test } from 'bun:test'
import { connectRaw, serve, tiny } from './harness.test.ts'
import { json } from './replies/reply.ts'

describe('replacing and draining', () => {
  /** An endpoint that responds when released. */
  function gate() {
    const started = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const slow = tiny({
      name: 'slow',
      paths: ['/slow'],
      async handle() {
        started.resolve()
        await release.promise
        return json({ done: true })
      },
    })
    return { slow, started: started.promise, release: release.resolve }
  }

  test('replaced endpoints are used from the next request, and requests in progress finish', async () => {
    const { slow, started, release } = gate()
    const { server, served, request } = serve([slow])
    const running = request('/slow')
    await started
    server.replace({ ...served, endpoints: [tiny({ name: 'new', paths: ['/new'] })] })
    expect((await request('/new')).status).toBe(200)
    expect((await request('/slow')).status).toBe(404)
    release()
    expect(await (await running).json()).toEqual({ done: true })
  })

  test('requests in progress finish, new ones are refused, idle connections are closed', async () => {
    const { slow, started, release } = gate()
    const { server, request, logged } = serve([slow])
    const [idle, halfway] = [connectRaw(server), connectRaw(server)]
    for (const connection of [idle, halfway]) {
      connection.write('GET /none HTTP/1.1\r\nHost: h\r\n\r\n')
      await connection.until('"not-found"')
    }
    halfway.write('GET /slow HTTP/1.1\r\nHo')
    const running = request('/slow')
    await started
    const drained = server.drain()
    expect(server.isDraining).toBe(true)
    await idle.closed
    halfway.write('st: h\r\n\r\n')
    const refused = await halfway.closed
    expect(refused).toContain('HTTP/1.1 503 ')
    expect(refused).toContain('Connection: close')
    expect(refused).toEndWith('"slug":"unavailable"}')
    release()
    expect(await (await running).json()).toEqual({ done: true })
    await drained
    expect(logged().map(({ status }) => status)).toEqual([404, 404, 503, 200])
    await expect(request('/slow')).rejects.toThrow()
  })

  test('requests that do not end are aborted', async () => {
    const { slow, started } = gate()
    const { server, request } = serve([slow], { drainTimeoutMs: 1 })
    const running = request('/slow').then(
      () => 'answered',
      () => 'cut off',
    )
    await started
    await server.drain()
    expect(await running).toBe('cut off')
  })
})
