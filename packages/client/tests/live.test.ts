/** Live lists: their rows, windows, resumption, refusals and optimistic writes, against a server. */
import { describe, expect, test } from 'bun:test'
import { describeServer, type TestServer } from '../../server/tests/harness/server.ts'
import { auth, createClient, live, memoryStorage, records } from '../src/index.ts'
import { until } from './harness/until.ts'
import { pauseRequests } from './harness/wire.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: { group: { type: 'string' }, n: { type: 'number', default: 0 }, text: { type: 'string' } },
          access: open,
        },
        own: {
          schema: { ownerId: { type: 'string' }, text: { type: 'string' } },
          access: {
            ...open,
            read: (user: { id: string } | null) => user && { ownerId: user.id },
            update: (user: { id: string } | null) => user && { ownerId: user.id },
          },
        },
        closed: { schema: { text: { type: 'string' } } },
      },
    },
  },
} as const

const connect = (server: TestServer, options = {}) =>
  createClient<typeof config>(server.url, [records, live, auth], { storage: memoryStorage(), ...options })

describeServer('live lists', { config }, (server) => {
  const withClient = async (run: (client: ReturnType<typeof connect>) => Promise<void>, options = {}) => {
    const client = connect(server, options)
    try {
      await run(client)
    } finally {
      client.close()
    }
  }

  test('a list shows what it listed and what changes afterwards', () =>
    withClient(async (client) => {
      const { items } = client.db()
      const first = await items.insert({ group: 'a', text: 'one' })
      const list = items.where('group', '==', 'a').live()
      expect(list.current).toMatchObject({ items: [], status: 'loading', pending: 0 })
      expect((await list.ready).map(({ text }) => text)).toEqual(['one'])
      const stop = list.subscribe(() => undefined)
      const second = await items.insert({ group: 'a', text: 'two' })
      await until(list, ({ items: rows }) => rows.length === 2)
      await items.update(first.id, { text: 'changed' })
      await until(list, ({ items: rows }) => rows[0]?.text === 'changed')
      const before = list.current
      await items.update(second.id, { group: 'b' })
      await until(list, ({ items: rows }) => rows.length === 1)
      // What has not changed is the same object.
      expect(list.current.items[0] === before.items[0]).toBe(true)
      expect(list.current.status).toBe('live')
      stop()
    }))

  test('a window stays full when its rows leave, and in the order of the server', () =>
    withClient(async (client) => {
      const { items } = client.db()
      for (let at = 0; at < 80; at++) await items.insert({ group: 'w', n: at, text: `${(at * 7) % 80}` })
      const query = items.where('group', '==', 'w').sort('text', 'desc').sort('n').limit(10)
      const list = query.live()
      const stop = list.subscribe(() => undefined)
      await list.ready
      for (let round = 0; round < 60; round++) {
        const [row] = list.current.items
        await items.delete(row?.id as string)
        await until(list, ({ items: rows }) => rows[0]?.id !== row?.id && rows.length === 10)
      }
      expect(list.current.items).toEqual((await query.list()).items)
      stop()
    }))

  test('a selection shows only the selected fields, and sorts by others', () =>
    withClient(async (client) => {
      const { items } = client.db()
      await items.insert({ group: 's', n: 2, text: 'second' })
      const first = await items.insert({ group: 's', n: 1, text: 'first' })
      const list = items.where('group', '==', 's').sort('n').select('text').live()
      const stop = list.subscribe(() => undefined)
      expect(await list.ready).toEqual([{ text: 'first' }, { text: 'second' }] as never)
      await items.update(first.id, { n: 3 })
      await until(list, ({ items: rows }) => rows[0]?.text === 'second')
      stop()
    }))

  test('equal queries share a list; lists of a table share a socket', () =>
    withClient(async (client) => {
      const { items } = client.db()
      const query = () => items.where('group', '==', 'shared').sort('n').live()
      const list = query()
      const stop = list.subscribe(() => undefined)
      expect(query()).toBe(list)
      const lists = ['x', 'y', 'z'].map((group) => items.where('group', '==', group).live())
      const stops = lists.map((one) => one.subscribe(() => undefined))
      await Promise.all([...lists, list].map(({ ready }) => ready))
      await items.insert({ group: 'y' })
      await until(lists[1] as (typeof lists)[0], ({ items: rows }) => rows.length === 1)
      expect(lists[0]?.current.items).toEqual([])
      for (const end of [stop, ...stops]) end()
    }))

  test('a list that is no longer used while it is read aborts its request, and is read again by its next user', () => {
    const paused = pauseRequests('"paused"')
    let isPaused = true
    const send = (input: string, init: RequestInit) => (isPaused ? paused.fetch : fetch)(input, init)
    return withClient(
      async (client) => {
        const { items } = client.db()
        await items.insert({ group: 'paused', text: 'one' })
        const query = items.where('group', '==', 'paused')
        const stop = query.live().subscribe(() => undefined)
        await paused.begun
        // Another user within the same moment keeps the request.
        const stopOther = query.live().subscribe(() => undefined)
        stop()
        const again = query.live().subscribe(() => undefined)
        stopOther()
        expect(paused.requests).toBe(1)
        again()
        await paused.aborted
        isPaused = false
        expect(await query.live().ready).toMatchObject([{ text: 'one' }])
      },
      { fetch: send },
    )
  })

  test('a refused list is closed with the error, and does not affect the others', () =>
    withClient(async (client) => {
      const { items, closed } = client.db()
      const good = items.where('group', '==', 'good').live()
      const stop = good.subscribe(() => undefined)
      await good.ready
      const bad = closed.live()
      await expect(bad.ready).rejects.toMatchObject({ slug: 'authentication-required' })
      expect(bad.current).toMatchObject({ status: 'closed', items: [], error: { slug: 'authentication-required' } })
      await items.insert({ group: 'good' })
      await until(good, ({ items: rows, status }) => rows.length === 1 && status === 'live')
      stop()
    }))

  test('another user never sees rows of the previous one', () =>
    withClient(async (client) => {
      const list = client.db().own.live()
      const stop = list.subscribe(() => undefined)
      await client.auth.signInAnonymously()
      const { own } = client.db()
      const me = client.auth.user?.id as string
      await own.insert({ ownerId: me, text: 'mine' })
      await until(list, ({ items: rows }) => rows.length === 1)
      await client.auth.signOut()
      await until(list, ({ items: rows }) => rows.length === 0)
      await client.auth.signInAnonymously()
      await own.insert({ ownerId: client.auth.user?.id as string, text: 'other' })
      await until(list, ({ items: rows }) => rows[0]?.text === 'other')
      expect(list.current.items).toHaveLength(1)
      stop()
    }))

  describe('optimistic writes', () => {
    test('are shown at once, and stay when the server confirms them', () =>
      withClient(async (client) => {
        const { items } = client.db()
        const list = items.where('group', '==', 'o').sort('n').live()
        const stop = list.subscribe(() => undefined)
        await list.ready
        const inserting = items.optimistic.insert({ group: 'o', n: 5, text: 'new' })
        expect(list.current).toMatchObject({ items: [{ n: 5, text: 'new' }], pending: 1 })
        const { id } = await inserting
        await until(list, ({ pending }) => pending === 0)
        expect(list.current.items.map((row) => row.id)).toEqual([id])
        const updating = items.optimistic.update(id, { text: 'edited' })
        expect(list.current.items[0]).toMatchObject({ text: 'edited', n: 5 })
        await updating
        const leaving = items.optimistic.update(id, { group: 'p' })
        expect(list.current.items).toEqual([])
        await leaving
        await until(list, ({ pending }) => pending === 0)
        expect(list.current.items).toEqual([])
        stop()
      }))

    test('are taken back when the server refuses them', () =>
      withClient(async (client) => {
        const { items } = client.db()
        const { id } = await items.insert({ group: 'back', text: 'kept' })
        const list = items.where('group', '==', 'back').live()
        const stop = list.subscribe(() => undefined)
        await list.ready
        const refused = items.optimistic.update(id, { n: 'no number' } as never)
        expect(list.current.items[0]).toMatchObject({ n: 'no number' })
        await expect(refused).rejects.toMatchObject({ slug: 'invalid-input' })
        expect(list.current).toMatchObject({ items: [{ n: 0, text: 'kept' }], pending: 0 })
        stop()
      }))
  })

  test('a live record follows one row', () =>
    withClient(async (client) => {
      const { items } = client.db()
      const record = items.liveRecord('the-one')
      const stop = record.subscribe(() => undefined)
      expect(await record.ready).toBeNull()
      await items.insert({ id: 'the-one', text: 'here' })
      await until(record, ({ record: row }) => row?.text === 'here')
      await items.delete('the-one')
      await until(record, ({ record: row }) => row === null)
      stop()
    }))
})
