/** Actions in the name of a player, from any node: the rule, the queue and the handler are those of the player. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { query } from '../harness/client.ts'
import { openAdministrator } from '../harness/dashboard/administrators.ts'
import { engines, sharedEngine } from '../harness/engines.ts'
import { type Nodes, openNodes } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join, newRoomId } from '../harness/rooms/rooms.ts'
import type { TestServer } from '../harness/server.ts'

const unlimited = { requests: 10_000_000 }
const keeperKey = 'a-key-that-keeps-rooms'
const actorKey = 'a-key-that-acts-as-players'
const config = {
  serviceKeys: [
    { name: 'keeper', key: keeperKey, scopes: ['rooms:namespace:*:read', 'rooms:namespace:*:write'] },
    { name: 'actor', key: actorKey, scopes: ['rooms:namespace:*:act'] },
  ],
  rooms: {
    game: {
      access: {
        join: true,
        action: (auth: { id: string } | null, _room: string, type: string) => type !== 'ban' || auth?.id === 'ann',
      },
      messageRate: 1000,
      actions: {
        move(room: Room, player: RoomPlayer, { by }: { by: number }) {
          if (typeof by !== 'number') throw new Error('by must be a number')
          room.shared[player.id] = (room.shared[player.id] ?? 0) + by
          player.state.moves = (player.state.moves ?? 0) + 1
          return { at: room.shared[player.id] }
        },
        ban: () => 'banned',
        echo: (_room: Room, _player: RoomPlayer, payload: unknown) => payload,
      },
    },
  },
  rateLimits: { auth: unlimited, signin: unlimited, global: unlimited },
}

for (const engine of engines)
  describe(`acting as a player on ${engine.name}`, () => {
    let opened: Nodes
    let owner: TestServer
    let node: TestServer
    beforeAll(async () => {
      // One node, or two where the engine supports them: rooms run on the first, requests go to the last.
      opened = await openNodes(engine, engine === sharedEngine ? 2 : 1, { config })
      owner = opened.nodes[0] as TestServer
      node = opened.nodes.at(-1) as TestServer
    })
    afterAll(() => opened.close())

    const act = (body: object) => node.service.post('/api/room/admin/act', { namespace: 'game', ...body })
    const inspect = async (id: string) =>
      (await node.service.get(`/api/room/admin/room${query({ namespace: 'game', id })}`)).body

    test('[ROOM-ADMIN-8] an action runs for the player, whose members see it, and the result is answered', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const [ann, bob] = [await join(owner, 'ann', room), await join(owner, 'bob', room)]
      await ann.act('move', { by: 2 })
      const answer = await act({ id: room.id, userId: 'ann', actionType: 'move', payload: { by: 5 } })
      expect([answer.status, answer.body]).toEqual([200, { ok: true, result: { at: 7 } }])
      const delta = await bob.until((message) => message.type === 'shared_delta' && message.delta.ann === 7)
      expect(delta.at(-1).delta).toEqual({ ann: 7 })
      const view = await inspect(room.id)
      expect(view.players.find(({ userId }: { userId: string }) => userId === 'ann').state).toEqual({ moves: 2 })
      expect(view.actions).toMatchObject([
        { userId: 'ann', actionType: 'move', payload: '{"by":2}', sentBy: null },
        { userId: 'ann', actionType: 'move', payload: '{"by":5}', error: null, sentBy: 'root' },
      ])
      // A payload may be left out, as in a message.
      expect((await act({ id: room.id, userId: 'bob', actionType: 'echo' })).body).toEqual({ ok: true, result: {} })
      await ann.close()
      await bob.close()
    })

    test('[ROOM-ADMIN-8] the rule of the player, unknown actions and failures answer what the player would get', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const [ann, bob] = [await join(owner, 'ann', room), await join(owner, 'bob', room)]
      const before = await inspect(room.id)
      for (const [body, code] of [
        [{ userId: 'bob', actionType: 'ban' }, 'ACTION_DENIED'],
        [{ userId: 'ann', actionType: 'none' }, 'NO_HANDLER'],
        [{ userId: 'ann', actionType: '__proto__' }, 'NO_HANDLER'],
        [{ userId: 'ann', actionType: 'move', payload: { by: 'x' } }, 'ACTION_FAILED'],
      ] as const) {
        const answer = await act({ id: room.id, ...body })
        expect([answer.status, answer.body]).toMatchObject([200, { ok: false, error: { code } }])
        const own = await (body.userId === 'ann' ? ann : bob).act(
          body.actionType,
          'payload' in body ? body.payload : {},
        )
        expect(own).toMatchObject({ type: 'action_error', ...answer.body.error })
      }
      expect((await act({ id: room.id, userId: 'ann', actionType: 'ban' })).body).toEqual({
        ok: true,
        result: 'banned',
      })
      const after = await inspect(room.id)
      expect([after.shared, after.sharedVersion]).toEqual([before.shared, before.sharedVersion])
      await ann.close()
      await bob.close()
    })

    test('[ROOM-ADMIN-8] without the player, the room or a valid action it is refused and runs nothing', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const ann = await join(owner, 'ann', room)
      const before = await inspect(room.id)
      const move = { id: room.id, userId: 'ann', actionType: 'move', payload: { by: 1 } }
      for (const userId of ['eve', '__proto__']) expectRefusal(await act({ ...move, userId }), 404)
      expectRefusal(await act({ ...move, id: 'none' }), 404)
      expectRefusal(await act({ ...move, namespace: 'none' }), 404)
      for (const bad of [{ actionType: '' }, { actionType: 'x'.repeat(5000) }, { userId: 1 }])
        expectRefusal(await act({ ...move, ...bad }), 400)
      const { status, body } = await inspect(room.id).then((view) => ({ status: 200, body: view }))
      expect([status, body.shared, body.actions]).toEqual([200, before.shared, []])
      await ann.close()
    })

    test('[ROOM-ADMIN-8] it needs the scope to act, which reading and administering rooms do not give', async () => {
      const room = { namespace: 'game', id: newRoomId() }
      const ann = await join(owner, 'ann', room)
      const path = '/api/room/admin/act'
      const move = { ...room, userId: 'ann', actionType: 'move', payload: { by: 1 } }
      expectRefusal(await node.as('ann').post(path, move), 403)
      expectRefusal(await node.withKey(keeperKey).post(path, move), 401)
      expectRefusal(await node.anonymous.post(path, move), 401)
      for (const role of ['viewer', 'support'])
        expectRefusal(await (await openAdministrator(node, role)).client.post(path, move), 403)
      expect((await inspect(room.id)).shared).toEqual({})
      expect((await node.withKey(actorKey).post(path, move)).body).toEqual({ ok: true, result: { at: 1 } })

      const editor = await openAdministrator(node, 'editor')
      expect((await editor.client.post(path, move)).body).toEqual({ ok: true, result: { at: 2 } })
      expect((await inspect(room.id)).actions).toMatchObject([{ sentBy: 'actor' }, { sentBy: `admin:${editor.id}` }])
      const { items } = (await node.service.get('/api/audit?action=rooms.act&limit=2')).body
      expect(items).toMatchObject([
        { actor: `admin:${editor.id}`, via: 'dashboard', outcome: 'done', after: move },
        { actor: 'actor', via: 'service-key', outcome: 'done', after: move },
      ])
      await ann.close()
    })
  })
