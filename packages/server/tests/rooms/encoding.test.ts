/** Rooms with the encoding `msgpack`, over WebSockets. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type PackedValue, PackWriter, unpack } from '../../src/base/text/msgpack.ts'
import { PackedDeltas } from '../../src/features/rooms/nodes/packed-deltas.ts'
import { packedPathsMax } from '../../src/limits/rooms.ts'
import { roomKinds } from '../harness/rooms/room-kinds.ts'
import { applyDelta, enter, join, newRoomId, type RoomClient, roomPath } from '../harness/rooms/rooms.ts'
import { describeServer } from '../harness/server.ts'
import { openSocket } from '../harness/socket.ts'

const packed = { auth: { encoding: 'msgpack' } }

function pack(value: PackedValue): Uint8Array<ArrayBuffer> {
  const writer = new PackWriter()
  writer.value(value)
  return writer.written().slice() as Uint8Array<ArrayBuffer>
}

/** Reads the packed messages as a client does. */
class Reader {
  #paths: string[] = []

  /** The delta of a message; null for a table of paths. */
  read(message: readonly unknown[]): Record<string, unknown> | null {
    const [kind, ...rest] = message
    if (kind === 0) {
      this.#paths = rest as string[]
      return null
    }
    expect(kind).toBe(1)
    const delta: Record<string, unknown> = {}
    for (let at = 1; at < rest.length; at += 2) {
      const path = rest[at]
      if (typeof path === 'string') this.#paths.push(path)
      delta[typeof path === 'string' ? path : (this.#paths[path as number] as string)] = rest[at + 1]
    }
    return delta
  }
}

const isPacked = (message: unknown): boolean => Array.isArray(message)

describeServer('encodings of rooms', { config: roomKinds, mode: 'release' }, (server) => {
  async function nextDelta(client: RoomClient, reader: Reader): Promise<Record<string, unknown>> {
    for (;;) {
      const delta = reader.read((await client.until(isPacked)).at(-1))
      if (delta) return delta
    }
  }

  test('[ROOM-ENCODING-1] clients of both encodings see the same state', async () => {
    const id = newRoomId()
    const json = await join(server, 'ann', { id })
    const one = await enter(server, 'bob', { id, ...packed })
    one.send({ type: 'join' })
    const { sharedState } = await one.nextOf('sync')
    const two = await join(server, 'cy', { id, ...packed })
    const readers = [new Reader(), new Reader()]
    const changes = [
      [['score'], 1],
      [['score'], 2],
      [['a', 'ü'], null],
      [['score'], null],
      [['list'], [1, { x: 'é' }]],
    ] as const
    let [fromJson, fromOne, fromTwo] = [json.sync.sharedState, sharedState, two.sync.sharedState]
    for (const [path, value] of changes) {
      const answer = await json.act('assign', { path, value })
      if (answer.type === 'action_error') continue
      const message = await json.nextOf('shared_delta')
      fromJson = applyDelta(fromJson, message.delta)
      fromOne = applyDelta(fromOne, await nextDelta(one, readers[0] as Reader))
      fromTwo = applyDelta(fromTwo, await nextDelta(two, readers[1] as Reader))
      expect([fromOne, fromTwo]).toEqual([fromJson, fromJson])
    }
    expect(fromJson).toMatchObject({ list: [1, { x: 'é' }] })
    // A client that joins now knows the paths from the table.
    const late = await enter(server, 'dee', { id, ...packed })
    late.send({ type: 'join' })
    const reader = new Reader()
    reader.read((await late.until(isPacked)).at(-1))
    await json.act('assign', { path: ['score'], value: 7 })
    expect(await nextDelta(late, reader)).toMatchObject({ score: 7 })
    for (const client of [json, one, two, late]) await client.close()
  })

  test('[ROOM-ENCODING-2] a packed action is answered like one in JSON, and validated like it', async () => {
    const id = newRoomId()
    const ann = await join(server, 'ann', { id, ...packed })
    ann.sendFrame(pack([2, 'assign', 'r1', { path: ['score'], value: 3 }]))
    expect(await ann.nextOf('action_result')).toMatchObject({ requestId: 'r1', actionType: 'assign' })
    ann.sendFrame(pack([2, 'missing', 'r2', {}]))
    expect(await ann.nextOf('action_error')).toMatchObject({ requestId: 'r2', code: 'NO_HANDLER' })
    ann.sendFrame(pack([2, 7, 'r3', {}]))
    expect(await ann.nextOf('action_error')).toMatchObject({ requestId: 'r3', code: 'INVALID_ACTION' })
    await ann.close()
  })

  const bad: readonly (readonly [string, Uint8Array<ArrayBuffer>])[] = [
    ['a frame that ends early', pack([2, 'assign', 'r1', 'abc']).slice(0, -1)],
    ['a huge length', Uint8Array.from([0x94, 2, 0xdb, 0xff, 0xff, 0xff, 0xff])],
    ['invalid UTF-8', Uint8Array.from([0x94, 2, 0xa2, 0xc3, 0x28, 0xa1, 0x61, 0xc0])],
    ['an empty frame', new Uint8Array()],
    ['another message', pack([1, 'assign', 'r1', {}])],
    ['an object', pack({ type: 'send' })],
  ]

  test('[ROOM-ENCODING-3] a binary frame that is no valid message ends the socket and changes nothing', async () => {
    const id = newRoomId()
    const bob = await join(server, 'bob', { id })
    for (const [, frame] of bad) {
      const ann = await join(server, 'ann', { id, ...packed })
      ann.sendFrame(frame)
      expect(await ann.nextOf('error')).toMatchObject({ code: 'INVALID_JSON' })
      expect((await ann.closed).code).toBe(4000)
    }
    const ann = await join(server, 'ann', { id })
    ann.sendFrame(pack([2, 'assign', 'r1', { path: ['score'], value: 3 }]))
    expect(await ann.nextOf('error')).toMatchObject({ code: 'INVALID_JSON' })
    expect((await ann.closed).code).toBe(4000)
    await bob.act('assign', { path: ['other'], value: 1 })
    expect((await bob.nextOf('shared_delta')).delta).not.toHaveProperty('score')
    await bob.close()
  })

  test('[ROOM-ENCODING-4] the encoding is negotiated in the first auth', async () => {
    const id = newRoomId()
    const socket = await openSocket(server.url, roomPath('game', id))
    socket.send({ type: 'auth', token: await server.token('ann'), encoding: 'xml' } as object)
    expect((await socket.next()).type).toBe('auth_error')
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'AUTH_FAILED' })
    expect((await socket.closed).code).toBe(4002)
    const other = await openSocket(server.url, roomPath('game', id))
    other.send({ type: 'auth', token: await server.token('ann'), encoding: 'msgpack', caps: ['multi', 'resume'] })
    expect(await other.expect('auth_success')).toMatchObject({ encoding: 'msgpack', caps: ['resume'] })
    await other.close()
  })
})

test('packed deltas are read as they were written, whatever the number of paths', () => {
  const delta = fc.dictionary(
    fc.integer({ min: 0, max: 6000 }).map((at) => `p.${at}`),
    fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value))),
    { maxKeys: 40 },
  )
  const large = Object.fromEntries(Array.from({ length: packedPathsMax - 5 }, (_, at) => [`q.${at}`, at]))
  const huge = Object.fromEntries(Array.from({ length: packedPathsMax + 1 }, (_, at) => [`r.${at}`, at]))
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 20, arbitrary: delta }, fc.constant(large), fc.constant(huge))),
      (deltas) => {
        const [deltasOut, reader] = [new PackedDeltas(), new Reader()]
        for (const [at, one] of deltas.entries()) {
          const text = JSON.stringify({ type: 'shared_delta', delta: one, version: at })
          const read: unknown[] = []
          deltasOut.send(text as never, (frame) => {
            if (typeof frame === 'string') read.push(JSON.parse(frame).delta)
            else {
              const found = reader.read(unpack(frame, 64) as readonly unknown[])
              if (found) read.push(found)
            }
          })
          expect(read).toEqual([one])
        }
      },
    ),
    { numRuns: 60 },
  )
})
