/** The client in a React Native app: background, networks, storage, and a runtime without the browser's globals. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { describeServer } from '../../server/tests/harness/server.ts'
import { reactNative } from '../src/react-native/index.ts'
import { type AppClient, config, connect } from './harness/app.ts'
import { createPhone } from './harness/phone.ts'
import { until } from './harness/until.ts'

describeServer('React Native', { config: config as object }, (server) => {
  let phone: ReturnType<typeof createPhone>
  let client: AppClient
  let wire: ReturnType<typeof connect>['wire']
  beforeEach(() => {
    phone = createPhone()
    ;({ client, wire } = connect(server, reactNative(phone)))
  })
  afterEach(() => client.close())

  const inGroup = (group: string) => client.db().items.where('group', '==', group)
  const shared = '/api/db/shared/tables/items'
  /** Resolves as soon as the server has this many sockets. */
  async function serverHasSockets(count: number): Promise<void> {
    for (;;) {
      const { text } = await server.service.get('/metrics')
      if (new RegExp(`^sockets_open ${count}$`, 'm').test(text)) return
    }
  }

  test('the sockets close in the background, and lists continue with what they missed', async () => {
    const { body: row } = await server.service.post(shared, { group: 'a', text: 'first' })
    const list = inGroup('a').live()
    const stop = list.subscribe(() => undefined)
    await list.ready
    await until(list, ({ status }) => status === 'live')
    phone.become('inactive')
    phone.become('background')
    expect(list.current).toMatchObject({ status: 'stale', items: [{ text: 'first' }] })
    await serverHasSockets(0)
    await server.service.post(shared, { group: 'a', text: 'second' })
    await server.service.patch(`${shared}/${row.id}`, { text: 'changed' })
    await server.service.delete(`${shared}/${(await server.service.post(shared, { group: 'a' })).body.id}`)
    expect(list.current.items).toHaveLength(1)
    phone.become('active')
    await until(list, ({ items }) => items.map(({ text }) => text).join() === 'changed,second')
    expect(list.current.status).toBe('live')
    expect(wire.reads('items')).toBe(1)
    expect(wire.current.created).toBe(2)
    stop()
  })

  test('a room reconnects in the foreground, with the actions sent meanwhile', async () => {
    await client.auth.signInAnonymously()
    const room = client.room('board', 'phone')
    await room.join()
    phone.become('background')
    expect(room.status).toBe('reconnecting')
    await serverHasSockets(0)
    const sending = room.send('add', 7)
    phone.become('active')
    await sending
    await until(room.shared, ({ count }) => count === 7)
  })

  test('a network that is back reconnects at once, unless the app is in the background', async () => {
    const list = inGroup('n').live()
    const stop = list.subscribe(() => undefined)
    await until(list, ({ status }) => status === 'live')
    phone.become('background')
    phone.connected(true)
    await client.db().items.count()
    expect(wire.current.created).toBe(1)
    phone.become('active')
    await until(list, ({ status }) => status === 'live')
    expect(wire.current.created).toBe(2)
    stop()
  })

  test('the session survives in the storage of the device', async () => {
    const { user } = await client.auth.signInAnonymously()
    await client.db().own.insert({ ownerId: user.id, text: 'mine' })
    client.close()
    expect(phone.values.size).toBeGreaterThan(0)
    ;({ client, wire } = connect(server, reactNative(phone)))
    expect(client.auth.session).toBeNull()
    const list = client.db().own.live()
    expect((await list.ready).map(({ text }) => text)).toEqual(['mine'])
    await client.auth.signOut()
    ;({ client, wire } = connect(server, reactNative(phone)))
    expect(await client.auth.ready).toBeNull()
  })

  test('a store of texts, and an app without NetInfo, are enough', async () => {
    const values = new Map<string, string>()
    const storage = {
      get: (key: string) => values.get(key) ?? null,
      set: (key: string, value: string) => void values.set(key, value),
      remove: (key: string) => void values.delete(key),
    }
    client.close()
    ;({ client, wire } = connect(server, reactNative({ AppState: phone.AppState, storage })))
    await client.auth.signInAnonymously()
    expect(values.size).toBeGreaterThan(0)
    expect((await inGroup('x').live().ready).length).toBe(0)
  })

  test('nothing listens to the phone once the client is closed', async () => {
    const list = inGroup('l').live()
    list.subscribe(() => undefined)
    await list.ready
    expect(phone.listeners).toBe(2)
    client.close()
    expect(phone.listeners).toBe(0)
  })

  test('every feature works without the globals that Hermes lacks', async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'harness/hermes-app.ts'), server.url], {
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect(errors).toBe('')
    expect(JSON.parse(output)).toEqual({
      isSameUser: true,
      texts: ['one', 'two'],
      shared: { count: 9 },
      sizes: [4, 6_000_000],
      progress: [5_242_880, 6_000_000],
      aborted: 'aborted',
      listeners: 0,
    })
  })
})
