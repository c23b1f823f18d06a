/** The conversation of a subscription's socket: how it begins, what each message is answered with, and what ends it. */
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
    ])('[SUB-1] %j is ready', async (params, channel) => {
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
    ])('[SUB-2] %j is not, and the upgrade says the same', async (params, status, type, category) => {
      for (const endpoint of ['connect-check', 'subscribe']) {
        const answer = await server.anonymous.get(`/api/db/${endpoint}${query(params)}`)
        expect(answer.status).toBe(status)
        expect(answer.body).toMatchObject({ ok: false, code: status, type, category, pendingCount: 0, maxPending: 5 })
        expect(answer.body.message).toBeString()
      }
    })

    test('[SUB-2, SUB-14] a check without a channel is refused, while a socket may be opened without one', async () => {
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

    test('[SUB-3] a plain request, and a wrong key, open no socket', async () => {
      expect((await server.anonymous.get(path)).status).toBe(400)
      expect((await server.withKey('wrong').get(path)).status).toBe(401)
      expect((await server.anonymous.post(path, {})).status).toBe(405)
      await expect(openSocket(server.url, path, { 'x-platform-service-key': 'wrong' })).rejects.toThrow('refused')
    })
  })

  describe('messages', () => {
    test('[SUB-4] auth is answered with the user, and the channel of the URL is subscribed to', async () => {
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

    test('[SUB-5] a table that anybody may read needs no auth', async () => {
      const socket = await watch(server.url)
      await server.service.post(items, { title: 'x' })
      expect((await socket.next()).data.title).toBe('x')
      await socket.close()
    })

    test('[SUB-6] without auth, what the rule denies ends the socket; with it, the channel alone is refused', async () => {
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

    test('[SUB-7] a service key comes with the upgrade, and sees what its scope names', async () => {
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
    ])('[SUB-8] subscribe %j is refused, and the socket stays', async (message, code) => {
      const socket = await watch(server.url, { token: await server.token('ann') })
      socket.send({ type: 'subscribe', ...message })
      expect(await socket.next()).toEqual({ type: 'error', code, message: expect.any(String) })
      await server.service.post(items, { title: 'still' })
      expect((await socket.next()).data.title).toBe('still')
      await socket.close()
    })

    test('[SUB-8] a filter on a hidden field is refused like one on a field that is not there', async () => {
      const socket = await watch(server.url, { key: rootKey })
      const answers: unknown[] = []
      for (const name of ['pin', 'pix']) {
        socket.send({ type: 'subscribe', channel: itemsChannel, filters: [[name, '==', '1']] })
        answers.push((await socket.next()).message.replace(name, 'x'))
      }
      expect(answers[0]).toBe(answers[1])
      await socket.close()
    })

    test('[SUB-9] unsubscribe is acknowledged, and nothing follows', async () => {
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

    test.each(['unsubscribe', 'update_filters'])('[SUB-9] %s of what is no text is no channel', async (type) => {
      const socket = await watch(server.url)
      for (const channel of [undefined, null, 7, [itemsChannel], {}, { toString: 1 }]) {
        socket.send({ type, channel })
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_SUBSCRIBED' })
      }
      const { body } = await server.service.post(items, { n: 1 })
      expect((await socket.next()).docId).toBe(body.id)
      await socket.close()
    })

    test('[SUB-10] subscribing again replaces, and every change is told once', async () => {
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

    test('[SUB-10] subscribing again in the same words changes nothing', async () => {
      const socket = await watch(server.url)
      for (const filters of [undefined, null, []]) {
        socket.send({ type: 'subscribe', channel: itemsChannel, filters })
        await socket.expect('subscribed')
        const { body } = await server.service.post(items, { n: 1 })
        expect((await socket.next()).docId).toBe(body.id)
      }
      await socket.close()
    })

    test('[SUB-11] a type that is none is an error, and the socket stays', async () => {
      const socket = await watch(server.url)
      for (const message of [{ type: 'nothing' }, { type: 'constructor' }, { type: '__proto__' }, { type: 7 }, {}]) {
        socket.send(message)
        expect(await socket.next()).toMatchObject({ type: 'error', code: 'UNKNOWN_TYPE' })
      }
      await socket.close()
    })

    test('[SUB-12] one socket watches at most 100 channels', async () => {
      const socket = await watch(server.url, { key: rootKey })
      for (let n = 1; n < 100; n++) {
        socket.send({ type: 'subscribe', channel: `${itemsChannel}:${n}` })
        if (n % 50 === 0) for (let seen = 0; seen < 50; seen++) await socket.expect('subscribed')
      }
      for (let n = 51; n < 100; n++) await socket.expect('subscribed')
      // As many messages as a second allows may have been sent by now: asked again until one is dealt with.
      const ask = async (channel: string): Promise<Message> => {
        socket.send({ type: 'subscribe', channel })
        const answer = await socket.next()
        return answer.message === 'Too many messages' ? ask(channel) : answer
      }
      expect(await ask(`${itemsChannel}:100`)).toMatchObject({ type: 'error', code: 'RATE_LIMITED' })
      expect(await ask(`${itemsChannel}:1`)).toMatchObject({ type: 'subscribed' })
      await socket.close()
    })

    test('[SUB-10] two subscriptions of a socket are each told of a change, under their own channel', async () => {
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
      ['no JSON', '{"type":'],
      ['nothing', ''],
      ['a list', '[{"type":"ping"}]'],
      ['a text', '"ping"'],
      ['null', 'null'],
      ['bytes', new TextEncoder().encode('{"type":"ping"}')],
      ['what is nested deeply', deep],
      ['what is too large', JSON.stringify({ type: 'subscribe', channel: 'x'.repeat(70_000) })],
    ])('[SOCK-1] %s ends the socket with 4000', async (_, data) => {
      const socket = await watch(server.url)
      socket.sendFrame(data)
      expect(await socket.expect('error')).toMatchObject({ code: 'INVALID_JSON' })
      expect(await socket.closed).toEqual({ code: 4000, reason: 'INVALID_JSON' })
    })

    test('[SOCK-1] names of the language itself are plain members', async () => {
      const socket = await watch(server.url)
      socket.sendFrame(`{"__proto__":{"channel":"${itemsChannel}"},"type":"unsubscribe"}`)
      expect(await socket.next()).toMatchObject({ code: 'NOT_SUBSCRIBED' })
      await socket.close()
    })

    test('[SOCK-2] a message in fragments is one message', async () => {
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
      ['a frame beyond any bound', frame('text', 'x'.repeat(2 * 1024 * 1024))],
      [
        'fragments beyond any bound',
        Buffer.concat(Array(40).fill(frame('text', 'x'.repeat(50_000), { isLast: false }))),
      ],
    ])('[SOCK-3] %s ends the socket, and no other', async (_, bytes) => {
      const other = await watch(server.url)
      const socket = await openRawSocket(server.url, path)
      socket.write(bytes)
      await socket.readToEnd()
      other.send({ type: 'ping' })
      await other.expect('pong')
      await other.close()
    })

    test('[SOCK-4] messages beyond the rate are refused, pings are not counted', async () => {
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

  test('[SOCK-5] what sockets do is counted', async () => {
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
