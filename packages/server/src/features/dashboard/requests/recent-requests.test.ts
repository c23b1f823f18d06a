import { expect, test } from 'bun:test'
import { manualClock } from '../../../base/clock.ts'
import { RequestTrace } from '../../../base/tracing/request-trace.ts'
import type { SeenRequest } from '../../../http/responder.ts'
import {
  recentRequestsMax,
  traceBodyCharsMax,
  traceFollowedMax,
  traceSampleEvery,
  traceSlowMs,
  traceSpansMax,
  tracesCharsMax,
  traceTextCharsMax,
  traceWatchMs,
} from '../../../limits/dashboard.ts'
import { createRecentRequests } from './recent-requests.ts'
import { createSampler, type Sampler } from './sampler.ts'

const clock = manualClock()

const seen = (requestId: string, trace: RequestTrace | null, body: unknown = undefined): SeenRequest => ({
  requestId,
  method: 'POST',
  path: '/api/db/shared/tables/posts',
  query: '',
  endpoint: 'records.insert',
  status: 200,
  slug: null,
  message: null,
  ms: 1,
  caller: { kind: 'anonymous', auth: null, address: '' },
  address: '',
  traced: trace && {
    trace,
    params: { namespace: 'shared', table: 'posts' },
    body,
    userAgent: null,
    requestBytes: 10,
    responseBytes: 10,
  },
})

const open = (sampler: Sampler = createSampler(clock, () => true)) =>
  createRecentRequests({ clock, sampler, isHidden: (_, field) => field === 'note' })

function fullTrace(): RequestTrace {
  const trace = new RequestTrace()
  for (let at = 0; at <= traceSpansMax; at++) trace.span('statement', 'x'.repeat(traceTextCharsMax + 1), 0)
  trace.end()
  return trace
}

test('a trace has a bound on its spans and their texts, and nothing is added once it has ended', () => {
  const trace = fullTrace()
  expect(trace.spans).toHaveLength(traceSpansMax)
  expect(trace.dropped).toBe(1)
  expect(trace.spans[0]?.label).toHaveLength(traceTextCharsMax)
  const { length } = trace.stages
  trace.enter('respond')
  trace.rule('posts', 'read', 'true')
  trace.span('commit', 'Commit', 0)
  expect([trace.stages.length, trace.rules.length, trace.dropped]).toEqual([length, 0, 1])
})

test('beyond the bound on all traces the oldest requests lose theirs, and the ring forgets its oldest', () => {
  const recent = open()
  const fitting = Math.floor(tracesCharsMax / fullTrace().chars)
  for (let at = 0; at < fitting + 3; at++) recent.recorder.record(seen(`r${at}`, fullTrace()))
  const traced = recent.list({}, recentRequestsMax).filter(({ isTraced }) => isTraced)
  expect(traced).toHaveLength(fitting)
  expect(recent.find('r0')).toMatchObject({ trace: null, question: null })
  expect(recent.find(`r${fitting + 2}`)?.trace?.spans).toHaveLength(traceSpansMax)
  for (let at = 0; at < recentRequestsMax; at++) recent.recorder.record(seen(`n${at}`, null))
  expect(recent.list({}, 5000)).toHaveLength(recentRequestsMax)
  expect(recent.find('r0')).toBeNull()
  // What the forgotten traces took is free again.
  for (let at = 0; at < fitting; at++) recent.recorder.record(seen(`s${at}`, fullTrace()))
  expect(recent.list({}, 5000).filter(({ isTraced }) => isTraced)).toHaveLength(fitting)
})

test('a body is masked and cut', () => {
  const recent = open()
  const trace = new RequestTrace()
  recent.recorder.record(seen('a', trace, { title: 'x', note: 'n', apiToken: 't', deep: [{ note: 'm' }] }))
  expect(recent.find('a')?.trace?.body).toBe(
    '{"title":"x","note":"[masked]","apiToken":"[masked]","deep":[{"note":"[masked]"}]}',
  )
  // A masked record is not the one that was sent, so it is no question.
  expect(recent.find('a')?.question).toBeNull()
  recent.recorder.record(seen('b', trace, { texts: Array.from({ length: 15 }, () => 'x'.repeat(900)) }))
  expect(recent.find('b')?.trace?.body).toHaveLength(traceBodyCharsMax + 1)
})

test('requests of an endpoint are traced after a slow one, for a while', () => {
  const sampler = createSampler(clock, () => false)
  const tracedOf = (endpoint: string, count: number): number =>
    Array.from({ length: count }, () => sampler.begin(endpoint)).filter((trace) => trace !== null).length
  expect(tracedOf('a', traceSampleEvery)).toBe(1)
  sampler.ended('a', 200, traceSlowMs)
  expect(tracedOf('b', traceFollowedMax + 5)).toBe(0)
  expect(tracedOf('a', traceFollowedMax + 5)).toBe(traceFollowedMax)
  sampler.ended('b', 500, 1)
  expect(sampler.begin('b')).not.toBeNull()
})

test('every request is traced while an administrator watches', () => {
  const sampler = createSampler(clock, () => false)
  sampler.watch()
  expect(sampler.begin('a')).not.toBeNull()
  clock.advance(traceWatchMs)
  expect(sampler.begin('a')).toBeNull()
})
