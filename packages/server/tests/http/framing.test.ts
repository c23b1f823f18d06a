/** Message framing on every endpoint: Content-Length, Content-Encoding and Host. */
import { describe, expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { type RawAnswer, sendRaw } from '../harness/raw-http.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { itemsPath as base, itemsConfig } from '../harness/storage/http-items.ts'

const config = { ...itemsConfig, storage: { buckets: { files: { access: { read: true, write: true } } } } } as const
const path = '/api/auth/signup'

describeServer('framing', { config }, (server) => {
  /** Sends a request with these header lines and this body. */
  const send = (method: string, target: string, lines: readonly string[], body = ''): Promise<RawAnswer> =>
    sendRaw(server.url, [`${method} ${target} HTTP/1.1`, 'Connection: close', ...lines, '', body].join('\r\n'))
  /** Asserts an error response; returns its message. */
  const refused = ({ status, head, text }: RawAnswer, expected: number): string => {
    const body = JSON.parse(text) as { code: number; message: string; slug: string }
    expect(status).toBe(expected)
    expect(body.code).toBe(expected)
    expect(head.toLowerCase()).toContain('x-content-type-options: nosniff')
    expect(head.toLowerCase()).toContain('x-request-id: ')
    return body.message
  }

  test('[HTTP-14] a repeated Content-Length is 400 on every endpoint that is not a GET', async () => {
    const twice = ['Host: a', 'Content-Type: application/json', 'Content-Length: 2', 'Content-Length: 2']
    const endpoints = server.endpoints().filter(({ method }) => method !== 'GET')
    expect(endpoints.length).toBeGreaterThan(50)
    for (const { method, paths } of endpoints)
      for (const declared of paths) {
        const target = declared.replaceAll(/:\w+\+?/g, 'x')
        const answer = await send(method, target, twice, '{}')
        // The runtime answers HEAD without a body.
        if (method === 'HEAD') expect(answer.status).toBe(400)
        else expect(refused(answer, 400)).toContain('Content-Length')
      }
  }, 60_000)

  test('[HTTP-14] a request with a repeated Content-Length is refused before its body arrives', async () => {
    const length = 300 * 1024 * 1024
    const lines = ['Host: a', 'Content-Type: application/json', ...Array(2).fill(`Content-Length: ${length}`)]
    // No byte of the body is sent.
    expect(refused(await send('POST', path, lines), 400)).toContain('Content-Length')
  })

  test.each(['5, 5', '+5', '-5', '0x5', '1e1', '5.0', ' ', '٥', '99999999999999999999999'])(
    '[HTTP-14] a Content-Length of %j is 400',
    async (length) => {
      const answer = await send('POST', base, [
        'Host: a',
        'Content-Type: application/json',
        `Content-Length: ${length}`,
      ])
      expect(answer.status).toBe(400)
    },
  )

  describe('Content-Encoding', () => {
    const body = '{"title":"x"}'
    const lines = ['Host: a', 'Content-Type: application/json', `Content-Length: ${body.length}`]

    test.each(['gzip', 'br', 'deflate', 'zstd', 'gzip, identity', 'x'])('[HTTP-15] %s is 415', async (encoding) => {
      const answer = await send('POST', base, [...lines, `Content-Encoding: ${encoding}`], body)
      expect(refused(answer, 415)).toContain('Content-Encoding')
      expect(answer.head.toLowerCase()).toContain('accept-encoding: identity')
      expect((await server.service.get(`${base}/count`)).body.total).toBe(0)
    })

    test('[HTTP-15] gzip is 415 for forms and raw bodies', async () => {
      const files = '/api/storage/files'
      const { body: upload } = await server.service.post(`${files}/multipart/create`, { key: 'a' })
      const part = `${files}/multipart/upload-part${query({ uploadId: upload.uploadId, partNumber: 1, key: 'a' })}`
      for (const [target, type] of [
        [`${files}/upload`, 'multipart/form-data; boundary=b'],
        [part, 'application/octet-stream'],
      ] as const) {
        const key = `X-Platform-Service-Key: ${rootKey}`
        const head = ['Host: a', `Content-Type: ${type}`, key, 'Content-Length: 2', 'Content-Encoding: gzip']
        refused(await send('POST', target, head, '{}'), 415)
      }
      expect((await server.service.get(files)).body.objects).toEqual([])
    })

    test('[HTTP-15] identity is accepted', async () => {
      const answer = await send('POST', base, [...lines, 'Content-Encoding: Identity'], body)
      expect(answer.status).toBe(201)
    })
  })

  describe('requests refused by the runtime', () => {
    test.each([
      ['a request that is not HTTP', 400, 'GARBAGE\r\n\r\n'],
      ['a missing Host', 400, 'GET / HTTP/1.1\r\n\r\n'],
      ['a malformed header', 400, 'GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n'],
      ['two different lengths', 400, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
      [
        'a length with chunked encoding',
        400,
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      ],
      ['an unknown transfer encoding', 400, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
      ['a head of 17 KiB', 431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(17 * 1024)}\r\n\r\n`],
      ['250 headers', 431, `GET / HTTP/1.1\r\nHost: a\r\n${'X: a\r\n'.repeat(250)}\r\n`],
      ['HTTP/2.0', 505, 'GET / HTTP/2.0\r\nHost: a\r\n\r\n'],
    ])('[HTTP-17] %s is %d', async (_, status, request) => {
      const { head, text } = await sendRaw(server.url, request)
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\w ]+\r\nConnection: close$`))
      expect(text).toBe('')
    })
  })

  describe('Host', () => {
    test.each([
      ['two', ['Host: a', 'Host: b']],
      ['two equal', ['Host: a', 'Host: a']],
      ['a comma-separated', ['Host: a, b']],
    ])('[HTTP-16] %s Host is 400', async (_, lines) => {
      for (const [method, target] of [
        ['GET', base],
        ['GET', '/api/health'],
        ['GET', '/nowhere'],
        ['DELETE', `${base}/x`],
      ] as const)
        expect(refused(await send(method, target, lines), 400)).toContain('Host')
    })

    test('[HTTP-16] one Host is accepted', async () => {
      for (const host of ['a', 'a:80', '[::1]:80', '127.0.0.1'])
        expect((await send('GET', '/api/health', [`Host: ${host}`])).status).toBe(200)
    })
  })
})
