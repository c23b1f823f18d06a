/** The session: kept, shared, refreshed on use, and ended only by the server's word or the user's. */
import { afterAll, expect, test } from 'bun:test'
import { manualClock } from '../../server/src/base/clock.ts'
import { describeServer } from '../../server/tests/harness/server.ts'
import { mailAuth } from '../../server/tests/harness/users/mail-config.ts'
import { openMailbox } from '../../server/tests/harness/users/mailbox.ts'
import { auth, createClient, memoryStorage, records, type SessionStorage } from '../src/index.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

const config = {
  auth: mailAuth(mailbox),
  databases: {
    shared: {
      tables: { own: { schema: { text: { type: 'string' } }, access: { read: (user: unknown) => user !== null } } },
    },
  },
} as const
const clock = manualClock(Date.now())
const password = 'a lighthouse at sea'
const minute = 60_000

/** Storage that several clients share, as the tabs of a browser do. */
function sharedStorage(): SessionStorage & { readonly values: Map<string, string> } {
  const values = new Map<string, string>()
  const listeners = new Set<{ key: string; from: object; call: (value: string | null) => void }>()
  const notify = (key: string): void => {
    for (const one of listeners) if (one.key === key) queueMicrotask(() => one.call(values.get(key) ?? null))
  }
  return {
    values,
    get: (key) => values.get(key) ?? null,
    set(key, value) {
      values.set(key, value)
      notify(key)
    },
    remove(key) {
      values.delete(key)
      notify(key)
    },
    watch(key, call) {
      const entry = { key, from: {}, call }
      listeners.add(entry)
      return () => {
        listeners.delete(entry)
      }
    },
  }
}

describeServer('sessions of the client', { config, clock }, (server) => {
  let users = 0
  const connect = (options = {}) =>
    createClient<typeof config>(server.url, [auth, records], { storage: memoryStorage(), ...options })
  const signUp = (client: ReturnType<typeof connect>) =>
    client.auth.signUp({ email: `user-${++users}@client.example`, password, displayName: 'Ann' })
  /** A fetch that counts refreshes, and fails as long as `isAway`. */
  const observed = () => {
    const state = { refreshes: 0, isAway: false, status: 0 }
    const send = async (input: string | URL | Request, init?: RequestInit) => {
      if (state.isAway) throw new TypeError('the server is away')
      if (String(input).endsWith('/auth/refresh')) {
        state.refreshes++
        if (state.status) return Response.json({ code: state.status, slug: 'x', message: '' }, { status: state.status })
      }
      return fetch(input, init)
    }
    return { state, fetch: send }
  }

  test('a session is kept in storage, and found by the next client', async () => {
    const storage = sharedStorage()
    const first = connect({ storage })
    expect(await first.auth.ready).toBeNull()
    const { user } = await signUp(first)
    expect(user).toMatchObject({ displayName: 'Ann', role: 'user', isAnonymous: false })
    const second = connect({ storage })
    expect((await second.auth.ready)?.user).toEqual(user)
    expect(second.auth.user?.id).toBe(user.id)
    await second.auth.signOut()
    expect(second.auth.session).toBeNull()
    await Promise.resolve()
    expect(first.auth.session).toBeNull()
    expect(storage.values.size).toBe(1) // the device token
  })

  test('an expired token is refreshed on use, once for concurrent requests', async () => {
    const { state, fetch } = observed()
    const client = connect({ fetch })
    await signUp(client)
    clock.advance(16 * minute)
    const lists = await Promise.all(Array.from({ length: 20 }, () => client.db().own.list()))
    expect(lists.every(({ total }) => total === 0)).toBe(true)
    expect(state.refreshes).toBe(1)
    expect(client.auth.session).not.toBeNull()
  })

  test('clients that share a session refresh it together, and none is signed out', async () => {
    const storage = sharedStorage()
    const { state, fetch } = observed()
    const clients = Array.from({ length: 20 }, () => connect({ storage, fetch }))
    await signUp(clients[0] as (typeof clients)[0])
    await Promise.resolve()
    for (let round = 0; round < 3; round++) {
      clock.advance(16 * minute)
      await Promise.all(clients.map((client) => client.db().own.list()))
      expect(clients.every((client) => client.auth.session !== null)).toBe(true)
    }
    const tokens = new Set(clients.map((client) => client.auth.session?.accessToken))
    expect(tokens.size).toBe(1)
    // Without locks, clients that begin at the same moment each send one; the grace of the server accepts them all.
    expect(state.refreshes).toBeLessThanOrEqual(60)
  })

  test.each([500, 502, 503, 429, 400])('a refresh answered with %i keeps the session', async (status) => {
    const { state, fetch } = observed()
    const client = connect({ fetch, retries: 0 })
    await signUp(client)
    state.status = status
    clock.advance(16 * minute)
    await expect(client.db().own.list()).rejects.toMatchObject({ name: 'PlinthError' })
    expect(client.auth.session).not.toBeNull()
    state.status = 0
    expect((await client.db().own.list()).total).toBe(0)
  })

  test('a server that is away keeps the session', async () => {
    const { state, fetch } = observed()
    const storage = memoryStorage()
    const client = connect({ fetch, retries: 0, storage })
    await signUp(client)
    clock.advance(16 * minute)
    state.isAway = true
    await expect(client.db().own.list()).rejects.toMatchObject({ slug: 'network' })
    await expect(client.auth.refresh()).rejects.toMatchObject({ slug: 'network', retryable: true })
    expect((await connect({ storage }).auth.ready)?.user.id).toBe(client.auth.user?.id as string)
    state.isAway = false
    await client.auth.refresh()
    expect((await client.db().own.list()).total).toBe(0)
  })

  test('a session that the server has ended ends, and listeners are called once', async () => {
    const client = connect()
    const { user } = await signUp(client)
    const sessions: (string | null)[] = []
    client.auth.onChange((session) => sessions.push(session?.user.id ?? null))
    await server.service.post(`/api/auth/admin/users/${user.id}/revoke`, {})
    clock.advance(16 * minute)
    await expect(client.db().own.list()).rejects.toMatchObject({ status: 401 })
    expect(client.auth.session).toBeNull()
    expect(sessions).toEqual([null])
  })

  test('a stale copy of a session takes over the newer one instead of ending it', async () => {
    const storage = sharedStorage()
    const fresh = connect({ storage })
    await signUp(fresh)
    // Without notifications, as in a tab that was frozen.
    const { watch: _, ...silent } = storage
    const frozen = connect({ storage: silent })
    await frozen.auth.ready
    for (let round = 0; round < 3; round++) {
      clock.advance(16 * minute)
      await fresh.auth.refresh()
    }
    expect((await frozen.db().own.list()).total).toBe(0)
    expect(frozen.auth.session?.accessToken).toBe(fresh.auth.session?.accessToken as string)
  })

  test('a listener may await any call of the client', async () => {
    const client = connect()
    const done: Promise<unknown>[] = []
    client.auth.onChange((session) => {
      if (session) done.push(Promise.all([client.auth.ready, client.auth.refresh(), client.db().own.list()]))
    })
    await signUp(client)
    for (let round = 0; round < 30; round++) {
      clock.advance(1000)
      await client.auth.refresh()
    }
    await Promise.all(done)
    expect(done.length).toBeGreaterThan(30)
    expect(client.auth.session).not.toBeNull()
  })

  test('a listener that throws affects neither the others nor the call', async () => {
    const client = connect()
    const error = console.error
    const logged: unknown[] = []
    console.error = (...args) => logged.push(...args)
    try {
      client.auth.onChange(() => {
        throw new Error('a bug of the application')
      })
      let isCalled = false
      client.auth.onChange(() => {
        isCalled = true
      })
      await signUp(client)
      expect([isCalled, client.auth.session !== null, logged.length]).toEqual([true, true, 1])
    } finally {
      console.error = error
    }
  })

  test('storage that is full or forbidden loses the session at the next start, and not before', async () => {
    const broken: SessionStorage = {
      get: () => Promise.reject(new Error('forbidden')),
      set: () => {
        throw new Error('full')
      },
      remove: () => Promise.reject(new Error('forbidden')),
    }
    const client = connect({ storage: broken })
    expect(await client.auth.ready).toBeNull()
    await signUp(client)
    expect((await client.db().own.list()).total).toBe(0)
    clock.advance(16 * minute)
    expect((await client.db().own.list()).total).toBe(0)
    await client.auth.signOut()
    expect(client.auth.session).toBeNull()
  })

  test('what storage contains of other programs is no session', async () => {
    for (const text of ['', '{', 'null', '[]', '{"user":{}}', '{"user":{"id":"x"},"accessToken":"y"}']) {
      const storage = memoryStorage()
      await storage.set(`plinth:${server.url}`, text)
      expect(await connect({ storage }).auth.ready).toBeNull()
    }
  })

  test('an anonymous user keeps the account when signing up', async () => {
    const client = connect()
    const anonymous = await client.auth.signInAnonymously()
    const { user } = await signUp(client)
    expect(user).toMatchObject({ id: anonymous.user.id, isAnonymous: false })
  })

  test('the user of the session follows the verification of its address', async () => {
    const client = connect()
    const { user } = await signUp(client)
    const email = user.email as string
    await client.auth.requestEmailVerification()
    const token = await mailbox.nextToken(email)
    const other = connect()
    await signUp(other)
    expect(await client.auth.verifyEmail(token)).toBeUndefined()
    expect(client.auth.user).toMatchObject({ id: user.id, emailVerified: true })
    await client.auth.changeEmail({ email: `new-${email}`, password })
    expect((await mailbox.next(email)).text).toContain(`new-${email}`)
    // In the session of another user, who stays signed in as who they are.
    await other.auth.verifyEmailChange(await mailbox.nextToken(`new-${email}`))
    expect(other.auth.user).not.toMatchObject({ email: `new-${email}` })
    await expect(client.auth.refresh()).resolves.toBeNull()
  })

  test('profile, password and sessions', async () => {
    const client = connect()
    const { user } = await signUp(client)
    await client.auth.updateProfile({ displayName: 'Ann Lee', metadata: { theme: 'dark' } })
    expect(client.auth.user?.displayName).toBe('Ann Lee')
    const email = user.email as string
    const other = connect()
    await expect(other.auth.signIn({ email, password: 'wrong password' })).rejects.toMatchObject({
      slug: 'invalid-credentials',
    })
    expect(await other.auth.signIn({ email, password })).toMatchObject({ session: { user: { id: user.id } } })
    expect(await client.auth.sessions.list()).toHaveLength(2)
    await client.auth.changePassword({ currentPassword: password, newPassword: `${password}!` })
    expect((await client.db().own.list()).total).toBe(0)
    await expect(other.auth.refresh()).resolves.toBeNull()
    expect(other.auth.session).toBeNull()
  })
})
