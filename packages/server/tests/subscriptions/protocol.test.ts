/** The subscription protocol: the checks before the upgrade, the response to each message, and what closes a socket. */
import { describe, expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { frame, type Message, openRawSocket, openSocket } from '../harness/socket.ts'

const items = '/api/db/shared/tables/items'
const path = `/api/db/subscribe${query({ channel: itemsChannel })}`

const signedIn = (auth: unknown): boolean => auth !== null

const schema = { title: { type: 'string' }, n: { type: 'number' }, pin: { type: 'string' } } as const
const limitedKey = 'a-key-that-reads-items'
const otherKey = 'a-key-that-reads-others'
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['pin'], access: open },
        private: { schema, access: { ...open, read: signedIn } },
        denied: { schema },
      },
    },
    space: {
      instance: true,
      access: signedIn,
      tables: { notes: { schema, access: { ...open, read: true } } },
    },
  },
  serviceKeys: [
    { name: 'items', key: limitedKey, scopes: ['db:table:items:read'] },
    { name: 'others', key: otherKey, scopes: ['db:table:others:read'] },
  ],
}

describeServer('protocol', { config }, (server) => {
  describe('connect-check', () => {
    const check = (params: Readonly<Record<string, unknown>>) =>
      server.anonymous.get(`/api/db/connect-check${query(params)}`)

    test.each([
      [{ channel: itemsChannel }, itemsChannel],
      [{ namespace: 'shared', table: 'items' }, itemsChannel],
      [{ namespace: 'shared', table: 'items', docId: 'a' }, `${itemsChannel}:a`],
      [{ namespace: 'space', table: 'notes', instanceId: 'x' }, 'dblive:space:x:notes'],
      [{ namespace: 'space', table: 'notes', instanceId: 'x', docId: 'a' }, 'dblive:space:x:notes:a'],
    ])('[SUB-1] connect-check accepts %j', async (params, channel) => {
      const { status, body } = await check(params)
      expect(status).toBe(200)
      expect(body).toEqual({
        ok: true,
        type: 'db_connect_ready',
        category: 'ready',
        message: expect.any(String),
        channel,
        pendingCount: 0,
        maxPending: 5,
      })
    })

    test.each([
      [{ namespace: 'shared' }, 400, 'db_connect_invalid_request', 'request'],
      [{ table: 'items' }, 400, 'db_connect_invalid_request', 'request'],
      [{ namespace: '', table: 'items' }, 400, 'db_connect_invalid_request', 'request'],
      [{ namespace: 'shared', table: 'items:x' }, 400, 'db_connect_invalid_request', 'request'],
      [{ namespace: 'space', table: 'notes' }, 400, 'db_connect_invalid_request', 'request'],
      [{ namespace: 'space', table: 'x', docId: 'notes' }, 400, 'db_connect_invalid_request', 'request'],
      [{ namespace: 'shared', table: 'x', instanceId: 'items' }, 400, 'db_connect_invalid_request', 'request'],
      [{ channel: 'items' }, 400, 'db_connect_invalid_request', 'request'],
      [{ channel: 'dblive' }, 400, 'db_connect_invalid_request', 'request'],
      [{ channel: 'dblive:shared' }, 400, 'db_connect_invalid_request', 'request'],
      [{ channel: 'dblive:shared:items:a:b' }, 400, 'db_connect_invalid_request', 'request'],
      [{ channel: 'dblive:nowhere:items' }, 404, 'db_namespace_not_configured', 'config'],
      [{ namespace: '__proto__', table: 'items' }, 404, 'db_namespace_not_configured', 'config'],
      [{ namespace: 'shared', table: 'nothing' }, 404, 'db_namespace_not_configured', 'config'],
      [{ namespace: 'shared', table: '*' }, 404, 'db_namespace_not_configured', 'config'],
    ])(
      '[SUB-2] connect-check and the upgrade refuse %j with the same response',
      async (params, status, type, category) => {
        for (const endpoint of ['connect-check', 'subscribe']) {
          const answer = await server.anonymous.get(`/api/db/${endpoint}${query(params)}`)
          expect(answer.status).toBe(status)
          expect(answer.body).toMatchObject({ ok: false, code: status, type, category, pendingCount: 0, maxPending: 5 })
          expect(answer.body.message).toBeString()
        }
      },
    )

    test('[SUB-2, SUB-14] connect-check without a channel is refused, but a socket can be opened without one', async () => {
      const { status, body } = await check({})
      expect(status).toBe(400)
      expect(body).toMatchObject({ ok: false, type: 'db_connect_invalid_request', category: 'request' })
      const socket = await openSocket(server.url, '/api/db/subscribe')
      socket.send({ type: 'auth', token: await server.token('ann') })
      expect(await socket.next()).toEqual({ type: 'auth_success', userId: 'ann' })
      socket.send({ type: 'subscribe', channel: itemsChannel })
      expect(await socket.next()).toMatchObject({ type: 'subscribed', channel: itemsChannel })
      await socket.close()
      const withKey = await openSocket(server.url, '/api/db/subscribe', { 'x-platform-service-key': rootKey })
      withKey.send({ type: 'ping' })
      expect(await withKey.next()).toEqual({ type: 'pong' })
      await withKey.close()
    })

    test('[SUB-3] a request without an upgrade or with a wrong service key opens no socket', async () => {
      expect((await server.anonymous.get(path)).status).toBe(400)
      expect((await server.withKey('wrong').get(path)).status).toBe(401)
      expect((await server.anonymous.post(path, {})).status).toBe(405)
      await expect(openSocket(server.url, path, { 'x-platform-service-key': 'wrong' })).rejects.toThrow('refused')
    })
  })

  describe('messages', () => {
    test('[SUB-4] auth is answered with the user id, then the channel of the URL is subscribed to', async () => {
      const socket = await openSocket(server.url, path)
      socket.send({ type: 'auth', token: await server.token('ann') })
      expect(await socket.next()).toEqual({ type: 'auth_success', userId: 'ann' })
      expect(await socket.next()).toEqual({
        type: 'subscribed',
        channel: itemsChannel,
        serverFilter: false,
        cursor: expect.any(String),
      })
      socket.send({ type: 'ping' })
      expect(await socket.next()).toEqual({ type: 'pong' })
      await socket.close()
    })

    test('[SUB-5] a publicly readable table can be subscribed to without auth', async () => {
      const socket = await watch(server.url)
      await server.service.post(items, { title: 'x' })
      expect((await socket.next()).data.title).toBe('x')
      await socket.close()
    })

    test('[SUB-6] a denied channel closes an anonymous socket and leaves an authenticated one open', async () => {
      for (const channel of ['dblive:shared:private', 'dblive:shared:denied', 'dblive:space:x:notes']) {
        const socket = await watch(server.url)
        socket.send({ type: 'subscribe', channel })
        expect(await socket.expect('error')).toMatchObject({ code: 'NOT_AUTHENTICATED' })
        expect(await socket.closed).toEqual({ code: 4000, reason: 'NOT_AUTHENTICATED' })
      }
      const socket = await watch(server.url, { token: await server.token('ann') })
      socket.send({ type: 'subscribe', channel: 'dblive:shared:denied' })
      expect(await socket.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
      socket.send({ type: 'subscribe', channel: 'dblive:shared:private' })
      await socket.expect('subscribed')
      await socket.close()
    })

    test('[SUB-7] a service key in the upgrade can subscribe to the tables in its scopes only', async () => {
      const root = await watch(server.url, { channel: 'dblive:shared:denied', key: rootKey })
      await server.service.post('/api/db/shared/tables/denied', { title: 'x' })
      expect((await root.next()).data.title).toBe('x')
      await root.close()
      await (await watch(server.url, { key: limitedKey })).close()
      const other = await openSocket(server.url, path, { 'x-platform-service-key': otherKey })
      expect(await other.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
      other.send({ type: 'auth', token: await server.token('ann') })
      expect(await other.expect('error')).toMatchObject({ code: 'AUTH_REFRESH_FAILED' })
      await other.close()
    })

    test.each([
      [{ channel: 'nonsense' }, 'INVALID_CHANNEL'],
      [{}, 'INVALID_CHANNEL'],
      [{ channel: 7 }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:shared:nothing' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:nowhere:items' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:shared:*' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:shared:items:' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:shared:items:a:b' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:shared:__proto__' }, 'INVALID_CHANNEL'],
      [{ channel: 'dblive:space:..:notes' }, 'INVALID_CHANNEL'],
      [{ channel: `dblive:shared:items:${'x'.repeat(2000)}` }, 'INVALID_CHANNEL'],
      [{ channel: itemsChannel, filters: {} }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: [['title']] }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: [['nothing', '==', 1]] }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: [['pin', '==', '1']] }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: [['n', '~', 1]] }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: [['n', '==', 'text']] }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, filters: Array(6).fill(['n', '>', 1]) }, 'INVALID_FILTERS'],
      [{ channel: itemsChannel, orFilters: Array(6).fill(['n', '>', 1]) }, 'INVALID_FILTERS'],
    ])('[SUB-8] subscribe %j is refused, and the socket stays open', async (message, code) => {
      const socket = await watch(server.url, { token: await server.token('ann') })
      socket.send({ type: 'subscribe', ...message })
      const [status, slug] = code === 'INVALID_CHANNEL' ? [404, 'not-found'] : [400, 'invalid-input']
      expect(await socket.next()).toMatchObject({ type: 'error', code, message: expect.any(String), status, slug })
      await server.service.post(items, { title: 'still' })
      expect((await socket.next()).data.title).toBe('still')
      await socket.close()
    })

    test('[SUB-8] a filter on a hidden field gives the same error as one on an unknown field', async () => {
      const socket = await watch(server.url, { key: rootKey })
      const errors: unknown[] = []
      for (const name of ['pin', 'pix']) {
        socket.send({ type: 'subscribe', channel: itemsChannel, filters: [[name, '==', '1']] })
        errors.push((await socket.next()).message.replace(name, 'x'))
      }
      expect(errors[0]).toBe(errors[1])
      await socket.close()
    })

    test('[SUB-9] unsubscribe is acknowledged, and no message of the channel follows', async () => {
      const socket = await watch(server.url)
      socket.send({ type: 'subscribe', channel: 'dblive:shared:items:here' })
      await socket.expect('subscribed')
      socket.send({ type: 'unsubscribe', channel: itemsChannel })
      expect(await socket.next()).toEqual({ type: 'unsubscribed', channel: itemsChannel })
      socket.send({ type: 'unsubscribe', channel: itemsChannel })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_SUBSCRIBED' })
      await server.service.post(items, { id: 'elsewhere' })
      await server.service.post(items, { id: 'here' })
      expect(await socket.next()).toMatchObject({ channel: `${itemsChannel}:here`, docId: 'here' })
      await socket.close()
    })

    test.each(['unsubscribe', 'update_filters'])(
      '[SUB-9] %s with a channel that is not a string gets NOT_SUBSCRIBED',
      async (type) => {
        const socket = await watch(server.url)
        for (const channel of [undefined, null, 7, [itemsChannel], {}, { toString: 1 }]) {
          socket.send({ type, channel })
          expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_SUBSCRIBED' })
        }
        const { body } = await server.service.post(items, { n: 1 })
        expect((await socket.next()).docId).toBe(body.id)
        await socket.close()
      },
    )

    test('[SUB-10] subscribing again replaces the subscription, and every change is sent once', async () => {
      const socket = await watch(server.url)
      socket.send({ type: 'subscribe', channel: itemsChannel, filters: [['n', '==', 1]] })
      await socket.expect('subscribed')
      await server.service.post(items, { n: 2 })
      await server.service.post(items, { id: 'a1', n: 1 })
      await server.service.post(items, { id: 'a2', n: 1 })
      expect((await socket.next()).docId).toBe('a1')
      expect((await socket.next()).docId).toBe('a2')
      await socket.close()
    })

    test('[SUB-10] repeating an identical subscribe changes nothing', async () => {
      const socket = await watch(server.url)
      for (const filters of [undefined, null, []]) {
        socket.send({ type: 'subscribe', channel: itemsChannel, filters })
        await socket.expect('subscribed')
        const { body } = await server.service.post(items, { n: 1 })
        expect((await socket.next()).docId).toBe(body.id)
      }
      await socket.close()
    })

    test('[SUB-11] a message of an unknown type is an error, and the socket stays open', async () => {
      const socket = await watch(server.url)
      for (const message of [{ type: 'nothing' }, { type: 'constructor' }, { type: '__proto__' }, { type: 7 }, {}]) {
        socket.send(message)
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'UNKNOWN_TYPE' })
      }
      await socket.close()
    })

    test('[SUB-12] a socket can subscribe to at most 100 channels', async () => {
      const socket = await watch(server.url, { key: rootKey })
      for (let n = 1; n < 100; n++) {
        socket.send({ type: 'subscribe', channel: `${itemsChannel}:${n}` })
        if (n % 50 === 0) for (let seen = 0; seen < 50; seen++) await socket.expect('subscribed')
      }
      for (let n = 51; n < 100; n++) await socket.expect('subscribed')
      // The message rate may be exhausted by now: repeats until a message is processed.
      const subscribe = async (channel: string): Promise<Message> => {
        socket.send({ type: 'subscribe', channel })
        const response = await socket.next()
        return response.message === 'Too many messages' ? subscribe(channel) : response
      }
      expect(await subscribe(`${itemsChannel}:100`)).toMatchObject({ type: 'error', code: 'RATE_LIMITED', status: 429 })
      expect(await subscribe(`${itemsChannel}:1`)).toMatchObject({ type: 'subscribed' })
      await socket.close()
    })

    test('[SUB-10] a change is sent once per matching subscription of a socket, under its own channel', async () => {
      const socket = await watch(server.url)
      socket.send({ type: 'subscribe', channel: `${itemsChannel}:both` })
      await socket.expect('subscribed')
      await server.service.post(items, { id: 'both' })
      const channels = [(await socket.next()).channel, (await socket.next()).channel]
      expect(channels.sort()).toEqual([itemsChannel, `${itemsChannel}:both`])
      await socket.close()
    })
  })

  describe('frames', () => {
    const deep = `{"type":"subscribe","channel":${'['.repeat(1000)}${']'.repeat(1000)}}`

    test.each([
      ['invalid JSON', '{"type":'],
      ['an empty message', ''],
      ['a JSON array', '[{"type":"ping"}]'],
      ['a JSON string', '"ping"'],
      ['null', 'null'],
      ['a binary message', new TextEncoder().encode('{"type":"ping"}')],
      ['a deeply nested message', deep],
      ['a message that is too large', JSON.stringify({ type: 'subscribe', channel: 'x'.repeat(70_000) })],
    ])('[SOCK-1] %s closes the socket with 4000', async (_, data) => {
      const socket = await watch(server.url)
      socket.sendFrame(data)
      expect(await socket.expect('error')).toMatchObject({ code: 'INVALID_JSON' })
      expect(await socket.closed).toEqual({ code: 4000, reason: 'INVALID_JSON' })
    })

    test('[SOCK-1] a member named __proto__ is an ordinary member', async () => {
      const socket = await watch(server.url)
      socket.sendFrame(`{"__proto__":{"channel":"${itemsChannel}"},"type":"unsubscribe"}`)
      expect(await socket.next()).toMatchObject({ code: 'NOT_SUBSCRIBED' })
      await socket.close()
    })

    test('[SOCK-2] a fragmented message is reassembled', async () => {
      const socket = await openRawSocket(server.url, path)
      socket.write(frame('text', '{"type":', { isLast: false }))
      socket.write(frame('continuation', '"pi', { isLast: false }))
      socket.write(frame('continuation', 'ng"}'))
      const { messages } = await socket.readUntil(({ messages }) => messages.length > 0)
      expect(messages).toEqual([{ type: 'pong' }])
      socket.destroy()
    })

    test.each([
      ['text that is not UTF-8', frame('text', Uint8Array.of(0xff, 0xfe))],
      ['a frame larger than 1 MiB', frame('text', 'x'.repeat(2 * 1024 * 1024))],
      [
        'a fragmented message larger than 1 MiB',
        Buffer.concat(Array(40).fill(frame('text', 'x'.repeat(50_000), { isLast: false }))),
      ],
    ])('[SOCK-3] %s closes its socket and no other', async (_, bytes) => {
      const other = await watch(server.url)
      const socket = await openRawSocket(server.url, path)
      socket.write(bytes)
      await socket.readToEnd()
      other.send({ type: 'ping' })
      await other.expect('pong')
      await other.close()
    })

    test('[SOCK-4] messages beyond the rate limit are refused; pings are not counted', async () => {
      const socket = await watch(server.url)
      for (let n = 0; n < 300; n++) socket.send({ type: 'ping' })
      for (let n = 0; n < 300; n++) await socket.expect('pong')
      for (let n = 0; n < 400; n++) socket.send({ type: 'nothing' })
      const codes: string[] = []
      for (let n = 0; n < 400; n++) codes.push((await socket.expect('error')).code)
      expect(codes.filter((code) => code === 'UNKNOWN_TYPE').length).toBeGreaterThanOrEqual(99)
      expect(codes).toContain('RATE_LIMITED')
      await socket.close()
    })
  })

  test('[SOCK-5] /metrics counts sockets, pending sockets, subscriptions and slow consumers', async () => {
    const socket = await watch(server.url)
    const { text } = await server.service.get('/metrics')
    expect(text).toMatch(/^sockets_open [1-9]/m)
    expect(text).toMatch(/^sockets_pending \d/m)
    expect(text).toMatch(/^subscription_views [1-9]/m)
    expect(text).toMatch(/^subscriptions_held 0$/m)
    expect(text).toMatch(/^sockets_slow_closed_total 0$/m)
    await socket.close()
  })
})
