/** Callers, answers, refusals and failures, over real sockets. */
import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { EngineError } from '../engines/sql/error.ts'
import { notFound } from '../errors.ts'
import type { Endpoint } from './endpoint.ts'
import { refusal, serve, tiny, whoami } from './harness.test.ts'
import { empty, json, jsonText } from './replies/reply.ts'

describe('responses', () => {
  const page = tiny({ name: 'page', paths: ['/page'], handle: () => jsonText('{"a":1}', 200, { ETag: '"v1"' }) })

  test('every response has a request id and nosniff, and ids differ', async () => {
    const { request } = serve([page, tiny({ name: 'post', method: 'POST', paths: ['/post'], body: z.looseObject({}) })])
    const ids = new Set<string | null>()
    for (const [path, method] of [
      ['/page', 'GET'],
      ['/none', 'GET'],
      ['/page', 'POST'],
      ['/post', 'POST'],
      ['/page', 'OPTIONS'],
    ] as const) {
      const { headers } = await request(path, { method, headers: { 'X-Request-Id': 'mine' } })
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/)
      ids.add(headers.get('x-request-id'))
    }
    expect(ids.size).toBe(5)
  })

  test('HEAD returns the response of GET without the body', async () => {
    const { request, logged } = serve([page])
    const [get, head] = [await request('/page'), await request('/page', { method: 'HEAD' })]
    expect(head.status).toBe(200)
    expect(await head.text()).toBe('')
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
      expect(head.headers.get(name)).toBe(get.headers.get(name))
    expect(logged().map(({ method }) => method)).toEqual(['GET', 'HEAD'])
  })

  test.each(['"v1"', 'W/"v1"', '"v0", "v1"', '*'])('If-None-Match %s: 304 without a body', async (tag) => {
    const { request } = serve([page])
    for (const method of ['GET', 'HEAD']) {
      const response = await request('/page', { method, headers: { 'If-None-Match': tag } })
      expect([response.status, await response.text()]).toEqual([304, ''])
      expect(response.headers.get('etag')).toBe('"v1"')
      expect(response.headers.has('content-type')).toBe(false)
    }
  })

  test('If-None-Match with another tag, or on a write, has no effect', async () => {
    const post = tiny({ name: 'post', method: 'POST', paths: ['/page'], handle: () => json({}, 200, { ETag: '"v1"' }) })
    const { request } = serve([page, post])
    expect((await request('/page', { headers: { 'If-None-Match': '"v0"' } })).status).toBe(200)
    expect((await request('/page', { method: 'POST', headers: { 'If-None-Match': '"v1"' } })).status).toBe(200)
  })

  test('a response may have no body or another content type', async () => {
    const { request } = serve([
      tiny({ name: 'none', paths: ['/none'], handle: () => empty(204) }),
      tiny({
        name: 'html',
        paths: ['/html'],
        handle: async () => ({ status: 200, text: '<p>', contentType: 'text/html' }),
      }),
    ])
    expect((await request('/none')).status).toBe(204)
    const html = await request('/html')
    expect([html.headers.get('content-type'), await html.text()]).toEqual(['text/html', '<p>'])
  })
})

describe('failures', () => {
  const failing = (handle: Endpoint['handle']) => serve([tiny({ name: 'failing', paths: ['/failing'], handle })])
  const secret = () => new Error('SELECT * FROM secrets at /srv/data')

  test.each<[string, Endpoint['handle']]>([
    [
      'thrown',
      () => {
        throw secret()
      },
    ],
    [
      'rejected',
      async () => {
        throw secret()
      },
    ],
    [
      'a thrown string',
      () => {
        throw 'SELECT secrets'
      },
    ],
    ['a header that cannot be sent', () => json({}, 200, { 'X-Bad': 'a\r\nSet-Cookie: secrets' })],
    ['no answer at all', () => undefined as never],
  ])('%s: returns an opaque 500 and logs the cause', async (_, handle) => {
    const { request, logged } = failing(handle)
    const response = await request('/failing')
    const text = await response.clone().text()
    expect(await refusal(response)).toEqual([500, 'Internal server error'])
    expect(text + JSON.stringify([...response.headers])).not.toContain('secrets')
    const [failure, line] = logged()
    expect(failure).toMatchObject({
      level: 'error',
      endpoint: 'failing',
      requestId: response.headers.get('x-request-id'),
    })
    expect(line).toMatchObject({ event: 'http.request', status: 500 })
  })

  test('an API error is returned as it is', async () => {
    const { request, logged } = failing(() => {
      throw notFound('Record')
    })
    expect(await refusal(await request('/failing'))).toEqual([404, 'Record not found'])
    expect(logged()).toHaveLength(1)
  })

  test.each(['unavailable', 'busy'] as const)('an engine that is %s: 503, try again', async (kind) => {
    const { request, logged } = failing(async () => {
      throw new EngineError(kind, 'disk full at /srv/data')
    })
    const response = await request('/failing')
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await refusal(response)).toEqual([503, 'Service unavailable'])
    expect(logged()[0]).toMatchObject({ level: 'warn', error: { message: 'disk full at /srv/data' } })
  })

  test('an unhandled engine error is a 500', async () => {
    const { request } = failing(() => {
      throw new EngineError('unique', 'x')
    })
    expect((await request('/failing')).status).toBe(500)
  })
})

describe('query parameters', () => {
  const search = tiny({
    name: 'search',
    paths: ['/search'],
    query: z.object({ q: z.string().min(1), limit: z.coerce.number().int().min(1).default(10) }),
    handle: ({ query }) => json(query),
  })

  test('are parsed by the schema of the endpoint', async () => {
    const { request } = serve([search])
    expect(await (await request('/search?q=a+b%26c')).json()).toEqual({ q: 'a b&c', limit: 10 })
  })

  test.each([
    ['/search', { q: 'required' }],
    ['/search?q=', { q: 'min' }],
    ['/search?q=a&limit=x', { limit: 'type' }],
    ['/search?q=a&limit=0', { limit: 'min' }],
    ['/search?q=a&q=b', { q: 'max' }],
    ['/search?q=a&other=1&other=2', { other: 'max' }],
    ['/search?q=a&other=1&limmit=2', { other: 'unknown', limmit: 'unknown' }],
    ['/search?q=%ff', { q: 'pattern' }],
  ])('%s: returns 400 and names the parameter', async (path, codes) => {
    const { request } = serve([search])
    const body = (await (await request(path)).json()) as { code: number; data: Record<string, { code: string }> }
    expect(body.code).toBe(400)
    expect(Object.fromEntries(Object.entries(body.data).map(([name, { code }]) => [name, code]))).toEqual(
      codes as unknown as Record<string, string>,
    )
  })
})

describe('callers', () => {
  const key = (value: string) => ({ 'X-Platform-Service-Key': value })
  const bearer = (value: string) => ({ Authorization: value })
  const endpoints = [
    whoami('public'),
    whoami('rules', { scope: () => 'db:table:posts:read' }),
    whoami('user'),
    whoami('service', { scope: () => 'db:table:posts:write' }),
    tiny({ name: 'health', paths: ['/health'], ignoresCredentials: true, handle: ({ caller }) => json(caller) }),
  ]

  test.each<[string, Record<string, string>, number, string]>([
    ['public', {}, 200, 'anonymous'],
    ['rules', {}, 200, 'anonymous'],
    ['user', {}, 401, 'Authentication required'],
    ['service', {}, 401, 'Authentication required'],
    ['public', bearer('Bearer ada-token'), 200, 'user'],
    ['rules', bearer('bearer  ada-token '), 200, 'user'],
    ['user', bearer('Bearer ada-token'), 200, 'user'],
    ['service', bearer('Bearer ada-token'), 403, 'Access denied'],
    ['public', bearer('Bearer wrong'), 401, 'Invalid token'],
    ['public', bearer('Basic YTpi'), 401, 'Invalid token'],
    ['public', bearer('ada-token'), 401, 'Invalid token'],
    ['public', bearer('Bearer'), 401, 'Invalid token'],
    ['public', bearer('Bearer ada-token ada-token'), 401, 'Invalid token'],
    ['public', bearer(''), 401, 'Invalid token'],
    ['public', key('root-key'), 200, 'service'],
    ['user', key('root-key'), 200, 'service'],
    ['service', key('root-key'), 200, 'service'],
    ['rules', key('reader-key'), 200, 'service'],
    ['user', key('reader-key'), 200, 'service'],
    ['service', key('reader-key'), 401, 'Invalid service key'],
    ['public', key('wrong'), 401, 'Invalid service key'],
    ['public', key(''), 401, 'Invalid service key'],
    ['public', key('old-key'), 401, 'Invalid service key'],
    ['public', key('elsewhere-key'), 401, 'Invalid service key'],
    ['public', { ...key('wrong'), ...bearer('Bearer ada-token') }, 401, 'Invalid service key'],
    ['rules', { ...key('root-key'), ...bearer('Bearer wrong') }, 200, 'service'],
    ['health', { ...key('wrong'), ...bearer('Bearer wrong') }, 200, 'anonymous'],
  ])('%s with %j: %i %s', async (path, headers, status, outcome) => {
    const { request } = serve(endpoints)
    const response = await request(`/${path}`, { headers })
    const body = (await response.json()) as { kind?: string; message?: string }
    expect([response.status, body.kind ?? body.message]).toEqual([status, outcome])
  })

  test('a refused request does not run the handler', async () => {
    let runs = 0
    const { request } = serve([whoami('service', { handle: () => json(++runs) })])
    await request('/service')
    await request('/service', { headers: bearer('Bearer ada-token') })
    await request('/service', { headers: key('wrong') })
    expect(runs).toBe(0)
  })

  test('neither the log nor the response contains a secret', async () => {
    const { request, logged } = serve(endpoints)
    const response = await request('/public?token=seen-secret', {
      headers: { ...key('seen-secret'), ...bearer('Bearer seen-secret') },
    })
    expect((await response.text()) + JSON.stringify(logged())).not.toContain('seen-secret')
  })
})

describe('log and metrics', () => {
  test('each request writes one log line', async () => {
    const { request, logged } = serve([whoami('rules')], { trustProxy: '1' })
    const { headers } = await request('/rules?', {
      headers: { Authorization: 'Bearer ada-token', 'X-Forwarded-For': '2001:db8::1' },
    })
    await request('/none')
    expect(logged()).toMatchObject([
      {
        level: 'info',
        event: 'http.request',
        method: 'GET',
        path: '/rules',
        endpoint: 'rules',
        status: 200,
        ms: expect.any(Number),
        caller: 'user',
        requestId: headers.get('x-request-id'),
        address: '2001:db8::1',
      },
      { path: '/none', endpoint: 'stray', status: 404, caller: 'anonymous' },
    ])
  })

  test('requests are counted', async () => {
    const { request, metrics } = serve([tiny({ name: 'list', paths: ['/t/:table'] })])
    await request('/t/posts')
    await request('/none')
    const text = await metrics.text()
    expect(text).toContain('http_requests_total{endpoint="list",status="200"} 1')
    expect(text).toContain('http_requests_total{endpoint="stray",status="404"} 1')
    expect(metrics.inFlight).toBe(0)
  })
})
