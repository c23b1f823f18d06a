/**
 * The server's log: JSON lines for machines or short lines for a terminal, buffered so that a busy server writes to its
 * output a few times a second. Owns formatting, redaction of secrets and buffering; `log-events.ts` lists the events.
 */
import { writeSync } from 'node:fs'
import type { LogLevel } from '../log-events/log-event.ts'
import type { LogEventFields, LogEventOf } from '../log-events/log-events.ts'
import { type Clock, systemClock } from './clock.ts'
import type { RecentLog } from './recent-log.ts'

type LogFields = Readonly<Record<string, unknown>>

/** Logs events of the catalog, each at its level and with its fields. */
export interface Log {
  debug<Event extends LogEventOf<'debug'>>(event: Event, fields: LogEventFields<Event>): void
  info<Event extends LogEventOf<'info'>>(event: Event, fields: LogEventFields<Event>): void
  warn<Event extends LogEventOf<'warn'>>(event: Event, fields: LogEventFields<Event>): void
  /** Written at once, with everything buffered before. */
  error<Event extends LogEventOf<'error'>>(event: Event, fields: LogEventFields<Event>): void
  /** Writes the buffer. */
  flush(): void
}

export interface LogOptions {
  /** The lowest level that is written; default `info`. */
  readonly level?: LogLevel
  readonly format: 'json' | 'pretty'
  readonly clock?: Clock
  /** Receives complete lines; default standard output. */
  readonly write?: (text: string) => void
  /** Terminal colors, in the pretty format only. */
  readonly colors?: boolean
  /** Keeps the lines as well, as JSON in both formats; those of the JSON format with the next `flush`. */
  readonly recent?: RecentLog
}

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }
/** Long enough that a busy server writes in large pieces, short enough to follow the output. */
const flushDelayMs = 100
const bufferBytes = 64 * 1024
/** UTF-16 units of a line's fields: a stack with its causes fits, a request body logged by mistake does not. */
const fieldsCharsMax = 16 * 1024
const eventCharsMax = 1024
/** Buffer for an output that does not accept lines; beyond it lines are dropped and counted. */
const unsentBytesMax = 1024 * 1024

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, flush() {} }

/** Creates a log. Lines below `level` cost only the call. Fields named like a secret are redacted at any depth. */
export function createLog(options: LogOptions): Log {
  const { format, clock = systemClock, colors = false, recent } = options
  const least = ranks[options.level ?? 'info']
  const write = options.write ? asBytesWriter(options.write) : createStdoutWriter()
  const head = lastHead(format === 'json' ? jsonHead : (...entry) => prettyHead(colors, ...entry))
  const tail = format === 'json' ? fieldsJson : (fields: LogFields) => prettyTail(colors, fields)
  // Lines become bytes at once: text kept for a tenth of a second survives the next collection, which costs more
  // than the line.
  const buffer = Buffer.allocUnsafe(bufferBytes)
  let size = 0
  let timer: ReturnType<typeof setTimeout> | null = null

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (size > 0) {
      const lines = buffer.subarray(0, size)
      if (format === 'json') recent?.add(lines)
      write(lines)
    }
    size = 0
  }
  function append(level: LogLevel, event: string, fields: LogFields = noFields): void {
    if (ranks[level] < least) return
    const nowMs = clock.now()
    const start = head(nowMs, level, event)
    const end = tail(fields)
    if (format === 'pretty') recent?.add(Buffer.from(jsonLine(nowMs, level, event, fieldsJson(fields))))
    // A UTF-16 unit takes at most three bytes.
    if (size + 3 * (start.length + end.length) >= bufferBytes) flush()
    size += buffer.write(start, size)
    if (format === 'json') {
      // The fields' own opening brace gives way to a comma, or, where there are no fields, to the closing one.
      const at = size
      size += end.length > 2 ? buffer.write(end, size) : 1
      buffer[at] = end.length > 2 ? comma : closingBrace
    } else size += buffer.write(end, size)
    buffer[size++] = newline
    if (level === 'error') flush()
    else timer ??= setTimeout(flush, flushDelayMs).unref()
  }
  return {
    debug: (event, fields) => append('debug', event, fields),
    info: (event, fields) => append('info', event, fields),
    warn: (event, fields) => append('warn', event, fields),
    error: (event, fields) => append('error', event, fields),
    flush,
  }
}

type Head = (nowMs: number, level: LogLevel, event: string) => string

const noFields: LogFields = {}
const comma = 0x2c
const closingBrace = 0x7d
const newline = 0x0a

/** A busy server logs the same event many times a millisecond. */
function lastHead(make: Head): Head {
  let [lastMs, lastLevel, lastEvent, made]: [number, LogLevel, string, string] = [Number.NaN, 'info', '', '']
  return (nowMs, level, event) => {
    if (nowMs !== lastMs || level !== lastLevel || event !== lastEvent) {
      made = make(nowMs, level, event)
      lastMs = nowMs
      lastLevel = level
      lastEvent = event
    }
    return made
  }
}

const jsonHead: Head = (nowMs, level, event) =>
  `{"time":"${new Date(nowMs).toISOString()}","level":"${level}","event":${JSON.stringify(event.slice(0, eventCharsMax))}`

/** Fields without any are `{}`. */
const jsonLine = (nowMs: number, level: LogLevel, event: string, fields: string): string =>
  `${jsonHead(nowMs, level, event)}${fields.length > 2 ? `,${fields.slice(1)}` : '}'}\n`

const levelColors: Record<LogLevel, string> = {
  debug: '\x1b[2m',
  info: '\x1b[36m',
  warn: '\x1b[33m',
  error: '\x1b[31m',
}

const paint = (colors: boolean, color: string, text: string): string => (colors ? `${color}${text}\x1b[0m` : text)

function prettyHead(colors: boolean, ...[nowMs, level, event]: Parameters<Head>): string {
  const time = new Date(nowMs).toISOString().slice(11, 23)
  return `${time} ${paint(colors, levelColors[level], level.padEnd(5))} ${printable(event.slice(0, eventCharsMax))}`
}

function prettyTail(colors: boolean, fields: LogFields): string {
  let stacks = ''
  const words = Object.entries(fields).map(([name, value]) => {
    if (!(value instanceof Error)) return `${name}=${isSecret(name) ? hidden : plain(value)}`
    stacks += `\n${printable(value.stack ?? String(value)).replaceAll('\\n', '\n')}`
    return `${name}=${plain(value.message)}`
  })
  const line = words.length > 0 ? ` ${paint(colors, '\x1b[2m', words.join(' '))}` : ''
  return (line + stacks).slice(0, fieldsCharsMax)
}

/** A value as one word: text without spaces as it is, everything else as JSON. */
function plain(value: unknown): string {
  if (typeof value === 'string' && /^[\x21\x23-\x7e]+$/.test(value)) return value
  return fieldsJson({ value }).slice('{"value":'.length, -1)
}

/** Control characters escaped: a request must not be able to move the cursor or to forge a line. */
const printable = (text: string): string => JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')

const hidden = '[hidden]'
const secretName = /authori[sz]ation|cookie|credential|passw|secret|token|(service|api|private)[-_]?key/i
const secretNames = new Map<string, boolean>()

/** Field names repeat, so each is checked once; the bound is for names from untrusted input. */
function isSecret(name: string): boolean {
  const known = secretNames.get(name)
  if (known !== undefined) return known
  const secret = secretName.test(name)
  if (secretNames.size < 1000) secretNames.set(name, secret)
  return secret
}

/** Flat fields use the runtime's serializer; only nested values, errors and secrets take the slower path. */
function fieldsJson(fields: LogFields): string {
  for (const name in fields) {
    const value = fields[name]
    if ((typeof value === 'object' && value !== null) || typeof value === 'bigint' || isSecret(name))
      return carefulJson(fields)
  }
  return bounded(JSON.stringify(fields))
}

/** A JSON value as text; values of members that are named like a secret are hidden. */
export function redactedJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  if (!secretName.test(text)) return text
  return JSON.stringify(value, (name, member: unknown) => (isSecret(name) ? hidden : member))
}

function carefulJson(fields: LogFields): string {
  try {
    return bounded(
      JSON.stringify(fields, (name, value: unknown) => {
        if (isSecret(name) && value !== undefined) return hidden
        if (typeof value === 'bigint') return String(value)
        return value instanceof Error ? describeError(value) : value
      }),
    )
  } catch {
    // A cycle or a throwing getter: logging must not fail.
    return '{"fields":"[not serialisable]"}'
  }
}

const bounded = (json: string): string =>
  json.length <= fieldsCharsMax ? json : JSON.stringify({ cut: json.slice(0, fieldsCharsMax / 2) })

/** An error as plain fields; the replacer includes its causes. */
function describeError(error: Error): { name: string; message: string; stack?: string; cause?: unknown } {
  const { name, message, stack, cause } = error
  return { name, message, ...(stack ? { stack } : {}), ...(cause === undefined ? {} : { cause }) }
}

const asBytesWriter =
  (write: (text: string) => void): ((bytes: Buffer) => void) =>
  (bytes) =>
    write(bytes.toString())

/**
 * Writes to standard output without failing. Lines for a full pipe are buffered up to a bound; lines for a closed one
 * are dropped.
 */
function createStdoutWriter(): (bytes: Buffer) => void {
  let unsent: Buffer = Buffer.alloc(0)
  let lostBytes = 0
  return (bytes) => {
    const note = lostBytes > 0 ? `{"level":"warn","event":"log.lines_lost","bytes":${lostBytes}}\n` : ''
    let rest = unsent.length > 0 || note !== '' ? Buffer.concat([unsent, Buffer.from(note), bytes]) : bytes
    lostBytes = 0
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(1, rest))
      unsent = rest
    } catch (error) {
      const isFull = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      const isKept = isFull && rest.length <= unsentBytesMax
      // The buffer is reused, so pending lines are copied.
      unsent = isKept ? Buffer.from(rest) : Buffer.alloc(0)
      lostBytes = isKept ? 0 : rest.length
    }
  }
}
