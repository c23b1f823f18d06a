/** Sockets that do not keep up, and states that are large. */
import { expect, test } from 'bun:test'
import type { Room, RoomPlayer } from '../../src/config/define.ts'
import { applyDelta, join, roomPath } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import { frame, type Message, openRawSocket, type RawSocket } from '../harness/socket.ts'

const kind = {
  access: { join: true },
  messageRate: 1000,
  actions: {
    fill: (room: Room, _player: RoomPlayer, { key, chars }: { key: string; chars: number }) => {
      room.shared[key] = key.repeat(chars)
    },
    announce: (room: Room, _player: RoomPlayer, what: string) => room.broadcast('announcement', what),
  },
}
const config = { rooms: { game: kind, huge: { ...kind, maxStateSize: '10mb' } } }

/** The state as a client has it that applies all of it. */
function replay(messages: readonly Message[]): Record<string, string> {
  let state: Record<string, string> = {}
  for (const message of messages)
    if (message.type === 'sync') state = structuredClone(message.sharedState)
    else if (message.type === 'shared_delta') applyDelta(state, message.delta)
  return state
}

describeServer('backpressure', { config, mode: 'release' }, (server) => {
  async function openReader(namespace: string, id: string): Promise<RawSocket> {
    const raw = await openRawSocket(server.url, roomPath(namespace, id))
    const send = (message: object): void => raw.write(frame('text', JSON.stringify(message)))
    send({ type: 'auth', token: await server.token('slow') })
    await raw.readUntil(({ messages }) => messages.some(({ type }) => type === 'auth_success'))
    send({ type: 'join' })
    await raw.readUntil(({ messages }) => messages.some(({ type }) => type === 'members_sync'))
    raw.pause()
    return raw
  }

  test('[ROOM-SLOW-1] a client that does not read receives messages but no deltas, and catches up with one sync', async () => {
    const id = 'slow'
    const raw = await openReader('game', id)
    const ann = await join(server, 'ann', { id })
    const rounds = 24
    for (let n = 0; n < rounds; n++) {
      await ann.act('fill', { key: String.fromCharCode(97 + (n % 2)), chars: 400_000 + n })
      await ann.nextOf('shared_delta')
    }
    await ann.act('announce', 'sent during the pause')
    await ann.nextOf('message')
    const last = { a: 400_000 + rounds - 2, b: 400_000 + rounds - 1 }
    const { messages, closeCode } = await raw.readUntil(({ messages }) => {
      const { a = '', b = '' } = replay(messages)
      return a.length === last.a && b.length === last.b
    })
    expect(closeCode).toBeNull()
    expect(messages.filter(({ type }) => type === 'sync').length).toBe(2)
    expect(messages.filter(({ type }) => type === 'shared_delta').length).toBeLessThan(rounds)
    expect(messages.filter(({ type }) => type === 'message')).toMatchObject([{ data: 'sent during the pause' }])
    // The socket receives deltas again.
    await ann.act('fill', { key: 'c', chars: 1 })
    await raw.readUntil((received) => replay(received.messages).c === 'c')
    raw.destroy()
    await ann.close()
  })

  test('[ROOM-STATE-7, ROOM-SYNC-1] a state of many megabytes is accepted, sent and saved if the namespace allows it', async () => {
    const id = 'huge'
    const ann = await join(server, 'ann', { namespace: 'huge', id })
    for (const key of ['a', 'b', 'c']) {
      expect(await ann.act('fill', { key, chars: 3_000_000 })).toMatchObject({ type: 'action_result' })
      await ann.nextOf('shared_delta')
    }
    expect(await ann.act('fill', { key: 'd', chars: 3_000_000 })).toMatchObject({ code: 'STATE_TOO_LARGE' })
    const lengths = ({ sync }: { sync: Message }) =>
      Object.values(sync.sharedState as Record<string, string>).map(({ length }) => length)
    // What a client of version 2 sends to recover is as large, and is taken for what it is: nothing.
    const recovery = { lastSharedState: ann.sync.sharedState, lastPlayerState: { forged: 'x'.repeat(3_000_000) } }
    const bob = await join(server, 'bob', { namespace: 'huge', id, join: recovery })
    expect(lengths(bob)).toEqual([3_000_000, 3_000_000, 3_000_000])
    await server.service.post('/api/room/admin/hibernate', { namespace: 'huge', id })
    for (const client of [ann, bob]) {
      const sync = await client.nextOf('sync')
      expect(lengths({ sync })).toEqual([3_000_000, 3_000_000, 3_000_000])
      expect(sync.playerState).toEqual({})
      await client.close()
    }
  })
})
