/** Calls of functions over HTTP: callers, inputs, limits, results, streams and errors. */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, functions, isPlinthError } from 'plinth-client'
import { openFunctionProject } from '../harness/functions.ts'
import { describeServer, rootKey } from '../harness/server.ts'

const project = openFunctionProject(`
import { appendFileSync } from 'node:fs'
import { z } from ${JSON.stringify(Bun.resolveSync('zod', import.meta.dir))}
export const hello = rpc({ caller: 'anyone' }, (input, ctx) => ({ hello: input ?? 'nobody', user: ctx.auth?.id ?? null }))
export const mine = rpc({}, (input, ctx) => ctx.auth?.id ?? 'service')
export const keyed = rpc({ caller: 'service' }, () => 'ok')
export const staff = rpc({ caller: (auth) => auth.role === 'admin' }, () => 'ok')
export const typed = rpc({ caller: 'anyone', input: z.object({ count: z.number().min(1), tags: z.array(z.string()) }) }, ({ count }) => count + 1)
const shown = z.object({ name: z.string() })
export const result = rpc({ caller: 'anyone', output: shown }, (input) => ({ ...input, hash: 'hidden' }))
export const results = rpc({ caller: 'anyone', output: shown }, async function* (names) { for (const name of names) yield { name, hash: 'hidden' } })
export const few = rpc({ caller: 'anyone', limit: '2/m per user' }, () => 'ok')
export const refuse = rpc({ caller: 'anyone' }, () => { throw new HttpError(409, 'out-of-stock', 'None left', { left: 0 }) })
export const fail = rpc({ caller: 'anyone' }, () => { throw new Error('secret detail') })
export const slow = rpc({ caller: 'anyone', timeout: '1s' }, (input, ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))))
export const crash = rpc({ caller: 'anyone' }, () => process.exit(1))
export const count = rpc({ caller: 'anyone' }, async function* (to) { for (let n = 1; n <= to; n++) yield { n } })
export const half = rpc({ caller: 'anyone' }, async function* () { yield 1; throw new HttpError(402, 'pay-first', 'Pay') })
export const save = rpc({ caller: 'anyone' }, async (input, ctx) => (await ctx.db('shared').notes.insert(input)).title)
export const read = rpc({ caller: 'anyone' }, (id, ctx) => ctx.db('shared').notes.get(id))
export const force = rpc({ caller: 'anyone' }, async (input, ctx) => (await ctx.service.db('shared').notes.insert(input)).title)
export const keep = rpc({ caller: 'anyone' }, async (input, ctx) => {
  await ctx.kv('cache').set('k', { input })
  await ctx.files('docs').upload('a.txt', 'text of a file', { contentType: 'text/plain' })
  return [await ctx.kv('cache').get('k'), await (await ctx.files('docs').download('a.txt')).text()]
})
export const hidden = rpc({ caller: 'anyone' }, (id, ctx) => ctx.service.db('shared').notes.get(id))
export const masked = rpc({ caller: 'anyone' }, async (id, ctx) => {
  await ctx.db('shared').notes.find(id)
  return ctx.service.db('shared').notes.get(id)
})
export const inside = rpc({ caller: 'anyone' }, (id, ctx) => ctx.db('shared').transaction((tx) => tx.notes.get(id)))
export const guarded = http.get('/guarded/:id', {}, async (request, ctx) => Response.json(await ctx.db('shared').notes.get(ctx.params.id)))
export const wrapped = rpc({ caller: 'anyone' }, (id, ctx) => ctx.db('shared').notes.get(id).catch((cause) => { throw new Error('wrapped', { cause }) }))
export const rows = rpc({ caller: 'anyone' }, async function* (id, ctx) { yield 1; yield await ctx.db('shared').notes.get(id) })
export const who = http.post('/who', {}, (request, ctx) => Response.json({ user: ctx.auth?.id ?? null, sent: request.headers.get('authorization') }))
export const reach = rpc({ caller: 'anyone' }, async (url, ctx) => (await ctx.fetch(url)).text())
export const hook = http.post('/hooks/:name', { rawBody: true }, async (request, ctx) =>
  new Response(await request.arrayBuffer(), { status: 202, headers: [['x-name', ctx.params.name], ['content-type', 'application/x-own'], ['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x-query', new URL(request.url).search]] }))
export const page = http.get('/page', {}, () => new Response('<p>page</p>', { headers: { 'content-type': 'text/html' } }))
export const ticks = http.get('/ticks/:mark', {}, (request, ctx) => {
  const mark = (text) => appendFileSync(ctx.params.mark, request.method + ' ' + text + ' ')
  let left = Number(ctx.params.mark.slice(-1))
  const headers = { 'x-ticks': String(left) }
  const body = new ReadableStream({
    // Silent, after as many ticks as the last digit of the mark says.
    pull: (controller) => (left-- > 0 ? controller.enqueue(new TextEncoder().encode('tick')) : new Promise(() => {})),
    cancel: () => mark('canceled'),
  })
  return new Response(body, { status: 203, headers })
})
export const body = http.all('/body', {}, async (request) => Response.json({ method: request.method, text: await request.text() }))
`)
afterAll(() => project.remove())

/** Names the files in which the functions of one test write; the engines share the folder. */
let marks = 0

const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { title: { type: 'string' } },
          access: { read: true, insert: (auth: object | null) => auth !== null },
        },
      },
    },
  },
  kv: { cache: { writeInterval: 0 } },
  storage: { buckets: { docs: {} } },
  serviceKeys: [{ name: 'limited', key: 'limited-key-0123456789', scopes: ['functions:function:mine:call'] }],
}

describeServer('functions', { config, settings: { projectFolder: project.folder } }, (server) => {
  const call = (name: string, input?: unknown, client = server.anonymous) => client.post(`/api/fn/${name}`, input)

  test('[FN-2] the body is the input, and the response is the result', async () => {
    expect((await call('hello', { a: [1] })).body).toEqual({ hello: { a: [1] }, user: null })
    const { status, text } = await server.anonymous.post('/api/fn/hello', 'text')
    expect([status, text]).toEqual([200, '{"hello":"text","user":null}'])
    expect((await call('missing', {})).status).toBe(404)
    expect((await server.anonymous.get('/api/fn/hello')).status).toBe(404)
  })

  const admissions: readonly (readonly [name: string, who: string, status: number])[] = [
    ['hello', 'anonymous', 200],
    ['mine', 'anonymous', 401],
    ['mine', 'user', 200],
    ['mine', 'service', 200],
    ['mine', 'limited', 200],
    ['hello', 'limited', 401],
    ['keyed', 'anonymous', 401],
    ['keyed', 'user', 403],
    ['keyed', 'service', 200],
    ['staff', 'anonymous', 401],
    ['staff', 'user', 403],
    ['staff', 'admin', 200],
  ]
  for (const [name, who, status] of admissions)
    test(`[FN-3] ${who} calling ${name} is ${status}`, async () => {
      const clients = {
        anonymous: server.anonymous,
        user: server.as('u1'),
        admin: server.as({ id: 'a1', role: 'admin' }),
        service: server.service,
        limited: server.withKey('limited-key-0123456789'),
      }
      expect((await call(name, {}, clients[who as keyof typeof clients])).status).toBe(status)
    })

  test('[FN-4] what does not fit the schema is 400 with the first error of each field', async () => {
    expect((await call('typed', { count: 1, tags: [] })).body).toBe(2)
    const { status, body } = await call('typed', { count: 0, tags: ['a', 1] })
    expect(status).toBe(400)
    expect(body.slug).toBe('invalid-input')
    expect(Object.keys(body.data)).toEqual(['count', 'tags[1]'])
  })

  test('[FN-5] beyond its limit a function is 429 with Retry-After', async () => {
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await call('few', {}, server.as('u1'))).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await call('few', {}, server.as('u2'))).status).toBe(200)
  })

  test('[FN-6] an HttpError is the response; any other error is an opaque 500 with its location in the log', async () => {
    const refused = await call('refuse', {})
    expect(refused.status).toBe(409)
    expect(refused.body).toEqual({ code: 409, message: 'None left', slug: 'out-of-stock', data: { left: 0 } })
    const failed = await call('fail', {})
    expect(failed.body).toEqual({ code: 500, message: 'Internal server error', slug: 'internal' })
    expect(server.logged()).toContain('secret detail')
    expect(server.logged()).toMatch(/functions\.failed.*functions\/index\.ts:\d+/)
  })

  test('[FN-7] past its deadline a call is 504, and 503 with Retry-After where its process ends', async () => {
    const slow = await call('slow', {})
    expect([slow.status, slow.body.slug]).toEqual([504, 'function-timeout'])
    const crashed = await call('crash', {})
    expect([crashed.status, crashed.body.slug, crashed.headers.get('retry-after')]).toEqual([
      503,
      'function-crashed',
      '1',
    ])
    expect((await call('hello', {})).status).toBe(200)
  })

  test('[FN-24] what callers get fits the schema of the result, and nothing else of it is sent', async () => {
    expect((await call('result', { name: 'a' })).body).toEqual({ name: 'a' })
    const failed = await call('result', { name: 7 })
    expect([failed.status, failed.body.slug]).toEqual([500, 'internal'])
    expect(server.logged()).toContain('The result does not fit the schema: name: ')
    const found = (await server.service.get('/api/functions')).body.items.find(
      (one: { name: string }) => one.name === 'result',
    )
    expect(found.lastError).toMatchObject({ location: expect.stringMatching(/functions\/index\.ts:\d+/) })
    const client = createClient(server.url, [functions])
    expect(await Array.fromAsync(client.stream('results', ['a', 'b']))).toEqual([{ name: 'a' }, { name: 'b' }])
    const values: unknown[] = []
    const error = await (async () => {
      for await (const value of client.stream('results', ['a', 7])) values.push(value)
    })().catch((thrown) => thrown)
    expect([values, error.status]).toEqual([[{ name: 'a' }], 500])
    client.close()
  })

  test('[FN-8] the client calls and streams', async () => {
    const client = createClient(server.url, [functions], { serviceKey: rootKey })
    expect(await client.call<string>('mine')).toBe('service')
    expect(await Array.fromAsync(client.stream('count', 3))).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    const values: unknown[] = []
    const error = await (async () => {
      for await (const value of client.stream('half')) values.push(value)
    })().catch((thrown) => thrown)
    expect(values).toEqual([1])
    expect(isPlinthError(error, 'pay-first') && error.status).toBe(402)
    for await (const value of client.stream<{ n: number }>('count', 1e9)) if (value.n === 3) break
    client.close()
  })

  /** What the function has written into a file of its folder, once it has. */
  async function markOf(name: string): Promise<string> {
    const path = join(project.folder, 'functions', name)
    for (;;) {
      const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
      if (text !== '') return text
      await server.anonymous.get('/health')
    }
  }

  for (const ticks of [0, 3])
    test(`[FN-22] HEAD of a function that streams ends it after ${ticks} chunks, without a body`, async () => {
      const mark = `head-${++marks}-${ticks}`
      const { status, headers, text } = await server.anonymous.request('HEAD', `/api/fn/ticks/${mark}`)
      expect([status, headers.get('x-ticks'), text]).toEqual([203, String(ticks), ''])
      expect(await markOf(mark)).toBe('HEAD canceled ')
    })

  test('[FN-22] a silent stream is canceled when its reader leaves', async () => {
    const controller = new AbortController()
    const { signal } = controller
    const mark = `left-${++marks}-1`
    const response = await fetch(`${server.url}/api/fn/ticks/${mark}`, { signal })
    const first = await response.body?.getReader().read()
    expect(new TextDecoder().decode(first?.value)).toBe('tick')
    controller.abort()
    expect(await markOf(mark)).toBe('GET canceled ')
  })

  test('[FN-23] the time of each function is a metric', async () => {
    expect((await call('hello', {})).status).toBe(200)
    const { text } = await server.service.get('/metrics')
    expect(text).toMatch(/functions_duration_seconds_count\{function="hello"\} [1-9]/)
    expect(text).toMatch(/functions_duration_seconds_bucket\{function="hello",le="\+Inf"\} [1-9]/)
  })

  test('[FN-9] ctx.db obeys the access rules of the caller, ctx.service.db does not', async () => {
    expect((await call('save', { title: 'a' }, server.as('u1'))).body).toBe('a')
    expect((await call('force', { title: 'c' })).body).toBe('c')
  })

  const refusals: readonly (readonly [name: string, input: unknown, status: number, slug: string])[] = [
    ['save', { title: 'b' }, 401, 'authentication-required'],
    ['read', 'none', 404, 'not-found'],
    ['inside', 'none', 404, 'not-found'],
    ['hidden', 'none', 500, 'internal'],
    ['masked', 'none', 500, 'internal'],
    ['wrapped', 'none', 500, 'internal'],
  ]
  for (const [name, input, status, slug] of refusals)
    test(`[FN-16] ${name}: a refusal that is not caught is ${status} ${slug}`, async () => {
      const refused = await call(name, input)
      expect([refused.status, refused.body.slug]).toEqual([status, slug])
    })

  test('[FN-16] a refusal of the caller has the data of the server, also for http functions and streams', async () => {
    const invalid = await call('save', { title: 7 }, server.as('u1'))
    expect([invalid.status, invalid.body.slug, invalid.body.data.title.code]).toEqual([400, 'invalid-input', 'type'])
    expect((await server.anonymous.get('/api/fn/guarded/none')).body).toEqual({
      code: 404,
      message: 'Record not found',
      slug: 'not-found',
    })
    const client = createClient(server.url, [functions])
    const error = await Array.fromAsync(client.stream('rows', 'none')).catch((thrown) => thrown)
    expect(isPlinthError(error, 'not-found') && error.status).toBe(404)
    client.close()
  })

  test('[FN-17] an http function is called anonymously under an Authorization that is not a valid token', async () => {
    const post = async (path: string, authorization: string, headers = {}) => {
      const given = { authorization, ...headers }
      const response = await fetch(`${server.url}/api/fn/${path}`, { method: 'POST', headers: given })
      return [response.status, await response.json()] as const
    }
    for (const authorization of ['Basic dXNlcjpwYXNz', 'Bearer sk_live_123', 'Signature keyId="a"'])
      expect(await post('who', authorization)).toEqual([200, { user: null, sent: authorization }])
    const valid = `Bearer ${await server.token('u1')}`
    expect(await post('who', valid)).toEqual([200, { user: 'u1', sent: valid }])
    // Of a user whose sessions are over.
    const credentials = { email: 'ada@example.com', password: 'correct horse battery' }
    const { body: session } = await server.anonymous.post('/api/auth/signup', credentials)
    const authorization = `Bearer ${session.accessToken}`
    expect((await post('who', authorization))[1].user).toBe(session.user.id)
    await server.service.post(`/api/auth/admin/users/${session.user.id}/revoke`, {})
    expect(await post('who', authorization)).toEqual([200, { user: null, sent: authorization }])
    expect((await post('mine', authorization))[0]).toBe(401)
    // A function of kind rpc is strict, and so is a service key anywhere.
    expect((await post('hello', 'Basic dXNlcjpwYXNz'))[0]).toBe(401)
    expect((await post('who', 'Basic a', { 'x-platform-service-key': 'wrong' }))[0]).toBe(401)
    expect((await post('missing', 'Basic a'))[0]).toBe(401)
  })

  test('[FN-10] ctx.kv and ctx.files act with the permissions of the server', async () => {
    expect((await call('keep', 7)).body).toEqual([{ input: 7 }, 'text of a file'])
  })

  test('[FN-11] ctx.fetch does not reach private addresses', async () => {
    expect((await call('reach', server.url)).status).toBe(500)
    expect(server.logged()).toContain('The address is not public')
  })

  test('[FN-12] a function of kind http gets the request as it was sent, and its response is sent as it is', async () => {
    const response = await fetch(`${server.url}/api/fn/hooks/stripe?a=1`, {
      method: 'POST',
      body: new Uint8Array([0, 255, 1]),
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status).toBe(202)
    expect(response.headers.get('x-name')).toBe('stripe')
    expect(response.headers.get('x-query')).toBe('?a=1')
    expect(response.headers.get('content-type')).toBe('application/x-own')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.bytes()).toEqual(new Uint8Array([0, 255, 1]))
    const page = await fetch(`${server.url}/api/fn/page`)
    expect([await page.text(), page.headers.get('content-type')]).toEqual(['<p>page</p>', 'text/html'])
    expect((await server.anonymous.delete('/api/fn/body')).body).toEqual({ method: 'DELETE', text: '' })
    const broken = await fetch(`${server.url}/api/fn/body`, {
      method: 'PUT',
      body: '{',
      headers: { 'content-type': 'application/json' },
    })
    expect(broken.status).toBe(400)
  })

  test('[FN-13] GET /api/functions lists every function with its state', async () => {
    await call('fail', {})
    const { body } = await server.service.get('/api/functions')
    const find = (name: string) => body.items.find((item: { name: string }) => item.name === name)
    expect(find('fail')).toMatchObject({
      kind: 'rpc',
      trigger: 'POST /api/fn/fail',
      state: 'failing',
      location: expect.stringMatching(/^functions\/index\.ts:\d+$/),
      lastError: { message: 'secret detail', location: expect.stringMatching(/^functions\/index\.ts:\d+$/) },
    })
    expect(find('hook').trigger).toBe('POST /api/fn/hooks/:name')
    expect((await server.as('u1').get('/api/functions')).status).toBe(403)
    expect((await server.withKey('limited-key-0123456789').get('/api/functions')).status).toBe(401)
  })
})
