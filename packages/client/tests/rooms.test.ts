/** Rooms: state, actions across reconnects, predictions, presence and signals, against a server. */
import { expect, test } from 'bun:test'
import { describeServer, type TestServer } from '../../server/tests/harness/server.ts'
import { auth, createClient, memoryStorage, rooms } from '../src/index.ts'

interface Player {
  readonly id: string
  state: Record<string, unknown>
  send(type: string, data: unknown): void
  kick(): void
}
interface Room {
  shared: Record<string, number | Record<string, string>>
  broadcast(type: string, data: unknown): void
}

const config = {
  databases: { shared: { tables: {} } },
  rooms: {
    board: {
      access: { join: true, signal: true },
      messageRate: 1000,
      onCreate: (room: Room) => {
        room.shared = { count: 0, cells: {} }
      },
      actions: {
        add: (room: Room, player: Player, payload: { by: number }) => {
          room.shared.count = (room.shared.count as number) + payload.by
          player.state.added = ((player.state.added as number | undefined) ?? 0) + payload.by
          return { count: room.shared.count }
        },
        mark: (room: Room, player: Player, { cell }: { cell: string }) => {
          const cells = room.shared.cells as Record<string, string>
          if (cells[cell]) throw new Error('taken')
          room.shared.cells = { ...cells, [cell]: player.id }
        },
        shout: (room: Room, _: Player, text: string) => room.broadcast('shouted', text),
        kickMe: (_: Room, player: Player) => player.kick(),
      },
    },
  },
} as const

/** A room of a new anonymous user, joined. */
async function enter(server: TestServer, id: string, options = {}) {
  const client = createClient<typeof config>(server.url, [auth, rooms], { storage: memoryStorage(), ...options })
  await client.auth.signInAnonymously()
  const room = client.room('board', id)
  await room.join()
  return { client, room }
}

const changed = (view: { subscribe(listener: () => void): () => void }, isExpected: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const stop = view.subscribe(() => {
      if (!isExpected()) return
      stop()
      resolve()
    })
    if (isExpected()) resolve(stop())
  })

describeServer('rooms of the client', { config: config as object }, (server) => {
  test('members mirror the shared state and their own player state', async () => {
    const one = await enter(server, 'mirror')
    const two = await enter(server, 'mirror')
    expect(one.room.status).toBe('joined')
    expect(one.room.me?.id).toBe(one.client.auth.user?.id as string)
    const before = one.room.shared.current
    expect(before).toEqual({ count: 0, cells: {} })
    expect(await two.room.send('add', { by: 3 })).toEqual({ count: 3 })
    await changed(one.room.shared, () => one.room.shared.current.count === 3)
    await changed(two.room.player, () => two.room.player.current.added === 3)
    expect(one.room.player.current).toEqual({})
    // What has not changed is the same object, and frozen.
    expect(one.room.shared.current.cells).toBe(before.cells)
    expect(Object.isFrozen(one.room.shared.current)).toBe(true)
    one.client.close()
    two.client.close()
  })

  test('a path listener is called when its value has changed, and only then', async () => {
    const { client, room } = await enter(server, 'paths')
    const seen: unknown[] = []
    room.shared.on('cells', (cells) => seen.push(cells))
    await room.send('add', { by: 1 })
    await changed(room.shared, () => room.shared.current.count === 1)
    await room.send('mark', { cell: 'a' })
    await changed(room.shared, () => room.shared.current.cells.a !== undefined)
    expect(seen).toEqual([{ a: room.me?.id }])
    client.close()
  })

  test('a prediction is shown at once, confirmed by the state, and taken back when the action fails', async () => {
    const { client, room } = await enter(server, 'predict')
    room.predict('mark', (shared, me, { cell }) => {
      shared.cells[cell] = me
    })
    const marking = room.send('mark', { cell: 'x' })
    expect(room.shared.current.cells.x).toBe(room.me?.id)
    await marking
    const failing = room.send('mark', { cell: 'x' })
    await expect(failing).rejects.toMatchObject({ slug: 'action-failed', message: 'taken' })
    expect(room.shared.current.cells).toEqual({ x: room.me?.id })
    client.close()
  })

  test('an action that is sent while the connection is lost is answered once it is back', async () => {
    const sockets: WebSocket[] = []
    class Tracked extends WebSocket {
      constructor(url: string) {
        super(url)
        sockets.push(this)
      }
    }
    const { client, room } = await enter(server, 'reconnect', { WebSocket: Tracked })
    await room.send('add', { by: 1 })
    const statuses: string[] = []
    room.subscribe(() => statuses.push(room.status))
    const answers = Array.from({ length: 5 }, () => room.send('add', { by: 1 }))
    sockets.at(-1)?.close()
    answers.push(room.send('add', { by: 1 }))
    const counts = (await Promise.all(answers)).map(({ count }) => count)
    expect(counts.sort()).toEqual([2, 3, 4, 5, 6, 7])
    expect(statuses).toEqual(['reconnecting', 'joined'])
    await changed(room.shared, () => room.shared.current.count === 7)
    client.close()
  })

  test('answers that arrive with the changes show no prediction twice, and survive a lost connection', async () => {
    const sockets: WebSocket[] = []
    class Tracked extends WebSocket {
      constructor(url: string | URL) {
        super(url)
        sockets.push(this)
      }
    }
    const options = { storage: memoryStorage(), WebSocket: Tracked }
    const client = createClient<typeof config>(server.url, [auth, rooms], options)
    await client.auth.signInAnonymously()
    const room = client.room('board', 'batch', { batch: true })
    await room.join()
    room.predict('add', (shared, _, { by }) => {
      shared.count += by
    })
    const seen: number[] = []
    const stop = room.shared.subscribe(() => seen.push(room.shared.current.count))
    const send = () => room.send('add', { by: 1 })
    expect((await Promise.all([send(), send(), send()])).map(({ count }) => count)).toEqual([1, 2, 3])
    await changed(room.shared, () => room.shared.current.count === 3)
    stop()
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    const answers = [send(), send()]
    sockets.at(-1)?.close()
    expect((await Promise.all(answers)).map(({ count }) => count)).toEqual([4, 5])
    await changed(room.shared, () => room.shared.current.count === 5)
    client.close()
  })

  test('messages, signals and presence reach the other members', async () => {
    const one = await enter(server, 'talk')
    const two = await enter(server, 'talk')
    const shouted = new Promise((resolve) => two.room.on('shouted', resolve))
    await one.room.send('shout', 'hello')
    expect(await shouted).toBe('hello')
    const signaled = new Promise((resolve) => two.room.onSignal('wave', (payload, meta) => resolve([payload, meta])))
    one.room.signal('wave', { hand: 'left' }, { to: two.room.me?.id as string })
    expect(await signaled).toMatchObject([{ hand: 'left' }, { memberId: one.room.me?.id }])
    one.room.setPresence({ cursor: 1 })
    const presence = () =>
      two.room.members.current.find((member) => (member as { memberId: string }).memberId === one.room.me?.id)
    await changed(two.room.members, () => JSON.stringify(presence()).includes('cursor'))
    await one.room.leave()
    expect(one.room.status).toBe('closed')
    await changed(two.room.members, () => presence() === undefined)
    for (const { client } of [one, two]) client.close()
  })

  test('a kick, a refused join and an action outside of the room are errors', async () => {
    const { client, room } = await enter(server, 'errors')
    await room.send('kickMe')
    await changed(room, () => room.status === 'closed')
    await expect(room.send('add', { by: 1 })).rejects.toMatchObject({ slug: 'not-joined' })
    const anonymous = createClient<typeof config>(server.url, [auth, rooms], { storage: memoryStorage() })
    await expect(anonymous.room('board', 'errors').join()).rejects.toMatchObject({ slug: 'not-authenticated' })
    expect(anonymous.room('board', 'errors').status).toBe('closed')
    for (const one of [client, anonymous]) one.close()
  })
})
