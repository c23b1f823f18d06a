/**
 * What players say to each competitor of the rooms bench and how its messages are told apart, as bytes: one client for
 * all of them, so that none has a dearer one. Contents of deltas are not looked at.
 */
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { tokenSecret } from '../setup/processes.ts'

export type TransportName = 'plinth' | 'colyseus' | 'socket-io'

/** A player before the socket is open. */
export interface Seat {
  readonly port: number
  /** Rooms of the server that are saved in one way. Only Plinth has several. */
  readonly namespace: string
  readonly room: string
  /** Unlike that of any other player of the run. */
  readonly player: string
}

/** What a message is; anything else is the number of the action that it is the result of. */
export const heard = { joined: -1, delta: -2, other: -3, refused: -4 } as const

type Say = (message: string | Buffer) => void

export interface Transport {
  /** The path to open the socket at. */
  findPath(seat: Seat): Promise<string>
  /** To be called when it is open. */
  begin(seat: Seat, say: Say): void
  /** Answers what has to be answered for the player to come in and to stay. Throws for what must not come. */
  hear(bytes: Buffer, start: number, end: number, say: Say): number
  /** Moves to `number`, which the result has to be; below 32,768. */
  act(number: number): string | Buffer
}

const textOf = (bytes: Buffer, start: number, end: number): string => bytes.toString('latin1', start, end)

/** Digits from `start` to whatever ends them. */
function digitsAt(bytes: Buffer, start: number): number {
  let number = 0
  for (let at = start; ; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > 9) return number
    number = number * 10 + digit
  }
}

function createPlinthTransport(): Transport {
  const tokens = createTokens(createFirstSigningKey(tokenSecret), systemClock)
  const resultStart = '{"type":"action_result","requestId":"'
  const startOf = { shared: '{"type":"shared_delta"', sync: '{"type":"sync"', result: resultStart }
  const begins = (bytes: Buffer, start: number, end: number, text: string): boolean =>
    end - start >= text.length && textOf(bytes, start, start + text.length) === text

  return {
    findPath: async ({ namespace, room }) => `/api/room?namespace=${namespace}&id=${room}`,
    begin: ({ player }, say) => say(JSON.stringify({ type: 'auth', token: tokens.signAccess({ id: player }) })),
    hear(bytes, start, end, say) {
      if (begins(bytes, start, end, startOf.result)) {
        const number = digitsAt(bytes, start + resultStart.length)
        if (!textOf(bytes, start, end).endsWith(`"result":${number}}`)) throw new Error(textOf(bytes, start, end))
        return number
      }
      if (begins(bytes, start, end, startOf.shared)) return heard.delta
      if (begins(bytes, start, end, startOf.sync)) return heard.joined
      const text = textOf(bytes, start, end)
      if (text.startsWith('{"type":"auth_success"')) say('{"type":"join"}')
      else if (text.includes('"RATE_LIMITED"')) return heard.refused
      else if (/^\{"type":"(?:error|auth_error|action_error|kicked)"/.test(text)) throw new Error(text)
      return heard.other
    },
    act: (number) => `{"type":"send","actionType":"move","payload":{"x":${number},"y":7},"requestId":"${number}"}`,
  }
}

/** Engine.IO 4 with Socket.IO 5 in it: digits for the kinds, then JSON. */
const socketIoTransport: Transport = {
  findPath: async ({ room }) => `/socket.io/?EIO=4&transport=websocket&arena=${room}`,
  begin() {},
  hear(bytes, start, end, say) {
    const kind = textOf(bytes, start, Math.min(start + 2, end))
    if (kind === '43') {
      const number = digitsAt(bytes, start + 2)
      if (textOf(bytes, start + 2, end) !== `${number}[${number}]`) throw new Error(textOf(bytes, start, end))
      return number
    }
    if (kind === '42') return textOf(bytes, start, start + 9) === '42["delta' ? heard.delta : heard.joined
    if (kind[0] === '0') say('40')
    else if (kind[0] === '2') say('3')
    else if (kind !== '40') throw new Error(textOf(bytes, start, end))
    return heard.other
  },
  act: (number) => `42${number}["move",{"x":${number},"y":7}]`,
}

/** Numbers of the codes of Colyseus 0.18. */
const colyseus = { joinRoom: 10, error: 11, state: 14, patch: 15, request: 21, response: 22 } as const

/** Binary: a code, then numbers of Colyseus' schema (little end first) or MessagePack (big end first). */
const colyseusTransport: Transport = {
  async findPath({ port, room }) {
    const response = await fetch(`http://127.0.0.1:${port}/matchmake/joinOrCreate/arena`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ arena: room }),
    })
    if (!response.ok) throw new Error(`No seat: ${response.status} ${await response.text()}`)
    const seat = (await response.json()) as { processId: string; roomId: string; sessionId: string }
    return `/${seat.processId}/${seat.roomId}?sessionId=${seat.sessionId}`
  },
  begin() {},
  hear(bytes, start, end, say) {
    switch (bytes[start]) {
      case colyseus.response: {
        const length = bytes[start + 1] === 0xcd ? 3 : bytes[start + 1] === 0xcc ? 2 : 1
        const number = length === 1 ? bytes[start + 1] : bytes.readUIntLE(start + 2, length - 1)
        const isRight = bytes[start + 1 + length] === 0 && packedAt(bytes, start + 2 + length) === number
        if (number === undefined || !isRight) throw new Error(`Wrong result: ${bytes.toString('hex', start, end)}`)
        return number
      }
      case colyseus.patch:
        return heard.delta
      case colyseus.state:
        return heard.joined
      case colyseus.joinRoom:
        say(Buffer.from([colyseus.joinRoom]))
        return heard.other
      case colyseus.error:
        throw new Error(textOf(bytes, start, end))
      default:
        return heard.other
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

export const createTransport = (name: TransportName): Transport =>
  name === 'plinth' ? createPlinthTransport() : name === 'colyseus' ? colyseusTransport : socketIoTransport
