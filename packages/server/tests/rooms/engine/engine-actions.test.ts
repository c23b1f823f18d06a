/** Actions and messages of the engine, in a simulated world. */

import { describe, expect, test } from 'bun:test'
import type { Room, RoomCode, RoomPlayer, RoomState } from '../../../src/config/sections/rooms/room-code.ts'
import type { RoomDefinition } from '../../../src/features/rooms/engine/ports.ts'
import { roomInboxCommandsMax } from '../../../src/limits/rooms.ts'
import { RoomClient } from '../../harness/rooms/room-client.ts'
import { viewOf } from '../../harness/rooms/room-view.ts'
import { aDefinition, RoomWorld, type WorldNode } from '../../harness/rooms/room-world.ts'

interface Setting {
  readonly world: RoomWorld
  readonly node: WorldNode
  join(userId: string): Promise<RoomClient>
  act(client: RoomClient, actionType: string, payload?: unknown, requestId?: string): Promise<RoomState | undefined>
}

function setting(code: RoomCode, more: Partial<RoomDefinition> = {}): Setting {
  const world = new RoomWorld(aDefinition(code, more))
  const node = world.addNode()
  return {
    world,
    node,
    join: (userId) => world.join(new RoomClient(userId)),
    async act(client, actionType, payload, requestId) {
      world.post(client.act(actionType, payload, requestId), node)
      await world.deliverAll()
      return client.messages.filter(({ type }) => type === 'action_result' || type === 'action_error').at(-1)
    },
  }
}

const add = (room: Room, _player: RoomPlayer, { n = 1 }: RoomState) => {
  room.shared.n = (room.shared.n ?? 0) + n
  return room.shared.n
}

describe('actions', () => {
  test('[ROOM-ACT-1] the result is sent to the sender at once, the change to all with the tick', async () => {
    const { world, join, act } = setting({ actions: { add } })
    const [ann, bob] = [await join('ann'), await join('bob')]
    expect(await act(ann, 'add', { n: 2 }, 'r1')).toEqual({
      type: 'action_result',
      requestId: 'r1',
      actionType: 'add',
      result: 2,
    })
    expect(bob.ofType('action_result')).toEqual([])
    expect(bob.ofType('shared_delta')).toEqual([])
    await world.pass(50)
    const delta = { type: 'shared_delta', delta: { n: 2 }, version: 1 }
    expect([ann.ofType('shared_delta'), bob.ofType('shared_delta')]).toEqual([[delta], [delta]])
    await world.pass(500)
    expect(bob.ofType('shared_delta')).toEqual([delta])
  })

  const late: (() => void)[] = []
  const touch = (room: Room, player: RoomPlayer): void => {
    room.shared.n = 1
    room.server.n = 1
    room.metadata.n = 1
    player.state.n = 1
    room.broadcast('hello')
    player.send('hello')
    room.after(10, 'ring')
    player.kick()
  }
  const failing: RoomCode = {
    actions: {
      throws(room, player) {
        touch(room, player)
        throw new Error('Not your turn')
      },
      async rejects(room, player) {
        touch(room, player)
        await Promise.resolve()
        touch(room, player)
        throw new TypeError('secret inside')
      },
      async hangs(room, player) {
        touch(room, player)
        late.push(
          () => touch(room, player),
          () => void player.send('late'),
          () => room.after(1, 'ring'),
        )
        await new Promise(() => {})
      },
      functions(room, player) {
        touch(room, player)
        room.shared.f = () => 1
      },
      tooLarge(room, player) {
        touch(room, player)
        player.state.text = 'x'.repeat(2000)
      },
    },
    timers: { ring() {} },
  }

  test.each([
    ['throws', 'ACTION_FAILED', 'Not your turn'],
    ['rejects', 'ACTION_FAILED', 'The action failed'],
    ['hangs', 'ACTION_TIMEOUT', 'The action took too long'],
    ['functions', 'INVALID_STATE', 'A state must not contain a function'],
    ['tooLarge', 'STATE_TOO_LARGE', 'A state must be at most 1000 bytes of JSON'],
  ])(
    '[ROOM-STATE-2, ROOM-STATE-3, ROOM-ACT-7, ROOM-ENGINE-7] one that %s has changed, sent and set nothing, also later',
    async (actionType, code, message) => {
      const { world, node, join, act } = setting(failing, { maxStateBytes: 1000 })
      const ann = await join('ann')
      await act(ann, actionType, {}, 'r1')
      await world.pass(5100)
      expect(ann.ofType('action_error')).toEqual([{ type: 'action_error', requestId: 'r1', actionType, code, message }])
      for (const use of late.splice(0)) expect(use).toThrow('after its handler has ended')
      await world.pass(5100)
      const view = viewOf(node.engine, world.key)
      expect([view?.shared, view?.server, view?.metadata, view?.players[0]?.state]).toEqual([{}, {}, {}, {}])
      expect(ann.messages.map(({ type }) => type)).toEqual(['sync', 'members_sync', 'action_error'])
      expect(world.saves.every(({ wakeAtMs }) => wakeAtMs === null)).toBe(true)
    },
  )

  test('[ROOM-ACT-3] a repeated request receives the kept response, also an error, and does not run', async () => {
    const { world, node, join, act } = setting({
      actions: {
        add,
        fail(room, player, payload) {
          world.logged.push('ran')
          add(room, player, payload)
          throw new Error('no')
        },
      },
    })
    const ann = await join('ann')
    const first = await act(ann, 'add', {}, 'r1')
    const error = await act(ann, 'fail', {}, 'r2')
    expect(await act(ann, 'add', {}, 'r1')).toEqual(first)
    expect(await act(ann, 'fail', {}, 'r2')).toEqual(error)
    world.hangUp(ann)
    await world.join(ann)
    expect(await act(ann, 'add', {}, 'r1')).toEqual(first)
    const bob = await join('bob')
    expect(await act(bob, 'add', {}, 'r1')).toMatchObject({ result: 2 })
    expect(viewOf(node.engine, world.key)?.shared).toEqual({ n: 2 })
    expect(world.logged).toEqual(['ran'])
  })

  test('[ROOM-ACT-3] a repeated request receives the kept response after a crash', async () => {
    const { world, join, act } = setting({ actions: { add } })
    const ann = await join('ann')
    const first = await act(ann, 'add', {}, 'r1')
    await world.pass(50)
    world.crash(world.nodes[0] as WorldNode)
    const next = world.addNode()
    await world.leap(20_000)
    world.hangUp(ann)
    await world.join(ann, next)
    expect(await act(ann, 'add', {}, 'r1')).toEqual(first)
    expect(ann.shared).toEqual({ n: 1 })
  })

  test('[ROOM-ACT-8] actions run one at a time in the order received', async () => {
    const { world, node, join } = setting({
      actions: {
        async slow(room) {
          await world.gate()
          room.shared.order = [...(room.shared.order ?? []), 'slow']
        },
        quick(room) {
          room.shared.order = [...(room.shared.order ?? []), 'quick']
        },
      },
    })
    const [ann, bob] = [await join('ann'), await join('bob')]
    world.post(ann.act('slow'), node)
    world.post(bob.act('quick'), node)
    await world.deliverAll()
    expect(bob.ofType('action_result')).toEqual([])
    await world.openGates()
    expect(viewOf(node.engine, world.key)?.shared).toEqual({ order: ['slow', 'quick'] })
  })

  test.each(['nothing', 'constructor', '__proto__', 'toString', ''])(
    '[ROOM-ACT-2] the action %p is rejected with NO_HANDLER',
    async (name) => {
      const { join, act } = setting({ actions: { add } })
      expect(await act(await join('ann'), name)).toMatchObject({ type: 'action_error', code: 'NO_HANDLER' })
    },
  )

  test('[ROOM-ACT-5] an action of a socket that has not joined is rejected', async () => {
    const { world, node, join } = setting({ actions: { add } })
    const ann = new RoomClient('ann')
    world.clients.set(ann.open(), ann)
    world.post(ann.act('add'), node)
    await world.deliverAll()
    expect(ann.messages).toMatchObject([{ type: 'action_error', code: 'NOT_JOINED' }])
    await join('bob')
    world.post(ann.act('add'), node)
    await world.deliverAll()
    expect(ann.messages).toHaveLength(2)
    expect(viewOf(node.engine, world.key)?.shared).toEqual({})
  })

  test('[ROOM-ACT-11] a room with a full queue rejects further actions, and runs the queued ones', async () => {
    const { world, node, join } = setting({ actions: { add, wait: () => world.gate() } })
    const ann = await join('ann')
    world.post(ann.act('wait'), node)
    for (let at = 0; at < roomInboxCommandsMax + 5; at++) world.post(ann.act('add'), node)
    await world.deliverAll()
    expect(ann.ofType('action_error').map(({ code }) => code)).toEqual(new Array(5).fill('RATE_LIMITED'))
    await world.openGates()
    expect(viewOf(node.engine, world.key)?.shared).toEqual({ n: roomInboxCommandsMax })
  })
})

describe('messages to sockets', () => {
  test('[ROOM-MESSAGE-1] the deltas of a tick are sent before its messages, and each socket receives its own', async () => {
    const { world, join, act } = setting({
      actions: {
        go(room, player) {
          room.broadcast('all', 1)
          player.send('own', { a: 1 })
          room.broadcast('others', null, { except: player.id })
          room.shared.n = 1
          player.state.n = 2
        },
      },
    })
    const [ann, bob] = [await join('ann'), await join('bob')]
    await world.pass(50)
    ann.messages = []
    bob.messages = []
    await act(ann, 'go')
    await world.pass(50)
    const kinds = (client: RoomClient) => client.messages.map(({ type, messageType }) => messageType ?? type)
    expect(kinds(ann)).toEqual(['action_result', 'player_delta', 'shared_delta', 'all', 'own'])
    expect(kinds(bob)).toEqual(['shared_delta', 'all', 'others'])
    expect(ann.ofType('message')[1]).toEqual({ type: 'message', messageType: 'own', data: { a: 1 } })
  })

  test('[ROOM-CAPS-1] a client that resumes a known position receives the missed deltas, otherwise the complete state', async () => {
    const filler = 'x'.repeat(500)
    const onCreate = (room: Room) => void Object.assign(room.shared, { filler })
    const { world, join, act } = setting({ onCreate, actions: { add } })
    const [ann, bob] = [await join('ann'), await join('bob')]
    world.hangUp(ann)
    await act(bob, 'add')
    await world.pass(50)
    await act(bob, 'add')
    await world.pass(50)
    await world.join(ann)
    expect(ann.messages.map(({ type }) => type)).toEqual(['resumed', 'shared_delta', 'shared_delta', 'members_sync'])
    expect([ann.shared, ann.sharedVersion]).toEqual([{ n: 2, filler }, 2])
    for (const position of [{ sharedVersion: 99 }, { sharedVersion: -1 }, { playerVersion: 7 }, { epoch: 'x' }]) {
      world.hangUp(ann)
      Object.assign(ann, position)
      const command = ann.joinCommand()
      Object.assign(ann, { sharedVersion: 2, playerVersion: 0, epoch: bob.epoch })
      world.clients.set(ann.open(), ann)
      world.post({ ...command, connectionId: ann.connectionId } as typeof command, world.nodes[0] as WorldNode)
      await world.deliverAll()
      expect(ann.messages.map(({ type }) => type)).toEqual(['sync', 'members_sync'])
      expect(ann.shared).toEqual({ n: 2, filler })
    }
    expect(ann.problems).toEqual([])
  })

  test('[ROOM-SLOW-1] a slow socket receives no deltas until it has drained, then those that it missed', async () => {
    const announce = (room: Room): void => room.broadcast('news')
    const { world, node, join, act } = setting({ actions: { add, announce } })
    const [ann, bob] = [await join('ann'), await join('bob')]
    const connectionId = ann.connectionId ?? ''
    world.post({ type: 'slow', connectionId }, node)
    await act(bob, 'announce')
    for (let at = 0; at < 3; at++) {
      await act(bob, 'add')
      await world.pass(50)
    }
    expect(ann.ofType('shared_delta')).toEqual([])
    expect(ann.ofType('message')).toHaveLength(1)
    expect(bob.ofType('message')).toHaveLength(1)
    world.post({ type: 'drained', connectionId }, node)
    await world.deliverAll()
    expect(ann.shared).toEqual({ n: 3 })
    await act(bob, 'add')
    await world.pass(50)
    expect([ann.shared, ann.problems]).toEqual([{ n: 4 }, []])
  })

  test('[ROOM-MEMBER-1, ROOM-SIGNAL-1] members are notified of the members present, and of joins, presence, signals and leaves', async () => {
    const { world, node, join } = setting({})
    const ann = await join('ann')
    const bob = await join('bob')
    const connectionId = bob.connectionId ?? ''
    expect(bob.ofType('members_sync')).toMatchObject([
      { occupancy: { activeMembers: 2, activeConnections: 2 }, members: [{ memberId: 'ann' }, { memberId: 'bob' }] },
    ])
    world.post({ type: 'member_state', connectionId, state: { cursor: 1 }, bytes: 9 }, node)
    world.post({ type: 'member_state', connectionId, state: { cursor: 2 }, bytes: 9 }, node)
    const signal = { type: 'signal', connectionId, event: 'wave', payload: 7, bytes: 9 } as const
    world.post({ ...signal, to: null, includeSelf: false, requestId: 'r1' }, node)
    await world.deliverAll()
    await world.pass(50)
    world.post({ type: 'leave', connectionId }, node)
    await world.deliverAll()
    await world.pass(50)
    expect(bob.closeCode).toBe(4005)
    expect(ann.messages.slice(2)).toEqual([
      { type: 'member_join', memberId: 'bob', state: {} },
      {
        type: 'signal',
        event: 'wave',
        payload: 7,
        memberId: 'bob',
        meta: { memberId: 'bob', userId: 'bob', connectionId, sentAt: expect.any(String), serverSent: false },
      },
      { type: 'member_state', memberId: 'bob', state: { cursor: 2 } },
      {
        type: 'members_sync',
        occupancy: { activeMembers: 2, activeConnections: 2 },
        members: [
          { memberId: 'ann', state: {} },
          { memberId: 'bob', state: { cursor: 2 } },
        ],
      },
      { type: 'member_leave', memberId: 'bob', reason: 'left' },
      {
        type: 'members_sync',
        occupancy: { activeMembers: 1, activeConnections: 1 },
        members: [{ memberId: 'ann', state: {} }],
      },
    ])
    expect(bob.ofType('signal')).toEqual([])
    expect(bob.ofType('signal_sent')).toEqual([{ type: 'signal_sent', requestId: 'r1' }])
  })
})
