/** Sessions with wrong clocks, proxies, other copies of the client, and listeners that call the client again. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../../server/src/base/clock.ts'
import { describeServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, files, functions, live, memoryStorage, records, rooms } from '../../src/index.ts'
import { openFaultySockets } from '../harness/faulty-sockets.ts'
import { until } from '../harness/until.ts'

const signedIn = (user: unknown) => user !== null
const config = {
  databases: { shared: { tables: { own: { schema: { text: { type: 'string' } }, access: { read: signedIn } } } } },
  storage: { buckets: { box: { access: { read: true, write: true } } } },
} as const
const minute = 60_000
const features = [auth, records, files, functions, live, rooms]

type Send = (input: string, init: RequestInit) => Promise<Response>

/** Counts the refreshes of the clients that use it. */
function observed(send: Send = fetch) {
  const state = { refreshes: 0 }
  const counting: Send = (input, init) => {
    if (input.endsWith('/api/auth/refresh')) state.refreshes++
    return send(input, init)
  }
  return { state, fetch: counting as typeof fetch }
}

const realNow = Date.now
afterEach(() => {
  Date.now = realNow
})

for (const skew of [-10, 10])
  describeServer(
    `a client whose clock differs by ${skew} minutes`,
    { config, clock: manualClock(realNow() - skew * minute) },
    (server) => {
      test('neither signs out nor refreshes too often', async () => {
        const { state, fetch } = observed()
        const storage = memoryStorage()
        const client = createClient<typeof config>(server.url, features, { fetch, storage })
        await client.auth.signInAnonymously()
        for (let call = 0; call < 30; call++) await client.db().own.list()
        expect(state.refreshes).toBe(0)
        // Another start finds the session, by the same clock.
        const next = createClient<typeof config>(server.url, features, { fetch, storage })
        for (let call = 0; call < 30; call++) await next.db().own.list()
        expect(state.refreshes).toBe(0)
        for (let expiry = 1; expiry <= 3; expiry++) {
          await server.elapse(16 * minute)
          await Promise.all(Array.from({ length: 10 }, () => next.db().own.list()))
          expect(state.refreshes).toBe(expiry)
        }
        expect(next.auth.session).not.toBeNull()
      })

      test('survives a clock that is corrected while it is signed in', async () => {
        const { state, fetch } = observed()
        const client = createClient<typeof config>(server.url, features, { fetch, storage: memoryStorage() })
        let signOuts = 0
        client.auth.onChange((session) => {
          if (!session) signOuts++
        })
        await client.auth.signInAnonymously()
        for (const offset of [10, 0, -10, 0, 60, -60, 0]) {
          Date.now = () => realNow() + offset * minute
          for (let call = 0; call < 10; call++) await client.db().own.list()
        }
        // Forward, the token seems to be over: at most one for each correction.
        expect(state.refreshes).toBeLessThanOrEqual(7)
        expect([signOuts, client.auth.session !== null]).toEqual([0, true])
        await server.elapse(16 * minute)
        expect((await client.db().own.list()).total).toBe(0)
      })
    },
  )

describeServer('sessions that fail', { config, clock: manualClock(realNow()) }, (server) => {
  test('the pages of a proxy are errors of every call, and end no session', async () => {
    let status = 0
    const html: Send = async (input, init) =>
      status
        ? new Response('<html>Sign in to the network</html>', { status, headers: { 'Content-Type': 'text/html' } })
        : fetch(input, init)
    const sockets = openFaultySockets()
    const options = { fetch: html as typeof fetch, storage: memoryStorage(), retries: 0, ...sockets.options }
    const client = createClient<typeof config>(server.url, features, options)
    await client.auth.signInAnonymously()
    const list = client.db().own.live()
    const leave = list.subscribe(() => undefined)
    await list.ready
    for (status of [200, 302, 401, 403, 404, 429, 502, 511]) {
      const first = async () => {
        for await (const value of client.stream('report')) return value
        return 'nothing'
      }
      const calls: (() => Promise<unknown>)[] = [
        () => client.db().own.list(),
        () => client.auth.refresh(),
        () => client.auth.signIn({ email: 'ann@client.example', password: 'a lighthouse at sea' }),
        () => client.files('box').upload('key', 'text'),
        () => client.call('report'),
        first,
      ]
      for (const call of calls) await expect(call()).rejects.toMatchObject({ slug: 'invalid-answer' })
      expect(client.auth.session).not.toBeNull()
    }
    // A socket that a proxy answers with a page is tried again.
    sockets.faults.network = 'down'
    sockets.last.close()
    await until(list, ({ status: shown }) => shown === 'stale')
    status = 0
    sockets.faults.network = 'up'
    await until(list, ({ status: shown }) => shown === 'live')
    leave()
    client.close()
    sockets.stop()
  })

  test('a listener may refresh and list a thousand times', async () => {
    const client = createClient<typeof config>(server.url, features, { storage: memoryStorage() })
    const handled: Promise<unknown>[] = []
    client.auth.onChange((session) => {
      const handle = async (): Promise<number> => {
        await client.auth.refresh()
        return (await client.db().own.list()).total
      }
      if (session) handled.push(handle())
    })
    await client.auth.signInAnonymously()
    while (handled.length < 1_000) {
      // A refresh in another second has another token.
      await server.elapse(1_000)
      await client.auth.refresh()
    }
    expect(new Set(await Promise.all(handled))).toEqual(new Set([0]))
    expect(client.auth.session).not.toBeNull()
    client.close()
  }, 60_000)

  test('two copies of the client on one storage share a session through every expiry', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-copies-'))
    try {
      const { outputs } = await Bun.build({ entrypoints: [join(import.meta.dir, '../../src/index.ts')], target: 'bun' })
      const file = join(folder, 'copy.js')
      await Bun.write(file, outputs[0] as Blob)
      const copy = (await import(file)) as typeof import('../../src/index.ts')
      expect(copy.createClient).not.toBe(createClient)
      const storage = memoryStorage()
      const { state, fetch } = observed()
      const one = createClient<typeof config>(server.url, features, { storage, fetch })
      await one.auth.signInAnonymously()
      const two = copy.createClient<typeof config>(server.url, [copy.auth, copy.records], { storage, fetch })
      for (let expiry = 1; expiry <= 3; expiry++) {
        await server.elapse(16 * minute)
        await Promise.all([one.db().own.list(), two.db().own.list()])
        expect(state.refreshes).toBeLessThanOrEqual(2 * expiry)
        // Beyond the grace in which the previous token is accepted.
        await server.elapse(minute)
        expect([one.auth.session, two.auth.session]).not.toContain(null)
      }
      await two.auth.refresh()
      expect((await one.db().own.list()).total).toBe(0)
      const error: unknown = await two
        .db()
        .own.get('missing')
        .catch((thrown: unknown) => thrown)
      const { isPlinthError } = await import('../../src/index.ts')
      expect(isPlinthError(error, 'not-found')).toBe(true)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
