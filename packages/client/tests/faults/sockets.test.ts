/** Sockets that are lost, silent or refused: live lists converge, and never show rows of another user. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { describeServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, live, memoryStorage, records, rooms } from '../../src/index.ts'
import { openFaultySockets } from '../harness/faulty-sockets.ts'
import { hurryClient } from '../harness/hurry.ts'
import { until } from '../harness/until.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
type Caller = { id: string } | null
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { group: { type: 'string' }, n: { type: 'number' } }, access: open },
        own: {
          schema: { ownerId: { type: 'string' } },
          access: { ...open, read: (user: Caller) => user && { ownerId: user.id } },
        },
      },
    },
  },
  rooms: { board: { access: { join: true } } },
} as const

describeServer('sockets that fail', { config }, (server) => {
  let sockets: ReturnType<typeof openFaultySockets>
  const connect = (options = {}) =>
    createClient<typeof config>(server.url, [records, auth, live, rooms], {
      storage: memoryStorage(),
      ...sockets.options,
      ...options,
    })
  let client: ReturnType<typeof connect>
  beforeEach(() => {
    sockets = openFaultySockets()
    client = connect()
  })
  afterEach(() => {
    client.close()
    sockets.stop()
  })
  const inGroup = (group: string) => client.db().items.where('group', '==', group)
  const admin = createClient<typeof config>
  const insert = async (group: string, count: number): Promise<void> => {
    const { items } = admin(server.url, [records]).db()
    for (let n = 0; n < count; n++) await items.insert({ id: `${group}-${n}`, group, n })
  }
  /** Cuts the connection, and keeps it cut until `network` is up again. */
  const cut = (): void => {
    sockets.faults.network = 'down'
    sockets.last.close()
  }

  test('a socket that dies before it is authenticated is replaced', async () => {
    await client.auth.signInAnonymously()
    sockets.faults.network = 'down'
    const list = inGroup('early').live()
    const stop = list.subscribe(() => undefined)
    await sockets.next()
    await sockets.next()
    expect(list.current.status).toBe('loading')
    sockets.faults.network = 'up'
    expect(await list.ready).toEqual([])
    stop()
  })

  test('a socket that reaches nothing is replaced after ten seconds', async () => {
    const { waits, stop } = hurryClient((ms) => ms === 10_000)
    sockets.faults.network = 'silent'
    const list = inGroup('silent').live()
    const leave = list.subscribe(() => undefined)
    const replaced = sockets.next()
    await replaced
    sockets.faults.network = 'up'
    stop()
    await sockets.next()
    await until(list, ({ status }) => status === 'live')
    expect(waits.length).toBeGreaterThan(0)
    leave()
  })

  test('a runtime without WebSocket is an error of each list and room, and not of other calls', async () => {
    const real = globalThis.WebSocket
    Reflect.deleteProperty(globalThis, 'WebSocket')
    try {
      const bare = createClient<typeof config>(server.url, [records, auth, live, rooms], { storage: memoryStorage() })
      const query = bare.db().items.where('group', '==', 'bare')
      for (let attempt = 0; attempt < 2; attempt++) {
        const list = query.live()
        await expect(list.ready).rejects.toMatchObject({ slug: 'feature-not-loaded' })
        expect(list.current).toMatchObject({ status: 'closed', error: { slug: 'feature-not-loaded' } })
        await expect(bare.room('board', 'bare').join()).rejects.toMatchObject({ slug: 'feature-not-loaded' })
      }
      expect((await query.list()).items).toEqual([])
      bare.close()
    } finally {
      globalThis.WebSocket = real
    }
  })

  test('a server that closes each connection for good is tried with growing waits', async () => {
    const random = Math.random
    Math.random = () => 0.999
    const { waits, stop } = hurryClient((ms) => ms > 100 && ms < 10_000 && ms !== 1_000)
    const refusing = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, self) => (self.upgrade(request) ? undefined : new Response()),
      websocket: { open: (socket) => socket.close(4003, 'refused'), message: () => undefined },
    })
    try {
      const refused = createClient(`http://127.0.0.1:${refusing.port}`, [records, live], {
        ...sockets.options,
        getToken: () => 'token',
      })
      const leave = refused
        .db()
        .items.live()
        .subscribe(() => undefined)
      for (let attempt = 0; attempt < 6; attempt++) await sockets.next()
      leave()
      refused.close()
      expect(waits.slice(0, 4).map(Math.round)).toEqual([400, 799, 1598, 3197])
    } finally {
      Math.random = random
      stop()
      await refusing.stop(true)
    }
  })

  test('a list that joins a subscription while it is disconnected waits for the server', async () => {
    const first = inGroup('joined').sort('n').live()
    const second = inGroup('joined').sort('n', 'desc').live()
    const stops = [first.subscribe(() => undefined)]
    await first.ready
    cut()
    await until(first, ({ status }) => status === 'stale')
    stops.push(second.subscribe(() => undefined))
    await insert('joined', 3)
    expect(second.current).toMatchObject({ items: [], status: 'loading' })
    sockets.faults.network = 'up'
    await until(first, ({ status }) => status === 'live')
    await until(second, ({ status }) => status === 'live')
    await until(first, ({ items }) => items.length === 3)
    await until(second, ({ items }) => items.length === 3)
    for (const stop of stops) stop()
  })

  test('a list that was read while the connection was lost is stale, and becomes live with what it has missed', async () => {
    const reading = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    client.close()
    client = connect({
      fetch: async (input: string, init: RequestInit) => {
        const response = await fetch(input, init)
        reading.resolve()
        await release.promise
        return response
      },
    })
    const list = inGroup('away').live()
    const stop = list.subscribe(() => undefined)
    await reading.promise
    cut()
    const lost = sockets.next()
    await insert('away', 2)
    await lost
    release.resolve()
    expect(await list.ready).toEqual([])
    expect(list.current.status).toBe('stale')
    sockets.faults.network = 'up'
    await until(list, ({ status, items }) => status === 'live' && items.length === 2)
    stop()
  })

  test('a window that has lost rows while it was disconnected is full again', async () => {
    await insert('window', 60)
    const query = inGroup('window').sort('n').limit(10)
    const list = query.live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    cut()
    await until(list, ({ status }) => status === 'stale')
    for (let n = 0; n < 30; n++) await client.db().items.delete(`window-${n}`)
    sockets.faults.network = 'up'
    await until(list, ({ status, items }) => status === 'live' && items.length === 10 && items[0]?.n === 30)
    expect(list.current.items).toEqual((await query.list()).items)
    stop()
  })

  test('a list that is not used any more forgets the rows of its user', async () => {
    const { user } = await client.auth.signInAnonymously()
    await client.db().own.insert({ ownerId: user.id })
    const list = client.db().own.live()
    const { stop } = hurryClient((ms) => ms === 1_000)
    const leave = list.subscribe(() => undefined)
    expect(await list.ready).toHaveLength(1)
    const closed = new Promise((resolve) => sockets.last.addEventListener('close', resolve))
    leave()
    await closed
    stop()
    await client.auth.signInAnonymously()
    expect(list.current).toMatchObject({ items: [], status: 'loading' })
    expect(await list.ready).toEqual([])
  })

  test('messages of an unknown type, and of no known form, are ignored', async () => {
    const list = inGroup('unknown').live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    const known = JSON.stringify({ type: 'of a later version', channel: 'dblive:shared:items', cursor: null })
    for (const text of [known, '{"type":7}', '{}', 'null', '5', '"text"', '[]', '[null,{"type":"x"}]', '<html>', ''])
      sockets.last.deliver(text)
    await insert('unknown', 1)
    await until(list, ({ items }) => items.length === 1)
    expect(sockets.all).toHaveLength(1)
    stop()
  })
})
