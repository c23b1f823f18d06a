/** The feature `persist`: queued writes and kept lists, with a network that is cut and restored. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../server/src/base/clock.ts'
import { describeServer, type TestServer } from '../../server/tests/harness/server.ts'
import { createClient, deleteField, increment, isPlinthError, live, persist, records } from '../src/index.ts'
import type { RejectedWrite } from '../src/types/offline.ts'
import type { ClientOptions } from '../src/types/options.ts'
import { createDevice, type Device } from './harness/offline-device.ts'
import { until } from './harness/until.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            n: { type: 'number', default: 0 },
            text: { type: 'string' },
            note: { type: 'string' },
          },
          access: open,
        },
        own: {
          schema: { ownerId: { type: 'string' }, text: { type: 'string' } },
          access: {
            ...open,
            read: (user: { id: string } | null) => user && { ownerId: user.id },
            insert: (user: { id: string } | null) => user && { ownerId: user.id },
          },
        },
      },
    },
  },
} as const

/** Where the device keeps the writes of ann, and the lists of the user. */
const writesKey = ({ url }: TestServer): string => `plinth:${url}:offline:writes|ann`
const listsKey = ({ url }: TestServer): string => `plinth:${url}:offline:lists`

describeServer('offline', { config, clock: manualClock(Date.now()) }, (server) => {
  const connect = (
    device: Device,
    { user = 'ann', rejected = [], ...options }: ClientOptions & { user?: string; rejected?: RejectedWrite[] } = {},
  ) =>
    createClient<typeof config>(
      server.url,
      [persist({ onReject: (write) => void rejected.push(write), userId: () => user }), records, live],
      { getToken: () => tokenOf(server, user), storage: device.storage, fetch: device.fetch, retries: 0, ...options },
    )
  const tokenOf = (from: TestServer, user: string) => from.token(user)
  /** Resolves once nothing waits for the server. */
  const sentAll = async (client: ReturnType<typeof connect>): Promise<void> => {
    await client.offline.flush().catch(() => undefined)
    await until(
      {
        get current() {
          return client.offline.pending
        },
        subscribe: client.offline.subscribe,
      },
      (pending) => pending === 0,
    )
  }
  const failureOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'none',
      (error) => (isPlinthError(error) ? error.slug : String(error)),
    )

  test('with the server there, a write resolves with the row of the server', async () => {
    const device = createDevice()
    const client = connect(device)
    const { items } = client.db()
    const row = await items.optimistic.insert({ text: 'online' })
    expect(row).toMatchObject({ text: 'online', n: 0, note: null })
    expect(await items.optimistic.update(row.id, { n: increment(2) })).toMatchObject({ n: 2 })
    expect(await items.optimistic.delete(row.id)).toBeUndefined()
    expect(await items.find(row.id)).toBeNull()
    expect(client.offline.pending).toBe(0)
    client.close()
  })

  test('writes made while the server is away are stored, survive the client, and are sent in order', async () => {
    const device = createDevice()
    device.network = 'down'
    const first = connect(device)
    const list = first.db().items.where('note', '==', 'order').live()
    const stop = list.subscribe(() => undefined)
    const inserted = await first.db().items.optimistic.insert({ text: 'a', note: 'order' })
    await first.db().items.optimistic.update(inserted.id, { n: increment(3) })
    await first.db().items.optimistic.update(inserted.id, { text: 'b', n: increment(4) })
    expect(first.offline.pending).toBe(2)
    expect(list.current.items).toMatchObject([{ id: inserted.id, text: 'b', n: 7 }])
    stop()
    first.close()

    const second = connect(device)
    const again = second.db().items.where('note', '==', 'order').live()
    const stopAgain = again.subscribe(() => undefined)
    await until(again, ({ items }) => items.length === 1)
    expect(again.current).toMatchObject({ items: [{ text: 'b', n: 7 }], pending: 2 })
    device.network = 'up'
    await sentAll(second)
    expect(await second.db().items.get(inserted.id)).toMatchObject({ text: 'b', n: 7 })
    await until(again, ({ status, pending }) => status === 'live' && pending === 0)
    expect(again.current.items).toMatchObject([{ text: 'b', n: 7 }])
    expect(device.values.get(writesKey(server))).toBe('[]')
    stopAgain()
    second.close()
  })

  test('a write whose answer is lost is executed once', async () => {
    const device = createDevice()
    const client = connect(device)
    const { items } = client.db()
    const row = await items.insert({ text: 'counter' })
    device.network = 'answers-lost'
    await items.optimistic.update(row.id, { n: increment(1) })
    expect((await items.get(row.id)).n).toBe(1)
    // Sent, so that it must not be merged with.
    await items.optimistic.update(row.id, { n: increment(10) })
    expect(client.offline.pending).toBe(2)
    expect(await failureOf(client.offline.flush())).toBe('network')
    client.close()
    device.network = 'up'
    const next = connect(device)
    await sentAll(next)
    expect((await next.db().items.get(row.id)).n).toBe(11)
    next.close()
  })

  test('a refused write is rolled back and reported once', async () => {
    const device = createDevice()
    const rejected: RejectedWrite[] = []
    const client = connect(device, { rejected })
    const { own } = client.db()
    const list = own.live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    expect(await failureOf(own.optimistic.insert({ ownerId: 'ben', text: 'x' }))).toBe('access-denied')
    expect(rejected).toEqual([])
    device.network = 'down'
    const kept = await own.optimistic.insert({ ownerId: 'ann', text: 'kept' })
    const { id } = await own.optimistic.insert({ ownerId: 'ben', text: 'y' })
    await own.optimistic.delete('missing')
    device.network = 'up'
    await sentAll(client)
    await until(list, ({ pending }) => pending === 0)
    expect(list.current.items.map((row) => row.id)).toEqual([kept.id])
    expect(rejected.map(({ error, ...write }) => ({ ...write, slug: error.slug }))).toEqual([
      { table: 'own', operation: 'insert', id, data: { id, ownerId: 'ben', text: 'y' }, slug: 'access-denied' },
      { table: 'own', operation: 'delete', id: 'missing', slug: 'not-found' },
    ])
    stop()
    client.close()
  })

  test.each([429, 500, 503])('a write is kept through the status %i', async (status) => {
    const device = createDevice()
    let failures = 2
    const failing = (async (input: string, init?: RequestInit) =>
      init?.method === 'POST' && failures-- > 0
        ? Response.json({ code: status, slug: 'unavailable', message: '' }, { status })
        : fetch(input, init)) as typeof fetch
    const rejected: RejectedWrite[] = []
    const client = connect(device, { rejected, fetch: failing })
    const row = await client.db().items.optimistic.insert({ text: 'kept' })
    await sentAll(client)
    expect(await client.db().items.get(row.id)).toMatchObject({ text: 'kept' })
    expect(rejected).toEqual([])
    client.close()
  })

  test('the page of a proxy does not refuse a write', async () => {
    const device = createDevice()
    let pages = 1
    const portal = (async (input: string, init?: RequestInit) =>
      init?.method === 'POST' && pages-- > 0
        ? new Response('<html>Sign in to the network</html>', { status: 403 })
        : fetch(input, init)) as typeof fetch
    const client = connect(device, { fetch: portal })
    const row = await client.db().items.optimistic.insert({ text: 'portal' })
    await sentAll(client)
    expect(await client.db().items.get(row.id)).toMatchObject({ text: 'portal' })
    client.close()
  })

  test('another user neither sees nor sends the writes and lists of a user', async () => {
    const device = createDevice()
    let user: string | null = 'ann'
    const client = createClient<typeof config>(server.url, [persist({ userId: () => user }), records, live], {
      getToken: () => tokenOf(server, user ?? 'nobody'),
      storage: device.storage,
      fetch: device.fetch,
    })
    const seen = client.db().own.live()
    const stopSeen = seen.subscribe(() => undefined)
    await seen.ready
    await device.stored(':lists', (text) => text.includes('"rows"'))
    expect(device.values.get(listsKey(server))).toContain('"user":"ann"')
    device.network = 'down'
    await client.db().own.optimistic.insert({ ownerId: 'ann', text: 'secret of ann' })
    stopSeen()
    client.close()

    device.network = 'up'
    user = 'ben'
    const other = connect(device, { user: 'ben' })
    const list = other.db().own.live()
    const stop = list.subscribe(() => undefined)
    await other.offline.flush()
    expect(list.current.items).toEqual([])
    expect(await list.ready).toEqual([])
    expect(other.offline.pending).toBe(0)
    expect(device.values.get(listsKey(server))).toContain('"user":"ben"')
    stop()
    other.close()

    const back = connect(device)
    await sentAll(back)
    expect((await back.db().own.where('text', '==', 'secret of ann').list()).total).toBe(1)
    back.close()
  })

  test('a full queue refuses further writes and rolls them back', async () => {
    const device = createDevice()
    device.network = 'down'
    const client = connect(device)
    const { items } = client.db()
    const list = items.where('note', '==', 'full').live()
    const stop = list.subscribe(() => undefined)
    const large = 'x'.repeat(160_000)
    for (let at = 0; at < 4; at++) await items.optimistic.insert({ text: large, note: 'full' })
    expect(await failureOf(items.optimistic.insert({ text: large, note: 'full' }))).toBe('queue-full')
    expect(list.current.items.length).toBe(4)
    expect(client.offline.pending).toBe(4)
    stop()
    client.close()
  })

  test('a queue has at most 1,000 writes', async () => {
    const device = createDevice()
    device.network = 'down'
    const client = connect(device)
    const { items } = client.db()
    await Promise.all(Array.from({ length: 1000 }, () => items.optimistic.insert({ note: 'many' })))
    expect(client.offline.pending).toBe(1000)
    expect(await failureOf(items.optimistic.insert({ note: 'many' }))).toBe('queue-full')
    expect(client.offline.pending).toBe(1000)
    client.close()
  })

  test('storage that fails refuses the write', async () => {
    const device = createDevice()
    const storage = {
      ...device.storage,
      set: (key: string, value: string): void => {
        if (key.includes(':writes|')) throw new Error('QuotaExceededError')
        device.storage.set(key, value)
      },
    }
    const client = createClient<typeof config>(server.url, [persist({ userId: () => 'ann' }), records, live], {
      getToken: () => tokenOf(server, 'ann'),
      storage,
    })
    expect(await failureOf(client.db().items.optimistic.insert({ text: 'no room' }))).toBe('queue-full')
    expect(client.offline.pending).toBe(0)
    client.close()
  })

  test('a write that was sent more than a day ago is reported instead of repeated', async () => {
    const device = createDevice()
    const before = connect(device)
    const row = await before.db().items.insert({ text: 'old' })
    device.network = 'answers-lost'
    await before.db().items.optimistic.update(row.id, { n: increment(1) })
    before.close()
    const [write] = JSON.parse(device.values.get(writesKey(server)) as string)
    device.storage.set(writesKey(server), JSON.stringify([{ ...write, sentAt: Date.now() - 24 * 60 * 60_000 }]))
    device.network = 'up'
    const rejected: RejectedWrite[] = []
    const after = connect(device, { rejected })
    await sentAll(after)
    expect(rejected.map(({ operation, id, error }) => [operation, id, error.slug])).toEqual([
      ['update', row.id, 'outcome-unknown'],
    ])
    expect((await after.db().items.get(row.id)).n).toBe(1)
    after.close()
  })

  test('a write that never left the device is sent after any time', async () => {
    const device = createDevice()
    device.network = 'down'
    const before = connect(device)
    await before.db().items.optimistic.insert({ text: 'late', note: 'late' })
    before.close()
    const [write] = JSON.parse(device.values.get(writesKey(server)) as string)
    expect(write.data.text).toBe('late')
    expect(write.sentAt).toBeUndefined()
  })

  test('updates of one record are merged only where both in order have the same effect', async () => {
    const device = createDevice()
    const client = connect(device)
    const { items } = client.db()
    const row = await items.insert({ text: 'merge', n: 1, note: 'x' })
    device.network = 'down'
    const patches = [{ n: increment(2) }, { n: increment(3), note: deleteField() }, { n: 10 }, { n: increment(5) }]
    for (const patch of patches) await items.optimistic.update(row.id, patch)
    expect(client.offline.pending).toBe(1)
    device.network = 'up'
    await sentAll(client)
    expect(await items.get(row.id)).toMatchObject({ n: 15, note: null, text: 'merge' })
    client.close()
  })

  test('a list starts with the rows of the last visit, as stale, until it is read', async () => {
    const device = createDevice()
    const before = connect(device)
    const row = await before.db().items.insert({ text: 'cached', note: 'cache' })
    const list = before.db().items.where('note', '==', 'cache').live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    await device.stored(':lists', (text) => text.includes('cached'))
    stop()
    before.close()

    await server.service.patch(`/api/db/shared/tables/items/${row.id}`, { text: 'changed' })
    device.network = 'down'
    const after = connect(device)
    const again = after.db().items.where('note', '==', 'cache').live()
    const stopAgain = again.subscribe(() => undefined)
    await until(again, ({ status }) => status === 'stale')
    expect(again.current.items).toMatchObject([{ id: row.id, text: 'cached' }])
    device.network = 'up'
    expect(await again.ready).toMatchObject([{ text: 'changed' }])
    expect(again.current.items).toMatchObject([{ text: 'changed' }])
    stopAgain()
    after.close()
  })

  test('clients of one origin send what the others have stored, and are silent afterwards', async () => {
    const device = createDevice()
    const name = `plinth:${server.url}:offline`
    const [from, to] = [new BroadcastChannel(name), new BroadcastChannel(`${name}:mark`)]
    const marks = new BroadcastChannel(`${name}:mark`)
    let messages = 0
    from.onmessage = () => void messages++
    const clients = [connect(device), connect(device)]
    for (const client of clients) await client.offline.flush()
    await clients[0]?.db().items.optimistic.insert({ text: 'announced' })
    // Time for many answers to an answer.
    for (let round = 0; round < 50; round++)
      await new Promise((resolve) => {
        to.onmessage = resolve
        marks.postMessage(round)
      })
    expect(messages).toBeGreaterThan(0)
    expect(messages).toBeLessThan(10)
    for (const channel of [from, to, marks]) channel.close()
    for (const client of clients) client.close()
  })
})
