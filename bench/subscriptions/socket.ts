/**
 * One WebSocket of the clients of the benches of subscriptions and rooms: the least of RFC 6455 that a server's short
 * messages need, over a raw socket, so that a client costs less than what it measures. What is said is the matter of
 * `live-load` and `rooms-load`.
 */

/** What a socket tells its owner. */
export interface LiveSocketEvents {
  /** A message, of text or not: the bytes from `start` to `end`, good until the call returns. */
  heard(socket: LiveSocket, bytes: Buffer, start: number, end: number): void
  /** The other side has closed it, or worse. Not told of a socket that was closed here. */
  ended(socket: LiveSocket, why: string): void
}

const text = 1
const binary = 2
const close = 8
const ping = 9
const pong = 10
/** A client must mask what it sends; a mask of zeros leaves it readable. */
const mask = Buffer.alloc(4)
/** Any sixteen bytes; nobody checks the answer to it here. */
const handshakeKey = Buffer.alloc(16, 1).toString('base64')

export class LiveSocket {
  #socket: Bun.Socket | null = null
  #unread: Buffer | null = null
  #unsent: Buffer | null = null
  #upgraded: PromiseWithResolvers<void> | null = null

  constructor(
    /** Its place among the sockets of its group. */
    readonly index: number,
    private readonly events: LiveSocketEvents,
  ) {}

  /** Connects and upgrades. Rejects with the answer where it is refused. */
  async open(port: number, path: string): Promise<void> {
    const upgraded = Promise.withResolvers<void>()
    this.#upgraded = upgraded
    this.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_socket, chunk) => this.#receive(chunk),
        drain: () => this.#flush(),
        close: () => this.#end('The connection was closed'),
        error: (_socket, error) => this.#end(error.message),
      },
    })
    this.#write(
      Buffer.from(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${handshakeKey}\r\n\r\n`,
      ),
    )
    await upgraded.promise
  }

  /** Sends a message of at most 65,535 bytes: a string as text, bytes as they are. */
  send(message: string | Buffer): void {
    if (typeof message === 'string') this.#frame(text, Buffer.from(message))
    else this.#frame(binary, message)
  }

  /** Reads nothing from now on: what comes fills the buffers of both machines. */
  pause(): void {
    this.#socket?.pause()
  }

  /** Goes without a word. */
  close(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.terminate()
  }

  #end(why: string): void {
    if (this.#socket === null) return
    this.#socket = null
    if (this.#upgraded) this.#upgraded.reject(new Error(why))
    else this.events.ended(this, why)
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#unread === null ? chunk : Buffer.concat([this.#unread, chunk])
    this.#unread = null
    if (this.#upgraded === null) this.#readFrames(bytes)
    else this.#readAnswer(bytes, this.#upgraded)
  }

  #readAnswer(bytes: Buffer, upgraded: PromiseWithResolvers<void>): void {
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) {
      this.#unread = bytes
      return
    }
    this.#upgraded = null
    if (bytes.toString('latin1', 9, 12) === '101') {
      upgraded.resolve()
      this.#readFrames(bytes.subarray(end + 4))
    } else {
      upgraded.reject(new Error(bytes.toString('latin1')))
      this.close()
    }
  }

  #readFrames(bytes: Buffer): void {
    let at = 0
    while (this.#socket !== null && bytes.length - at >= 2) {
      const short = (bytes[at + 1] as number) & 0x7f
      const headLength = short < 126 ? 2 : short === 126 ? 4 : 10
      if (bytes.length - at < headLength) break
      const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : bytes.readUInt32BE(at + 6)
      const start = at + headLength
      if (bytes.length - start < length) break
      this.#heard((bytes[at] as number) & 0x0f, bytes, start, start + length)
      at = start + length
    }
    if (at < bytes.length) this.#unread = at === 0 ? bytes : bytes.subarray(at)
  }

  #heard(opcode: number, bytes: Buffer, start: number, end: number): void {
    if (opcode === text || opcode === binary) this.events.heard(this, bytes, start, end)
    else if (opcode === ping) this.#frame(pong, bytes.subarray(start, end))
    else if (opcode === close) this.#end(`Closed with ${end - start >= 2 ? bytes.readUInt16BE(start) : 'no code'}`)
  }

  #frame(opcode: number, content: Buffer): void {
    const { length } = content
    const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff]
    this.#write(Buffer.concat([Buffer.from([0x80 | opcode, ...size]), mask, content]))
  }

  #write(bytes: Buffer): void {
    this.#unsent = this.#unsent === null ? bytes : Buffer.concat([this.#unsent, bytes])
    this.#flush()
  }

  #flush(): void {
    const bytes = this.#unsent
    if (bytes === null) return
    const taken = Math.max(this.#socket?.write(bytes) ?? 0, 0)
    this.#unsent = taken < bytes.length ? bytes.subarray(taken) : null
  }
}
