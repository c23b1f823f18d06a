/** Authentication of sockets: expiring tokens, new claims, pending sockets and silent ones. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'
import { frame, openRawSocket, openSocket, type TestSocket } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const teams = '/api/db/shared/tables/teams'
const path = `/api/db/subscribe${query({ channel: itemsChannel })}`
const clock = manualClock()
const startMs = clock.now()
const shortKey = 'a-key-that-ends-soon'

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' } }, access: open },
        teams: {
          schema: { team: { type: 'string' } },
          access: {
            ...open,
            read: (auth: { custom: { team?: string } } | null) =>
              auth?.custom.team !== undefined && { team: auth.custom.team },
          },
        },
        admins: { schema: {}, access: { ...open, read: (auth: { role: string } | null) => auth?.role === 'admin' } },
      },
    },
  },
  serviceKeys: [
    { name: 'short', key: shortKey, scopes: ['*'], expiresAt: new Date(startMs + 3_600_000).toISOString() },
  ],
}

const teamsChannel = 'dblive:shared:teams'
const trustProxy = { kind: 'hops', hops: 1 } as const

describeServer('sockets', { config, clock, settings: { trustProxy } }, (server) => {
  beforeAll(() => clock.set(startMs))
  const auth = async (socket: TestSocket, claims: Parameters<typeof server.token>[0]) =>
    socket.send({ type: 'auth', token: await server.token(claims) })

  describe('authentication', () => {
    test.each([['nonsense'], [7], [undefined], [''], ['x'.repeat(20_000)]])(
      '[SOCK-10] an invalid first token %j closes the socket',
      async (token) => {
        const socket = await openSocket(server.url, path)
        socket.send({ type: 'auth', token: typeof token === 'string' ? token.slice(0, 20_000) : token })
        expect(await socket.next()).toEqual({ type: 'auth_error', message: 'Invalid token' })
        expect(await socket.next()).toEqual({ type: 'error', code: 'AUTH_FAILED', message: 'Invalid token' })
        expect(await socket.closed).toEqual({ code: 4002, reason: 'AUTH_FAILED' })
      },
    )

    test('[SOCK-10] an expired first token closes the socket', async () => {
      const token = await server.token('ann')
      clock.advance(16 * 60_000)
      const socket = await openSocket(server.url, path)
      socket.send({ type: 'auth', token })
      expect(await socket.expect('auth_error')).toMatchObject({ message: 'Token expired' })
      expect((await socket.closed).code).toBe(4002)
    })

    test('[SOCK-11] messages sent right after auth are processed as the authenticated user', async () => {
      const socket = await openSocket(server.url, path)
      await auth(socket, { id: 'ann', custom: { team: 'red' } })
      socket.send({ type: 'subscribe', channel: teamsChannel })
      await socket.expect('auth_success')
      expect(await socket.expect('subscribed')).toMatchObject({ channel: itemsChannel })
      expect(await socket.expect('subscribed')).toMatchObject({ channel: teamsChannel })
      await socket.close()
    })

    test('[SOCK-12] an expired token closes its socket, unless a new token was sent', async () => {
      const [old, renewed] = [
        await watch(server.url, { token: await server.token('ann') }),
        await watch(server.url, { token: await server.token('ann') }),
      ]
      clock.advance(30_000)
      // Keeps both sockets from the silence timeout.
      for (const socket of [old, renewed]) {
        socket.send({ type: 'ping' })
        await socket.expect('pong')
      }
      await auth(renewed, { id: 'ann', expiresInMs: 3_600_000 })
      expect(await renewed.next()).toEqual({ type: 'auth_refreshed', userId: 'ann', revokedChannels: [] })
      for (let passed = 30_000; passed < 15 * 60_000; passed += 20_000) {
        clock.advance(20_000)
        if (passed + 20_000 < 15 * 60_000) {
          old.send({ type: 'ping' })
          await old.expect('pong')
        }
        renewed.send({ type: 'ping' })
        await renewed.expect('pong')
      }
      expect(await old.next()).toEqual({ type: 'auth_error', message: 'Token expired' })
      expect(await old.next()).toMatchObject({ code: 'AUTH_FAILED' })
      expect((await old.closed).code).toBe(4002)
      await server.service.post(items, { n: 1 })
      expect((await renewed.next()).data.n).toBe(1)
      await renewed.close()
    })

    test('[SOCK-13] a later auth with another user’s token or an invalid one changes nothing', async () => {
      const socket = await watch(server.url, {
        channel: teamsChannel,
        token: await server.token({ id: 'ann', custom: { team: 'red' } }),
      })
      await auth(socket, { id: 'bob', custom: { team: 'blue' } })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'AUTH_REFRESH_FAILED' })
      socket.send({ type: 'auth', token: 'nonsense' })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'AUTH_REFRESH_FAILED' })
      await server.service.post(teams, { team: 'blue' })
      await server.service.post(teams, { team: 'red' })
      expect((await socket.next()).data.team).toBe('red')
      await socket.close()
    })

    test('[SOCK-14] an expired service key closes its socket', async () => {
      clock.set(startMs)
      const socket = await watch(server.url, { key: shortKey })
      clock.set(startMs + 3_600_000)
      expect(await socket.expect('auth_error')).toMatchObject({ message: 'Invalid service key' })
      expect((await socket.closed).code).toBe(4002)
    })
  })

  describe('claims', () => {
    test('[SUB-40] new claims change which rows a subscription sees from then on', async () => {
      const socket = await watch(server.url, {
        channel: teamsChannel,
        token: await server.token({ id: 'ann', custom: { team: 'red' } }),
      })
      const [red, blue] = [
        (await server.service.post(teams, { team: 'red' })).body.id,
        (await server.service.post(teams, { team: 'blue' })).body.id,
      ]
      expect((await socket.next()).docId).toBe(red)
      await auth(socket, { id: 'ann', custom: { team: 'blue' } })
      expect(await socket.next()).toEqual({
        type: 'auth_refreshed',
        userId: 'ann',
        revokedChannels: [],
        changedChannels: [teamsChannel],
      })
      await server.service.delete(`${teams}/${red}`)
      await server.service.delete(`${teams}/${blue}`)
      expect(await socket.next()).toMatchObject({ changeType: 'removed', docId: blue })
      await socket.close()
    })

    test('[SUB-41] channels that the new claims deny are named and unsubscribed', async () => {
      const socket = await watch(server.url, { token: await server.token({ id: 'ann', role: 'admin' }) })
      socket.send({ type: 'subscribe', channel: 'dblive:shared:admins' })
      await socket.expect('subscribed')
      await auth(socket, { id: 'ann', role: 'user' })
      expect(await socket.next()).toMatchObject({
        type: 'auth_refreshed',
        revokedChannels: ['dblive:shared:admins'],
      })
      await server.service.post('/api/db/shared/tables/admins', {})
      await server.service.post(items, { n: 5 })
      expect(await socket.next()).toMatchObject({ channel: itemsChannel, data: { n: 5 } })
      socket.send({ type: 'unsubscribe', channel: 'dblive:shared:admins' })
      expect(await socket.next()).toMatchObject({ code: 'NOT_SUBSCRIBED' })
      await socket.close()
    })

    test('[SUB-41] a subscription made before auth is evaluated for the user after it', async () => {
      const socket = await watch(server.url, { subscribe: { filters: [['n', '==', 1]] } })
      await auth(socket, 'ann')
      expect(await socket.next()).toEqual({ type: 'auth_success', userId: 'ann' })
      await server.service.post(items, { n: 2 })
      await server.service.post(items, { n: 1 })
      expect((await socket.next()).data.n).toBe(1)
      await socket.close()
    })
  })

  describe('pending', () => {
    const from = (address: string) => ({ 'x-forwarded-for': address })
    const pendingAt = async (address: string): Promise<number> =>
      (await server.anonymous.get(`/api/db/connect-check${query({ channel: itemsChannel })}`, from(address))).body
        .pendingCount

    test('[SOCK-20] five sockets of an address can be pending; the next is 429 until one authenticates, subscribes or closes', async () => {
      const address = '203.0.113.1'
      const sockets: TestSocket[] = []
      for (let n = 0; n < 5; n++) sockets.push(await openSocket(server.url, path, from(address)))
      expect(await pendingAt(address)).toBe(5)
      const check = await server.anonymous.get(
        `/api/db/connect-check${query({ channel: itemsChannel })}`,
        from(address),
      )
      expect(check.status).toBe(429)
      expect(check.headers.get('retry-after')).toBe('5')
      expect(check.body).toMatchObject({
        ok: false,
        type: 'db_connect_rate_limited',
        category: 'rate_limit',
        channel: itemsChannel,
        pendingCount: 5,
        maxPending: 5,
      })
      await expect(openSocket(server.url, path, from(address))).rejects.toThrow('refused')
      const other = await openSocket(server.url, path, from('203.0.113.2'))
      sockets[0]?.send({ type: 'subscribe', channel: itemsChannel })
      await sockets[0]?.expect('subscribed')
      if (sockets[1]) await auth(sockets[1], 'ann')
      await sockets[1]?.expect('auth_success')
      await sockets[2]?.close()
      while ((await pendingAt(address)) > 2);
      for (let n = 0; n < 3; n++) sockets.push(await openSocket(server.url, path, from(address)))
      await expect(openSocket(server.url, path, from(address))).rejects.toThrow('refused')
      for (const socket of [...sockets, other]) await socket.close()
    })

    test('[SOCK-20] a refused upgrade has the same response as connect-check', async () => {
      const address = '203.0.113.3'
      const sockets = await Promise.all(Array.from({ length: 5 }, () => openSocket(server.url, path, from(address))))
      const head = [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Upgrade: websocket', 'Connection: Upgrade, close']
      const key = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13']
      const answer = await sendRaw(server.url, [...head, ...key, `X-Forwarded-For: ${address}`, '', ''].join('\r\n'))
      expect(answer.status).toBe(429)
      expect(JSON.parse(answer.text)).toMatchObject({ ok: false, type: 'db_connect_rate_limited' })
      for (const socket of sockets) await socket.close()
    })

    test('[SOCK-21] IPv6 addresses are counted by /64', async () => {
      const sockets: TestSocket[] = []
      for (let n = 0; n < 5; n++) sockets.push(await openSocket(server.url, path, from(`2001:db8:1:2::${n + 1}`)))
      await expect(openSocket(server.url, path, from('2001:db8:1:2:ffff::1'))).rejects.toThrow('refused')
      sockets.push(await openSocket(server.url, path, from('2001:db8:1:3::1')))
      for (const socket of sockets) await socket.close()
    })

    test('[SOCK-20] of forty concurrent upgrades five are accepted', async () => {
      const address = '203.0.113.4'
      const outcomes = await Promise.allSettled(
        Array.from({ length: 40 }, () => openSocket(server.url, path, from(address))),
      )
      const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
      expect(opened).toHaveLength(5)
      for (const socket of opened) await socket.close()
      while ((await pendingAt(address)) > 0);
    })

    test('[SOCK-22] a socket that neither authenticates nor subscribes within five seconds is closed', async () => {
      const silent = await openSocket(server.url, path)
      const subscribed = await watch(server.url)
      clock.advance(5000)
      expect(await silent.next()).toMatchObject({ type: 'error', code: 'AUTH_TIMEOUT' })
      expect(await silent.closed).toEqual({ code: 4001, reason: 'AUTH_TIMEOUT' })
      subscribed.send({ type: 'ping' })
      await subscribed.expect('pong')
      await subscribed.close()
    })
  })

  describe('silence', () => {
    /** Opens a socket that never responds to a ping. */
    async function openUnresponsive() {
      const socket = await openRawSocket(server.url, path)
      socket.write(frame('text', JSON.stringify({ type: 'subscribe', channel: itemsChannel })))
      await socket.readUntil(({ messages }) => messages.length > 0)
      return socket
    }

    test('[SOCK-23] a silent socket is pinged after 22.5 seconds and closed after 45', async () => {
      const [unresponsive, live] = [await openUnresponsive(), await watch(server.url)]
      clock.advance(23_000)
      // The client of the live socket responds to pings by itself.
      await unresponsive.readUntil(({ pings }) => pings > 0)
      live.send({ type: 'ping' })
      await live.expect('pong')
      clock.advance(22_000)
      const { closeCode } = await unresponsive.readUntil(({ closeCode }) => closeCode !== null)
      expect(closeCode).toBe(4007)
      live.send({ type: 'ping' })
      await live.expect('pong')
      unresponsive.destroy()
      await live.close()
    })

    test('[SOCK-24] the connection ends within seconds of a close that the client does not answer', async () => {
      const unresponsive = await openUnresponsive()
      clock.advance(45_000)
      await unresponsive.readUntil(({ closeCode }) => closeCode !== null)
      clock.advance(3000)
      await unresponsive.readToEnd()
    })
  })
})
