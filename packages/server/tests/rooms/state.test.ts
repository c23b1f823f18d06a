/** The state of a room: what clients receive of it, and which values it can contain. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { poisons, roomKinds } from '../harness/rooms/room-kinds.ts'
import { applyDelta, join, newRoomId, stateOf, untilSaved } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'

const clock = manualClock()
const startMs = clock.now()

describeServer('the state of a room', { config: roomKinds, clock, mode: 'release' }, (server) => {
  beforeAll(() => clock.set(startMs))

  describe('state', () => {
    test('[ROOM-SYNC-1] a join is answered with the complete shared state and the state of the player', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      expect(ann.sync).toMatchObject({ type: 'sync', sharedState: {}, playerState: {} })
      ann.begin('assign', { path: ['board', 'a'], value: [1, { b: null }] })
      // The version changes with the delta, not with the response.
      await ann.nextOf('shared_delta')
      await ann.act('own', { key: 'hand', value: ['queen'] })
      const bob = await join(server, 'bob', { id })
      expect(bob.sync).toMatchObject({ sharedState: { board: { a: [1, { b: null }] } }, playerState: {} })
      const again = await join(server, 'ann', { id })
      expect(again.sync).toMatchObject({ playerState: { hand: ['queen'] } })
      expect(again.sync.sharedVersion).toBe(bob.sync.sharedVersion)
      for (const client of [ann, bob, again]) await client.close()
    })

    test('[ROOM-DELTA-1] a change reaches all members as a delta of dot paths, with increasing versions', async () => {
      const id = newRoomId()
      const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
      ann.begin('assign', { path: ['board', 'x', 'y'], value: 1 })
      const first = await bob.nextOf('shared_delta')
      expect(applyDelta({}, first.delta)).toEqual({ board: { x: { y: 1 } } })
      expect(first.version).toBeGreaterThan(bob.sync.sharedVersion)
      ann.begin('assign', { path: ['board', 'x', 'z'], value: 2 })
      expect(await bob.nextOf('shared_delta')).toEqual({
        type: 'shared_delta',
        delta: { 'board.x.z': 2 },
        version: first.version + 1,
      })
      ann.begin('assign', { path: ['board', 'x', 'y'], value: null })
      expect(await bob.nextOf('shared_delta')).toMatchObject({ delta: { 'board.x.y': null } })
      for (const client of [ann, bob]) await client.close()
    })

    test('[ROOM-DELTA-2, ROOM-DELTA-3] keys with dots and levels beyond five are sent with their nearest ancestor that has a path', async () => {
      const id = newRoomId()
      const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
      const values: [path: string[], value: unknown][] = [
        [['a', 'b', 'c', 'd', 'e', 'f', 'g'], 1],
        [['a', 'b', 'c', 'd', 'e', 'f', 'h'], 2],
        [['a', 'dotted.key', 'x'], 1],
        [['a', '', 'x'], 1],
      ]
      for (const [path, value] of values) await ann.act('assign', { path, value })
      for (const client of [ann, bob]) {
        await client.act('echo')
        const late = await join(server, 'eve', { id })
        for (let attempts = 0; attempts < 200; attempts++) {
          if (Bun.deepEquals(stateOf(client), late.sync.sharedState)) break
          client.passed.push(await client.nextOf('shared_delta'))
        }
        expect(stateOf(client)).toEqual(late.sync.sharedState)
        for (const { delta } of client.passed.filter(({ type }) => type === 'shared_delta'))
          for (const path of Object.keys(delta)) expect(path.split('.').length).toBeLessThanOrEqual(5)
        await late.close()
      }
      for (const client of [ann, bob]) await client.close()
    })

    test('[ROOM-SYNC-2] the state of a player is sent only to that player, on all sockets', async () => {
      const id = newRoomId()
      const [ann, second, bob] = [
        await join(server, 'ann', { id }),
        await join(server, 'ann', { id }),
        await join(server, 'bob', { id }),
      ]
      await ann.act('own', { key: 'card', value: 'ace' })
      for (const client of [ann, second]) {
        const delta = client.passed.find(({ type }) => type === 'player_delta') ?? (await client.nextOf('player_delta'))
        expect(delta).toMatchObject({ delta: { card: 'ace' } })
        expect(delta.version).toBeGreaterThan(client.sync.playerVersion)
      }
      // Sent after all earlier messages.
      await bob.act('send', {})
      await bob.nextOf('message')
      expect(JSON.stringify(bob.passed)).not.toContain('ace')
      for (const client of [ann, second, bob]) await client.close()
    })

    test('[ROOM-SYNC-3] the server state is never sent', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      expect(await ann.act('secret', 'hidden')).toMatchObject({ result: 'hidden' })
      const bob = await join(server, 'bob', { id })
      await bob.act('send', {})
      await bob.nextOf('message')
      expect(JSON.stringify([bob.sync, bob.passed])).not.toContain('hidden')
      for (const client of [ann, bob]) await client.close()
    })

    test('[ROOM-SYNC-4] states that a client sends are ignored', async () => {
      const id = newRoomId()
      const forged = {
        lastSharedState: { isAdmin: true },
        lastSharedVersion: 1e15,
        lastPlayerState: { gold: 1e9 },
        lastPlayerVersion: -1,
        epoch: 'x',
      }
      const ann = await join(server, 'ann', { id, auth: { caps: ['resume'] }, join: forged })
      expect(ann.sync).toMatchObject({ type: 'sync', sharedState: {}, playerState: {} })
      await ann.close()
    })

    test.each(Object.keys(poisons))(
      '[ROOM-STATE-5] a %s is no state: the action is refused without a trace',
      async (kind) => {
        const id = newRoomId()
        const ann = await join(server, 'ann', { id })
        const refused = await ann.act('poison', kind)
        expect(refused).toMatchObject({ type: 'action_error', actionType: 'poison', code: expect.any(String) })
        expect((await join(server, 'bob', { id })).sync.sharedState).toEqual({})
        await ann.close()
      },
    )

    test.each(['__proto__', 'constructor', 'prototype'])('[ROOM-STATE-6] %s is rejected as a key', async (key) => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      expect((await ann.act('assign', { path: ['a', key], value: { polluted: 1 } })).type).toBe('action_error')
      expect(({} as { polluted?: number }).polluted).toBeUndefined()
      expect((await join(server, 'bob', { id })).sync.sharedState).toEqual({})
      await ann.close()
    })

    test.each(['toString', 'a.valueOf'])(
      '[ROOM-DELTA-1, ROOM-SAVE-1] %s, a key that every object inherits, is deleted like any other',
      async (name) => {
        const id = newRoomId()
        const path = name.split('.')
        const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
        await ann.act('assign', { path, value: 1 })
        await bob.nextOf('shared_delta')
        await ann.act('assign', { path, value: null })
        expect(await bob.nextOf('shared_delta')).toMatchObject({ delta: { [name]: null } })
        await server.service.post('/api/room/admin/hibernate', { namespace: 'game', id })
        const late = await join(server, 'eve', { id })
        expect(late.sync.sharedState).toEqual(path.length > 1 ? { a: {} } : {})
        for (const client of [ann, bob, late]) await client.close()
      },
    )

    test('[ROOM-SAVE-1] a user with the id __proto__ is saved like any other', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      await untilSaved(server, () => ann.act('count'))
      const player = await join(server, '__proto__', { id })
      await player.act('own', { key: 'hand', value: ['queen'] })
      await server.service.post('/api/room/admin/hibernate', { namespace: 'game', id })
      const again = await join(server, '__proto__', { id })
      expect(again.sync.playerState).toEqual({ hand: ['queen'] })
      for (const client of [ann, player, again]) await client.close()
    })

    test('[ROOM-STATE-7] an action that makes a state exceed its limit is rejected, and one below the limit is accepted', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { namespace: 'small', id })
      const fits = 'x'.repeat(1000 - '{"a":""}'.length)
      expect((await ann.act('assign', { path: ['a'], value: `${fits}x` })).type).toBe('action_error')
      expect((await ann.act('assign', { path: ['a'], value: fits })).type).toBe('action_result')
      expect((await ann.act('own', { key: 'a', value: `${fits}x` })).type).toBe('action_error')
      expect((await ann.act('own', { key: 'a', value: fits })).type).toBe('action_result')
      const bob = await join(server, 'bob', { namespace: 'small', id })
      expect(bob.sync.sharedState).toEqual({ a: fits })
      for (const client of [ann, bob]) await client.close()
    })
  })
})
