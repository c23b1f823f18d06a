import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../base/log.ts'
import { MiB } from '../../limits/units.ts'
import { HostPool } from './host-pool.ts'
import type { HostError, HostFailure, Invocation, InvocationResult, LoadError } from './hosts.ts'

const root = mkdtempSync(join(tmpdir(), 'plinth-hosts-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
const opened: HostPool[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pool) => pool.close()))
})

const head = `import { functionsFor, HttpError, secret } from 'plinth/functions'
const { before, onChange, rpc, http, schedule, queue, webhook, auth } = functionsFor()
`

function openPool(options: { size?: number; memoryBytes?: number } = {}) {
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'json', write: (text) => void lines.push(text) })
  const pool = new HostPool({
    size: 2,
    memoryBytes: 512 * MiB,
    environment: {},
    url: () => 'http://plinth.test',
    networks: () => [],
    log,
    ...options,
  })
  opened.push(pool)
  return {
    pool,
    logged() {
      log.flush()
      return lines.join('')
    },
  }
}

function write(code: string, folder = join(root, String(++folders))): string {
  const entry = join(folder, 'index.ts')
  Bun.spawnSync(['mkdir', '-p', folder])
  writeFileSync(entry, head + code)
  return entry
}

async function openWith(code: string, options: { size?: number; memoryBytes?: number } = {}) {
  const opened = openPool(options)
  const entry = write(code)
  const manifest = await opened.pool.load(entry)
  return { ...opened, entry, manifest }
}

const callOf = (name: string, input: unknown = null, more: Partial<Invocation> = {}): Invocation => ({
  name,
  input,
  timeoutMs: 5000,
  context: {
    auth: null,
    callerKind: 'user',
    nowMs: 0,
    idempotencyKey: 'k',
    secrets: {},
  },
  onRequest: async () => ({ status: 404, headers: {}, body: null }),
  onLog: () => {},
  ...more,
})

const resultOf = async (result: Promise<InvocationResult>): Promise<unknown> => {
  const finished = await result
  if (finished.kind !== 'value') throw new Error(`a ${finished.kind}`)
  return finished.json === null ? undefined : JSON.parse(finished.json)
}

const failureOf = (result: Promise<InvocationResult>): Promise<HostFailure> =>
  result.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: HostError) => error.failure,
  )

describe('loading', () => {
  test('[FN-HOST-1] the manifest names each export with its kind, options and location', async () => {
    const { manifest, entry } = await openWith(`
export const hello = rpc({ caller: 'anyone', limit: '3/m per user' }, () => 1)
export const hook = http.post('/stripe', { rawBody: true }, async () => new Response(null))
export const slugs = before('shared.posts', ['insert'], ({ row }) => row)
export const nightly = schedule('0 3 * * *', { tz: 'Europe/Berlin' }, () => {})
export const crm = webhook('shared.orders', { url: secret('CRM_URL'), secret: secret('CRM_SECRET') })
export const helper = () => 1
`)
    expect(manifest.functions).toMatchObject([
      { name: 'crm', kind: 'webhook', table: 'shared.orders', url: { secret: 'CRM_URL' } },
      { name: 'hello', kind: 'rpc', caller: 'anyone', limit: '3/m per user', location: { file: entry, line: 4 } },
      {
        name: 'hook',
        kind: 'http',
        method: 'post',
        path: '/stripe',
        rawBody: true,
        location: { file: entry, line: 5 },
      },
      { name: 'nightly', kind: 'schedule', cron: '0 3 * * *', tz: 'Europe/Berlin' },
      { name: 'slugs', kind: 'before', table: 'shared.posts', on: ['insert'] },
    ])
    expect(manifest.secrets.map(({ name }) => name)).toEqual(['CRM_URL', 'CRM_SECRET'])
    expect(manifest.files).toEqual([entry])
  })

  const broken: readonly (readonly [what: string, code: string, message: string, line: number])[] = [
    ['a syntax error', 'export const x = {\n\nconst', 'index.ts:5: ', 5],
    ['a missing module', "import './missing.ts'", 'missing.ts', 3],
    ['an error that a module throws', "\nthrow new TypeError('no good')", 'index.ts:4: TypeError: no good', 4],
    ['a call of process.exit', '\nprocess.exit(3)', 'process.exit(3)', 4],
  ]
  for (const [what, code, message, line] of broken)
    test(`[FN-HOST-2] ${what} is reported with its location, and the code in force stays`, async () => {
      const { pool, entry } = await openWith('export const version = rpc({}, () => 1)')
      const bad = write(code)
      const error = (await pool.load(bad).catch((thrown) => thrown)) as LoadError
      expect(error.message).toContain(message)
      expect(error.location).toEqual({ file: bad, line })
      expect(await resultOf(pool.invoke(callOf('version')))).toBe(1)
      expect(entry).not.toBe(bad)
    })

  test('[FN-HOST-2] a manifest that the check refuses is not put into force', async () => {
    const { pool } = await openWith('export const version = rpc({}, () => 1)')
    const next = write('export const version = rpc({}, () => 2)')
    const refuse = () => {
      throw new Error('refused')
    }
    expect(pool.load(next, refuse)).rejects.toThrow('refused')
    expect(await resultOf(pool.invoke(callOf('version')))).toBe(1)
  })

  test('[FN-HOST-3] invocations finish in the code in which they began', async () => {
    const { pool, entry } = await openWith(
      "export const version = rpc({}, async (input, ctx) => { await ctx.service.db().posts.get('a'); return 1 })",
    )
    const gate = Promise.withResolvers<void>()
    const requested = Promise.withResolvers<void>()
    const running = pool.invoke(
      callOf('version', null, {
        async onRequest() {
          requested.resolve()
          await gate.promise
          return { status: 200, headers: {}, body: '{}' }
        },
      }),
    )
    await requested.promise
    writeFileSync(entry, `${head}export const version = rpc({}, () => 2)`)
    await pool.load(entry)
    expect(await resultOf(pool.invoke(callOf('version')))).toBe(2)
    gate.resolve()
    expect(await resultOf(running)).toBe(1)
  })

  test('[FN-HOST-3] a host that replaces one that ended runs the same code, also after the file has changed', async () => {
    const { pool, entry } = await openWith(
      'export const version = rpc({}, () => 1)\nexport const crash = rpc({}, () => process.exit(1))',
      { size: 1 },
    )
    writeFileSync(entry, 'this is not code')
    expect((await failureOf(pool.invoke(callOf('crash')))).kind).toBe('crashed')
    expect(await resultOf(pool.invoke(callOf('version')))).toBe(1)
  })
})

describe('running', () => {
  test('[FN-HOST-4] a function gets its input and its context, and returns JSON', async () => {
    const { pool } = await openWith(`
export const add = rpc({}, async ({ a, b }, ctx) => ({ sum: a + b, user: ctx.auth.id, at: ctx.now().getFullYear() }))
export const nothing = rpc({}, () => undefined)`)
    const call = callOf('add', { a: 1, b: 2 })
    const context = { ...call.context, auth: { id: 'u1' }, nowMs: Date.parse('2031-05-05T00:00:00Z') }
    expect(await resultOf(pool.invoke({ ...call, context }))).toEqual({ sum: 3, user: 'u1', at: 2031 })
    expect(await resultOf(pool.invoke(callOf('nothing')))).toBeUndefined()
  })

  test('[FN-HOST-5] an HttpError is a refusal, any other error a failure with its location', async () => {
    const { pool, entry } = await openWith(`
export const refuse = rpc({}, () => { throw new HttpError(409, 'out-of-stock', 'None left', { left: 0 }) })
export const fail = rpc({}, () => {
  throw new RangeError('of mine')
})`)
    expect(await failureOf(pool.invoke(callOf('refuse')))).toEqual({
      kind: 'refused',
      status: 409,
      slug: 'out-of-stock',
      message: 'None left',
      data: { left: 0 },
    })
    expect(await failureOf(pool.invoke(callOf('fail')))).toMatchObject({
      kind: 'failed',
      message: 'RangeError: of mine',
      location: { file: entry, line: 6 },
    })
  })

  test('[FN-HOST-6] requests of ctx go to the server with the permissions of the caller or past the rules', async () => {
    const { pool } = await openWith(`
export const read = rpc({}, async (input, ctx) => {
  const row = await ctx.db('shared').posts.get('a')
  await ctx.service.db('shared').posts.update('a', { seen: true })
  return row
})`)
    const seen: unknown[] = []
    const value = await resultOf(
      pool.invoke(
        callOf('read', null, {
          async onRequest({ method, path, body }, as) {
            seen.push([as, method, path, body])
            return { status: 200, headers: { 'content-type': 'application/json' }, body: '{"id":"a"}' }
          },
        }),
      ),
    )
    expect(value).toEqual({ id: 'a' })
    expect(seen).toEqual([
      ['caller', 'GET', '/api/db/shared/tables/posts/a', null],
      ['service', 'PATCH', '/api/db/shared/tables/posts/a', '{"seen":true}'],
    ])
  })

  test('[FN-HOST-7] a generator streams its values as they are read, and ends when its consumer leaves', async () => {
    const { pool } = await openWith(`
export const count = rpc({}, async function* (to, ctx) {
  let n = 0
  try { while (n < to) yield ++n } finally { ctx.log.info('yielded', { n }) }
})`)
    const all = await pool.invoke(callOf('count', 100))
    if (all.kind !== 'stream') throw new Error(all.kind)
    expect((await Array.fromAsync(all.values)).map(Number)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1))
    const part = await pool.invoke(callOf('count', 1e9))
    if (part.kind !== 'stream') throw new Error(part.kind)
    for await (const value of part.values) if (Number(value) === 5) break
    expect(await resultOf(pool.invoke(callOf('missing')).catch(() => ({ kind: 'value', json: '"still here"' })))).toBe(
      'still here',
    )
  })

  test('[FN-HOST-8] a function of kind http gets a Request and returns a Response with a streamed body', async () => {
    const { pool } = await openWith(`
export const echo = http.post('/echo/:name', {}, async (sent, ctx) =>
  new Response(sent.body, { status: 201, headers: { 'x-name': ctx.params.name, 'x-sent': sent.headers.get('x-a') } }))`)
    const body = new Uint8Array(1_000_000).fill(7)
    const input = {
      method: 'POST',
      url: 'http://a/api/fn/echo/b',
      headers: [['x-a', '1']],
      body,
      params: { name: 'b' },
    }
    const result = await pool.invoke(callOf('echo', input))
    if (result.kind !== 'response') throw new Error(result.kind)
    expect([result.status, new Headers(result.headers.map(([name, value]) => [name, value])).get('x-name')]).toEqual([
      201,
      'b',
    ])
    expect(await new Response(result.body).bytes()).toEqual(body)
  })
})

describe('faults', () => {
  test('[FN-HOST-9] past its deadline a function is aborted, and may end by itself', async () => {
    const { pool, logged } = await openWith(`
export const slow = rpc({}, (input, ctx) => new Promise((resolve, reject) => ctx.signal.addEventListener('abort', () => {
  ctx.log.info('aborted')
  reject(ctx.signal.reason)
})))
export const quick = rpc({}, () => 'ok')`)
    expect(await failureOf(pool.invoke(callOf('slow', null, { timeoutMs: 50 })))).toMatchObject({ kind: 'timeout' })
    expect(await resultOf(pool.invoke(callOf('quick')))).toBe('ok')
    expect(logged()).not.toContain('functions.host_ended')
  })

  test('[FN-HOST-10] an invocation that returns to the host from which it was moved runs once', async () => {
    // Other hosts load for so long that the blocked one is the first that can take what was moved.
    const { pool } = await openWith(
      `
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
const flag = join(process.cwd(), 'blocked')
if (existsSync(flag)) await new Promise((resolve) => setTimeout(resolve, 3000))
export const block = rpc({}, () => {
  writeFileSync(flag, '')
  for (const until = Date.now() + 200; Date.now() < until; );
})
export const mark = rpc({}, (input, ctx) => ctx.log.info('ran'))`,
      { size: 1 },
    )
    const blocking = pool.invoke(callOf('block'))
    const runs: number[] = Array.from({ length: 20 }, () => 0)
    const onLogOf = (at: number) => () => {
      runs[at] = (runs[at] ?? 0) + 1
    }
    const marking = runs.map((_, at) => pool.invoke(callOf('mark', null, { onLog: onLogOf(at) })))
    await Promise.all([blocking, ...marking])
    // A second run would be under way by now; the host answers in order.
    await resultOf(pool.invoke(callOf('mark')))
    expect(runs).toEqual(runs.map(() => 1))
  })

  test('[FN-HOST-10] an endless loop delays nothing else, and ends with its host', async () => {
    const { pool, logged } = await openWith(`
export const loop = rpc({}, () => { for (;;); })
export const quick = rpc({}, () => 'ok')`)
    while (pool.status().hosts.filter(({ isReady }) => isReady).length < 2) await Bun.sleep(1)
    const loop = failureOf(pool.invoke(callOf('loop', null, { timeoutMs: 4000 })))
    // More than one host can take: some are given to the blocked one.
    const others = Array.from({ length: 50 }, () => resultOf(pool.invoke(callOf('quick'))))
    expect(await Promise.race([Promise.all(others), loop])).toEqual(Array(50).fill('ok'))
    expect((await loop).kind).toBe('timeout')
    while (!logged().includes('functions.host_ended')) expect(await resultOf(pool.invoke(callOf('quick')))).toBe('ok')
    expect(logged()).toContain('did not end within')
  })

  test.skipIf(process.platform !== 'linux')('[FN-HOST-11] a host that exceeds its memory is killed', async () => {
    const { pool, logged } = await openWith(
      `export const hog = rpc({}, async () => {
  const kept = []
  for (;;) { kept.push(new Uint8Array(1 << 20).fill(1)); await null }
})`,
      { memoryBytes: 256 * MiB },
    )
    expect((await failureOf(pool.invoke(callOf('hog', null, { timeoutMs: 60_000 })))).kind).toBe('crashed')
    const used = Number(/used (\d+) MiB/.exec(logged())?.[1])
    expect(used).toBeGreaterThanOrEqual(256)
    expect(used).toBeLessThan(256 * 1.2)
  })

  const ends: readonly (readonly [what: string, code: string, reason: string])[] = [
    ['process.exit', 'process.exit(7)', 'process.exit(7)'],
    ['an unhandled rejection', "void Promise.reject(new Error('lost')); await new Promise(() => {})", 'lost'],
    ['an uncaught error', "setTimeout(() => { throw new Error('late') }); await new Promise(() => {})", 'late'],
  ]
  for (const [what, code, reason] of ends)
    test(`[FN-HOST-12] ${what} ends the host only, and is logged with its location`, async () => {
      const { pool, logged, entry } = await openWith(`
export const end = rpc({}, async () => {
  ${code}
})
export const quick = rpc({}, () => 'ok')`)
      expect((await failureOf(pool.invoke(callOf('end')))).kind).toBe('crashed')
      expect(logged()).toContain(reason)
      expect(logged()).toContain(`${entry}:5`)
      expect(await resultOf(pool.invoke(callOf('quick')))).toBe('ok')
    })

  test('[FN-HOST-13] a flood of log lines is bounded and counted', async () => {
    const { pool, logged } = await openWith(`
export const flood = rpc({}, (input, ctx) => { for (let n = 0; n < 1e6; n++) ctx.log.info('line ' + n); console.log('end') })
export const wait = rpc({}, () => new Promise((resolve) => setTimeout(resolve, 50)))`)
    let lines = 0
    await pool.invoke(callOf('flood', null, { timeoutMs: 30_000, onLog: () => void lines++ }))
    expect(lines).toBeGreaterThan(100)
    expect(lines).toBeLessThan(5000)
    while (!logged().includes('functions.logs_dropped')) await pool.invoke(callOf('wait'))
  })

  test('[FN-HOST-14] after its deadline an invocation has no effects', async () => {
    const { pool } = await openWith(`
export const late = rpc({}, async (input, ctx) => {
  await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
  await ctx.service.db().posts.insert({}).catch((error) => ctx.service.db().posts.insert({}))
})`)
    let requests = 0
    const onRequest = async () => {
      requests++
      return { status: 200, headers: {}, body: '{}' }
    }
    expect((await failureOf(pool.invoke(callOf('late', null, { timeoutMs: 30, onRequest })))).kind).toBe('timeout')
    while (pool.status().hosts.some(({ invocations }) => invocations > 0)) await Bun.sleep(1)
    expect(requests).toBe(0)
  })
})

test('[FN-HOST-15] hosts are replaced once their folder is there again', async () => {
  const { pool, entry } = await openWith(
    `
export const quit = rpc({}, () => process.exit(1))
export const hello = rpc({}, () => 1)`,
    { size: 1 },
  )
  const folder = join(entry, '..')
  renameSync(folder, `${folder}-away`)
  expect((await failureOf(pool.invoke(callOf('quit')))).kind).toBe('crashed')
  const answer = resultOf(pool.invoke(callOf('hello')))
  renameSync(`${folder}-away`, folder)
  expect(await answer).toBe(1)
})
