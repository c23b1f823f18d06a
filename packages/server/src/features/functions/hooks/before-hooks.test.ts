/** Hooks before writes in real function hosts. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '../../../base/clock.ts'
import { createLog } from '../../../base/log.ts'
import { HostPool } from '../../../engines/hosts/host-pool.ts'
import type { ApiError } from '../../../errors.ts'
import { beforeSamples, beforeTimeoutMs } from '../../../limits/functions.ts'
import { MiB } from '../../../limits/units.ts'
import type { HookEvent, HookRefusal } from '../../before-hooks.ts'
import type { BeforeDefinition } from '../definitions/definition.ts'
import { createInvoker } from '../invoke/invoker.ts'
import { RecentLines } from '../logs/recent-lines.ts'
import { createBeforeHooks } from './before-hooks.ts'
import { hooksInOrder } from './declared-hooks.ts'

const root = mkdtempSync(join(tmpdir(), 'plinth-before-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const opened: HostPool[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pool) => pool.close()))
})
let folders = 0

async function openHooks(code: string) {
  const lines: string[] = []
  const clock = manualClock()
  const log = createLog({ level: 'debug', format: 'json', write: (text) => void lines.push(text) })
  const pool = new HostPool({
    size: 1,
    memoryBytes: 512 * MiB,
    environment: {},
    url: () => 'http://plinth.test',
    networks: () => [],
    log,
  })
  opened.push(pool)
  const entry = join(root, String(++folders), 'index.ts')
  mkdirSync(join(entry, '..'))
  writeFileSync(
    entry,
    `import { functionsFor, HttpError } from 'plinth/functions'\nconst { before } = functionsFor()\n${code}`,
  )
  const { functions, files } = await pool.load(entry)
  const declared = hooksInOrder(functions as unknown as readonly BeforeDefinition[], files)
  let messages = 0
  const run = async () => new Response(null, { status: 404 })
  const locationOf = (name: string) => declared.find((hook) => hook.name === name)?.location ?? null
  const invoker = createInvoker({
    hosts: pool,
    run,
    secrets: () => ({}),
    locationOf,
    lines: new RecentLines(),
    clock,
    log,
  })
  const hooks = createBeforeHooks({
    declared: () => declared,
    invoker: {
      invoke(call) {
        messages += 1
        return invoker.invoke(call)
      },
      report: invoker.report,
      countRun: invoker.countRun,
    },
    clock,
    log,
  })
  const logged = (event: string): Record<string, unknown>[] => {
    log.flush()
    return lines
      .flatMap((text) => text.split('\n'))
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .filter((line) => JSON.stringify(line).includes(event))
  }
  const runHooks = (...events: readonly HookEvent[]) => hooks.of('shared')?.run(events, { ...request })
  return { hooks, run: runHooks, logged, entry, clock, messages: () => messages }
}

const request = {
  caller: { kind: 'anonymous', auth: null, address: '127.0.0.1' },
  requestId: 'request',
  signal: new AbortController().signal,
} as const

const epoch = new Date(0).toISOString()

const insertOf = (row: Record<string, unknown>): HookEvent => ({
  namespace: 'shared',
  instanceId: null,
  table: 'posts',
  operation: 'insert',
  previous: null,
  row: { id: 'a', ...row },
})

const errorOf = (run: Promise<unknown> | undefined): Promise<ApiError & HookRefusal> =>
  (run as Promise<unknown>).then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error,
  )

describe('hooks in function hosts', () => {
  test('[FN-BEFORE-1] run in the order of their declarations, each with the row of the one before', async () => {
    const { hooks, run, messages } = await openHooks(`
export const second = before('shared.posts', ['insert'], ({ row }) => ({ ...row, log: row.log + '1' }))
export const first = before('shared.posts', ['insert', 'update'], async ({ row, caller }) => ({ ...row, log: row.log + '2', by: caller.kind }))
export const third = before('shared.posts', ['insert'], () => {})
export const other = before('shared.notes', ['insert'], () => { throw new Error('not for posts') })
`)
    expect(hooks.of('main')).toBeNull()
    const shared = hooks.of('shared')
    expect(shared?.covers('posts', 'update')).toBe(true)
    expect(shared?.covers('posts', 'delete')).toBe(false)
    expect(shared?.covers('pages', 'insert')).toBe(false)
    const results = await run(insertOf({ log: '' }), insertOf({ log: 'x' }), {
      ...insertOf({ log: '' }),
      operation: 'update',
    })
    expect(results?.map((one) => one?.row)).toEqual([
      { id: 'a', log: '12', by: 'anonymous' },
      { id: 'a', log: 'x12', by: 'anonymous' },
      { id: 'a', log: '2', by: 'anonymous' },
    ])
    expect(messages()).toBe(1)
  })

  test.each<[what: string, returned: string, expected: object | string | null]>([
    ['a removed and a new member', '{ id: row.id, tags: row.tags, text: 1 }', { id: 'a', tags: ['x'], text: 1 }],
    ['members without JSON', '{ ...row, text: undefined, tags: () => {} }', { id: 'a' }],
    ['values with JSON of their own', '{ ...row, tags: [new Date(0)] }', { id: 'a', text: '', tags: [epoch] }],
    ['an equal value', '{ ...row, tags: [...row.tags] }', { id: 'a', text: '', tags: ['x'] }],
    [
      'a name of the prototype',
      '{ ...row, ["__proto__"]: 1 }',
      JSON.parse('{"id":"a","text":"","tags":["x"],"__proto__":1}'),
    ],
    ['a row with JSON of its own', '{ ...row, toJSON: () => ({ id: 1 }) }', { id: 1 }],
    ['a list', '[row.id]', ['a']],
    ['what has no JSON', '() => row', null],
  ])('[FN-BEFORE-1] the row that is returned arrives as its JSON: %s', async (_, returned, expected) => {
    const { run } = await openHooks(`
export const shape = before('shared.posts', ['insert'], ({ row }) => (${returned}))`)
    const [result] = (await run(insertOf({ text: '', tags: ['x'] }))) ?? []
    expect(JSON.parse(JSON.stringify(result?.row))).toEqual(expected)
    expect(result?.difference === null).toBe(expected === null || Array.isArray(expected))
  })

  test('[FN-BEFORE-2] an HttpError is the refusal of its event', async () => {
    const { run } = await openHooks(`
export const check = before('shared.posts', ['insert'], ({ row }) => {
  if (!row.title) throw new HttpError(422, 'no-title', 'No title', { title: { code: 'required', message: 'missing' } })
})`)
    const { index, error } = await errorOf(run(insertOf({ title: 'x' }), insertOf({}), insertOf({})))
    expect(index).toBe(1)
    expect(error.body()).toEqual({
      code: 422,
      slug: 'no-title',
      message: 'No title',
      data: { title: { code: 'required', message: 'missing' } },
    })
  })

  test.each([
    ['an error', "throw new TypeError('broken')", 'TypeError: broken', 4],
    ['an asynchronous error', "await null; throw new Error('late')", 'late', 4],
    ['a change of the row in place', "row.title = 'x'", 'not extensible', 4],
  ])('[FN-BEFORE-5] %s is 500, and logged with its location', async (_, code, message, line) => {
    const { run, logged, entry } = await openHooks(
      `export const check = before('shared.posts', ['insert'], async ({ row }) => {\n${code} })`,
    )
    expect((await errorOf(run(insertOf({})))).body()).toMatchObject({ code: 500, slug: 'hook-failed' })
    const [event] = logged('functions.failed')
    expect(event).toMatchObject({ function: 'check', location: `${entry}:${line}`, requestId: 'request' })
    expect(event?.message).toContain(message)
  })

  test('[FN-BEFORE-5] a hook that ends its host is 503, one that does not end in time is 500', async () => {
    const { run, logged } = await openHooks(`
export const check = before('shared.posts', ['insert'], ({ row }, ctx) =>
  row.exits ? process.exit(1) : new Promise(() => {}))`)
    const crashed = await errorOf(run(insertOf({ exits: true })))
    expect([crashed.status, crashed.headers]).toEqual([503, { 'Retry-After': '1' }])
    const startedMs = performance.now()
    expect((await errorOf(run(insertOf({})))).body()).toMatchObject({ code: 500, slug: 'hook-failed' })
    expect(performance.now() - startedMs).toBeGreaterThan(beforeTimeoutMs - 50)
    expect(logged('functions.failed')).toHaveLength(2)
  })

  test('[FN-BEFORE-5] what cannot be stored is logged with the hook that returned it', async () => {
    const { run, logged, entry } = await openHooks(`
export const wrong = before('shared.posts', ['insert'], () => 'text')
export const silent = before('shared.posts', ['insert'], () => {})`)
    const [result] = (await run(insertOf({}))) ?? []
    expect(result?.row).toBe('text')
    expect(result?.fail('It must return an object').body()).toMatchObject({ code: 500, slug: 'hook-failed' })
    expect(logged('functions.failed')).toMatchObject([
      { function: 'wrong', location: `${entry}:4`, message: 'It must return an object' },
    ])
  })

  test('[FN-BEFORE-9] hooks that cause each other end at a depth', async () => {
    const { hooks } = await openHooks(`export const loop = before('shared.posts', ['insert'], () => {})`)
    const at = (depth: number) =>
      hooks.of('shared')?.run([insertOf({})], { ...request, requestId: `fn:${depth}:loop:x` })
    expect(await at(7)).toEqual([null])
    expect((await errorOf(at(8))).body()).toMatchObject({ code: 500, slug: 'hook-failed' })
  })

  test('[FN-BEFORE-10] slow hooks are measured, and named in the log once a minute', async () => {
    const { hooks, run, logged, clock } = await openHooks(
      `export const slow = before('shared.posts', ['insert'], async () => { await Bun.sleep(2) })`,
    )
    const runMany = async (): Promise<void> => {
      for (let n = 0; n < beforeSamples; n++) await run(insertOf({}))
    }
    await runMany()
    await runMany()
    expect(logged('functions.before_slow')).toMatchObject([{ table: 'shared.posts' }])
    const samples = hooks.times.durations.get('shared.posts')?.samples('seconds', {})
    expect(samples?.at(-1)).toMatchObject({ metricName: 'seconds_count', value: 2 * beforeSamples })
    clock.advance(60_000)
    await runMany()
    expect(logged('functions.before_slow')).toHaveLength(2)
  })
})
