import { describe, expect, test } from 'bun:test'
import { serve, tiny } from '../harness.test.ts'
import { createCors } from './cors.ts'

function allowed(options: Parameters<typeof createCors>[0], origin?: string): string | null {
  const response = new Headers()
  createCors(options).expose(new Headers(origin === undefined ? {} : { origin }), response)
  return response.get('access-control-allow-origin')
}
const listed = { mode: 'release', origins: ['https://app.example.org'] } as const

describe('cors', () => {
  test.each([
    'http://localhost',
    'http://localhost:5173',
    'https://localhost:8443',
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
    'http://app.localhost:3000',
  ])('development allows %s, release does not', (origin) => {
    expect(allowed({ mode: 'development', origins: [] }, origin)).toBe(origin)
    expect(allowed({ mode: 'release', origins: [] }, origin)).toBeNull()
    expect(allowed(listed, origin)).toBeNull()
  })

  test.each([
    'http://localhost.evil.example',
    'http://evil.example/localhost',
    'http://evillocalhost:1',
    'http://localhost:80@evil.example',
    'http://127.0.0.1.evil.example',
    'http://127.0.0.2',
    'null',
    'file://',
    'http://LOCALHOST:1\n',
  ])('development does not allow %p', (origin) => {
    expect(allowed({ mode: 'development', origins: [] }, origin.trim())).toBeNull()
  })

  test('release mode allows exactly the listed origins', () => {
    expect(allowed(listed, 'https://app.example.org')).toBe('https://app.example.org')
    for (const origin of [
      'http://app.example.org',
      'https://app.example.org:8443',
      'https://app.example.org.evil.example',
      'null',
    ])
      expect(allowed(listed, origin)).toBeNull()
    expect(allowed(listed)).toBeNull()
  })

  test('a wildcard is returned as such, without credentials', () => {
    const cors = createCors({ mode: 'release', origins: ['*'] })
    const response = new Headers()
    cors.expose(new Headers({ origin: 'https://any.example' }), response)
    expect(response.get('access-control-allow-origin')).toBe('*')
    expect(response.has('access-control-allow-credentials')).toBe(false)
    expect(cors.common).toEqual({})
  })

  test('responses that depend on the origin have a Vary header', () => {
    expect(createCors(listed).common).toEqual({ Vary: 'Origin' })
    expect(createCors({ mode: 'development', origins: [] }).common).toEqual({ Vary: 'Origin' })
    expect(createCors({ mode: 'release', origins: [] }).common).toEqual({})
  })
})

describe('over real sockets', () => {
  const page = tiny({ name: 'page', paths: ['/page'] })
  const from = (origin: string) => ({ headers: { Origin: origin } })
  const preflight = {
    method: 'OPTIONS',
    headers: { Origin: 'http://localhost:5173', 'Access-Control-Request-Method': 'PATCH' },
  }

  test('development allows local pages, and exposes the headers that they need', async () => {
    const { request } = serve([page], { cors: { mode: 'development', origins: [] } })
    for (const path of ['/page', '/none']) {
      const { headers } = await request(path, from('http://localhost:5173'))
      expect(headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
      expect(headers.get('access-control-expose-headers')).toStartWith('ETag, X-Request-Id, Retry-After, ')
      expect(headers.get('vary')).toBe('Origin')
    }
    expect((await request('/page', from('https://evil.example'))).headers.has('access-control-allow-origin')).toBe(
      false,
    )
  })

  test('a preflight needs no credentials on any path', async () => {
    const { request } = serve([page], { cors: { mode: 'development', origins: [] } })
    for (const path of ['/page', '/none']) {
      const { status, headers } = await request(path, preflight)
      expect(status).toBe(204)
      expect(headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
      expect(headers.get('access-control-allow-methods')).toContain('PATCH')
      expect(headers.get('access-control-allow-headers')).toContain('Authorization')
      expect(headers.has('access-control-allow-credentials')).toBe(false)
    }
  })

  test('release mode sends no CORS headers to an origin that is not listed', async () => {
    const { request } = serve([page], { cors: { mode: 'release', origins: ['https://app.example.org'] } })
    expect((await request('/page', preflight)).headers.has('access-control-allow-origin')).toBe(false)
    const listedPage = await request('/page', from('https://app.example.org'))
    expect(listedPage.headers.get('access-control-allow-origin')).toBe('https://app.example.org')
  })
})
