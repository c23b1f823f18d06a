/**
 * A WebSocket for tests: messages are kept in order until the test reads them. Every message that arrives is compared
 * with the protocol of the path.
 */
import { connect } from 'node:net'
import { unpack } from '../../src/base/text/msgpack.ts'
import type { HeaderList } from './client.ts'
import { checkMessage, observe, protocolOf } from './protocol.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely; a wrong guess fails the test.
export type Message = any

export interface TestSocket {
  send(message: object): void
  /** Sends a raw frame: text for a string, binary for bytes. */
  sendFrame(data: string | Uint8Array<ArrayBuffer>): void
  /** The oldest message not yet taken, an array for a binary frame; rejects when the socket closes without one. */
  next(): Promise<Message>
  /** The next message, which must be of this type. */
  expect(type: string): Promise<Message>
  /** Every message up to the first one that matches, inclusive. */
  until(isLast: (message: Message) => boolean): Promise<Message[]>
  /** Messages that have arrived and are not yet taken. */
  readonly waiting: readonly Message[]
  /** Resolves when the socket has closed. */
  readonly closed: Promise<{ code: number; reason: string }>
  /** Closes from this side. */
  close(): Promise<void>
}

/** Opens a socket; rejects when the upgrade is refused. */
export async function openSocket(serverUrl: string, path: string, headers: HeaderList = {}): Promise<TestSocket> {
  const socket = new WebSocket(serverUrl.replace('http', 'ws') + path, { headers } as unknown as string[])
  const messages: Message[] = []
  let wake: (() => void) | null = null
  let isClosed = false
  const protocol = protocolOf(path)
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  socket.binaryType = 'arraybuffer'
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') {
      messages.push(unpack(new Uint8Array(data), 64))
      wake?.()
      return
    }
    const message = JSON.parse(String(data))
    // Thrown here, it fails the test that runs, whether or not it reads the message.
    if (protocol) checkMessage(protocol, 'server', message)
    messages.push(message)
    wake?.()
  }
  socket.onclose = ({ code, reason }) => {
    isClosed = true
    closed.resolve({ code, reason })
    wake?.()
  }
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error('the socket was refused'))
  })

  async function next(): Promise<Message> {
    while (messages.length === 0) {
      if (isClosed) throw new Error(`the socket closed: ${JSON.stringify(await closed.promise)}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return messages.shift()
  }

  return {
    send(message) {
      if (protocol) observe(protocol, 'client', (message as Message).type)
      socket.send(JSON.stringify(message))
    },
    sendFrame: (data) => socket.send(data),
    next,
    async expect(type) {
      const message = await next()
      if (message.type !== type) throw new Error(`expected ${type}, got ${JSON.stringify(message)}`)
      return message
    },
    async until(isLast) {
      const found: Message[] = []
      for (;;) {
        const message = await next()
        found.push(message)
        if (isLast(message)) return found
      }
    },
    waiting: messages,
    closed: closed.promise,
    async close() {
      socket.close()
      await closed.promise
    },
  }
}

/** The data received on a raw socket. */
export interface Received {
  readonly messages: readonly Message[]
  readonly pings: number
  /** The close code; null until a close frame is received. */
  readonly closeCode: number | null
}

/** A raw socket, whose frames and reading are controlled by the test. */
export interface RawSocket {
  write(bytes: Uint8Array): void
  /** Reads until the condition is met; rejects if the connection ends first. */
  readUntil(isEnough: (received: Received) => boolean): Promise<Received>
  /** Stops reading. */
  pause(): void
  /** Reads until the connection ends. */
  readToEnd(): Promise<Received>
  destroy(): void
}

/** Opens a raw socket; resolves once it is upgraded, with reading paused. */
export async function openRawSocket(serverUrl: string, path: string): Promise<RawSocket> {
  const { hostname, port } = new URL(serverUrl)
  const socket = connect(Number(port), hostname)
  const received = { messages: [] as Message[], pings: 0, closeCode: null as number | null }
  let rest: Buffer = Buffer.alloc(0)
  let isUpgraded = false
  let wake: (() => void) | null = null
  socket.on('error', () => undefined)
  socket.on('close', () => wake?.())
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data as Buffer])
    if (isUpgraded) rest = parseFrames(rest, received)
    wake?.()
  })
  async function until(isEnough: () => boolean): Promise<void> {
    socket.resume()
    while (!isEnough()) {
      if (socket.destroyed) throw new Error('the connection ended')
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const upgrade = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13']
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
  socket.write([`GET ${path} HTTP/1.1`, `Host: ${hostname}:${port}`, ...upgrade, key, '', ''].join('\r\n'))
  await until(() => rest.includes('\r\n\r\n'))
  socket.pause()
  if (!rest.toString().startsWith('HTTP/1.1 101')) throw new Error(rest.toString())
  isUpgraded = true
  rest = parseFrames(rest.subarray(rest.indexOf('\r\n\r\n') + 4), received)
  return {
    write: (bytes) => void socket.write(bytes),
    async readUntil(isEnough) {
      await until(() => isEnough(received))
      return received
    },
    pause: () => void socket.pause(),
    async readToEnd() {
      await until(() => socket.destroyed)
      return received
    },
    destroy: () => void socket.destroy(),
  }
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9 } as const

/** A frame as a client sends it: masked, here with zeros. */
export function frame(
  opcode: keyof typeof opcodes,
  payload: string | Uint8Array,
  options: { readonly isLast?: boolean } = {},
): Buffer {
  const bytes = Buffer.from(payload)
  const head = Buffer.alloc(bytes.length < 126 ? 6 : bytes.length < 65_536 ? 8 : 14)
  head[0] = (options.isLast === false ? 0 : 0x80) | opcodes[opcode]
  if (bytes.length < 126) head[1] = 0x80 | bytes.length
  else if (bytes.length < 65_536) {
    head[1] = 0x80 | 126
    head.writeUInt16BE(bytes.length, 2)
  } else {
    head[1] = 0x80 | 127
    head.writeBigUInt64BE(BigInt(bytes.length), 2)
  }
  return Buffer.concat([head, bytes])
}

/** Parses the complete frames at the start of the bytes; returns the rest. */
function parseFrames(bytes: Buffer, into: { messages: Message[]; pings: number; closeCode: number | null }): Buffer {
  let at = 0
  while (at + 2 <= bytes.length) {
    const opcode = (bytes[at] as number) & 15
    const short = (bytes[at + 1] as number) & 127
    const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10)
    if (start > bytes.length) break
    const length =
      short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2))
    if (start + length > bytes.length) break
    const payload = bytes.subarray(start, start + length)
    if (opcode === opcodes.text) into.messages.push(JSON.parse(payload.toString()))
    if (opcode === opcodes.ping) into.pings += 1
    if (opcode === opcodes.close) into.closeCode = payload.readUInt16BE(0)
    at = start + length
  }
  return bytes.subarray(at)
}
