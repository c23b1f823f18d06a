/** Channel tags: several subscriptions of one table on one socket, and the channel in errors. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { changeOf, itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: { shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } } },
}

describeServer('tags of channels', { config }, (server) => {
  test('[SUB-15] one socket can subscribe to a table several times with different filters', async () => {
    const socket = await watch(server.url, { subscribe: null })
    const [low, high] = [`${itemsChannel}#low`, `${itemsChannel}#high`]
    socket.send({ type: 'subscribe', channel: low, filters: [['n', '<', 5]] })
    socket.send({ type: 'subscribe', channel: high, filters: [['n', '>=', 5]] })
    expect(await socket.expect('subscribed')).toMatchObject({ channel: low, serverFilter: true })
    expect(await socket.expect('subscribed')).toMatchObject({ channel: high, serverFilter: true })
    const { body } = await server.anonymous.post(items, { n: 1 })
    expect(await socket.next()).toMatchObject({ channel: low, changeType: 'added', docId: body.id })
    await server.anonymous.patch(`${items}/${body.id}`, { n: 9 })
    const moved = [await socket.next(), await socket.next()]
    expect(moved.map(({ channel, changeType }) => `${channel} ${changeType}`).sort()).toEqual([
      `${high} added`,
      `${low} removed`,
    ])
    socket.send({ type: 'unsubscribe', channel: low })
    expect(await socket.next()).toEqual({ type: 'unsubscribed', channel: low })
    await server.anonymous.delete(`${items}/${body.id}`)
    expect(changeOf(await socket.next())).toEqual(['removed', body.id, null])
    await socket.close()
  })

  test('[SUB-15] a subscription with a tag resumes with its cursor', async () => {
    const channel = `${itemsChannel}#mine`
    const first = await watch(server.url, { subscribe: null })
    first.send({ type: 'subscribe', channel })
    const { cursor } = await first.expect('subscribed')
    await first.close()
    const { body } = await server.anonymous.post(items, { n: 2 })
    const second = await watch(server.url, { subscribe: null })
    second.send({ type: 'subscribe', channel, since: cursor })
    expect(await second.expect('subscribed')).toMatchObject({ channel, recovered: true })
    expect(await second.next()).toMatchObject({ channel, docId: body.id })
    await second.close()
  })

  test('[SUB-15] broadcasts are sent to channels without a tag only', async () => {
    const socket = await watch(server.url)
    socket.send({ type: 'subscribe', channel: `${itemsChannel}#tag` })
    await socket.expect('subscribed')
    await server.service.post('/api/db/broadcast', { channel: itemsChannel, event: 'e', payload: {} })
    expect(await socket.next()).toMatchObject({ type: 'broadcast_event', channel: itemsChannel })
    const refused = await server.service.post('/api/db/broadcast', {
      channel: `${itemsChannel}#tag`,
      event: 'e',
      payload: {},
    })
    expect(refused.status).toBe(404)
    await socket.close()
  })

  test.each(['#', '#a b', '#a#b', `#${'x'.repeat(33)}`, '#é'])(
    '[SUB-15, SUB-16] a malformed tag %j is refused, and the error names the channel',
    async (tag) => {
      const socket = await watch(server.url)
      const channel = itemsChannel + tag
      socket.send({ type: 'subscribe', channel })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'INVALID_CHANNEL', channel })
      await socket.close()
    },
  )
})
