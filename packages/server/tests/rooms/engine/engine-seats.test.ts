/** Who is in a room, and how players go, in a world without sockets. */

import { describe, expect, test } from 'bun:test'
import { RoomClient } from '../../harness/rooms/room-client.ts'
import { type RoomSetting, setting, sharedOf } from '../../harness/rooms/room-setting.ts'
import { viewOf } from '../../harness/rooms/room-view.ts'

describe('seats', () => {
  test('[ROOM-SEAT-1] of fifty concurrent joins for the last seat one succeeds, also with an asynchronous onJoin', async () => {
    const { world, node, calls } = setting({ maxPlayers: 1 }, { onJoin: () => world.gate() })
    const clients = Array.from({ length: 50 }, (_, at) => new RoomClient(`u${at}`))
    for (const client of clients) {
      world.clients.set(client.open(), client)
      world.post(client.joinCommand(), node)
    }
    await world.deliverAll()
    await world.openGates()
    expect(clients.filter(({ isJoined }) => isJoined)).toHaveLength(1)
    const refused = clients.filter(({ isJoined }) => !isJoined)
    expect(new Set(refused.map(({ closeCode }) => closeCode))).toEqual(new Set([4003]))
    for (const { messages } of refused) expect(messages).toMatchObject([{ type: 'error', code: 'ROOM_FULL' }])
    expect(node.engine.findOccupancy(world.key)).toEqual({ activeMembers: 1, activeConnections: 1 })
    expect(node.engine.isFull(world.key)).toBe(true)
    expect(calls).toEqual(['create'])
  })

  test('[ROOM-SEAT-2, ROOM-MEMBER-2] a player who disconnects keeps seat and state during the reconnect grace, then leaves', async () => {
    const life = setting({ maxPlayers: 1, reconnectGraceMs: 1000 })
    const { world, node, calls, join } = life
    const ann = await join('ann')
    world.hangUp(ann)
    await world.pass(900)
    expect((await join('bob')).closeCode).toBe(4003)
    expect(node.engine.isFull(world.key)).toBe(false)
    await world.join(ann)
    await world.pass(2000)
    expect(calls).toEqual(['create', 'join ann'])
    world.hangUp(ann)
    await world.pass(1100)
    expect(calls).toEqual(['create', 'join ann', 'leave ann disconnected'])
    expect((await join('bob')).isJoined).toBe(true)
  })

  test('[ROOM-SEAT-2] a second socket of a player is not a new join and shares the state; closing it is not a leave', async () => {
    const { world, node, calls, act } = setting(
      { reconnectGraceMs: 0 },
      {
        actions: {
          mine: (_, player) => {
            player.state = { mine: 1 }
          },
        },
      },
    )
    const [one, two] = [new RoomClient('ann'), new RoomClient('ann')]
    await world.join(one)
    two.open()
    await world.join(two)
    await act(one, 'mine')
    await world.pass(50)
    expect([one.player, two.player]).toEqual([{ mine: 1 }, { mine: 1 }])
    expect(node.engine.findOccupancy(world.key)).toEqual({ activeMembers: 1, activeConnections: 2 })
    world.hangUp(one)
    await world.pass(100)
    expect(calls).toEqual(['create', 'join ann'])
  })

  test('[ROOM-MEMBER-3] a kicked player receives earlier messages, then kicked, and leaves before other work is processed', async () => {
    const { world, node, calls, join, act } = setting(
      {},
      {
        actions: {
          bye: (room, _, userId: string) => {
            room.shared.n = 7
            room.players.get(userId)?.send('bye')
            room.players.get(userId)?.kick()
          },
        },
      },
    )
    const [ann, bob] = [await join('ann'), await join('bob')]
    await world.pass(50)
    bob.messages = []
    world.post(ann.act('bye', 'bob'), node)
    world.post(bob.act('add'), node)
    await world.deliverAll()
    expect(bob.messages.map(({ type }) => type)).toEqual(['shared_delta', 'message', 'kicked'])
    expect([bob.closeCode, sharedOf({ world } as RoomSetting)]).toEqual([4004, { n: 7 }])
    expect(calls).toEqual(['create', 'join ann', 'join bob', 'leave bob kicked'])
    await act(ann, 'kick', 'bob')
    await world.join(bob)
    node.engine.receive(world.key, { type: 'kick', userId: 'bob' })
    expect(bob.closeCode).toBe(4004)
    expect(calls.slice(4)).toEqual(['join bob', 'leave bob kicked'])
  })

  test('[ROOM-JOIN-2] an onJoin that throws denies the join, takes no seat and changes nothing', async () => {
    const { world, node, calls, join } = setting(
      { maxPlayers: 1 },
      {
        onJoin(room, player) {
          room.shared.n = 99
          if (player.id === 'bad') throw new Error('Not you')
        },
      },
    )
    const bad = await join('bad')
    expect(bad.messages).toEqual([{ type: 'error', code: 'JOIN_DENIED', message: 'Not you' }])
    expect([bad.closeCode, sharedOf({ world } as RoomSetting)]).toEqual([4003, { n: 0 }])
    expect((await join('ann')).shared).toEqual({ n: 99 })
    expect(viewOf(node.engine, world.key)?.players).toHaveLength(1)
    expect(calls).toEqual(['create'])
  })
})
