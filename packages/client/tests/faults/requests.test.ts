/** Requests that fail halfway: tokens that do not come, proxies, broken streams, sign-outs and stalled uploads. */
import { expect, test } from 'bun:test'
import { describeServer, rootKey } from '../../../server/tests/harness/server.ts'
import { auth, createClient, files, functions, memoryStorage, records } from '../../src/index.ts'
import { hurryClient } from '../harness/hurry.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: { shared: { tables: { items: { schema: { text: { type: 'string' } }, access: open } } } },
  storage: { buckets: { box: { access: { read: true, write: true, delete: true } } } },
} as const

type Send = (input: string, init: RequestInit) => Promise<Response>

describeServer('requests that fail halfway', { config }, (server) => {
  const connect = (options = {}) =>
    createClient<typeof config>(server.url, [records, auth, files, functions], { storage: memoryStorage(), ...options })
  /** A client whose requests pass through `send`. */
  const through = (send: Send, options = {}) => connect({ fetch: send as typeof fetch, ...options })

  test('a token that does not come ends with the time or the signal of the call', async () => {
    const client = connect({ getToken: () => new Promise<string>(() => undefined) })
    const { items } = client.db()
    await expect(items.list({ timeout: 20 })).rejects.toMatchObject({ slug: 'timeout' })
    const abort = new AbortController()
    const listing = items.list({ signal: abort.signal })
    abort.abort()
    await expect(listing).rejects.toMatchObject({ slug: 'aborted' })
    const pending = items.list()
    client.close()
    await expect(pending).rejects.toMatchObject({ slug: 'aborted' })
  })

  test('the 429 of a proxy is waited for and repeated', async () => {
    let count = 0
    const limited = () => new Response('<h1>Slow down</h1>', { status: 429, headers: { 'Retry-After': '0' } })
    const client = through(async (input, init) => (++count === 1 ? limited() : fetch(input, init)))
    expect((await client.db().items.list()).items).toEqual([])
    expect(count).toBe(2)
    const always = through(async () => limited())
    await expect(always.db().items.list()).rejects.toMatchObject({ status: 429, retryable: true })
  })

  test('a stream that breaks is a network error, after the values that have arrived', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
    const event = 'data: {"step":1}\n\n'
    const arrived = Promise.withResolvers<void>()
    const broken = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.write(`${head}${event.length.toString(16)}\r\n${event}\r\n`)
          socket.flush()
          void arrived.promise.then(() => socket.end())
        },
      },
    })
    try {
      const client = createClient(`http://127.0.0.1:${broken.port}`, [functions])
      const values: unknown[] = []
      const reading = (async () => {
        for await (const value of client.stream('report')) {
          values.push(value)
          arrived.resolve()
        }
      })()
      await expect(reading).rejects.toMatchObject({ name: 'PlinthError', slug: 'network', retryable: true })
      expect(values).toEqual([{ step: 1 }])
    } finally {
      broken.stop(true)
    }
  })

  test('a sign-out during a refresh stays a sign-out', async () => {
    const answered = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const storage = memoryStorage()
    const client = through(
      async (input, init) => {
        const response = await fetch(input, init)
        if (!input.endsWith('/api/auth/refresh')) return response
        answered.resolve()
        await release.promise
        return response
      },
      { storage },
    )
    await client.auth.signInAnonymously()
    const refreshing = client.auth.refresh()
    await answered.promise
    await client.auth.signOut()
    release.resolve()
    expect(await refreshing).toBeNull()
    expect(client.auth.session).toBeNull()
    expect(await storage.get(`plinth:${server.url}`)).toBeNull()
  })

  test('an upload outlasts an outage of minutes, and gives up a longer one', async () => {
    const data = new Blob([new Uint8Array(12_000_000)])
    const { waits, stop } = hurryClient((ms) => ms < 30_000)
    const random = Math.random
    Math.random = () => 0.999
    try {
      let failures = 0
      const away: Send = async (input, init) => {
        if (init.method !== 'POST' && failures < 12) {
          failures++
          throw new TypeError('the server is away')
        }
        return fetch(input, init)
      }
      const options = { serviceKey: rootKey }
      expect(await through(away, options).files('box').upload('outage', data)).toMatchObject({ size: 12_000_000 })
      expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(60_000)
      const gone: Send = (input, init) =>
        init.method === 'POST' ? fetch(input, init) : Promise.reject(new TypeError('the server is gone'))
      const stalled = through(gone, options).files('box').upload('gone', data)
      await expect(stalled).rejects.toMatchObject({ slug: 'network' })
    } finally {
      Math.random = random
      stop()
    }
  })
})
