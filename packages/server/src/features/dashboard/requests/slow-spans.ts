/** Statements and functions that are slow in the traces of the last requests, without their wait for a host. */
import type { SpanKind, TraceSpan } from '../../../base/tracing/request-trace.ts'
import { adviceSpansMax, slowFunctionMs, slowStatementMs } from '../../../limits/dashboard.ts'

export interface SlowSpan {
  readonly kind: 'statement' | 'function'
  /** The statement without values, or the name of the function. */
  readonly label: string
  /** Of the slowest request. */
  readonly endpoint: string
  readonly requestId: string
  readonly count: number
  readonly averageMs: number
}

export interface SpansOfRequest {
  readonly requestId: string
  readonly endpoint: string
  readonly spans: readonly TraceSpan[]
}

const limits: Partial<Record<SpanKind, number>> = { statement: slowStatementMs, function: slowFunctionMs }

interface Sum {
  readonly kind: 'statement' | 'function'
  readonly label: string
  count: number
  ms: number
  slowest: { readonly ms: number; readonly requestId: string; readonly endpoint: string }
}

/** The slowest on average, at most `adviceSpansMax`. */
export function findSlowSpans(requests: Iterable<SpansOfRequest>): readonly SlowSpan[] {
  const sums = new Map<string, Sum>()
  for (const { requestId, endpoint, spans } of requests)
    for (const { kind, label, ms: totalMs, waitMs } of spans) {
      if (kind !== 'statement' && kind !== 'function') continue
      const ms = totalMs - (waitMs ?? 0)
      const key = `${kind} ${label}`
      const sum = sums.get(key) ?? { kind, label, count: 0, ms: 0, slowest: { ms: -1, requestId, endpoint } }
      sums.set(key, sum)
      sum.count += 1
      sum.ms += ms
      if (ms > sum.slowest.ms) sum.slowest = { ms, requestId, endpoint }
    }
  return [...sums.values()]
    .map(({ kind, label, count, ms, slowest: { requestId, endpoint } }) => ({
      kind,
      label,
      endpoint,
      requestId,
      count,
      averageMs: ms / count,
    }))
    .filter(({ kind, averageMs }) => averageMs >= (limits[kind] ?? Number.POSITIVE_INFINITY))
    .sort((one, other) => other.averageMs - one.averageMs)
    .slice(0, adviceSpansMax)
}
