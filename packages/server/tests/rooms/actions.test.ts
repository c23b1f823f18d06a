/** Actions of a room: which are run, in which order and how often, and what is answered. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { query } from '../harness/client.ts'
import { gateOf, kept, roomKinds } from '../harness/rooms/room-kinds.ts'
import { enter, join, newRoomId } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'

const clock = manualClock()
const startMs = clock.now()

describeServer('actions', { config: roomKinds, clock, mode: 'release' }, (server) => {
  beforeAll(() => clock.set(startMs))

  describe('actions', () => {
    test('[ROOM-ACT-1] the result of an action is sent only to its sender', async () => {
      const id = newRoomId()
      const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
      expect(await ann.act('echo', { a: [1] }, 'q')).toEqual({
        type: 'action_result',
        requestId: 'q',
        actionType: 'echo',
        result: { a: [1] },
      })
      expect(await ann.act('echo')).toMatchObject({ result: {} })
      expect(await ann.act('nothing')).toMatchObject({ type: 'action_result', result: null })
      expect(await ann.act('giveFunction')).toMatchObject({ type: 'action_result', result: null })
      await bob.act('echo')
      expect(bob.passed.filter(({ type }) => type.startsWith('action_'))).toEqual([])
      for (const client of [ann, bob]) await client.close()
    })

    test.each([
      ['constructor', 'NO_HANDLER'],
      ['__proto__', 'NO_HANDLER'],
      ['toString', 'NO_HANDLER'],
      ['missing', 'NO_HANDLER'],
      ['', 'INVALID_ACTION'],
      [undefined, 'INVALID_ACTION'],
      [7, 'INVALID_ACTION'],
      [{}, 'INVALID_ACTION'],
      ['x'.repeat(129), 'INVALID_ACTION'],
    ])('[ROOM-ACT-2] the action %j is %s', async (actionType, code) => {
      const ann = await join(server, 'ann', { id: newRoomId() })
      ann.send({ type: 'send', actionType, payload: 1, requestId: 'q' })
      expect(await ann.next()).toMatchObject({
        type: 'action_error',
        requestId: 'q',
        code,
        message: expect.any(String),
      })
      await ann.close()
    })

    test('[ROOM-ACT-2] an action in a namespace without actions is rejected with NO_HANDLER', async () => {
      const ann = await join(server, 'ann', { namespace: 'plain', id: newRoomId() })
      expect(await ann.act('echo')).toMatchObject({ type: 'action_error', code: 'NO_HANDLER' })
      await ann.close()
    })

    test.each([undefined, '', 7, null, {}, 'x'.repeat(129)])(
      '[ROOM-ACT-4] with the requestId %j an action is not run',
      async (requestId) => {
        const ann = await join(server, 'ann', { id: newRoomId() })
        ann.send({ type: 'send', actionType: 'count', requestId })
        expect(await ann.next()).toMatchObject({ type: 'error', code: 'INVALID_ACTION' })
        expect(await ann.act('count')).toMatchObject({ result: 1 })
        await ann.close()
      },
    )

    test('[ROOM-ACT-5] actions, signals and presence before the join are rejected with NOT_JOINED', async () => {
      const ann = await enter(server, 'ann', { id: newRoomId() })
      expect(await ann.act('echo')).toMatchObject({ type: 'action_error', code: 'NOT_JOINED' })
      for (const type of ['member_state', 'signal', 'leave']) {
        ann.send({ type, event: 'e', state: {} })
        expect(await ann.next()).toMatchObject({ type: 'error', code: 'NOT_JOINED' })
      }
      await ann.close()
    })

    test('[ROOM-ACT-6] the action rule can deny an action by its payload', async () => {
      const ann = await join(server, 'ann', { id: newRoomId() })
      expect(await ann.act('echo', 'forbidden')).toMatchObject({ type: 'action_error', code: 'ACTION_DENIED' })
      expect(await ann.act('echo', 'allowed')).toMatchObject({ result: 'allowed' })
      await ann.close()
    })

    test('[ROOM-STATE-2] a handler that throws or rejects has no effect on state and messages', async () => {
      const id = newRoomId()
      const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
      expect(await ann.act('fail', 'no luck')).toMatchObject({ type: 'action_error', message: expect.any(String) })
      expect(await ann.act('reject')).toMatchObject({ type: 'action_error' })
      await ann.act('send', { to: 'bob' })
      await bob.nextOf('message')
      expect(JSON.stringify([ann.passed, bob.passed])).not.toContain('trace')
      const eve = await join(server, 'eve', { id })
      expect(eve.sync.sharedState).toEqual({})
      expect((await server.service.get(`/api/room/metadata${query({ namespace: 'game', id })}`)).body).toEqual({})
      for (const client of [ann, bob, eve]) await client.close()
    })

    test('[ROOM-ACT-7, ROOM-STATE-3] a handler that times out is rejected, and has no effect afterwards', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      const slow = ann.begin('slow', id)
      const after = ann.begin('echo', 'after')
      while (!kept.has(id)) await new Promise((resolve) => setImmediate(resolve))
      clock.advance(5000)
      const refused = await ann.nextOf('action_error')
      expect(refused).toMatchObject({ requestId: slow, actionType: 'slow' })
      expect(await ann.nextOf('action_result')).toMatchObject({ requestId: after, result: 'after' })
      const late = kept.get(id) as NonNullable<ReturnType<typeof kept.get>>
      expect(() => late.room.shared).toThrow()
      expect(() => late.player.send('late')).toThrow()
      expect(() => late.room.db.insert('shared.scores', { title: id })).toThrow()
      expect(() => late.room.push.send('ann', { title: id })).toThrow()
      // Nor with what it took from the room in time.
      expect(() => late.db.insert('shared.scores', { title: id })).toThrow()
      expect(() => late.db('shared')).toThrow()
      expect(late.scores.insert({ title: id })).rejects.toThrow('after its handler has ended')
      expect(() => late.push.send('ann', { title: id })).toThrow()
      gateOf(id).resolve()
      await ann.act('echo')
      expect((await join(server, 'bob', { id })).sync.sharedState).toEqual({})
      expect(late.room.signal.aborted).toBe(true)
      const filter = JSON.stringify([['title', '==', id]])
      expect((await server.service.get(`/api/db/shared/tables/scores/count${query({ filter })}`)).body.total).toBe(0)
      await ann.close()
    })

    test('[ROOM-ACT-8] 50 concurrent actions run one after the other, each on the state that the previous one left', async () => {
      const id = newRoomId()
      const clients = await Promise.all(['ann', 'bob', 'eve'].map((user) => join(server, user, { id })))
      const answers = await Promise.all(
        clients.flatMap((client) => {
          const sent = new Set(Array.from({ length: 50 }, () => client.begin('count')))
          return client
            .until(({ requestId }) => sent.delete(requestId) && sent.size === 0)
            .then((messages) => messages.filter(({ type }) => type === 'action_result').map(({ result }) => result))
        }),
      )
      expect(answers.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 150 }, (_, n) => n + 1))
      for (const client of clients) await client.close()
    })

    test('[ROOM-ACT-3] a repeated requestId receives the kept response and does not run again', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      expect(await ann.act('count', {}, 'same')).toMatchObject({ result: 1 })
      expect(await ann.act('count', {}, 'same')).toMatchObject({ result: 1 })
      await ann.close()
      const back = await join(server, 'ann', { id })
      expect(await back.act('count', {}, 'same')).toMatchObject({ result: 1 })
      // Of another player it is another request.
      const bob = await join(server, 'bob', { id })
      expect(await bob.act('count', {}, 'same')).toMatchObject({ result: 2 })
      for (const client of [back, bob]) await client.close()
    })

    test('[ROOM-ACT-9] room.db accesses records like a service key, and an invalid record fails the action', async () => {
      const ann = await join(server, 'ann', { id: newRoomId() })
      const { result } = await ann.act('record', 'won')
      expect(result).toMatchObject({ made: { title: 'won!', by: 'ann' }, items: 1 })
      expect(await ann.act('badRecord')).toMatchObject({ type: 'action_error' })
      expect((await server.service.get('/api/db/shared/tables/scores/count')).body.total).toBeGreaterThanOrEqual(1)
      expect(await ann.act('push')).toMatchObject({ type: 'action_error' })
      await ann.close()
    })

    test('[ROOM-ACT-12] room.db opens the tables of a namespace, with queries, batches and transactions', async () => {
      const ann = await join(server, 'ann', { id: newRoomId() })
      const { result } = await ann.act('tables', 'tried')
      expect(result).toMatchObject({
        items: expect.arrayContaining([expect.objectContaining({ title: 'tried!?' })]),
        left: null,
      })
      expect(await ann.act('typed', 'kept')).toMatchObject({ result: 'kept' })
      expect(await ann.act('badTable')).toMatchObject({
        type: 'action_error',
        code: 'ACTION_FAILED',
        message: expect.stringContaining('nonsense'),
      })
      await ann.close()
    })

    test('[ROOM-ACT-10] more than ten messages a second are rejected, not counting pings', async () => {
      clock.advance(60_000)
      const ann = await join(server, 'ann', { namespace: 'strict', id: newRoomId() })
      clock.advance(1000)
      ann.send({ type: 'ping' })
      await ann.nextOf('pong')
      const sent = Array.from({ length: 11 }, () => ann.begin('count'))
      ann.send({ type: 'member_state', state: {} })
      for (let n = 0; n < 30; n++) ann.send({ type: 'ping' })
      const answers: Message[] = []
      for (let pongs = 0; pongs < 30; ) {
        const message = await ann.next()
        if (message.type === 'pong') pongs += 1
        else answers.push(message)
      }
      while (answers.filter(({ type }) => type === 'error' || type.startsWith('action_')).length < 13)
        answers.push(await ann.next())
      const [code, message] = ['RATE_LIMITED', expect.any(String)]
      expect(answers.filter((answer) => answer.code === code)).toEqual([
        { type: 'error', code, message },
        { type: 'action_error', requestId: sent.at(-1), actionType: 'count', code, message },
        { type: 'error', code, message },
      ])
      clock.advance(1000)
      expect(await ann.act('count')).toMatchObject({ result: 11 })
      await ann.close()
    })
  })
})
