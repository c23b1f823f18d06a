/**
 * A keep-alive HTTP/1.1 connection of the load generator: sends a prebuilt request and reads the response, whose body
 * has a length or is chunked. `load.ts` validates the responses.
 */
import { ChunkedBody } from './chunked-body.ts'

/** Events of a connection. `body` is null unless it was requested; `bodyBytes` is its length. */
export interface ConnectionEvents {
  answered(connection: Connection, status: number, body: Buffer | null, bodyBytes: number): void
  failed(message: string): void
}

/**
 * Offsets in the last response head. Heads of one server differ only in digits, so checking these offsets first saves a
 * search that would be a seventh of the generator's cost. Shared by the connections of a job.
 */
export interface HeadLayout {
  lengthAt: number
  /** From the end of the length to the end of the head. */
  afterLength: number
}

interface Head {
  /** Null for a chunked body. */
  readonly bodyLength: number | null
  readonly bodyAt: number
}

const colon = 0x3a
const space = 0x20
const lowerH = 0x68
const carriageReturn = 0x0d
const lineFeed = 0x0a
const zero = 0x30
const digitAt = (bytes: Uint8Array, at: number): number => (bytes[at] ?? 0) - zero

export class Connection {
  #socket: Bun.Socket | null = null
  #unsent: Uint8Array | null = null
  /** Whether a request is in flight. */
  #waiting = false
  #keepsBody = false
  /** Bytes of an incomplete head, or null. */
  #head: Buffer | null = null
  #status = 0
  #bodyBytes = 0
  #bodyLeft = 0
  #body: Buffer[] = []
  /** The body of a chunked response that is arriving, or null. */
  #chunked: ChunkedBody | null = null

  constructor(
    private readonly layout: HeadLayout,
    private readonly events: ConnectionEvents,
  ) {}

  /** Connects to a port of this machine. Rejects when no process listens. */
  async open(port: number): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_socket, chunk) => this.#receive(chunk),
        drain: () => {
          if (this.#unsent !== null) this.#write(this.#unsent)
        },
        close: () => {
          if (this.#socket !== null) this.events.failed('The server closed a connection')
        },
        error: (_socket, error) => this.events.failed(`Connection error: ${error.message}`),
      },
    })
  }

  /** Sends a complete request; the next may follow after its response. */
  send(request: Uint8Array, keepsBody: boolean): void {
    this.#waiting = true
    this.#keepsBody = keepsBody
    this.#write(request)
  }

  close(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.end()
  }

  #write(bytes: Uint8Array): void {
    const taken = Math.max(this.#socket?.write(bytes) ?? 0, 0)
    this.#unsent = taken < bytes.length ? bytes.subarray(taken) : null
  }

  #receive(chunk: Buffer): void {
    if (!this.#waiting) this.events.failed('Unexpected response')
    else if (this.#chunked !== null) this.#receiveChunks(this.#chunked, chunk)
    else if (this.#bodyLeft > 0) this.#receiveBody(chunk)
    else this.#receiveHead(this.#head === null ? chunk : Buffer.concat([this.#head, chunk]))
  }

  #receiveHead(bytes: Buffer): void {
    this.#head = null
    let head = readAsRemembered(bytes, this.layout)
    if (head === null) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) {
        this.#head = bytes
        return
      }
      head = readHead(bytes, end, this.layout)
      if (head === null) {
        this.events.failed(`Response without Content-Length: ${bytes.toString('latin1', 0, end)}`)
        return
      }
    }
    this.#status = 100 * digitAt(bytes, 9) + 10 * digitAt(bytes, 10) + digitAt(bytes, 11)
    // The body of an error describes it.
    if (this.#status >= 400) this.#keepsBody = true
    if (head.bodyLength === null) {
      this.#chunked = new ChunkedBody(this.#keepsBody)
      this.#receiveChunks(this.#chunked, bytes.subarray(head.bodyAt))
      return
    }
    this.#bodyBytes = head.bodyLength
    this.#bodyLeft = head.bodyLength
    // Fast path: the response is complete and its body is not needed.
    if (!this.#keepsBody && bytes.length - head.bodyAt === head.bodyLength) {
      this.#bodyLeft = 0
      this.#end(null)
    } else this.#receiveBody(bytes.subarray(head.bodyAt))
  }

  #receiveBody(chunk: Buffer): void {
    this.#bodyLeft -= chunk.length
    if (this.#keepsBody) this.#body.push(chunk)
    if (this.#bodyLeft < 0) this.events.failed('Response is longer than its Content-Length')
    else if (this.#bodyLeft === 0) {
      const body = this.#keepsBody ? Buffer.concat(this.#body) : null
      this.#body = []
      this.#end(body)
    }
  }

  #receiveChunks(chunked: ChunkedBody, bytes: Buffer): void {
    if (!chunked.push(bytes)) return
    this.#chunked = null
    this.#bodyBytes = chunked.bytes
    this.#end(this.#keepsBody ? chunked.data() : null)
  }

  #end(body: Buffer | null): void {
    this.#waiting = false
    this.events.answered(this, this.#status, body, this.#bodyBytes)
  }
}

/** Null when the head has a different layout. */
function readAsRemembered(bytes: Buffer, layout: HeadLayout): Head | null {
  let at = layout.lengthAt
  if (at === 0 || bytes[at - 3] !== lowerH || bytes[at - 2] !== colon || bytes[at - 1] !== space) return null
  let bodyLength = 0
  for (; bytes[at] !== carriageReturn; at++) {
    const digit = digitAt(bytes, at)
    if (digit < 0 || digit > 9) return null
    bodyLength = bodyLength * 10 + digit
  }
  const end = at + layout.afterLength
  const isEnd =
    bytes[end] === carriageReturn &&
    bytes[end + 1] === lineFeed &&
    bytes[end + 2] === carriageReturn &&
    bytes[end + 3] === lineFeed
  return isEnd ? { bodyLength, bodyAt: end + 4 } : null
}

/** Searches the head, and saves its layout; null when it does not delimit the body. */
function readHead(bytes: Buffer, end: number, layout: HeadLayout): Head | null {
  const text = bytes.toString('latin1', 0, end)
  const found = /\r\ncontent-length: (\d+)/i.exec(text)
  if (found === null) return /\r\ntransfer-encoding: chunked/i.test(text) ? { bodyLength: null, bodyAt: end + 4 } : null
  const digits = found[1] as string
  layout.lengthAt = found.index + found[0].length - digits.length
  layout.afterLength = end - layout.lengthAt - digits.length
  return { bodyLength: Number(digits), bodyAt: end + 4 }
}
