/** Requests that take a value from the previous response. */
import { expect, test } from 'bun:test'
import { createRequestCycle, renewRequest } from './load-requests.ts'

const requestWith = (token: string): string => {
  const body = `{"device":"d","token":"${token}"}`
  return `POST /refresh HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\nX-Other: 1\r\n\r\n${body}`
}

test.each([
  ['a.b.c', 'as long'],
  ['a.longer.one', 'longer'],
  ['x', 'shorter'],
  ['$&.$1', 'with replacement patterns'],
])('a value of %p (%s) replaces the old one and updates Content-Length', (token) => {
  const answer = `{"user":{"name":"n"},"token":"${token}"}`
  expect(renewRequest(requestWith('A.B.C'), 'token', answer)).toBe(requestWith(token))
})

test.each([
  [requestWith('A'), '{"error":"no"}'],
  ['GET / HTTP/1.1\r\n\r\n', '{"token":"a"}'],
])('a missing field returns null', (request, answer) => {
  expect(renewRequest(request, 'token', answer)).toBeNull()
})

test('requests cycle, each with the value of its own last response', () => {
  const expectation = { status: 200 }
  const requests = ['A', 'B'].map((token) => ({ text: requestWith(token), expect: expectation }))
  const cycle = createRequestCycle(requests, 'token')
  expect([cycle.next(), cycle.next(), cycle.next()]).toEqual([0, 1, 0])
  expect(cycle.renew(1, Buffer.from('{"token":"B2"}'))).toBe(true)
  expect(cycle.renew(0, Buffer.from('{"error":"no"}'))).toBe(false)
  expect(cycle.texts()).toEqual([requestWith('A'), requestWith('B2')])
  expect(Buffer.from(cycle.bytesOf(1)).toString()).toBe(requestWith('B2'))
  expect(cycle.textOf(0)).toBe(requestWith('A'))
  expect(cycle.expectationOf(1)).toBe(expectation)
})

test('without a renewed field requests stay unchanged', () => {
  const cycle = createRequestCycle([{ text: requestWith('A'), expect: { status: 200 } }])
  expect(cycle.renew(0, Buffer.from('{"token":"B"}'))).toBe(true)
  expect(cycle.texts()).toEqual([requestWith('A')])
})
