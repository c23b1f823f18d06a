import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../base/log.ts'
import { hostHooksGathered } from '../../limits/functions.ts'
import { MiB } from '../../limits/units.ts'
import { HostPool } from './host-pool.ts'
import type { Invocation } from './hosts.ts'

const root = mkdtempSync(join(tmpdir(), 'plinth-host-load-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const code = `import { functionsFor } from 'plinth/functions'
const { before, rpc } = functionsFor()
const wait = (input, ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
export const hook = before('shared.posts', ['insert'], wait)
export const idle = rpc({}, wait)`

const opened: HostPool[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pool) => pool.close()))
})

async function open(): Promise<HostPool> {
  const entry = join(root, 'index.ts')
  writeFileSync(entry, code)
  const pool = new HostPool({
    size: 2,
    memoryBytes: 512 * MiB,
    environment: {},
    url: () => 'http://plinth.test',
    networks: () => [],
    log: createLog({ level: 'error', format: 'json', write() {} }),
  })
  opened.push(pool)
  await pool.load(entry)
  while (pool.status().hosts.filter(({ isReady }) => isReady).length < 2) await Bun.sleep(1)
  return pool
}

const callOf = (name: string, signal: AbortSignal): Invocation => ({
  name,
  input: name === 'hook' ? [{ hooks: [name], event: {} }] : null,
  ...(name === 'hook' && { together: [name] }),
  timeoutMs: 60_000,
  signal: () => signal,
  context: {
    auth: null,
    callerKind: 'user',
    nowMs: 0,
    idempotencyKey: 'k',
    secrets: {},
  },
  onRequest: async () => ({ status: 404, headers: {}, body: null }),
  onLog() {},
})

/** The invocations of the hosts after calls by name, in order. */
async function spread(...names: readonly string[]): Promise<number[]> {
  const pool = await open()
  const leaving = new AbortController()
  const calls = names.map((name) => pool.invoke(callOf(name, leaving.signal)).catch((error) => error.kind))
  const counts = pool.status().hosts.map(({ invocations }) => invocations)
  leaving.abort()
  expect(await Promise.all(calls)).toEqual(names.map(() => 'aborted'))
  return counts
}

const times = (count: number, name: string): string[] => Array.from({ length: count }, () => name)

describe('[FN-HOST-18]', () => {
  test('hooks of one tick share a host, other functions are spread', async () => {
    expect(await spread(...times(10, 'hook'))).toEqual([10, 0])
    expect(await spread(...times(10, 'idle'))).toEqual([5, 5])
  })

  test('hooks go to the host that other functions leave free', async () => {
    expect(await spread('idle', ...times(10, 'hook'))).toEqual([1, 10])
  })

  test('more hooks than one host gathers are spread', async () => {
    expect(await spread(...times(hostHooksGathered + 20, 'hook'))).toEqual([hostHooksGathered + 1, 19])
  })
})

test('[FN-HOST-9] an invocation whose caller leaves is aborted, also where it left at once', async () => {
  const pool = await open()
  const failureOf = (signal: AbortSignal) =>
    pool.invoke(callOf('idle', signal)).then(
      () => null,
      (error) => error.kind,
    )
  expect(await failureOf(AbortSignal.abort())).toBe('aborted')
  const leaving = new AbortController()
  const read = Promise.withResolvers<void>()
  const signal = (): AbortSignal => {
    read.resolve()
    return leaving.signal
  }
  const answer = pool.invoke({ ...callOf('idle', leaving.signal), signal }).catch((error) => error.kind)
  await read.promise
  leaving.abort()
  expect(await answer).toBe('aborted')
})
