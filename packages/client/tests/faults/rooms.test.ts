/** Rooms whose changes are lost, and whose user changes while they are joined. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { describeServer } from '../../../server/tests/harness/server.ts'
import { auth, createClient, memoryStorage, rooms } from '../../src/index.ts'
import { openFaultySockets } from '../harness/faulty-sockets.ts'
import { until } from '../harness/until.ts'

const config = {
  databases: { shared: { tables: {} } },
  rooms: {
    board: {
      access: { join: true },
      onCreate: (room: { shared: object }) => {
        room.shared = { count: 0 }
      },
      actions: {
        add: (room: { shared: { count?: number } }) => {
          room.shared.count = (room.shared.count ?? 0) + 1
          return room.shared.count
        },
      },
    },
  },
} as const

describeServer('rooms that fail', { config: config as object }, (server) => {
  let sockets: ReturnType<typeof openFaultySockets>
  const connect = () =>
    createClient<typeof config>(server.url, [auth, rooms], { storage: memoryStorage(), ...sockets.options })
  let client: ReturnType<typeof connect>
  beforeEach(() => {
    sockets = openFaultySockets()
    client = connect()
  })
  afterEach(() => {
    client.close()
    sockets.stop()
  })

  test('after a lost change, a room is joined again and has the state of the server', async () => {
    await client.auth.signInAnonymously()
    const room = client.room('board', 'gap')
    await room.join()
    const lost = Promise.withResolvers<void>()
    sockets.faults.isLost = (text) => {
      if (!text.includes('shared_delta')) return false
      lost.resolve()
      return true
    }
    expect(await room.send('add')).toBe(1)
    await lost.promise
    sockets.faults.isLost = () => false
    expect(room.shared.current).toEqual({ count: 0 })
    expect(await room.send('add')).toBe(2)
    await until(room.shared, ({ count }) => count === 2)
    expect(await room.send('add')).toBe(3)
    await until(room.shared, ({ count }) => count === 3)
    expect(sockets.all).toHaveLength(2)
  })

  test('a user who signs in while a room is being joined joins it', async () => {
    sockets.faults.network = 'silent'
    const room = client.room('board', 'early')
    const connecting = sockets.next()
    const joining = room.join()
    await connecting
    expect(room.status).toBe('joining')
    sockets.faults.network = 'up'
    const { user } = await client.auth.signInAnonymously()
    await joining
    expect([room.status, room.me?.id]).toEqual(['joined', user.id])
  })

  test('another user who signs in leaves the room of the previous one, without its state', async () => {
    await client.auth.signInAnonymously()
    const room = client.room('board', 'left')
    await room.join()
    await room.send('add')
    await until(room.shared, ({ count }) => count === 1)
    sockets.faults.isLost = (text) => text.includes('action_result')
    const acting = room.send('add')
    const other = client.auth.signInAnonymously()
    await expect(acting).rejects.toMatchObject({ slug: 'aborted' })
    sockets.faults.isLost = () => false
    const { user } = await other
    expect([room.status, room.me, room.shared.current]).toEqual(['closed', null, {}])
    await room.join()
    expect([room.status, room.me?.id]).toEqual(['joined', user.id])
  })

  test('messages of an unknown type are ignored', async () => {
    await client.auth.signInAnonymously()
    const room = client.room('board', 'unknown')
    await room.join()
    const text = '{"type":"of a later version","version":9,"delta":{"count":9}}'
    for (const one of [text, '{}', 'null', '5', '[]', '<html>', '{"type":"action_result","requestId":"x"}'])
      sockets.last.deliver(one)
    expect(await room.send('add')).toBe(1)
    await until(room.shared, ({ count }) => count === 1)
    expect(sockets.all).toHaveLength(1)
  })
})
