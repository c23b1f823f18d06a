/**
 * The protocols of the competitors, as bytes: how players send actions, and how received messages are classified. All
 * competitors use the same client, so that the cost of a client does not distort the comparison. Deltas are not parsed.
 */
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { packedKinds, type RoomCapability } from '../../packages/server/src/features/rooms/protocol.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { tokenSecret } from '../setup/processes.ts'

export type TransportName = 'plinth' | 'plinth-msgpack' | 'plinth-batch' | 'colyseus' | 'socket-io'

/** A player before the socket is open. */
export interface Seat {
  readonly port: number
  /** The namespace, which defines how rooms are saved. Only Plinth has several. */
  readonly namespace: string
  readonly room: string
  /** Unique within the run. */
  readonly player: string
}

/** Kinds of received messages. Any other value is the number of the action that the message is the result of. */
export const messageKinds = { joined: -1, delta: -2, other: -3, rejected: -4 } as const

type Send = (message: string | Buffer) => void

export interface Transport {
  /** The path to open the socket at. */
  findPath(seat: Seat): Promise<string>
  /** Called when the socket is open. */
  begin(seat: Seat, send: Send): void
  /** Classifies a message, and answers those of the handshake and heartbeats. Throws for an unexpected message. */
  receive(bytes: Buffer, start: number, end: number, send: Send): number
  /** A move to `number`, below 32,768. Its result must be the same number. */
  act(number: number): string | Buffer
}

const textOf = (bytes: Buffer, start: number, end: number): string => bytes.toString('latin1', start, end)

/** The number that starts at `start`. */
function digitsAt(bytes: Buffer, start: number): number {
  let number = 0
  for (let at = start; ; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > 9) return number
    number = number * 10 + digit
  }
}

const openBrace = 0x7b

/** A packed message: an array whose first element is its kind. */
function packedKind(bytes: Buffer, start: number): number {
  const [head, long] = [bytes[start] ?? 0, bytes[start + 3]]
  return (head === 0xdc ? long : bytes[start + 1]) === packedKinds.sharedDelta ? messageKinds.delta : messageKinds.other
}

function createPlinthTransport(encoding: 'json' | 'msgpack', caps: readonly RoomCapability[] = []): Transport {
  const tokens = createTokens(createFirstSigningKey(tokenSecret), systemClock)
  const resultStart = '{"type":"action_result","requestId":"'
  const startOf = { shared: '{"type":"shared_delta"', sync: '{"type":"sync"', result: resultStart }
  const begins = (bytes: Buffer, start: number, end: number, text: string): boolean =>
    end - start >= text.length && textOf(bytes, start, start + text.length) === text

  return {
    findPath: async ({ namespace, room }) => `/api/room?namespace=${namespace}&id=${room}`,
    begin: ({ player }, send) =>
      send(JSON.stringify({ type: 'auth', token: tokens.signAccess({ id: player }), encoding, caps })),
    receive(bytes, start, end, send) {
      if (bytes[start] !== openBrace) return packedKind(bytes, start)
      if (begins(bytes, start, end, startOf.result)) {
        const number = digitsAt(bytes, start + resultStart.length)
        const rest = `${number}","result":${number},"actionType":"move"}`
        const text = textOf(bytes, start + resultStart.length, end)
        if (text !== rest) throw new Error(resultStart + text)
        return number
      }
      if (begins(bytes, start, end, startOf.shared)) return messageKinds.delta
      if (begins(bytes, start, end, startOf.sync)) return messageKinds.joined
      const text = textOf(bytes, start, end)
      if (text.startsWith('{"type":"auth_success"')) send('{"type":"join"}')
      else if (text.includes('"RATE_LIMITED"')) return messageKinds.rejected
      else if (/^\{"type":"(?:error|auth_error|action_error|kicked)"/.test(text)) throw new Error(text)
      return messageKinds.other
    },
    act: (number) => `{"type":"send","actionType":"move","payload":{"x":${number},"y":7},"requestId":"${number}"}`,
  }
}

/** Socket.IO 5 over Engine.IO 4: digits for the kinds of packets, then JSON. */
const socketIoTransport: Transport = {
  findPath: async ({ room }) => `/socket.io/?EIO=4&transport=websocket&arena=${room}`,
  begin() {},
  receive(bytes, start, end, send) {
    const kind = textOf(bytes, start, Math.min(start + 2, end))
    if (kind === '43') {
      const number = digitsAt(bytes, start + 2)
      if (textOf(bytes, start + 2, end) !== `${number}[${number}]`) throw new Error(textOf(bytes, start, end))
      return number
    }
    if (kind === '42') return textOf(bytes, start, start + 9) === '42["delta' ? messageKinds.delta : messageKinds.joined
    if (kind[0] === '0') send('40')
    else if (kind[0] === '2') send('3')
    else if (kind !== '40') throw new Error(textOf(bytes, start, end))
    return messageKinds.other
  },
  act: (number) => `42${number}["move",{"x":${number},"y":7}]`,
}

/** Message codes of Colyseus 0.18. */
const colyseus = { joinRoom: 10, error: 11, state: 14, patch: 15, request: 21, response: 22 } as const

/** Binary: a code, then numbers of Colyseus' schema (little-endian) or MessagePack (big-endian). */
const colyseusTransport: Transport = {
  async findPath({ port, room }) {
    const response = await fetch(`http://127.0.0.1:${port}/matchmake/joinOrCreate/arena`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ arena: room }),
    })
    if (!response.ok) throw new Error(`The room was not joined: ${response.status} ${await response.text()}`)
    const seat = (await response.json()) as { processId: string; roomId: string; sessionId: string }
    return `/${seat.processId}/${seat.roomId}?sessionId=${seat.sessionId}`
  },
  begin() {},
  receive(bytes, start, end, send) {
    switch (bytes[start]) {
      case colyseus.response: {
        const length = bytes[start + 1] === 0xcd ? 3 : bytes[start + 1] === 0xcc ? 2 : 1
        const number = length === 1 ? bytes[start + 1] : bytes.readUIntLE(start + 2, length - 1)
        const isRight = bytes[start + 1 + length] === 0 && packedAt(bytes, start + 2 + length) === number
        if (number === undefined || !isRight) throw new Error(`Wrong result: ${bytes.toString('hex', start, end)}`)
        return number
      }
      case colyseus.patch:
        return messageKinds.delta
      case colyseus.state:
        return messageKinds.joined
      case colyseus.joinRoom:
        send(Buffer.from([colyseus.joinRoom]))
        return messageKinds.other
      case colyseus.error:
        throw new Error(textOf(bytes, start, end))
      default:
        return messageKinds.other
    }
  },
  act(number) {
    const [low, high] = [number & 0xff, number >> 8]
    // The request's number, the word `move`, and [number, 7].
    return Buffer.from([colyseus.request, 0xcd, low, high, 0xa4, 0x6d, 0x6f, 0x76, 0x65, 0x92, 0xcd, high, low, 7])
  },
}

/** A number below 65,536 in MessagePack. */
function packedAt(bytes: Buffer, at: number): number | undefined {
  const first = bytes[at]
  if (first === 0xcc) return bytes[at + 1]
  return first === 0xcd ? bytes.readUInt16BE(at + 1) : first
}

export function createTransport(name: TransportName): Transport {
  switch (name) {
    case 'plinth':
      return createPlinthTransport('json')
    case 'plinth-msgpack':
      return createPlinthTransport('msgpack')
    case 'plinth-batch':
      return createPlinthTransport('msgpack', ['batch'])
    case 'colyseus':
      return colyseusTransport
    case 'socket-io':
      return socketIoTransport
  }
}
