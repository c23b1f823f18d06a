import { expect, test } from 'bun:test'
import type { RoomCommand } from './engine/ports.ts'
import type { RoomSocket } from './local-members.ts'
import { createRoomLocator } from './room-locator.ts'

const key = { namespace: 'game', id: 'one' }

function setUp({ owner = null }: { owner?: string | null } = {}) {
  const said: string[] = []
  const state = { owner, isLinked: true }
  const tell = (where: string, command: RoomCommand): void =>
    void said.push(`${where} ${command.type} ${'connectionId' in command ? command.connectionId : ''}`)
  const routes = createRoomLocator({
    receive: (_, command) => tell('here', command),
    relay(node, _, command) {
      if (state.isLinked) tell(node, command)
      return state.isLinked
    },
    takeOwner() {
      const { owner } = state
      state.owner = null
      return owner
    },
    dismiss: () => void said.push('dismiss'),
  })
  const socketOf = (id: string): RoomSocket => {
    const caller = { kind: 'user', auth: { id }, sessionId: null }
    return { connection: { id, caller }, key, isMulti: false, isSlow: false } as unknown as RoomSocket
  }
  const take = (): string[] => said.splice(0)
  return { routes, socketOf, state, take }
}

const join = (connectionId: string): RoomCommand =>
  ({ type: 'join', connectionId, auth: { id: connectionId }, resume: null }) as RoomCommand
const drained = (connectionId: string): RoomCommand => ({ type: 'drained', connectionId })

/** Until the pause between the first looks has passed. */
const untilSaid = async (take: () => string[], count: number): Promise<string[]> => {
  const said: string[] = []
  while (said.length < count) {
    said.push(...take())
    await new Promise((resolve) => setImmediate(resolve))
  }
  return said
}

test('a room is asked for here, and where it is when that is known', async () => {
  const { routes, socketOf, state, take } = setUp()
  const [a, b] = [socketOf('a'), socketOf('b')]
  routes.tell(a, join('a'))
  state.owner = 'node'
  routes.leaving(key)
  routes.tell(b, join('b'))
  routes.moved(key, 'here', [join('a')])
  expect(await untilSaid(take, 5)).toEqual(['here join a', 'dismiss', 'dismiss', 'node join a', 'node join b'])
  routes.tell(a, drained('a'))
  expect(take()).toEqual(['node drained a'])
})

test('what is said while a room goes waits, behind the joins of all its sockets', async () => {
  const { routes, socketOf, take } = setUp()
  const [a, b] = [socketOf('a'), socketOf('b')]
  for (const socket of [a, b]) routes.tell(socket, join(socket.connection.id))
  take()
  routes.leaving(key)
  routes.tell(b, drained('b'))
  expect(take()).toEqual(['dismiss'])
  routes.moved(key, 'here', [drained('a')])
  routes.tell(a, drained('a'))
  expect(await untilSaid(take, 6)).toEqual([
    'dismiss',
    'here join a',
    'here join b',
    'here drained a',
    'here drained b',
    'here drained a',
  ])
})

test('who wanted a room in vain does not disturb its way elsewhere', async () => {
  const { routes, socketOf, state, take } = setUp({ owner: 'node' })
  routes.tell(socketOf('a'), join('a'))
  routes.moved(key, 'here', [])
  await untilSaid(take, 3)
  // A look at due timers found the room to be another's.
  state.owner = 'node'
  routes.leaving(key)
  routes.moved(key, 'here', [])
  routes.moved(key, 'a node from before', [drained('a')])
  expect(take()).toEqual(['node drained a'])
  expect(state.owner).toBeNull()
})

test('a node that was lost is asked again, and a socket that left is not', async () => {
  const { routes, socketOf, state, take } = setUp({ owner: 'node' })
  const [a, b] = [socketOf('a'), socketOf('b')]
  routes.tell(a, join('a'))
  routes.moved(key, 'here', [])
  await untilSaid(take, 3)
  routes.tell(b, join('b'))
  routes.leave(b)
  expect(take()).toEqual(['node join b', 'node disconnect b'])
  expect([...routes.nodes()]).toEqual(['node'])
  routes.heard(key)
  state.owner = 'node'
  routes.lost('node')
  expect(await untilSaid(take, 2)).toEqual(['dismiss', 'node join a'])
  routes.leave(a)
  expect(take()).toEqual(['node disconnect a'])
  expect([...routes.nodes()]).toEqual([])
})
