import { expect, test } from 'bun:test'
import type { TraceSpan } from '../../../base/tracing/request-trace.ts'
import { adviceSpansMax, slowFunctionMs, slowStatementMs } from '../../../limits/dashboard.ts'
import { findSlowSpans } from './slow-spans.ts'

const span = (kind: TraceSpan['kind'], label: string, ms: number): TraceSpan => ({
  kind,
  label,
  startMs: 0,
  ms,
  rows: null,
  waitMs: null,
  isFailed: false,
})

test('statements and functions that are slow on average, with the slowest request of each', () => {
  const found = findSlowSpans([
    { requestId: 'a', endpoint: 'records.list', spans: [span('statement', 'S', slowStatementMs * 3)] },
    { requestId: 'b', endpoint: 'records.count', spans: [span('statement', 'S', 1), span('commit', 'C', 9000)] },
    { requestId: 'c', endpoint: 'functions.rpc', spans: [span('function', 'f', slowFunctionMs)] },
    { requestId: 'd', endpoint: 'records.get', spans: [span('statement', 'fast', slowStatementMs - 1)] },
  ])
  expect(found).toEqual([
    { kind: 'function', label: 'f', endpoint: 'functions.rpc', requestId: 'c', count: 1, averageMs: slowFunctionMs },
    {
      kind: 'statement',
      label: 'S',
      endpoint: 'records.list',
      requestId: 'a',
      count: 2,
      averageMs: (slowStatementMs * 3 + 1) / 2,
    },
  ])
})

test('a function that waits for a host is not slow itself', () => {
  const waiting = { ...span('function', 'f', slowFunctionMs * 2), waitMs: slowFunctionMs + 1 }
  expect(findSlowSpans([{ requestId: 'a', endpoint: 'functions.call', spans: [waiting] }])).toEqual([])
})

test('only the slowest are named', () => {
  const spans = Array.from({ length: 20 }, (_, at) => span('statement', `S${at}`, slowStatementMs + at))
  const found = findSlowSpans([{ requestId: 'a', endpoint: 'records.list', spans }])
  expect(found).toHaveLength(adviceSpansMax)
  expect(found[0]?.label).toBe('S19')
})
