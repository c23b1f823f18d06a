/** Queued writes and kept lists whose stored texts are damaged. */
import { expect, test } from 'bun:test'
import { describeServer, type TestServer } from '../../../server/tests/harness/server.ts'
import { createClient, live, persist, records } from '../../src/index.ts'
import { createDevice, type Device } from '../harness/offline-device.ts'

const access = { read: true, insert: true, update: true, delete: true } as const
const schema = { n: { type: 'number', default: 0 }, text: { type: 'string' }, note: { type: 'string' } } as const
const config = { databases: { shared: { tables: { items: { schema, access } } } } } as const

/** Where the device keeps the writes of ann, and the lists of the user. */
const writesKey = ({ url }: TestServer): string => `plinth:${url}:offline:writes|ann`
const listsKey = ({ url }: TestServer): string => `plinth:${url}:offline:lists`

describeServer('damaged offline values', { config }, (server) => {
  const connect = ({ storage, fetch }: Device) =>
    createClient<typeof config>(server.url, [persist({ userId: () => 'ann' }), records, live], {
      getToken: () => server.token('ann'),
      storage,
      fetch,
      retries: 0,
    })

  test('damaged values are dropped, and the others are sent', async () => {
    const device = createDevice()
    const before = connect(device)
    const list = before.db().items.where('note', '==', 'damaged').live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    await device.stored(':lists', (text) => text.includes('"rows"'))
    device.network = 'down'
    for (const text of ['one', 'two', 'three', 'four'])
      await before.db().items.optimistic.insert({ text, note: 'damaged' })
    stop()
    before.close()
    const writes = JSON.parse(device.values.get(writesKey(server)) as string)
    writes[0] = { path: writes[0].path }
    writes[1].path = 'https://elsewhere.example'
    writes[2] = 3
    device.storage.set(writesKey(server), JSON.stringify(writes))
    device.storage.set(listsKey(server), '12345678[{"id"')
    device.network = 'up'
    const after = connect(device)
    await after.offline.flush()
    const { items } = await after.db().items.where('note', '==', 'damaged').list()
    expect(items.map(({ text }) => text)).toEqual(['four'])
    after.close()
  })

  test.each(['', '{', '"text"', '[1,null]', 'null', '{"user":"ann","lists":{}}'])(
    'damaged texts begin new ones: %j',
    async (damaged) => {
      const device = createDevice()
      device.storage.set(writesKey(server), damaged)
      device.storage.set(listsKey(server), damaged)
      const client = connect(device)
      const row = await client.db().items.optimistic.insert({ text: 'new' })
      expect(row).toMatchObject({ text: 'new', n: 0 })
      client.close()
    },
  )

  test.each([null, 1, {}, { rows: {} }, { rows: [null] }])(
    'a damaged list is read from the server: %j',
    async (damaged) => {
      const device = createDevice()
      const before = connect(device)
      const row = await before.db().items.insert({ text: 'read', note: 'list' })
      const list = before.db().items.where('id', '==', row.id).live()
      const stop = list.subscribe(() => undefined)
      await device.stored(':lists', (text) => text.includes('"rows"'))
      stop()
      before.close()
      const kept = JSON.parse(device.values.get(listsKey(server)) as string)
      for (const key of Object.keys(kept.lists)) kept.lists[key] = damaged
      device.storage.set(listsKey(server), JSON.stringify(kept))
      const after = connect(device)
      const again = after.db().items.where('id', '==', row.id).live()
      expect(await again.ready).toMatchObject([{ text: 'read' }])
      expect(again.current.items).toMatchObject([{ text: 'read' }])
      after.close()
    },
  )
})
