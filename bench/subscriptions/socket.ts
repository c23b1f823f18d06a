/**
 * A WebSocket client for the benches of subscriptions and rooms. Implements the subset of RFC 6455 that they need over
 * a raw socket, so that the clients cost less CPU than the server.
 */

/** Events of a socket. */
export interface LiveSocketEvents {
  /** Called with a text or binary message: the bytes from `start` to `end`, valid until the call returns. */
  onMessage(socket: LiveSocket, bytes: Buffer, start: number, end: number): void
  /** Called when the server closes the connection or it fails; not after `close()`. */
  onEnd(socket: LiveSocket, why: string): void
}

const text = 1
const binary = 2
const close = 8
const ping = 9
const pong = 10
/** Clients must mask frames; a mask of zeros leaves the payload unchanged. */
const mask = Buffer.alloc(4)
/** Any sixteen bytes; the accept header of the response is not verified. */
const handshakeKey = Buffer.alloc(16, 1).toString('base64')

export class LiveSocket {
  #socket: Bun.Socket | null = null
  #unread: Buffer | null = null
  #unsent: Buffer | null = null
  #upgraded: PromiseWithResolvers<void> | null = null

  constructor(
    /** The index of the socket in its group. */
    readonly index: number,
    private readonly events: LiveSocketEvents,
  ) {}

  /** Connects and upgrades. Rejects with the response if the upgrade is refused. */
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

  /** Sends a message of at most 65,535 bytes: a string as text, a buffer as binary. */
  send(message: string | Buffer): void {
    if (typeof message === 'string') this.#frame(text, Buffer.from(message))
    else this.#frame(binary, message)
  }

  /** Stops reading, so that the buffers of both sides fill. */
  pause(): void {
    this.#socket?.pause()
  }

  /** Closes the connection without a close frame. */
  close(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.terminate()
  }

  #end(why: string): void {
    if (this.#socket === null) return
    this.#socket = null
    if (this.#upgraded) this.#upgraded.reject(new Error(why))
    else this.events.onEnd(this, why)
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#unread === null ? chunk : Buffer.concat([this.#unread, chunk])
    this.#unread = null
    if (this.#upgraded === null) this.#readFrames(bytes)
    else this.#readResponse(bytes, this.#upgraded)
  }

  #readResponse(bytes: Buffer, upgraded: PromiseWithResolvers<void>): void {
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
      this.#onFrame((bytes[at] as number) & 0x0f, bytes, start, start + length)
      at = start + length
    }
    if (at < bytes.length) this.#unread = at === 0 ? bytes : bytes.subarray(at)
  }

  #onFrame(opcode: number, bytes: Buffer, start: number, end: number): void {
    if (opcode === text || opcode === binary) this.events.onMessage(this, bytes, start, end)
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
