import { expect, test } from 'bun:test'
import type { RoomCommand } from '../engine/ports.ts'
import type { RoomSocket } from './local-members.ts'
import { RoomLocator } from './room-locator.ts'

const key = { namespace: 'game', id: 'one' }

function setUp({ owner = null }: { owner?: string | null } = {}) {
  const events: string[] = []
  const state = { owner, isConnected: true }
  const record = (where: string, command: RoomCommand): void =>
    void events.push(`${where} ${command.type} ${'connectionId' in command ? command.connectionId : ''}`)
  const locator = new RoomLocator({
    receive: (_, command) => record('here', command),
    forward(node, _, command) {
      if (state.isConnected) record(node, command)
      return state.isConnected
    },
    takeOwner() {
      const { owner } = state
      state.owner = null
      return owner
    },
    unfollowAll: () => void events.push('unfollowAll'),
  })
  const socketOf = (id: string): RoomSocket => {
    const caller = { kind: 'user', auth: { id }, sessionId: null }
    return { connection: { id, caller }, key, delivery: 'plain', located: null, isSlow: false } as unknown as RoomSocket
  }
  const take = (): string[] => events.splice(0)
  return { locator, socketOf, state, take }
}

const join = (connectionId: string): RoomCommand =>
  ({ type: 'join', connectionId, auth: { id: connectionId }, resume: null }) as RoomCommand
const drained = (connectionId: string): RoomCommand => ({ type: 'drained', connectionId })

/** Waits for the pause between the first attempts to locate the room. */
const untilCount = async (take: () => string[], count: number): Promise<string[]> => {
  const events: string[] = []
  while (events.length < count) {
    events.push(...take())
    await new Promise((resolve) => setImmediate(resolve))
  }
  return events
}

test('commands go to the room on this node first, and to its owner once that is known', async () => {
  const { locator, socketOf, state, take } = setUp()
  const [a, b] = [socketOf('a'), socketOf('b')]
  locator.send(a, join('a'))
  state.owner = 'node'
  locator.leaving(key)
  locator.send(b, join('b'))
  locator.moved(key, 'here', [join('a')])
  expect(await untilCount(take, 5)).toEqual(['here join a', 'unfollowAll', 'unfollowAll', 'node join a', 'node join b'])
  locator.send(a, drained('a'))
  expect(take()).toEqual(['node drained a'])
})

test('commands sent while a room moves wait, behind the joins of all its sockets', async () => {
  const { locator, socketOf, take } = setUp()
  const [a, b] = [socketOf('a'), socketOf('b')]
  for (const socket of [a, b]) locator.send(socket, join(socket.connection.id))
  take()
  locator.leaving(key)
  locator.send(b, drained('b'))
  expect(take()).toEqual(['unfollowAll'])
  locator.moved(key, 'here', [drained('a')])
  locator.send(a, drained('a'))
  expect(await untilCount(take, 6)).toEqual([
    'unfollowAll',
    'here join a',
    'here join b',
    'here drained a',
    'here drained b',
    'here drained a',
  ])
})

test('a failed claim of a room does not change where it is located', async () => {
  const { locator, socketOf, state, take } = setUp({ owner: 'node' })
  locator.send(socketOf('a'), join('a'))
  locator.moved(key, 'here', [])
  await untilCount(take, 3)
  // A sweep for due timers tried to claim the room, which another node owns.
  state.owner = 'node'
  locator.leaving(key)
  locator.moved(key, 'here', [])
  locator.moved(key, 'an earlier node', [drained('a')])
  expect(take()).toEqual(['node drained a'])
  expect(state.owner).toBeNull()
})

test('after the loss of a node its sockets join again, except those that have left', async () => {
  const { locator, socketOf, state, take } = setUp({ owner: 'node' })
  const [a, b] = [socketOf('a'), socketOf('b')]
  locator.send(a, join('a'))
  locator.moved(key, 'here', [])
  await untilCount(take, 3)
  locator.send(b, join('b'))
  locator.leave(b)
  expect(take()).toEqual(['node join b', 'node disconnect b'])
  expect([...locator.nodes()]).toEqual(['node'])
  locator.confirm(key)
  state.owner = 'node'
  locator.lost('node')
  expect(await untilCount(take, 2)).toEqual(['unfollowAll', 'node join a'])
  locator.leave(a)
  expect(take()).toEqual(['node disconnect a'])
  expect([...locator.nodes()]).toEqual([])
})
