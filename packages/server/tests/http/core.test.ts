/**
 * What all responses have in common: headers, the form of errors, and the response to an internal error.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { query } from '../harness/client.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { itemsPath as base, itemsConfig as config, jsonType } from '../harness/storage/http-items.ts'

describeServer('http', { config }, (server) => {
  beforeAll(async () => {
    expect((await server.anonymous.post(base, { id: 'a', title: 'A', slug: 'a' })).status).toBe(201)
  })

  const send = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = jsonType) =>
    server.anonymous.request('POST', base, { raw, headers })

  describe('headers of every response', () => {
    test('[HTTP-9, HTTP-10] every response, also an error, has a unique request id and nosniff', async () => {
      const tag = (await server.anonymous.get(`${base}/a`)).headers.get('etag') ?? ''
      const answers = [
        await server.anonymous.get(base),
        await server.anonymous.get('/api/health'),
        await server.anonymous.get('/docs'),
        await server.anonymous.get('/nope'),
        await server.anonymous.request('PUT', base),
        await send('{'),
        await send('x', { 'content-type': 'text/plain' }),
        await server.anonymous.get(`${base}/a`, { 'if-none-match': tag }),
        await server.anonymous.request('OPTIONS', base),
        await server.withKey('wrong').get(base),
        await server.anonymous.delete(`${base}/none`),
        await server.anonymous.post(base, { title: 1 }),
        await server.anonymous.request('HEAD', base),
        await server.anonymous.get('/metrics'),
      ]
      const ids = answers.map(({ headers }) => headers.get('x-request-id'))
      expect(ids.filter((id) => !id)).toEqual([])
      expect(new Set(ids).size).toBe(answers.length)
      expect(answers.map(({ headers }) => headers.get('x-content-type-options'))).toEqual(answers.map(() => 'nosniff'))
    })

    test('[HTTP-9] a request id sent by the client is ignored', async () => {
      const { headers } = await server.anonymous.get(base, { 'x-request-id': 'mine\tand mine' })
      expect(headers.get('x-request-id')).not.toContain('mine')
    })

    test('[HTTP-11] timestamps are ISO 8601 in UTC with milliseconds', async () => {
      const { body } = await server.anonymous.get(`${base}/a`)
      for (const value of [
        body.createdAt,
        body.updatedAt,
        (await server.anonymous.get('/api/health')).body.timestamp,
      ]) {
        expect(value).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        expect(new Date(value).toISOString()).toBe(value)
      }
    })
  })

  test('[HTTP-18] responses that can contain a token or a secret have Cache-Control: no-store', async () => {
    const secretName = /token|ticket|secret|recoveryCodes|^url$/i
    const declaring = server.endpoints().filter(({ replies }) =>
      Object.values(replies).some(({ schema }) => {
        const described = schema ? JSON.stringify(z.toJSONSchema(schema, { unrepresentable: 'any' })) : ''
        return [...described.matchAll(/"(\w+)":\{/g)].some(([, name = '']) => secretName.test(name))
      }),
    )
    const open = declaring.filter(({ isSecret }) => !isSecret).map(({ name }) => name)
    // Device tokens are addresses, not credentials.
    expect(open.sort()).toEqual(['push.register', 'push.tokens'])
    expect(declaring.length).toBeGreaterThan(10)
    const account = { email: 'ada@example.com', password: 'correct horse' }
    for (const answer of [
      await server.anonymous.post('/api/auth/signup', account),
      await server.anonymous.post('/api/auth/signin', account),
      await server.anonymous.post('/api/auth/signin', { ...account, password: 'wrong horse' }),
      await server.anonymous.post('/api/auth/signin/anonymous', {}),
      await server.anonymous.post('/api/auth/refresh', { refreshToken: 'x' }),
      await server.service.get('/api/auth/admin/users'),
    ])
      expect(answer.headers.get('cache-control')).toBe('no-store')
    expect((await server.anonymous.get('/api/auth/jwks.json')).headers.get('cache-control')).not.toBe('no-store')
  })

  test('[ERR-1, ERR-2] each kind of error has its status, message and slug', async () => {
    const kinds: readonly [Promise<Awaited<ReturnType<typeof send>>>, number, string, string][] = [
      [server.anonymous.get(`${base}/nope`), 404, 'not-found', 'Record not found'],
      [server.anonymous.get('/metrics'), 401, 'authentication-required', 'Authentication required'],
      [server.as('alice').get('/metrics'), 403, 'access-denied', 'Access denied'],
      [server.withKey('nope').get(base), 401, 'invalid-service-key', 'Invalid service key'],
      [server.anonymous.get(base, { authorization: 'Bearer x' }), 401, 'invalid-token', 'Invalid token'],
      [server.anonymous.post(base, { id: 'a' }), 409, 'conflict', ''],
      [server.anonymous.post(base, { title: 1 }), 400, 'invalid-input', ''],
      [send('{'), 400, 'bad-request', ''],
      [send('{}', { 'content-type': 'text/plain' }), 415, 'unsupported-media-type', ''],
      [server.anonymous.request('PUT', base), 405, 'method-not-allowed', 'Method not allowed'],
      [server.anonymous.delete(`${base}/a`, { 'if-match': '"x"' }), 412, 'precondition-failed', ''],
    ]
    for (const [answer, status, slug, message] of kinds) {
      const body = expectRefusal(await answer, status)
      expect(body.slug).toBe(slug)
      if (message) expect(body.message).toBe(message)
    }
  })

  test('[ERR-3] an error about fields names each with a code', async () => {
    const { data } = expectRefusal(await server.anonymous.post(base, { title: 5, nope: 1 }), 400)
    expect(data).toEqual({
      title: { code: 'type', message: expect.any(String) },
      nope: { code: 'unknown', message: expect.any(String) },
    })
  })

  test('[ERR-5, ERR-7] unusual input in paths and queries causes no 5xx and reveals no internals', async () => {
    const odd = [
      "'",
      '"',
      ';',
      '--',
      '\\',
      '%00',
      '%0d%0a',
      '../../../../',
      '$7*7',
      '{{7*7}}',
      '\u{1F4A9}',
      '%F0%9F%92%A9',
      'NaN',
      '-1',
      '1e999',
      '[]',
      '{}',
      'null',
      'undefined',
      'x'.repeat(2000),
    ]
    for (const text of odd.map((one) => (one.includes('%') ? one : encodeURIComponent(one))))
      for (const path of [
        `${base}/${text}`,
        `${base}?filter=${text}`,
        `${base}?sort=${text}`,
        `${base}?after=${text}`,
        `${base}/search?q=a&highlightPre=${text}&offset=${text}`,
        `/api/db/${text}/tables/items`,
        `/api/db/shared/tables/${text}`,
      ]) {
        const answer = await server.anonymous.get(path)
        if (answer.status >= 500) throw new Error(`${path} returned ${answer.status}: ${answer.text}`)
        if (answer.status >= 400) expectRefusal(answer, answer.status)
      }
  })

  test('[HTTP-9] input cannot inject a response header', async () => {
    const answer = await server.anonymous.get(`${base}/search${query({ q: 'a', highlightPre: '\r\nX-Evil: 1' })}`)
    expect(answer.headers.get('x-evil')).toBe(null)
  })
})

const internalMessage = 'the disk at /srv/secret is full'
let isFailing = false
/** Fails only while records are written: a timer of the server that read it would end the process. */
const failingClock = {
  now(): number {
    if (isFailing && new Error().stack?.includes('features/records/writes/')) throw new Error(internalMessage)
    return Date.now()
  },
}

describeServer('an internal error', { config, clock: failingClock }, (server) => {
  test('[ERR-6] is a 500 without details; its cause is logged with the request id', async () => {
    expect((await server.anonymous.post(base, { id: 'before' })).status).toBe(201)
    isFailing = true
    const answer = await server.anonymous.post(base, { id: 'during' })
    isFailing = false
    const body = expectRefusal(answer, 500)
    expect(body).toEqual({ code: 500, message: 'Internal server error', slug: 'internal' })
    const id = answer.headers.get('x-request-id') ?? 'none'
    const line = server
      .logged()
      .split('\n')
      .find((text) => text.includes(internalMessage) && text.includes(id))
    expect(line).toContain(id)
    expectRefusal(await server.anonymous.get(`${base}/during`), 404)
    expect((await server.anonymous.get(`${base}/before`)).status).toBe(200)
  })
})
