/** Broadcasts on channels of no table: who may receive and send them by the configuration, on every node. */
import { expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'

type Auth = { readonly id: string; readonly custom: Readonly<Record<string, unknown>> } | null

const path = '/api/db/broadcast'
const limitedKey = 'a-key-that-may-broadcast'
const otherKey = 'a-key-that-may-read'
const config = {
  databases: { shared: { tables: { items: { schema: {}, access: open } } } },
  broadcasts: {
    lobby: { subscribe: true, publish: true },
    news: { subscribe: true },
    'team:*': {
      subscribe: (auth: Auth, name: string) => auth !== null && name === `team:${auth.custom.team}`,
      publish: (auth: Auth, name: string) => auth !== null && name === `team:${auth.custom.team}`,
    },
    'team:open': { subscribe: true, publish: true },
    broken: {
      subscribe: () => {
        throw new Error('a mistake in a rule')
      },
    },
    silent: {},
  },
  serviceKeys: [
    { name: 'caster', key: limitedKey, scopes: ['db:channel:*:broadcast'] },
    { name: 'reader', key: otherKey, scopes: ['db:table:*:*'] },
  ],
}
const lobby = 'broadcast:lobby'
const typing = { type: 'broadcast', channel: lobby, event: 'typing', payload: { by: 'ann' } }
const closing = closeAfterEach()

describeServer('broadcast channels', { config }, (server) => {
  const tokenOf = async (id: string, team = 'red') => server.token({ id, custom: { team } })

  const watchChannel = async (channel: string, more: object = {}) =>
    closing(await watch(server.url, { channel, ...more }), ({ close }) => close())

  const listen = async (id: string, channel: string, team = 'red') =>
    watchChannel(channel, { token: await tokenOf(id, team), subscribe: {} })

  /** An authenticated socket that has subscribed to the lobby only. */
  const speaker = async (id: string, team = 'red') => listen(id, lobby, team)

  test('[SUB-90] clients send and receive events on a declared channel, their own included', async () => {
    const [ann, anonymous] = [await listen('ann', lobby), await watchChannel(lobby)]
    expect(anonymous.subscribed).toEqual({ type: 'subscribed', channel: lobby, serverFilter: false })
    ann.send(typing)
    for (const socket of [ann, anonymous]) expect(await socket.next()).toEqual({ ...typing, type: 'broadcast_event' })
    anonymous.send({ ...typing, payload: null })
    for (const socket of [ann, anonymous]) expect((await socket.next()).payload).toBeNull()
    anonymous.send({ type: 'unsubscribe', channel: lobby })
    await anonymous.expect('unsubscribed')
    ann.send(typing)
    await ann.expect('broadcast_event')
    anonymous.send({ type: 'ping' })
    await anonymous.expect('pong')
  })

  test('[SUB-91] rules decide by caller and channel name; an exact name comes before a prefix', async () => {
    const red = await listen('ann', 'broadcast:team:red')
    const sent = { type: 'broadcast', channel: 'broadcast:team:red', event: 'move', payload: { x: 1 } }
    red.send(sent)
    expect(await red.next()).toEqual({ ...sent, type: 'broadcast_event' })
    const blue = await speaker('bob', 'blue')
    for (const message of [{ type: 'subscribe', channel: 'broadcast:team:red' }, sent]) {
      blue.send(message)
      expect(await blue.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
    }
    blue.send({ type: 'subscribe', channel: 'broadcast:team:open' })
    await blue.expect('subscribed')
    red.send({ type: 'ping' })
    await red.expect('pong')
  })

  test.each(['broadcast:news', 'broadcast:silent', 'broadcast:broken'])(
    '[SUB-91] a missing or throwing rule denies access to %s',
    async (channel) => {
      const ann = await speaker('ann')
      ann.send({ ...typing, channel })
      expect(await ann.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
      ann.send({ type: 'subscribe', channel })
      if (channel === 'broadcast:news') await ann.expect('subscribed')
      else expect(await ann.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
    },
  )

  test('[SUB-91] a denied anonymous socket is closed with NOT_AUTHENTICATED', async () => {
    const socket = await watchChannel('broadcast:team:red', { subscribe: null })
    socket.send({ type: 'subscribe', channel: 'broadcast:team:red' })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'NOT_AUTHENTICATED' })
    expect((await socket.closed).code).toBe(4000)
  })

  test('[SUB-91] new claims end the subscriptions that they deny', async () => {
    const red = await listen('ann', 'broadcast:team:red')
    red.send({ type: 'auth', token: await tokenOf('ann', 'blue') })
    expect(await red.next()).toMatchObject({ type: 'auth_refreshed', revokedChannels: ['broadcast:team:red'] })
    await server.service.post(path, { channel: 'broadcast:team:red', event: 'x', payload: {} })
    red.send({ type: 'ping' })
    await red.expect('pong')
  })

  test.each([
    'broadcast:unknown',
    'broadcast:lobby2',
    'broadcast:',
    'broadcast:a b',
    `broadcast:team:${'x'.repeat(300)}`,
  ])(
    '[SUB-92] an undeclared channel is refused on sockets, for broadcasts and by connect-check: %s',
    async (channel) => {
      const ann = await speaker('ann')
      for (const message of [
        { type: 'subscribe', channel },
        { ...typing, channel },
      ]) {
        ann.send(message)
        expect(await ann.next()).toMatchObject({ type: 'error', code: 'INVALID_CHANNEL' })
      }
      expectRefusal(await server.service.post(path, { channel, event: 'x', payload: {} }), 404)
      const check = await server.anonymous.get(`/api/db/connect-check${query({ channel })}`)
      expect(check).toMatchObject({ status: 404, body: { type: 'db_namespace_not_configured' } })
    },
  )

  test('[SUB-93] the event name and the payload have a maximum length', async () => {
    const ann = await speaker('ann')
    const payload = { text: 'x'.repeat(16 * 1024 - '{"text":""}'.length) }
    ann.send({ ...typing, payload })
    expect((await ann.next()).payload).toEqual(payload)
    ann.send({ ...typing, payload: { text: `${payload.text}x` } })
    expect(await ann.next()).toMatchObject({ type: 'error', code: 'MESSAGE_TOO_LARGE' })
    for (const event of ['', 'x'.repeat(129), 7, null]) {
      ann.send({ ...typing, event })
      expect(await ann.next()).toMatchObject({ type: 'error', code: 'INVALID_MESSAGE' })
    }
    ann.send({ ...typing, event: 'x'.repeat(128) })
    await ann.expect('broadcast_event')
  })

  test('[SUB-93] events count towards the message rate of their socket only', async () => {
    const [ann, bob] = [await speaker('ann'), await speaker('bob')]
    for (let n = 0; n < 300; n++) ann.send({ ...typing, payload: { n } })
    const received = await ann.until(({ type }) => type === 'error')
    expect(received.at(-1)).toMatchObject({ code: 'RATE_LIMITED' })
    bob.send({ ...typing, event: 'of bob' })
    await bob.until(({ event }) => event === 'of bob')
  })

  test('[SUB-94] broadcasts are not stored: they cause no change and cannot be recovered', async () => {
    const items = await watchChannel('dblive:shared:items')
    const ann = await speaker('ann')
    ann.send(typing)
    await ann.expect('broadcast_event')
    const again = await listen('ann', lobby)
    again.send({ type: 'subscribe', channel: lobby, since: items.subscribed.cursor })
    expect(await again.next()).toEqual({ type: 'subscribed', channel: lobby, serverFilter: false, recovered: false })
    for (const socket of [again, items]) {
      socket.send({ type: 'ping' })
      await socket.expect('pong')
    }
  })

  test('[SUB-95] a service key can send to every declared channel if it has the broadcast scope', async () => {
    const ann = await listen('ann', 'broadcast:news')
    const news = { channel: 'broadcast:news', event: 'news', payload: { text: 'hello' } }
    for (const client of [server.service, server.withKey(limitedKey)]) {
      expect((await client.post(path, news)).body).toEqual({ ok: true })
      expect(await ann.next()).toEqual({ type: 'broadcast_event', ...news })
    }
    expectRefusal(await server.withKey(otherKey).post(path, news), 401)
    expectRefusal(await server.as('ann').post(path, news), 403)
    expectRefusal(await server.anonymous.post(path, news), 403)
    const keyed = await watchChannel('broadcast:silent', { key: limitedKey })
    keyed.send({ type: 'broadcast', ...news, channel: 'broadcast:silent' })
    expect(await keyed.next()).toMatchObject({ type: 'broadcast_event', event: 'news' })
    const reader = await watchChannel('dblive:shared:items', { key: otherKey })
    reader.send({ type: 'subscribe', channel: 'broadcast:silent' })
    expect(await reader.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
  })
})

if (sharedEngine)
  test('[SUB-90] an event that a client sends on one node is received on every node', async () => {
    const { nodes } = closing(await openNodes(sharedEngine, 2, { config }), ({ close }) => close())
    const [one, other] = nodes as [TestServer, TestServer]
    const [here, there] = [await watch(one.url, { channel: lobby }), await watch(other.url, { channel: lobby })]
    here.send(typing)
    for (const socket of [here, there]) {
      expect(await socket.next()).toEqual({ ...typing, type: 'broadcast_event' })
      await socket.close()
    }
  })
