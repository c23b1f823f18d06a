/** Known paths and methods, the responses to unknown ones, and requests that violate HTTP. */
import { beforeAll, expect, test } from 'bun:test'
import { sendRaw, sendRawPath } from '../harness/raw-http.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { itemsPath as base, itemsConfig as config } from '../harness/storage/http-items.ts'

describeServer('paths and methods', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.anonymous.post(base, { id: 'a', title: 'A', slug: 'a' })).status).toBe(201)
  })

  const total = async (): Promise<number> => (await server.service.get(`${base}/count`)).body.total

  const known: readonly [path: string, allowed: readonly string[]][] = [
    [base, ['GET', 'POST']],
    [`${base}/a`, ['GET', 'PATCH', 'DELETE']],
    ['/api/db/shared/x/tables/items', ['GET', 'POST']],
    ['/api/health', ['GET']],
    ['/api/config', ['GET']],
    ['/api/schema', ['GET']],
    ['/openapi.json', ['GET']],
    ['/docs', ['GET']],
    ['/', ['GET']],
    ['/metrics', ['GET']],
    ['/api/auth/jwks.json', ['GET']],
  ]
  for (const [path, allowed] of known)
    test(`[HTTP-7] ${path} allows ${allowed} only`, async () => {
      const before = await total()
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'].filter(
        (method) => !allowed.includes(method),
      )) {
        const answer = await sendRawPath(server.url, method, path, [
          'Content-Type: application/json',
          'Content-Length: 0',
        ])
        expect({ method, status: answer.status }).toEqual({ method, status: 405 })
        const allow = /^allow: (.*)$/im.exec(answer.head)?.[1]?.split(', ') ?? []
        expect(allowed.filter((one) => !allow.includes(one))).toEqual([])
        expect(allow).not.toContain(method)
        expect(JSON.parse(answer.text)).toMatchObject({ code: 405, slug: 'method-not-allowed' })
      }
      expect(await total()).toBe(before)
    })

  test('[HTTP-7] a method cannot be overridden', async () => {
    for (const headers of [
      { 'x-http-method-override': 'DELETE' },
      { 'x-method-override': 'DELETE' },
      { 'x-http-method': 'DELETE' },
    ] as const)
      await server.anonymous.request('GET', `${base}/a?_method=DELETE`, {
        headers: headers as Record<string, string>,
      })
    expect((await server.anonymous.get(`${base}/a`)).status).toBe(200)
  })

  test('[HTTP-7] HEAD is GET without a body', async () => {
    for (const path of [`${base}/a`, base, '/api/health']) {
      const answer = await server.anonymous.request('HEAD', path)
      expect(answer.status).toBe(200)
      expect(answer.text).toBe('')
    }
    expect((await server.anonymous.request('HEAD', `${base}/nope`)).status).toBe(404)
  })

  for (const path of [
    '/nope',
    '/api',
    '/api/',
    '/api/db',
    '/api/db/shared',
    '/api/db/shared/tables',
    '/api/db/shared/tables/',
    '/api/db/shared/a/b/tables/items',
    `${base}/a/b`,
    `${base}/count/x`,
    '/api/Health',
    '/API/HEALTH',
    '/api/health/',
    '/api/health/x',
    '/api//health',
    '/api/kv',
    '/api/kv/x/y',
    '/.env',
    '/index.html',
    '/api/auth/nope',
    '/favicon.ico',
  ])
    test(`[HTTP-8] ${path} is 404`, async () => {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await sendRawPath(server.url, method, path, [
          'Content-Length: 0',
          'Content-Type: application/json',
          `X-Platform-Service-Key: ${rootKey}`,
        ])
        expect({ method, status: answer.status }).toEqual({ method, status: 404 })
        expect(JSON.parse(answer.text)).toMatchObject({ code: 404, slug: 'not-found' })
      }
    })

  test('[HTTP-13] a URL that is too long or has malformed escapes is a 4xx', async () => {
    for (const path of [
      `${base}?filter=${'x'.repeat(20_000)}`,
      `/api/db/shared/tables/${'x'.repeat(20_000)}`,
      `${base}?${'a=1&'.repeat(6000)}`,
      `${base}?limit=${'1'.repeat(100_000)}`,
    ]) {
      const answer = await sendRawPath(server.url, 'GET', path)
      if (answer.status < 400 || answer.status >= 500)
        throw new Error(`${path.slice(0, 40)}… returned ${answer.status}`)
    }
    for (const path of [
      `${base}?limit=%`,
      `${base}?filter=%zz`,
      `${base}?sort=%c0%ae`,
      `${base}?q=%ff%fe`,
      `${base}/%`,
      `${base}/%zz`,
      `${base}/%c0%80`,
      '/api/db/%ff/tables/items',
      '/%',
      '/api/db/shared/tables/%E0%A4%A',
      `${base}?fields=%ED%A0%80`,
    ]) {
      const answer = await sendRawPath(server.url, 'GET', path)
      const isExpected = answer.status >= 200 && answer.status < 500 && (answer.status !== 200 || path.includes('q='))
      if (!isExpected) throw new Error(`${path} returned ${answer.status}`)
    }
  })

  test('[HTTP-13] a request that violates HTTP gets a 4xx or a closed connection, and changes nothing', async () => {
    // The runtime responds to an unsupported version of HTTP with 505, as RFC 9110 requires.
    const before = await total()
    const body = '{"title":"smuggled"}'
    const requests = [
      `POST ${base} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: abc\r\nConnection: close\r\n\r\n${body}`,
      `POST ${base} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: -1\r\nConnection: close\r\n\r\n${body}`,
      `POST ${base} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n${body}`,
      `POST ${base} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n${body}\r\n0\r\n\r\n`,
      `GET ${base}\r\n\r\n`,
      `GET ${base} HTTP/9.9\r\nHost: x\r\nConnection: close\r\n\r\n`,
      `GE\u0000T ${base} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      `GET ${base} HTTP/1.1\r\nHost: x\r\n${'X-Many: 1\r\n'.repeat(5000)}Connection: close\r\n\r\n`,
      `GET ${base} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(100_000)}\r\nConnection: close\r\n\r\n`,
    ]
    for (const request of requests) {
      const { status } = await sendRaw(server.url, request)
      const isExpected = status === 0 || status === 505 || (status >= 200 && status < 500)
      if (!isExpected) throw new Error(`${request.slice(0, 120)}… returned ${status}`)
    }
    expect(await total()).toBe(before)
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
  })
})
