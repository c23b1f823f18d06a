/**
 * Statements on one connection, in the extended protocol. `pg` opens and authenticates the connection; from then on
 * this reads and writes its socket, because `pg` asks for the columns of every execution, sets a timer for each, and
 * cannot send several statements as one segment. The statements of a tick leave in one write, and replies arrive in
 * order.
 */
import type pg from 'pg'
import { createRowLayout, DataRow, type RowLayout } from './data-row.ts'
import { MessageReader, messageCode, readColumns, readError, readNotice, readTag } from './message-reader.ts'
import { MessageWriter, type Parameter, toParameter } from './message-writer.ts'

/** A statement with `$1`, `$2`…; the name identifies the text on every connection. Without a name it is not kept. */
export interface Prepared {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  /** Time to wait for the reply, in milliseconds; `statementAnswerMs` by default. */
  readonly answerMs?: number
  /** Whether the rows of the reply are `DataRow`s. */
  readonly keepsRows?: boolean
}

export interface Answer {
  /** Command tag of the reply: `INSERT`, `COMMIT`… */
  readonly command: string
  readonly rows: readonly unknown[]
  readonly changed: number
}

/** The statement was not run, because an earlier one of its segment failed. */
export class SkippedStatement extends Error {
  constructor() {
    super('The statement was skipped after a failed one')
  }
}

/**
 * What a failed statement takes with it. `own`: nothing. `tick`: the statements sent after it in its tick. `alike`: the
 * same statements with other values, sent after it in its tick, which are answered together.
 */
export type Segment = 'own' | 'tick' | 'alike'

/** Receives the reply to a statement. */
export interface Receiver {
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** A statement that the server knows, or is about to. */
interface Known {
  /** Whether the server has confirmed it. */
  isPrepared: boolean
  /** Null for a statement without rows. */
  layout: RowLayout | null
}

interface Sent {
  readonly name: string
  readonly receiver: Receiver
  readonly known: Known
  readonly deadlineMs: number
  readonly keepsRows: boolean
  readonly rows: unknown[]
  command: string
  changed: number
  /** Whether it is the last of its segment. */
  isLast: boolean
}

interface Socket {
  readonly writable: boolean
  on(event: 'data', listener: (chunk: Buffer) => void): void
  removeAllListeners(event: 'data'): void
  write(bytes: Uint8Array): void
  destroy(): void
}

export class Wire {
  private readonly socket: Socket
  private readonly writer = new MessageWriter()
  private readonly known = new Map<string, Known>()
  /** Statements without a reply, from `head`. */
  private sent: Sent[] = []
  private head = 0
  private isFlushing = false
  private failure: unknown = null
  /** Status of the transaction: `I` idle, `T` open, `E` failed. */
  private status = 'I'

  constructor(private readonly client: pg.Client) {
    this.socket = (client as unknown as { connection: { stream: Socket } }).connection.stream
    this.socket.removeAllListeners('data')
    const reader = new MessageReader((code, bytes, start, end) => this.receive(code, bytes, start, end))
    this.socket.on('data', (chunk) => reader.read(chunk))
    client.on('error', (error) => this.fail(error))
    client.on('end', () => this.fail(new Error('The connection has ended')))
  }

  /** Names that the server has prepared: it keeps them all. */
  get statements(): number {
    return this.known.size
  }

  get isInTransaction(): boolean {
    return this.status !== 'I'
  }

  /** Sends a statement with the others of this tick. Rejects with `TypeError` for a value that cannot be sent. */
  send(
    { name, text, values, keepsRows = false }: Prepared,
    segment: Segment,
    deadlineMs: number,
    receiver: Receiver,
  ): void {
    if (this.failure !== null) {
      receiver.reject(this.failure)
      return
    }
    let parameters: Parameter[]
    try {
      parameters = values.map(toParameter)
    } catch (error) {
      receiver.reject(error)
      return
    }
    if (segment === 'own' || (segment === 'alike' && this.sent.at(-1)?.name !== name)) this.closeSegment()
    let known = this.known.get(name)
    if (!known) {
      known = { isPrepared: false, layout: null }
      if (name !== '') this.known.set(name, known)
      this.writer.prepare(name, text)
    }
    this.writer.execute(name, parameters)
    const reply = { keepsRows, rows: [], command: '', changed: 0, isLast: false }
    this.sent.push({ name, receiver, known, deadlineMs, ...reply })
    if (segment === 'own') this.closeSegment()
    if (this.isFlushing) return
    this.isFlushing = true
    setImmediate(() => this.flush())
  }

  /** Closes the connection if a reply is overdue; it may be in the middle of one. */
  expire(nowMs: number): void {
    const first = this.sent[this.head]
    if (first === undefined || nowMs < first.deadlineMs) return
    this.fail(new Error('The server did not answer in time'))
    this.socket.destroy()
  }

  /** Ends the segment of the last statement, if it is open. */
  private closeSegment(): void {
    const last = this.sent.at(-1)
    if (!last || last.isLast) return
    last.isLast = true
    this.writer.sync()
  }

  private flush(): void {
    this.isFlushing = false
    this.closeSegment()
    if (this.socket.writable) this.socket.write(this.writer.take())
    else this.fail(new Error('The connection has ended'))
  }

  private fail(error: unknown): void {
    if (this.failure !== null) return
    this.failure = error
    const lost = this.sent.slice(this.head)
    this.sent = []
    this.head = 0
    for (const { receiver, command } of lost) if (command !== refused) receiver.reject(error)
  }

  private next(): void {
    this.head += 1
    // Moves the rest only once it is smaller than what is dropped.
    if (this.head < 64 || this.head * 2 < this.sent.length) return
    this.sent.splice(0, this.head)
    this.head = 0
  }

  private receive(code: number, bytes: Buffer, start: number, end: number): void {
    const current = this.sent[this.head]
    switch (code) {
      case messageCode.dataRow:
        if (current?.known.layout) current.rows.push(rowOf(current, current.known.layout, bytes, start, end))
        return
      case messageCode.commandComplete: {
        if (!current) return
        const { command, changed } = readTag(bytes, start, end)
        current.command = command
        current.changed = changed
        // The last one is complete once its segment is: a connection is free, or in a transaction, from then on.
        if (!current.isLast) this.complete(current)
        return
      }
      case messageCode.emptyQuery:
        if (current) current.command = 'EMPTY'
        return
      case messageCode.parseComplete:
        if (current) current.known.isPrepared = true
        return
      case messageCode.rowDescription:
        if (current) current.known.layout = createRowLayout(readColumns(bytes, start))
        return
      case messageCode.readyForQuery:
        this.status = String.fromCharCode(bytes[start] as number)
        this.endSegment()
        return
      case messageCode.error:
        this.refuse(readError(bytes, start, end))
        return
      case messageCode.notice:
        this.client.emit('notice', { message: readNotice(bytes, start) })
    }
  }

  private complete({ receiver, command, rows, changed }: Sent): void {
    this.next()
    receiver.resolve({ command, rows, changed })
  }

  /** The server skips the rest of the segment. */
  private refuse(error: Error): void {
    const current = this.sent[this.head]
    // Sent while no reply is awaited: the session is about to end.
    if (!current) {
      this.client.emit('error', error)
      return
    }
    this.forget(current)
    current.receiver.reject(error)
    current.command = refused
  }

  private endSegment(): void {
    for (let one = this.sent[this.head]; one; one = this.sent[this.head]) {
      if (one.command === '') this.skip(one)
      else if (one.command === refused) this.next()
      else this.complete(one)
      if (one.isLast) return
    }
  }

  private skip(one: Sent): void {
    this.forget(one)
    this.next()
    one.receiver.reject(new SkippedStatement())
  }

  /** The statement may not have been prepared. */
  private forget({ name, known }: Sent): void {
    if (!known.isPrepared && this.known.get(name) === known) this.known.delete(name)
  }
}

const rowOf = ({ keepsRows }: Sent, layout: RowLayout, bytes: Buffer, start: number, end: number): unknown =>
  keepsRows ? new DataRow(layout, bytes, start, end) : layout.decode(bytes, start)

/** In place of the command of a statement that failed. */
const refused = 'ERROR'
