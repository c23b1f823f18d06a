/** Messages, members, signals and timers of a room, and what a client may ask for beyond version 2. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { roomKinds } from '../harness/rooms/room-kinds.ts'
import { enter, join, newRoomId, type RoomClient } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import type { Message } from '../harness/socket.ts'

const clock = manualClock()
const startMs = clock.now()

describeServer('members', { config: roomKinds, clock, mode: 'release' }, (server) => {
  beforeAll(() => clock.set(startMs))

  describe('messages and members', () => {
    test('[ROOM-MESSAGE-1] a message reaches all players, all except some, or one', async () => {
      const id = newRoomId()
      const clients = await Promise.all(['ann', 'bob', 'eve'].map((user) => join(server, user, { id })))
      const [ann, bob, eve] = clients as [RoomClient, RoomClient, RoomClient]
      await ann.act('send', {})
      await ann.act('send', { except: 'bob' })
      await ann.act('send', { to: 'eve' })
      await ann.act('assign', { path: ['end'], value: 1 })
      const counts: number[] = []
      for (const client of [ann, bob, eve]) {
        const end =
          client.passed.findLast(({ type }) => type === 'shared_delta') ?? (await client.nextOf('shared_delta'))
        expect(end.delta).toEqual({ end: 1 })
        await client.act('send', { to: 'unknown' })
        const received = client.passed.filter(({ type }) => type === 'message')
        for (const message of received)
          expect(message).toEqual({ type: 'message', messageType: 'greeting', data: { by: 'ann' } })
        counts.push(received.length)
      }
      for (const client of clients) await client.close()
      expect(counts).toEqual([2, 1, 3])
    })

    test('[ROOM-MEMBER-1] members are notified of joins, presence and leaves of others', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      const bob = await join(server, 'bob', { id })
      expect(ann.members).toMatchObject({
        occupancy: { activeMembers: 1, activeConnections: 1 },
        members: [{ memberId: 'ann' }],
      })
      expect(bob.members.members.map(({ memberId }: Message) => memberId).toSorted()).toEqual(['ann', 'bob'])
      expect(await ann.nextOf('member_join')).toMatchObject({ memberId: 'bob' })
      bob.send({ type: 'member_state', state: { cursor: [1, 2] } })
      expect(await ann.nextOf('member_state')).toEqual({
        type: 'member_state',
        memberId: 'bob',
        state: { cursor: [1, 2] },
      })
      bob.send({ type: 'leave' })
      expect(await bob.closed).toMatchObject({ code: 4005 })
      expect(await ann.nextOf('member_leave')).toEqual({ type: 'member_leave', memberId: 'bob', reason: 'left' })
      expect(await ann.act('who')).toMatchObject({ result: ['ann'] })
      await ann.close()
    })

    test('[ROOM-MEMBER-2] a player who loses the connection leaves after the reconnect grace', async () => {
      const id = newRoomId()
      const [ann, bob] = [await join(server, 'ann', { id }), await join(server, 'bob', { id })]
      await bob.close()
      expect(await ann.act('who')).toMatchObject({ result: ['ann', 'bob'] })
      clock.advance(30_000)
      ann.send({ type: 'ping' })
      expect(await ann.nextOf('member_leave')).toMatchObject({ memberId: 'bob', reason: 'disconnected' })
      await ann.close()
    })

    test('[ROOM-MEMBER-3] a kicked player is notified on all sockets, and can join again if the rule allows it', async () => {
      const id = newRoomId()
      const [ann, bob, second] = [
        await join(server, 'ann', { id }),
        await join(server, 'bob', { id }),
        await join(server, 'bob', { id }),
      ]
      await ann.act('kick', 'bob')
      for (const socket of [bob, second]) {
        expect(await socket.nextOf('kicked')).toEqual({ type: 'kicked' })
        expect(await socket.closed).toEqual({ code: 4004, reason: 'KICKED' })
      }
      expect(await ann.nextOf('member_leave')).toMatchObject({ memberId: 'bob', reason: 'kicked' })
      expect((await join(server, 'bob', { id })).sync.type).toBe('sync')
      await ann.close()
    })

    test('[ROOM-SIGNAL-1] a signal reaches all other members, or one of them, if the rule allows it', async () => {
      const id = newRoomId()
      const clients = await Promise.all(['ann', 'bob', 'eve'].map((user) => join(server, user, { id })))
      const [ann, bob, eve] = clients as [RoomClient, RoomClient, RoomClient]
      ann.send({ type: 'signal', event: 'wave', payload: { n: 1 } })
      ann.send({ type: 'signal', event: 'whisper', payload: null, memberId: 'eve' })
      ann.send({ type: 'signal', event: 'forbidden' })
      expect(await ann.nextOf('error')).toMatchObject({ code: 'SIGNAL_DENIED' })
      for (const event of [undefined, '', 7, 'x'.repeat(129)]) {
        ann.send({ type: 'signal', event })
        expect(await ann.nextOf('error')).toMatchObject({ code: 'INVALID_SIGNAL' })
      }
      expect(await bob.nextOf('signal')).toEqual({
        type: 'signal',
        event: 'wave',
        payload: { n: 1 },
        memberId: 'ann',
        meta: {
          memberId: 'ann',
          userId: 'ann',
          connectionId: ann.connectionId,
          sentAt: new Date(clock.now()).toISOString(),
          serverSent: false,
        },
      })
      expect(await eve.nextOf('signal')).toMatchObject({ event: 'wave' })
      expect(await eve.nextOf('signal')).toMatchObject({ event: 'whisper', payload: null, meta: { userId: 'ann' } })
      await ann.act('send', {})
      await bob.nextOf('message')
      await ann.nextOf('message')
      for (const client of [ann, bob]) expect(client.passed.filter(({ type }) => type === 'signal')).toEqual([])
      const other = await join(server, 'ann', { namespace: 'plain', id })
      other.send({ type: 'signal', event: 'wave' })
      expect(await other.nextOf('error')).toMatchObject({ code: 'SIGNAL_DENIED' })
      for (const client of [...clients, other]) await client.close()
    })

    test('[ROOM-SIGNAL-2] a signal with a requestId is answered, and echoed to its sender on request', async () => {
      const id = newRoomId()
      const early = await enter(server, 'ann', { id })
      early.send({ type: 'signal', event: 'wave', requestId: 's0' })
      expect(await early.next()).toMatchObject({ type: 'signal_error', requestId: 's0', code: 'NOT_JOINED' })
      const clients = await Promise.all(['ann', 'ann', 'bob'].map((user) => join(server, user, { id })))
      const [ann, tab, bob] = clients as [RoomClient, RoomClient, RoomClient]
      const answer = async (requestId: string): Promise<Message> => {
        for (;;) {
          const message = await ann.next()
          if (message.requestId === requestId) return message
          ann.passed.push(message)
        }
      }
      ann.send({ type: 'signal', event: 'wave', payload: 1, requestId: 's1' })
      expect(await answer('s1')).toEqual({ type: 'signal_sent', requestId: 's1' })
      for (const client of [tab, bob]) expect(await client.nextOf('signal')).toMatchObject({ payload: 1 })
      ann.send({ type: 'signal', event: 'wave', payload: 2, includeSelf: true, requestId: 's2' })
      for (const client of clients) expect(await client.nextOf('signal')).toMatchObject({ payload: 2 })
      ann.send({ type: 'signal', event: 'whisper', payload: 3, to: 'bob', includeSelf: true, requestId: 's3' })
      for (const client of [ann, bob]) expect(await client.nextOf('signal')).toMatchObject({ payload: 3 })
      ann.send({ type: 'signal', event: 'whisper', payload: 4, to: 'ann', requestId: 's4' })
      expect(await tab.nextOf('signal')).toMatchObject({ payload: 4 })
      const wrong: readonly (readonly [string, object])[] = [
        ['SIGNAL_DENIED', { event: 'forbidden' }],
        ['INVALID_SIGNAL', { event: '' }],
        ['INVALID_SIGNAL', { event: 'wave', to: 7 }],
        ['INVALID_SIGNAL', { event: 'wave', includeSelf: 'yes' }],
        ['MEMBER_NOT_FOUND', { event: 'wave', to: 'unknown' }],
      ]
      clock.advance(1000)
      for (const [at, [code, message]] of wrong.entries()) {
        ann.send({ type: 'signal', ...message, requestId: `w${at}` })
        expect(await answer(`w${at}`)).toMatchObject({ type: 'signal_error', code })
      }
      ann.send({ type: 'signal', event: 'wave', requestId: 7 })
      expect(await ann.nextOf('error')).toMatchObject({ code: 'INVALID_SIGNAL' })
      for (const client of [early, ...clients]) await client.close()
    })

    test('[ROOM-MEMBER-4] all members receive members_sync whenever members change; a user with several sockets counts once', async () => {
      const id = newRoomId()
      const until = async (client: RoomClient, activeMembers: number, activeConnections: number): Promise<string[]> => {
        for (;;) {
          const { occupancy, members } = await client.nextOf('members_sync')
          if (occupancy.activeMembers === activeMembers && occupancy.activeConnections === activeConnections)
            return members.map(({ memberId }: Message) => memberId).toSorted()
        }
      }
      const ann = await join(server, 'ann', { id })
      const bob = await join(server, 'bob', { id })
      expect(await until(ann, 2, 2)).toEqual(['ann', 'bob'])
      const tab = await join(server, 'bob', { id })
      for (const client of [ann, bob]) expect(await until(client, 2, 3)).toEqual(['ann', 'bob'])
      await tab.close()
      for (const client of [ann, bob]) expect(await until(client, 2, 2)).toEqual(['ann', 'bob'])
      await bob.close()
      // Within the grace a player keeps the seat, without being there.
      expect(await until(ann, 1, 1)).toEqual(['ann', 'bob'])
      clock.advance(30_000)
      ann.send({ type: 'ping' })
      expect(await until(ann, 1, 1)).toEqual(['ann'])
      await ann.close()
    })

    test('[ROOM-ACT-1] a response names its action, and so does a kept response', async () => {
      const ann = await join(server, 'ann', { id: newRoomId() })
      const first = await ann.act('who', {}, 'same')
      expect(first).toEqual({ type: 'action_result', requestId: 'same', actionType: 'who', result: ['ann'] })
      expect(await ann.act('who', {}, 'same')).toEqual(first)
      await ann.close()
    })

    test('[ROOM-TIMER-1] a timer runs when it is due, and not earlier', async () => {
      const id = newRoomId()
      const ann = await join(server, 'ann', { id })
      await ann.act('later', { ms: 2000, data: 'second' })
      await ann.act('later', { ms: 1000, data: 'first' })
      clock.advance(1000)
      expect(await ann.nextOf('shared_delta')).toMatchObject({ delta: { marks: ['first'] } })
      clock.advance(1000)
      expect(await ann.nextOf('shared_delta')).toMatchObject({ delta: { marks: ['first', 'second'] } })
      await ann.close()
    })
  })

  describe('capabilities', () => {
    test('[ROOM-CAPS-1] a client that reconnects with resume receives only the missed deltas', async () => {
      const id = newRoomId()
      const [ann, bob] = [
        await join(server, 'ann', { id, auth: { caps: ['resume', 'nonsense'] } }),
        await join(server, 'bob', { id }),
      ]
      await bob.act('assign', { path: ['a'], value: 1 })
      const seen = await ann.nextOf('shared_delta')
      await ann.close()
      await bob.act('assign', { path: ['b'], value: 2 })
      await bob.nextOf('shared_delta')
      const at = { epoch: ann.sync.epoch, lastSharedVersion: seen.version, lastPlayerVersion: ann.sync.playerVersion }
      const back = await join(server, 'ann', { id, auth: { caps: ['resume'] }, join: at })
      expect(back.sync).toMatchObject({ type: 'resumed', epoch: ann.sync.epoch })
      expect(back.passed.filter(({ type }) => type === 'shared_delta')).toEqual([
        { type: 'shared_delta', delta: { b: 2 }, version: seen.version + 1 },
      ])
      // Who has not asked for it is given the whole state.
      expect((await join(server, 'ann', { id, join: at })).sync.type).toBe('sync')
      for (const client of [back, bob]) await client.close()
    })

    test('[ROOM-CAPS-1, ROOM-DELTA-6] a client that resumes after its player left and joined again receives the current state', async () => {
      const id = newRoomId()
      const caps = { auth: { caps: ['resume'] } }
      const [phone, bob] = [await join(server, 'ann', { id, ...caps }), await join(server, 'bob', { id })]
      await phone.act('own', { key: 'hand', value: ['queen'] })
      const delta = phone.passed.find(({ type }) => type === 'player_delta') ?? (await phone.nextOf('player_delta'))
      await phone.close()
      clock.advance(30_000)
      await bob.nextOf('member_leave')
      const laptop = await join(server, 'ann', { id, ...caps })
      expect(laptop.sync).toMatchObject({ type: 'sync', playerState: {} })
      const { epoch, sharedVersion: lastSharedVersion } = phone.sync
      const at = { epoch, lastSharedVersion, lastPlayerVersion: delta.version }
      expect((await join(server, 'ann', { id, ...caps, join: at })).sync).toMatchObject({
        type: 'sync',
        playerState: {},
      })
      for (const client of [laptop, bob]) await client.close()
    })

    test('[ROOM-CAPS-2] with multi the server sends several messages in one frame, and none is lost', async () => {
      const id = newRoomId()
      const ann = await enter(server, 'ann', { id, auth: { caps: ['multi'] } })
      const bob = await join(server, 'bob', { id })
      ann.send({ type: 'join' })
      const frames = [await ann.next()]
      while (!frames.flat().some(({ type }) => type === 'members_sync')) frames.push(await ann.next())
      await bob.act('assign', { path: ['a'], value: 1 })
      await bob.act('send', {})
      while (!frames.flat().some(({ type }) => type === 'message')) frames.push(await ann.next())
      const types = frames.flat().map(({ type }) => type)
      expect(types.indexOf('sync')).toBe(0)
      expect(types.indexOf('shared_delta')).toBeLessThan(types.indexOf('message'))
      expect(frames.some(Array.isArray)).toBe(true)
      for (const client of [ann, bob]) await client.close()
    })

    const batching: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
      ['JSON', { caps: ['batch'] }],
      ['JSON and several messages in a frame', { caps: ['batch', 'multi'] }],
      ['MessagePack', { caps: ['batch'], encoding: 'msgpack' }],
    ]

    for (const [name, auth] of batching)
      test(`[ROOM-CAPS-3] with batch and ${name}, answers are sent in order, and before the deltas`, async () => {
        const id = newRoomId()
        const ann = await enter(server, 'ann', { id, auth })
        // Two sockets, so that deltas are published to all at once.
        const other = await enter(server, 'bob', { id, auth })
        for (const client of [ann, other]) client.send({ type: 'join' })
        const sent = [
          ann.begin('assign', { path: ['a'], value: 1 }),
          ann.begin('fail', 'nonsense'),
          ann.begin('own', { key: 'hand', value: 'queen' }),
        ]
        const messages: Message[] = []
        const isOwn = ({ type }: Message): boolean => type === 'player_delta'
        while (!messages.some(isOwn)) messages.push(...[await ann.next()].flat())
        const positionOf = (isIt: (message: Message) => boolean): number => messages.findIndex(isIt)
        const [first, second, third] = sent.map((requestId) =>
          positionOf((message) => message.requestId === requestId),
        ) as [number, number, number]
        expect(first).toBeGreaterThan(-1)
        expect(first).toBeLessThan(second)
        expect(second).toBeLessThan(third)
        // The delta follows the answer, as without the capability.
        expect(third).toBeLessThan(positionOf(isOwn))
        expect(messages[second]).toMatchObject({ type: 'action_error', code: 'ACTION_FAILED' })
        for (const client of [ann, other]) await client.close()
      })

    test('[ROOM-CAPS-3] with batch a client that leaves still receives its answers', async () => {
      const ann = await join(server, 'ann', { id: newRoomId(), auth: { caps: ['batch'] } })
      const sent = [ann.begin('echo', 1), ann.begin('echo', 2)]
      ann.send({ type: 'leave' })
      for (const [at, requestId] of sent.entries())
        expect(await ann.nextOf('action_result')).toMatchObject({ requestId, result: at + 1 })
      expect((await ann.closed).code).toBe(4005)
    })

    test('[ROOM-CAPS-3, ROOM-ACT-3] with batch an answer lost with the connection is sent again after resume', async () => {
      const id = newRoomId()
      const auth = { caps: ['batch', 'resume'] }
      const [ann, bob] = [await join(server, 'ann', { id, auth }), await join(server, 'bob', { id })]
      ann.begin('count', {}, 'lost')
      await ann.close()
      const { epoch, sharedVersion: lastSharedVersion, playerVersion: lastPlayerVersion } = ann.sync
      const back = await join(server, 'ann', { id, auth, join: { epoch, lastSharedVersion, lastPlayerVersion } })
      expect(back.sync.type).toBe('resumed')
      expect(await back.act('count', {}, 'lost')).toMatchObject({ type: 'action_result', result: 1 })
      expect(await back.act('count')).toMatchObject({ result: 2 })
      for (const client of [back, bob]) await client.close()
    })
  })
})
