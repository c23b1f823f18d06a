/**
 * The recent log lines of functions on this node, for operators: in memory, bounded by count and bytes for each
 * function and in all, so that one function cannot displace the lines of all others.
 */
import type { CodeLocation, HostLogLevel } from '../../../engines/hosts/hosts.ts'
import {
  recentLinesBytesMax,
  recentLinesMax,
  recentLinesOfFunctionBytesMax,
  recentLinesOfFunctionMax,
} from '../../../limits/functions.ts'

export interface FunctionLine {
  readonly atMs: number
  readonly level: HostLogLevel
  readonly function: string
  /** Without the values of secrets, as `data`. */
  readonly message: string
  readonly data: object | null
  readonly requestId: string
  /** Of an error. */
  readonly location: CodeLocation | null
}

export interface NumberedLine extends FunctionLine {
  /** Counts the lines of this node since its start. */
  readonly seq: number
  /** In memory, about. */
  readonly bytes: number
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly HostLogLevel[]

export interface LineFilter {
  readonly function: string | null
  /** The least level. */
  readonly level: HostLogLevel
  /** Only lines of this request, or of the job with this id; null for all. */
  readonly requestId: string | null
  /** Only lines after it; null for the latest lines. */
  readonly after: number | null
  readonly limit: number
  /** Of all lines together; the first one is returned in any case. */
  readonly bytesMax: number
}

export interface FoundLines {
  /** In the order of their time. */
  readonly items: readonly NumberedLine[]
  /** Continues after the items, or after all lines where there are none. */
  readonly last: number
  /** Whether lines after `after` have been dropped. */
  readonly hasGap: boolean
}

interface Share {
  readonly seqs: Set<number>
  bytes: number
}

export class RecentLines {
  /** In the order of `seq`. */
  readonly #lines = new Map<number, NumberedLine>()
  readonly #shares = new Map<string, Share>()
  #bytes = 0
  #seq = 0
  #droppedSeq = 0

  add(line: FunctionLine): void {
    const seq = ++this.#seq
    const bytes = bytesOf(line)
    const share = this.#shares.get(line.function) ?? { seqs: new Set(), bytes: 0 }
    this.#shares.set(line.function, share)
    this.#lines.set(seq, { ...line, seq, bytes })
    share.seqs.add(seq)
    share.bytes += bytes
    this.#bytes += bytes
    while (share.seqs.size > recentLinesOfFunctionMax || share.bytes > recentLinesOfFunctionBytesMax) this.#drop(share)
    while (this.#lines.size > recentLinesMax || this.#bytes > recentLinesBytesMax) this.#drop(this.#largest())
  }

  find({ function: name, level, requestId, after, limit, bytesMax }: LineFilter): FoundLines {
    const least = logLevels.indexOf(level)
    const matching = [...this.#lines.values()].filter(
      (line) =>
        line.seq > (after ?? 0) &&
        (name === null || line.function === name) &&
        (requestId === null || line.requestId === requestId) &&
        logLevels.indexOf(line.level) >= least,
    )
    // The latest lines are taken from the end.
    if (after === null) matching.reverse()
    const items: NumberedLine[] = []
    let bytes = 0
    for (const line of matching) {
      bytes += line.bytes
      if (items.length >= limit || (items.length > 0 && bytes > bytesMax)) break
      items.push(line)
    }
    if (after === null) items.reverse()
    const isComplete = after === null || items.length === matching.length
    const last = isComplete ? this.#seq : (items.at(-1)?.seq ?? this.#seq)
    return { items, last, hasGap: after !== null && this.#droppedSeq > after }
  }

  #drop(share: Share): void {
    const [seq] = share.seqs
    const line = seq === undefined ? undefined : this.#lines.get(seq)
    if (!line) return
    this.#lines.delete(line.seq)
    share.seqs.delete(line.seq)
    share.bytes -= line.bytes
    this.#bytes -= line.bytes
    this.#droppedSeq = Math.max(this.#droppedSeq, line.seq)
    if (share.seqs.size === 0) this.#shares.delete(line.function)
  }

  #largest(): Share {
    let largest: Share = { seqs: new Set(), bytes: -1 }
    for (const share of this.#shares.values()) if (share.bytes > largest.bytes) largest = share
    return largest
  }
}

/** A character has two bytes, and the objects of a line some hundred. */
const bytesOf = ({ function: name, message, data, requestId }: FunctionLine): number =>
  200 + 2 * (name.length + message.length + requestId.length + (data === null ? 0 : JSON.stringify(data).length))
