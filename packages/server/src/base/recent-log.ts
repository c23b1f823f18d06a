/**
 * The recent lines of the server's log, in memory, for administrators: JSON lines as `log` writes them, with secrets
 * redacted. Bounded by bytes; the oldest lines are dropped in blocks.
 */
import { type LogLevel, logLevels } from '../log-events/log-event.ts'
import { createSlices } from './concurrency/slices.ts'

export interface LogLine {
  readonly atMs: number
  readonly level: LogLevel
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
  /** Orders the lines of this process; unique. */
  readonly position: number
}

export interface LogFilter {
  /** The least level. */
  readonly level: LogLevel
  readonly event: string | null
  /** The exact `requestId`. */
  readonly requestId: string | null
  /** A part of the line as JSON, without regard to case. */
  readonly text: string | null
  readonly fromMs: number | null
  readonly untilMs: number | null
}

export interface LogPage {
  /** Only lines before this position; null for the latest ones. */
  readonly before: number | null
  readonly limit: number
  /** Of all lines together; the first one is returned in any case. */
  readonly bytesMax: number
}

export interface FoundLog {
  /** Newest first. */
  readonly lines: readonly LogLine[]
  /** Whether older lines match, or may match. */
  readonly hasMore: boolean
}

interface Block {
  readonly first: number
  readonly bytes: Buffer
  size: number
}

/** Longer than any line: fields of 16 Ki UTF-16 units take at most 48 KiB. */
const blockBytes = 64 * 1024
const newline = 0x0a
/** `{"time":"2026-01-01T00:00:00.000Z","level":"`. Lines that `log` does not write itself begin otherwise. */
const timeAt = '{"time":"'.length
const levelAt = timeAt + 24 + '","level":"'.length

export class RecentLog {
  readonly #blocks: Block[] = []
  readonly #blocksMax: number
  #nextFirst = 0

  constructor(bytesMax: number) {
    this.#blocksMax = Math.max(1, Math.floor(bytesMax / blockBytes))
  }

  /** Adds complete lines. The bytes are copied. */
  add(lines: Uint8Array): void {
    let rest = lines
    while (rest.length > 0) {
      const block = this.#blockFor(rest)
      const room = block.bytes.length - block.size
      const end = rest.length <= room ? rest.length : rest.lastIndexOf(newline, room - 1) + 1
      block.bytes.set(rest.subarray(0, end), block.size)
      block.size += end
      rest = rest.subarray(end)
    }
  }

  async find(filter: LogFilter, { before, limit, bytesMax }: LogPage): Promise<FoundLog> {
    const nextSlice = createSlices()
    const matches = createMatcher(filter)
    const lines: LogLine[] = []
    let bytes = 0
    for (const block of this.#blocks.toReversed()) {
      if (before !== null && block.first >= before) continue
      const texts = block.bytes.toString('utf8', 0, block.size).split('\n')
      for (let at = texts.length - 1; at >= 0; at--) {
        const position = block.first + at
        const text = texts[at] ?? ''
        if (text === '' || (before !== null && position >= before)) continue
        const line = matches(text, position)
        if (line === 'older') return { lines, hasMore: false }
        if (line === null) continue
        bytes += Buffer.byteLength(text)
        if (lines.length >= limit || (lines.length > 0 && bytes > bytesMax)) return { lines, hasMore: true }
        lines.push(line)
      }
      const pause = nextSlice()
      if (pause) await pause
    }
    return { lines, hasMore: false }
  }

  /** The block that the first of these lines fits in. */
  #blockFor(lines: Uint8Array): Block {
    const last = this.#blocks.at(-1)
    const end = lines.indexOf(newline) + 1
    const lineBytes = end === 0 ? lines.length : end
    if (last && lineBytes <= last.bytes.length - last.size) return last
    const oldest = this.#blocks.length >= this.#blocksMax ? this.#blocks.shift() : undefined
    const block = { first: this.#nextFirst, bytes: bufferOf(lineBytes, oldest), size: 0 }
    this.#nextFirst += block.bytes.length
    this.#blocks.push(block)
    return block
  }
}

/** The buffer of a block that is dropped, if there is one: new ones would make the garbage collector run more often. */
function bufferOf(bytesMin: number, dropped: Block | undefined): Buffer {
  if (!dropped || dropped.bytes.length < bytesMin) return Buffer.allocUnsafeSlow(Math.max(blockBytes, bytesMin))
  // A search that has yet to reach the block finds nothing in it.
  dropped.size = 0
  return dropped.bytes
}

/** Gives the line if it matches, null if not, or `older` where no older line matches either. */
function createMatcher(filter: LogFilter): (text: string, position: number) => LogLine | null | 'older' {
  const { event, requestId, fromMs, untilMs } = filter
  const levels = new Set<string>(logLevels.slice(logLevels.indexOf(filter.level)))
  // As it stands in JSON.
  const needle = filter.text === null ? null : JSON.stringify(filter.text).slice(1, -1).toLowerCase()
  const idText = requestId === null ? null : JSON.stringify(requestId)
  return (text, position) => {
    const atMs = Date.parse(text.slice(timeAt, timeAt + 24))
    if (untilMs !== null && atMs >= untilMs) return null
    // The clock may have been set back by a little: lines are about in order.
    if (fromMs !== null && atMs < fromMs) return atMs < fromMs - clockStepMs ? 'older' : null
    const level = text.slice(levelAt, text.indexOf('"', levelAt))
    if (Number.isNaN(atMs) || !levels.has(level)) return null
    if (idText !== null && !text.includes(idText)) return null
    if (needle !== null && !text.toLowerCase().includes(needle)) return null
    const { time: _, level: __, event: name, ...fields } = JSON.parse(text) as { event: string } & LogLine['fields']
    if (event !== null && name !== event) return null
    if (requestId !== null && fields.requestId !== requestId) return null
    return { atMs, level: level as LogLevel, event: name, fields, position }
  }
}

const clockStepMs = 60_000
