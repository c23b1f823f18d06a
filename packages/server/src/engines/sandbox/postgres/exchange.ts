/**
 * One statement over a connection to PostgreSQL, in its extended protocol: begins a transaction, reads the schema's
 * counters, runs the statement, and reads the counters again, all sent in one batch. The protocol accepts one statement
 * and limits its rows. A read ends with the batch, which is an implicit transaction; `postgres` commits or rolls back
 * the others.
 */
import type { Connection, Submittable } from 'pg'
import { sqlRawBytesMin } from '../../../limits/resources.ts'
import { EngineError } from '../../sql/error.ts'
import { createRows, type Rows } from '../rows.ts'
import { type SandboxAnswer, type SandboxLimits, StatementError } from '../sandbox.ts'
import type { Counting } from './counts.ts'
import type { PostgresStatement } from './statement.ts'
import { createReader } from './values.ts'

/** Members of the library's connection that its types lack. */
interface Wire {
  readonly stream: NodeJS.ReadableStream & { cork(): void; uncork(): void; destroy(): void }
  parse(message: { text: string }): void
  bind(message: { values: readonly (string | null)[] }): void
  describe(message: { type: 'P' }): void
  execute(message: { rows?: number }): void
  sync(): void
}

/** The step a reply belongs to, in order; a read starts with the second. */
type Step = 'begin' | 'before' | 'statement' | 'after'
const steps: readonly Step[] = ['begin', 'before', 'statement', 'after']

/** Received bytes per byte of the reply: hidden data arrives too, and binary values arrive as hex. */
const bytesPerAnswerByte = 2

export class Exchange implements Submittable {
  readonly answer: Promise<SandboxAnswer>
  private readonly completion = Promise.withResolvers<SandboxAnswer>()
  private wire: Wire | null = null
  private step: number
  private failure: Error | null = null
  private readers: readonly ((value: string | null) => string)[] = []
  private rows: Rows = createRows([], { rowsMax: 0, answerBytesMax: 0 })
  private changes = 0
  private bytes = 0
  private startMs = 0
  private durationMs = 0
  private readonly counts: Record<'before' | 'after', readonly [number, number]> = { before: [0, 0], after: [0, 0] }

  constructor(
    private readonly statement: PostgresStatement,
    private readonly counting: Counting,
    private readonly limits: Pick<SandboxLimits, 'rowsMax' | 'answerBytesMax'>,
  ) {
    this.answer = this.completion.promise
    this.step = statement.isRead ? 1 : 0
  }

  submit(connection: Connection): void {
    const wire = connection as unknown as Wire
    this.wire = wire
    wire.stream.on('data', this.countBytes)
    this.startMs = performance.now()
    const { text, values, isRead, makesTables } = this.statement
    const countQuery = this.counting.query(makesTables)
    // One write, not one per message.
    wire.stream.cork()
    if (!isRead) send(wire, 'BEGIN', [])
    send(wire, countQuery.text, countQuery.values)
    send(wire, text, values, this.limits.rowsMax + 1)
    send(wire, countQuery.text, countQuery.values)
    wire.sync()
    wire.stream.uncork()
  }

  /** Aborts the exchange; the connection is unusable afterwards. */
  abandon(reason: Error): void {
    this.failure ??= reason
    this.wire?.stream.destroy()
    this.finish()
  }

  /** Received data is buffered, even a single incomplete row. */
  private readonly countBytes = (chunk: string | Uint8Array): void => {
    this.bytes += chunk.length
    const bytesMax = Math.max(sqlRawBytesMin, bytesPerAnswerByte * this.limits.answerBytesMax)
    if (this.bytes > bytesMax)
      this.abandon(new StatementError('query', `The rows are more than ${bytesMax} bytes; add a LIMIT`))
  }

  private get current(): Step {
    return steps[this.step] as Step
  }

  private finish(): void {
    this.wire?.stream.off('data', this.countBytes)
    if (this.failure) {
      this.completion.reject(this.failure)
      return
    }
    const { before, after } = this.counts
    const { changes, durationMs } = this
    // A dropped table's counters disappear from both sums, so the difference may be negative.
    const [rowsRead, rowsWritten] = [Math.max(0, after[0] - before[0]), Math.max(0, after[1] - before[1])]
    this.completion.resolve({ rows: this.rows.text(), changes, rowsRead, rowsWritten, durationMs })
  }

  handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    if (this.current !== 'statement') return
    this.readers = fields.map(({ dataTypeID }) => createReader(dataTypeID))
    this.rows = createRows(
      fields.map(({ name }) => name),
      this.limits,
    )
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const { current } = this
    if (current === 'before' || current === 'after') this.counts[current] = this.counting.read(fields)
    if (current !== 'statement' || this.failure) return
    try {
      this.rows.add(fields.map((value, at) => this.readers[at]?.(value) ?? 'null'))
    } catch (error) {
      this.failure = error as Error
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    if (this.current === 'statement') this.changes = changesOf(text)
    this.next()
  }

  /** More rows than the limit: the extra row has already failed the statement. */
  handlePortalSuspended(): void {
    this.next()
  }

  handleEmptyQuery(): void {
    this.next()
  }

  private next(): void {
    if (this.current === 'statement') this.durationMs = performance.now() - this.startMs
    this.step += 1
  }

  handleError(error: Error): void {
    this.failure ??= error
    this.finish()
  }

  handleReadyForQuery(): void {
    this.finish()
  }

  handleCopyInResponse(): void {
    this.abandon(new EngineError('unavailable', 'COPY was not expected'))
  }

  handleCopyData(): void {
    this.abandon(new EngineError('unavailable', 'COPY was not expected'))
  }
}

function send(wire: Wire, text: string, values: readonly (string | null)[], rows?: number): void {
  wire.parse({ text })
  wire.bind({ values })
  if (rows !== undefined) wire.describe({ type: 'P' })
  wire.execute(rows === undefined ? {} : { rows })
}

/** `INSERT 0 5`, `UPDATE 5`; the tag of a read is its number of rows. */
function changesOf(tag: string): number {
  const [, count] = /^(?:INSERT 0|UPDATE|DELETE|MERGE) (\d+)$/.exec(tag) ?? []
  return Number(count ?? 0)
}
