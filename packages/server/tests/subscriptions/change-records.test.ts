/** What changes carry of records: chosen fields, and the record before, which only service keys can request. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const readerKey = 'a-key-that-may-read'
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { n: { type: 'number' }, title: { type: 'string' }, pin: { type: 'string' } },
          hidden: ['pin'],
          access: open,
        },
      },
    },
  },
  changes: { retention: '1h' },
  serviceKeys: [{ name: 'reader', key: readerKey, scopes: ['db:table:items:read'] }],
}

describeServer('records of changes', { config }, (server) => {
  test('[SUB-99] live and recovered changes have the chosen fields, and other subscriptions all of them', async () => {
    const subscribe = { fields: 'id, n', previous: true }
    const [one, plain] = [
      await watch(server.url, { key: readerKey, subscribe }),
      await watch(server.url, { key: readerKey }),
    ]
    const inserts = Array.from({ length: 12 }, (_, n) => ({ id: `many${n}`, n, title: 'Long', pin: 'secret' }))
    await server.service.post(items, { id: 'f', n: 1, title: 'First', pin: 'secret' })
    await server.service.patch(`${items}/f`, { title: 'Second' })
    await server.service.post(`${items}/batch`, { inserts })
    const again = await watch(server.url, { key: readerKey, subscribe: { ...subscribe, since: one.subscribed.cursor } })
    for (const socket of [one, again]) {
      const [added, modified, batch] = [await socket.next(), await socket.next(), await socket.next()]
      expect([added.previous, added.data]).toEqual([null, { id: 'f', n: 1 }])
      expect(modified).toMatchObject({ changeType: 'modified', docId: 'f' })
      expect([modified.previous, modified.data]).toEqual([
        { id: 'f', n: 1 },
        { id: 'f', n: 1 },
      ])
      expect(batch.changes.map(({ data }: { data: object }) => data)).toEqual(inserts.map(({ id, n }) => ({ id, n })))
    }
    expect((await plain.next()).data).toMatchObject({ id: 'f', n: 1, title: 'First' })
    for (const socket of [one, again, plain]) await socket.close()
  })

  test('[SUB-99] users choose fields too; hidden and unknown ones are refused, and new filters keep them', async () => {
    const socket = await watch(server.url, { subscribe: null, token: await server.token('ann') })
    for (const fields of ['pin', 'none', '', 'id,pin', ['id'], 7, {}]) {
      socket.send({ type: 'subscribe', channel: itemsChannel, fields })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'INVALID_FILTERS', channel: itemsChannel })
    }
    socket.send({ type: 'subscribe', channel: itemsChannel, fields: 'title' })
    expect(await socket.next()).toMatchObject({ type: 'subscribed' })
    socket.send({ type: 'update_filters', channel: itemsChannel, filters: [['n', '>', 5]] })
    expect(await socket.next()).toMatchObject({ type: 'filters_updated' })
    await server.service.post(items, { id: 'g', n: 9, title: 'Shown', pin: 'secret' })
    expect((await socket.next()).data).toEqual({ title: 'Shown' })
    await socket.close()
  })

  test('[SUB-96] live and recovered changes include the previous record without hidden fields', async () => {
    const subscribe = { previous: true }
    const [one, plain] = [
      await watch(server.url, { key: readerKey, subscribe }),
      await watch(server.url, { key: readerKey }),
    ]
    await server.service.post(items, { id: 'a', n: 1, pin: 'secret-1' })
    await server.service.patch(`${items}/a`, { n: 2, pin: 'secret-2' })
    await server.service.delete(`${items}/a`)
    const expected = [
      ['added', null, { id: 'a', n: 1 }],
      ['modified', { id: 'a', n: 1 }, { id: 'a', n: 2 }],
      ['removed', { id: 'a', n: 2 }, null],
    ] as const
    const again = await watch(server.url, { key: readerKey, subscribe: { ...subscribe, since: one.subscribed.cursor } })
    expect(again.subscribed.recovered).toBe(true)
    for (const socket of [one, again])
      for (const [changeType, previous, data] of expected) {
        const message = await socket.next()
        expect(message).toMatchObject({ changeType, previous, data })
        expect(JSON.stringify(message)).not.toMatch(/pin|secret/)
      }
    for (const [changeType] of expected) {
      const message = await plain.next()
      expect(message.changeType).toBe(changeType)
      expect('previous' in message).toBe(false)
    }
    for (const socket of [one, again, plain]) await socket.close()
  })

  test('[SUB-96] with filters, a row that enters or leaves the view includes its previous record', async () => {
    const subscribe = { previous: true, filters: [['n', '>', 5]] }
    const socket = await watch(server.url, { key: readerKey, subscribe })
    await server.service.post(items, { id: 'b', n: 1 })
    await server.service.patch(`${items}/b`, { n: 9 })
    await server.service.patch(`${items}/b`, { n: 2 })
    expect(await socket.next()).toMatchObject({ changeType: 'added', previous: { n: 1 }, data: { n: 9 } })
    expect(await socket.next()).toMatchObject({ changeType: 'removed', previous: { n: 9 }, data: null })
    await socket.close()
  })

  test('[SUB-96] users and anonymous sockets cannot request previous records', async () => {
    for (const token of [undefined, await server.token('ann')]) {
      const socket = await watch(server.url, { subscribe: null, ...(token === undefined ? {} : { token }) })
      socket.send({ type: 'subscribe', channel: itemsChannel, previous: true })
      expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
      await socket.close()
    }
  })
})
