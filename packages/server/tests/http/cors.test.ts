/** CORS: which origins can read responses, in development and in release mode. */
import { expect, test } from 'bun:test'
import { describeServer } from '../harness/server.ts'
import { itemsPath as base, itemsConfig as config } from '../harness/storage/http-items.ts'

describeServer('CORS in development', { config }, (server) => {
  const allowed = [
    'http://localhost',
    'http://localhost:3000',
    'https://localhost:8443',
    'http://127.0.0.1:5173',
    'http://[::1]:3000',
  ]
  const refused = [
    'http://example.com',
    'http://localhost.example.com',
    'http://notlocalhost',
    'http://localhost@evil.example',
    'https://evil.example/localhost',
    'null',
    'file://',
    'http://127.0.0.1.evil.example',
    'http://10.0.0.1',
    'chrome-extension://abc',
  ]

  for (const origin of allowed)
    test(`[CORS-1, CORS-4, CORS-5] ${origin} is allowed`, async () => {
      for (const answer of [
        await server.anonymous.get(base, { origin }),
        await server.anonymous.get(`${base}/nope`, { origin }),
        await server.anonymous.get('/nope', { origin }),
        await server.anonymous.request('PUT', base, { headers: { origin } }),
      ]) {
        expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
        expect(answer.headers.get('vary')?.toLowerCase()).toContain('origin')
        const exposed = answer.headers.get('access-control-expose-headers')?.toLowerCase() ?? ''
        for (const header of ['etag', 'retry-after', 'x-request-id']) expect(exposed).toContain(header)
      }
    })

  for (const origin of refused)
    test(`[CORS-1] ${origin} is not allowed`, async () => {
      const { headers, status } = await server.anonymous.get(base, { origin })
      expect(status).toBe(200)
      expect(headers.get('access-control-allow-origin')).toBeNull()
      const preflight = await server.anonymous.request('OPTIONS', base, {
        headers: { origin, 'access-control-request-method': 'POST' },
      })
      expect(preflight.headers.get('access-control-allow-origin')).toBe(null)
    })

  test('[CORS-3] a preflight lists the methods and headers, and allows no credentials', async () => {
    for (const path of [base, `${base}/a`, '/api/health', `${base}/batch`]) {
      const { status, headers, text } = await server.anonymous.request('OPTIONS', path, {
        headers: {
          origin: 'http://localhost:3000',
          'access-control-request-method': 'PATCH',
          'access-control-request-headers': 'authorization, content-type',
        },
      })
      expect(status).toBe(204)
      expect(text).toBe('')
      expect(headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
      const methods = headers.get('access-control-allow-methods') ?? ''
      for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) expect(methods).toContain(method)
      const allowedHeaders = headers.get('access-control-allow-headers')?.toLowerCase() ?? ''
      for (const header of [
        'authorization',
        'content-type',
        'x-platform-service-key',
        'idempotency-key',
        'if-match',
        'if-none-match',
      ])
        expect(allowedHeaders).toContain(header)
      expect(headers.get('access-control-allow-credentials')).toBe(null)
    }
  })
})

describeServer(
  'CORS in release',
  { config: { ...config, cors: { origins: ['https://app.example.com', 'http://localhost:9999'] } }, mode: 'release' },
  (server) => {
    test('[CORS-2, CORS-4, CORS-5] exactly the configured origins are allowed', async () => {
      for (const origin of ['https://app.example.com', 'http://localhost:9999'])
        for (const path of [base, `${base}/nope`]) {
          const { headers } = await server.anonymous.get(path, { origin })
          expect(headers.get('access-control-allow-origin')).toBe(origin)
          expect(headers.get('vary')?.toLowerCase()).toContain('origin')
        }
      for (const origin of [
        'http://localhost:3000',
        'http://app.example.com',
        'https://app.example.com:8443',
        'https://app.example.com.evil.example',
        'https://APP.example.com',
        'null',
      ])
        expect((await server.anonymous.get(base, { origin })).headers.get('access-control-allow-origin')).toBe(null)
    })
  },
)

describeServer('CORS in release without origins', { config, mode: 'release' }, (server) => {
  test('[CORS-2] no origin is allowed', async () => {
    for (const origin of ['http://localhost:3000', 'http://127.0.0.1', 'null', 'https://app.example.com']) {
      expect((await server.anonymous.get(base, { origin })).headers.get('access-control-allow-origin')).toBe(null)
      const preflight = await server.anonymous.request('OPTIONS', base, {
        headers: { origin, 'access-control-request-method': 'POST' },
      })
      expect(preflight.headers.get('access-control-allow-origin')).toBe(null)
    }
  })
})
