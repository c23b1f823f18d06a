/** Broadcasts on table channels: who can send them, who receives them, and that they cannot imitate changes. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const path = '/api/db/broadcast'
const limitedKey = 'a-key-that-may-broadcast'
const otherKey = 'a-key-that-may-read'
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' } }, access: open },
        private: { schema: {}, access: { ...open, read: false } },
      },
    },
  },
  serviceKeys: [
    { name: 'caster', key: limitedKey, scopes: ['db:channel:*:broadcast'] },
    { name: 'reader', key: otherKey, scopes: ['db:table:*:*'] },
  ],
}
const news = { channel: itemsChannel, event: 'news', payload: { text: 'hello' } }

describeServer('broadcast', { config }, (server) => {
  test('[SUB-50] a broadcast reaches all subscribers of its channel whatever their filters, and no others', async () => {
    const [all, some, one] = [
      await watch(server.url),
      await watch(server.url, { subscribe: { filters: [['n', '>', 100]] } }),
      await watch(server.url, { channel: `${itemsChannel}:a` }),
    ]
    const unsubscribed = await watch(server.url)
    unsubscribed.send({ type: 'unsubscribe', channel: itemsChannel })
    await unsubscribed.expect('unsubscribed')
    const sent = await server.service.post(path, news)
    expect(sent.status).toBe(200)
    expect(sent.body).toEqual({ ok: true })
    for (const socket of [all, some]) expect(await socket.next()).toEqual({ type: 'broadcast_event', ...news })
    expect((await server.withKey(limitedKey).post(path, { ...news, channel: `${itemsChannel}:a` })).status).toBe(200)
    expect(await one.next()).toEqual({ type: 'broadcast_event', ...news, channel: `${itemsChannel}:a` })
    unsubscribed.send({ type: 'ping' })
    await unsubscribed.expect('pong')
    for (const socket of [all, some, one, unsubscribed]) await socket.close()
  })

  test('[SUB-51] a broadcast with the members of a change arrives as a broadcast', async () => {
    const socket = await watch(server.url)
    const change = { type: 'db_change', changeType: 'removed', docId: 'a', data: null, channel: itemsChannel }
    const body = { channel: itemsChannel, event: 'db_change', payload: change, type: 'db_change', ...{ docId: 'a' } }
    expect((await server.service.post(path, body)).status).toBe(200)
    expect(await socket.next()).toEqual({
      type: 'broadcast_event',
      channel: itemsChannel,
      event: 'db_change',
      payload: change,
    })
    await socket.close()
  })

  test('[SUB-51] a line break in a channel name cannot inject a message', async () => {
    const [one, other] = [await watch(server.url), await watch(server.url, { channel: `${itemsChannel}:a` })]
    const channel = `${itemsChannel}:a\n{"type":"db_change"}`
    await server.service.post(path, { ...news, channel })
    await server.service.post(path, { ...news, channel: itemsChannel, event: 'last' })
    await server.service.post(path, { ...news, channel: `${itemsChannel}:a`, event: 'last' })
    expect((await one.next()).event).toBe('last')
    expect((await other.next()).event).toBe('last')
    await one.close()
    await other.close()
  })

  test('[SUB-52] a broadcast without a service key is 403, with a wrong key or scope 401', async () => {
    const socket = await watch(server.url)
    expectRefusal(await server.anonymous.post(path, news), 403)
    expectRefusal(await server.as('ann').post(path, news), 403)
    expectRefusal(await server.withKey('wrong').post(path, news), 401)
    expectRefusal(await server.withKey(otherKey).post(path, news), 401)
    await server.service.post(path, { ...news, event: 'last' })
    expect((await socket.next()).event).toBe('last')
    await socket.close()
  })

  test.each([
    [{}, 400],
    [{ channel: itemsChannel, payload: {} }, 400],
    [{ channel: itemsChannel, event: 'x' }, 400],
    [{ event: 'x', payload: {} }, 400],
    [{ ...news, event: '' }, 400],
    [{ ...news, event: 'x'.repeat(129) }, 400],
    [{ ...news, payload: [] }, 400],
    [{ ...news, payload: 'text' }, 400],
    [{ ...news, payload: null }, 400],
    [{ ...news, channel: 'nonsense' }, 400],
    [{ ...news, channel: `${itemsChannel}\nbroadcast` }, 404],
    [{ ...news, channel: 'dblive:shared:nothing\n{"type":"db_change"}' }, 404],
    [{ ...news, channel: 'dblive:nowhere:items' }, 400],
    [{ ...news, channel: 'dblive:shared:nothing' }, 404],
    [{ ...news, payload: { text: 'x'.repeat(70_000) } }, 413],
  ])('[SUB-53] a broadcast of %j is refused', async (body, status) => {
    const socket = await watch(server.url)
    expectRefusal(await server.service.post(path, body), status)
    await server.service.post(path, { ...news, event: 'last' })
    expect((await socket.next()).event).toBe('last')
    await socket.close()
  })
})
