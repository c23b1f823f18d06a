import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Caller } from '../access/caller.ts'
import { createLog } from '../base/log.ts'
import { quickResponseBytes } from '../limits/api.ts'
import { ada, tiny } from './harness.test.ts'
import { createInternalRequests, type InternalRequest } from './internal-request.ts'
import { bytes, json } from './replies/reply.ts'
import { anonymous } from './security/authorization.ts'

const service: Caller = { kind: 'service', auth: null, keyName: 'test', scopes: ['db:table:*:read'] }
const seen: unknown[] = []
const endpoints = [
  tiny({ name: 'list', paths: ['/t/:table'], query: z.object({ limit: z.coerce.number().max(9).optional() }) }),
  tiny({ name: 'count', paths: ['/t/:table/count'] }),
  tiny({ name: 'get', paths: ['/t/:table/:id'], handle: ({ params }) => json(params, 200, { ETag: '"1"' }) }),
  tiny({
    name: 'insert',
    method: 'POST',
    paths: ['/t/:table'],
    credentials: 'user',
    scope: ({ table }) => `db:table:${table}:write`,
    rateLimit: 'db',
    body: z.object({ n: z.number() }),
    bodyBytesMax: 20,
    handle({ body, caller, requestId, headers }) {
      seen.push({ body, kind: caller.kind, requestId, key: headers.get('idempotency-key') })
      return json(body, 201)
    },
  }),
  tiny({
    name: 'maybe',
    method: 'POST',
    paths: ['/maybe'],
    body: z.object({ n: z.number().default(7) }),
    isBodyOptional: true,
    handle: ({ body }) => json(body),
  }),
  tiny({ name: 'bug', paths: ['/bug'], handle: () => Promise.reject(new Error('secret')) }),
  tiny({ name: 'large', paths: ['/large'], handle: () => json({ text: 'x'.repeat(quickResponseBytes) }) }),
  tiny({
    name: 'file',
    paths: ['/files/:key+'],
    handle: ({ params }) => bytes(new TextEncoder().encode(params.key), 200, {}),
  }),
  tiny({
    name: 'raw',
    method: 'PUT',
    paths: ['/raw'],
    handle: async ({ rawBody }) => json((await rawBody.read(9)).length),
  }),
]
const socketEndpoints = [
  {
    name: 'socket',
    path: '/socket',
    tag: 'Test',
    summary: 'socket',
    kind: 'subscriptions',
    rateLimit: 'db',
    query: z.object({}),
    authTimeoutMs: 1,
    messageBytesMax: 1,
    open: () => json('opened'),
    tooManyPending: () => json('many'),
  } as const,
]
const lines: string[] = []
const log = createLog({ format: 'json', clock: { now: () => 0 } as never, write: (text) => lines.push(text) })
const run = createInternalRequests({ endpoints, socketEndpoints, log })

async function request(method: string, target: string, rest: Partial<InternalRequest> = {}) {
  const response = await run({ method, target, caller: anonymous('1.2.3.4'), requestId: 'r1', ...rest })
  const text = await response.text()
  return { status: response.status, body: text && JSON.parse(text), headers: response.headers }
}
const post = (body: InternalRequest['body'], caller: Caller = ada, type = 'application/json') =>
  request('POST', '/t/posts', { body: body ?? null, caller, headers: { 'Content-Type': type, 'Idempotency-Key': 'k' } })

describe('[FN-REQ-1, FN-REQ-2] internal requests', () => {
  test.each([
    ['GET', '/t/posts?limit=3', 200, { name: 'list', params: { table: 'posts' } }],
    ['GET', '/t/posts/count', 200, { name: 'count', params: { table: 'posts' } }],
    ['GET', '/t/posts/a%2Fb', 200, { table: 'posts', id: 'a/b' }],
    ['GET', '/t/posts?limit=10', 400, { slug: 'invalid-input', data: { limit: expect.anything() } }],
    ['GET', '/t/posts?page=1', 400, { slug: 'invalid-input', data: { page: expect.anything() } }],
    ['GET', '/t/posts/%ff', 404, { slug: 'not-found' }],
    ['GET', '/t//count', 404, { slug: 'not-found' }],
    ['GET', '/none', 404, { slug: 'not-found' }],
    ['GET', 'none', 404, { slug: 'not-found' }],
    ['DELETE', '/t/posts/count', 405, { slug: 'method-not-allowed' }],
    ['GET', '/bug', 500, { slug: 'internal', message: 'Internal server error' }],
    ['GET', '/socket', 400, { message: 'This endpoint requires a WebSocket upgrade' }],
    ['GET', '/socket?token=x', 400, { message: 'This endpoint requires a WebSocket upgrade' }],
  ])('%s %s: %i', async (method, target, status, body) => {
    const answer = await request(method, target)
    expect(answer).toMatchObject({ status, body })
    expect(answer.headers.get('x-request-id')).toBe('r1')
  })

  test('a bug is logged with the request id and the endpoint', () => {
    expect(lines.join()).toContain('"endpoint":"bug"')
    expect(lines.join()).not.toContain('http.request"')
  })

  test('the caller decides, whatever credentials the headers contain', async () => {
    seen.length = 0
    expect((await post('{"n":1}')).status).toBe(201)
    expect(seen).toEqual([{ body: { n: 1 }, kind: 'user', requestId: 'r1', key: 'k' }])
    expect(await post('{"n":1}', anonymous(''))).toMatchObject({
      status: 401,
      body: { slug: 'authentication-required' },
    })
    expect(await post('{"n":1}', service)).toMatchObject({ status: 401, body: { slug: 'invalid-service-key' } })
    expect(seen).toHaveLength(1)
  })

  test.each([
    ['{"n":"1"}', 400],
    ['{"n":', 400],
    [null, 400],
    [`{"n":1${' '.repeat(20)}}`, 413],
    [new TextEncoder().encode('{"n":2}'), 201],
    [new Blob(['{"n":3}']).stream(), 201],
    [new Blob([`{"n":1${' '.repeat(20)}}`]).stream(), 413],
  ])('the body is validated: %p is %i', async (body, status) => {
    expect((await post(body)).status).toBe(status)
  })

  test('an optional body may be absent', async () => {
    expect((await request('POST', '/maybe')).body).toEqual({ n: 7 })
    const headers = { 'content-type': 'application/json', 'content-length': '0' }
    expect((await request('POST', '/maybe', { body: '{"n":8}', headers })).body).toEqual({ n: 8 })
  })

  test('bodies of other types, large responses, files, HEAD and conditional requests', async () => {
    expect((await post('{"n":1}', ada, 'text/plain')).status).toBe(415)
    expect((await request('PUT', '/raw', { body: Uint8Array.of(1, 2) })).body).toBe(2)
    expect((await request('GET', '/large')).body.text).toHaveLength(quickResponseBytes)
    const file = { method: 'GET', target: '/files/a/b%20c', caller: ada, requestId: 'r' }
    expect(await (await run(file)).text()).toBe('a/b c')
    expect(await request('HEAD', '/t/posts/1')).toMatchObject({ status: 200, body: '' })
    expect(await request('GET', '/t/posts/1', { headers: { 'if-none-match': '"1"' } })).toMatchObject({
      status: 304,
      body: '',
    })
  })
})
