import { afterAll, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { createBoundedFetch, readAtMost } from './bounded-fetch.ts'

const canceled = Promise.withResolvers<void>()
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  routes: {
    '/small': () => Response.json({ ok: true }, { headers: { 'x-kept': 'yes' } }),
    '/large': () => new Response('x'.repeat(1001)),
    '/just': () => new Response('x'.repeat(1000)),
    '/bomb': () => new Response(gzipSync('x'.repeat(1_000_000)), { headers: { 'content-encoding': 'gzip' } }),
    '/endless': () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(new Uint8Array(600))
          },
          cancel() {
            canceled.resolve()
          },
        }),
      ),
    '/silent': () => new Promise<Response>(() => {}),
    '/stalled': () =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new Uint8Array(1))
          },
        }),
      ),
    '/elsewhere': () => new Response(null, { status: 302, headers: { location: '/small' } }),
    '/nothing': () => new Response(null, { status: 204 }),
  },
})
afterAll(() => server.stop(true))

const origin = server.url.origin
const fetchFrom = createBoundedFetch({ timeoutMs: 10_000, bytesMax: 1000 })
const fetchBriefly = createBoundedFetch({ timeoutMs: 50, bytesMax: 1000 })

describe('a request to a provider', () => {
  test('[OAUTH-6] returns a response within the bounds unchanged', async () => {
    const answer = await fetchFrom(`${origin}/small`)
    expect([answer.status, answer.headers.get('x-kept'), await answer.json()]).toEqual([200, 'yes', { ok: true }])
    expect((await (await fetchFrom(`${origin}/just`)).text()).length).toBe(1000)
    expect((await fetchFrom(`${origin}/nothing`)).status).toBe(204)
  })

  test('[OAUTH-6] rejects a response that is too large without reading the rest', async () => {
    await expect(fetchFrom(`${origin}/large`)).rejects.toThrow('larger than 1000 bytes')
    await expect(fetchFrom(`${origin}/endless`)).rejects.toThrow('larger than 1000 bytes')
    await canceled.promise
  })

  test('[OAUTH-6] does not decompress, so that a small response cannot expand', async () => {
    const answer = await fetchFrom(`${origin}/bomb`).then(
      (response) => response.bytes(),
      (error: Error) => error.message,
    )
    expect(typeof answer === 'string' ? answer : answer.length).toBe('The response is larger than 1000 bytes')
  })

  test('[OAUTH-6] rejects a response that does not start or does not end in time', async () => {
    for (const path of ['silent', 'stalled'])
      await expect(fetchBriefly(`${origin}/${path}`)).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('[OAUTH-6] does not follow redirects', async () => {
    const answer = await fetchFrom(`${origin}/elsewhere`)
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/small'])
  })

  test('[OAUTH-6] rejects plain HTTP to other machines', async () => {
    for (const url of [
      'http://example.org/',
      'http://127.0.0.1.example.org/',
      'http://localhost@example.org/',
      'file:///x',
    ])
      await expect(fetchFrom(url)).rejects.toThrow('must use HTTPS')
  })
})

test('[OAUTH-6] a missing stream reads as no bytes', async () => {
  expect(await readAtMost(null, 1)).toEqual(new Uint8Array())
})
