/** Which endpoint a request reaches, and what is said to one that reaches none. */
import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Endpoint } from './endpoint.ts'
import { connectRaw, refusal, serve, tiny } from './harness.test.ts'
import { json } from './replies/reply.ts'

const records: readonly Endpoint[] = [
  tiny({ name: 'get', paths: ['/t/:table/:id'] }),
  tiny({ name: 'update', method: 'PATCH', paths: ['/t/:table/:id'] }),
  tiny({ name: 'delete', method: 'DELETE', paths: ['/t/:table/:id'] }),
  tiny({ name: 'count', paths: ['/t/:table/count'] }),
  tiny({ name: 'batch', method: 'POST', paths: ['/t/:table/batch'] }),
  tiny({ name: 'list', paths: ['/t/:table', '/i/:instance/t/:table'] }),
]

const files: readonly Endpoint[] = [
  tiny({ name: 'list', paths: ['/f/:bucket'] }),
  tiny({ name: 'upload', method: 'POST', paths: ['/f/:bucket/upload'] }),
  tiny({ name: 'parts', paths: ['/f/:bucket/uploads/:id/parts'] }),
  tiny({ name: 'get', paths: ['/f/:bucket/:key+'] }),
  tiny({ name: 'delete', method: 'DELETE', paths: ['/f/:bucket/:key+'] }),
  tiny({ name: 'metadata', paths: ['/f/:bucket/:key+/metadata'] }),
  tiny({ name: 'update', method: 'PATCH', paths: ['/f/:bucket/:key+/metadata'] }),
]

describe('paths of any depth', () => {
  test.each([
    ['GET', '/f/b/k', 'get', 'k'],
    ['GET', '/f/b/a/b/c', 'get', 'a/b/c'],
    ['GET', '/f/b%2Fb/a%2Fb/%63', 'get', 'a/b/c'],
    ['GET', '/f/b/a//c', 'get', 'a//c'],
    ['GET', '/f/b/upload', 'get', 'upload'],
    ['DELETE', '/f/b/upload', 'delete', 'upload'],
    ['GET', '/f/b/metadata', 'get', 'metadata'],
    ['GET', '/f/b/a/b/metadata', 'metadata', 'a/b'],
    ['PATCH', '/f/b/metadata/metadata', 'update', 'metadata'],
    ['GET', '/f/b/a%2Fmetadata', 'get', 'a/metadata'],
    ['DELETE', '/f/b/a/metadata', 'delete', 'a/metadata'],
    ['DELETE', '/f/b/uploads/x/parts', 'delete', 'uploads/x/parts'],
    ['GET', '/f/b/uploads%2Fx%2Fparts', 'get', 'uploads/x/parts'],
  ])('%s %s is %s of %s', async (method, path, name, key) => {
    const { request } = serve(files)
    const { params, name: found } = (await (await request(path, { method })).json()) as { params: object; name: string }
    expect([found, params]).toEqual([name, { bucket: path.startsWith('/f/b%2Fb') ? 'b/b' : 'b', key }])
  })

  test('literal paths with the method take precedence', async () => {
    const { request } = serve(files)
    expect(await (await request('/f/b/uploads/x/parts')).json()).toMatchObject({ name: 'parts' })
    expect(await (await request('/f/b/upload', { method: 'POST' })).json()).toMatchObject({ name: 'upload' })
  })

  test.each([
    ['PATCH', '/f/b/k', 'DELETE, GET, HEAD, OPTIONS'],
    ['PUT', '/f/b/upload', 'DELETE, GET, HEAD, OPTIONS, POST'],
    ['POST', '/f/b/a/metadata', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
  ])('%s %s: 405 with Allow', async (method, path, allow) => {
    const { request } = serve(files)
    const answer = await request(path, { method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
  })

  test.each(['/f/b/', '/f/b/%ff', '/f/b/%', '/f/%ff/k'])('%s is unknown', async (path) => {
    const { request } = serve(files)
    expect((await request(path)).status).toBe(404)
  })
})

describe('routes', () => {
  test('literal paths take precedence, parameters are decoded, and an endpoint may have several paths', async () => {
    const { request } = serve(records)
    const answer = async (path: string, method = 'GET') => (await request(path, { method })).json()
    expect(await answer('/t/posts/count')).toEqual({ name: 'count', params: { table: 'posts' } })
    expect(await answer('/t/posts/%63ount')).toEqual({ name: 'get', params: { table: 'posts', id: 'count' } })
    expect(await answer('/t/posts/a%2Fb%20c')).toEqual({ name: 'get', params: { table: 'posts', id: 'a/b c' } })
    expect(await answer('/i/one/t/posts')).toEqual({ name: 'list', params: { instance: 'one', table: 'posts' } })
  })

  test.each([
    ['POST', '/t/posts/count', 'GET, HEAD, OPTIONS'],
    // Never taken for the record of that name.
    ['DELETE', '/t/posts/count', 'GET, HEAD, OPTIONS'],
    ['GET', '/t/posts/batch', 'OPTIONS, POST'],
    ['PUT', '/t/posts/batch', 'OPTIONS, POST'],
    ['POST', '/t/posts', 'GET, HEAD, OPTIONS'],
    ['TRACE', '/t/posts', 'GET, HEAD, OPTIONS'],
  ])('%s %s: 405 with Allow', async (method, path, allow) => {
    const { server } = serve(records)
    const connection = connectRaw(server)
    connection.write(`${method} ${path} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
    const answer = await connection.closed
    expect(answer).toStartWith('HTTP/1.1 405 ')
    expect(answer).toContain(`Allow: ${allow}\r\n`)
    expect(answer).toEndWith('{"code":405,"message":"Method not allowed","slug":"method-not-allowed"}')
  })

  test.each(['/', '/t', '/t/posts/', '/t//x', '/T/posts', '/t/a/b/c', '/i/one/t', '/%74/posts'])(
    '%s: 404',
    async (path) => {
      const { request } = serve(records)
      expect(await refusal(await request(path))).toEqual([404, 'Path not found'])
    },
  )

  test('OPTIONS lists the methods', async () => {
    const { request } = serve(records)
    const response = await request('/t/posts', { method: 'OPTIONS' })
    expect([response.status, response.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
    expect((await request('/none', { method: 'OPTIONS' })).status).toBe(404)
  })

  test('two endpoints cannot have the same path or name', () => {
    const twice = (name: string, path: string) => () =>
      serve([tiny({ name: 'a', paths: ['/a'] }), tiny({ name, paths: [path] })])
    expect(twice('b', '/a')).toThrow('b and a both declare GET /a')
    expect(twice('a', '/b')).toThrow('Two endpoints are named a')
  })

  test('an unusual Host header has no effect', async () => {
    const { server } = serve([
      tiny({
        name: 'q',
        paths: ['/q'],
        query: z.object({ a: z.string() }),
        handle: ({ query, path }) => json({ query, path }),
      }),
    ])
    for (const host of ['evil.example/x?a=2', 'a b', '', '[::bad', '#']) {
      const connection = connectRaw(server)
      connection.write(`GET /q?a=1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(await connection.closed).toEndWith('{"query":{"a":"1"},"path":"/q"}')
    }
  })
})
