import { describe, expect, test } from 'bun:test'
import type { Caller } from '../../access/caller.ts'
import { userCaller } from '../../access/callers.test.ts'
import { manualClock } from '../../base/clock.ts'
import { parseConfig } from '../../config/validate.ts'
import { ApiError } from '../../errors.ts'
import type { Reply } from '../../http/endpoint.ts'
import { emptyBody } from '../../http/input/request-body.ts'
import { textOf } from '../../http/replies/reply.ts'
import { createSystemEndpoints, type SystemConfig, type SystemParts } from './endpoints.ts'

const clock = manualClock(Date.UTC(2026, 0, 31, 12))
const { mode, auth: authDefault, push } = parseConfig({}, { mode: 'release', rootKey: '' }).config
const closed: SystemConfig = {
  mode,
  namespaces: new Map(),
  buckets: new Map(),
  rooms: new Map(),
  kv: new Map(),
  sql: new Map(),
  vector: new Map(),
  schemaEndpoint: false,
  captcha: null,
  dashboard: null,
  auth: authDefault,
  push,
}

const anonymous: Caller = { kind: 'anonymous', auth: null, address: '127.0.0.1' }
const user = userCaller('ada')
const key = (...scopes: string[]): Caller => ({ kind: 'service', auth: null, keyName: 'test', scopes })

/** Calls one endpoint as `caller`; a refusal comes back as its status. */
async function ask(name: string, parts: Partial<SystemParts>, caller: Caller = anonymous): Promise<Reply> {
  const endpoints = createSystemEndpoints({
    config: () => closed,
    clock,
    version: '1.2.3',
    findFaults: async () => noFaults,
    metrics: () => 'requests_total 7\n',
    functions: () => [],
    loadOpenApi: async () => (schema) => ({ openapi: '3.1.0', tables: schema }),
    loadDocsPage: async () => ({
      docsPage: '<!doctype html>',
      docsPageHeaders: { 'Referrer-Policy': 'no-referrer' },
    }),
    url: () => 'http://localhost',
    needsSetup: async () => true,
    ...parts,
  })
  const found = endpoints.find((endpoint) => endpoint.name === name)
  if (!found) throw new Error(`no endpoint ${name}`)
  const path = found.paths[0] ?? ''
  const call = { ...request, caller, path }
  try {
    return await found.handle(call)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { status: error.status, text: JSON.stringify(error.body()) }
  }
}

/** What no endpoint here looks at. */
const request = {
  params: {},
  query: {},
  body: {},
  headers: new Headers(),
  method: 'GET',
  requestId: 'r1',
  address: '127.0.0.1',
  url: '/',
  signal: new AbortController().signal,
  rawBody: emptyBody(),
}

const noFaults = { sql: null, blobs: null, cluster: null }

const bodyOf = (reply: Reply): unknown => JSON.parse(textOf(reply) ?? '')

describe('health', () => {
  test('[SYS-16] health shows engine states and reasons only to a key with the scope', async () => {
    const parts = { findFaults: async () => ({ ...noFaults, sql: 'The disk is full', cluster: 'Redis is away' }) }
    const engines = { sql: 'unavailable', blobs: 'ok', cluster: 'unavailable' }
    const reason = 'sql: The disk is full; cluster: Redis is away'
    const scopes = ['*', 'system:health:*:read']
    for (const scope of scopes)
      expect(bodyOf(await ask('system.health', parts, key(scope)))).toMatchObject({ engines, reason })
    for (const caller of [anonymous, user, key('system:metrics:*:read')]) {
      const reply = await ask('system.health', parts, caller)
      expect(reply.status).toBe(503)
      expect(bodyOf(reply)).not.toHaveProperty('engines')
      expect(bodyOf(reply)).not.toHaveProperty('reason')
    }
    const healthy = bodyOf(await ask('system.health', {}, key('*')))
    expect(healthy).toMatchObject({ status: 'ok', engines: { sql: 'ok', blobs: 'ok', cluster: 'ok' } })
    expect(healthy).not.toHaveProperty('reason')
  })

  test('[SYS-1] health is ok, with version and timestamp', async () => {
    const reply = await ask('system.health', {})
    expect(reply.status).toBe(200)
    expect(bodyOf(reply)).toEqual({ status: 'ok', version: '1.2.3', timestamp: '2026-01-31T12:00:00.000Z' })
  })

  const away: readonly [string, SystemParts['findFaults']][] = [
    ['while something is away', async () => ({ ...noFaults, blobs: 'The disk is full' })],
    ['when the answer fails', () => Promise.reject(new Error('no answer'))],
  ]
  for (const [when, findFaults] of away) {
    test(`[SYS-2] health is 503 ${when}`, async () => {
      const reply = await ask('system.health', { findFaults })
      expect(reply.status).toBe(503)
      expect(reply.headers).toHaveProperty('Retry-After')
      expect(bodyOf(reply)).toEqual({
        code: 503,
        message: 'Service unavailable',
        slug: 'unavailable',
        status: 'unavailable',
        version: '1.2.3',
        timestamp: '2026-01-31T12:00:00.000Z',
      })
    })
  }
})

describe('config', () => {
  test('[SYS-3] the public configuration contains the site key and the password policy, and no other settings', async () => {
    const providers = { github: { clientId: 'hush', clientSecret: 'hush' } }
    const secretive = {
      ...closed,
      captcha: { siteKey: 'site', secretKey: 'hush' },
      serviceKeys: ['hush'],
      auth: { ...authDefault, providers, mail: { from: 'hush' } as never, passwordCharsMin: 12 },
    }
    const reply = await ask('system.config', { config: () => secretive })
    expect(bodyOf(reply)).toEqual({
      captcha: { siteKey: 'site' },
      auth: {
        signup: true,
        anonymous: true,
        passkeys: false,
        providers: ['github'],
        passwordPolicy: { minLength: 12, maxLength: 256 },
      },
      push: { vapidPublicKey: null },
    })
    expect(bodyOf(await ask('system.config', {}))).toMatchObject({ captcha: null })
  })
})

describe('schema', () => {
  const reader = key('schema:endpoint:*:read')
  const empty = { tables: {}, namespaces: {}, buckets: [], rooms: {}, functions: {} }
  const cases: readonly [
    rule: string,
    mode: SystemConfig['schemaEndpoint'],
    who: string,
    caller: Caller,
    status: number,
  ][] = [
    ['[SYS-4]', false, 'anonymous callers', anonymous, 404],
    ['[SYS-4]', false, 'a user', user, 404],
    ['[SYS-4]', false, 'the root key', key('*'), 404],
    ['[SYS-5]', true, 'anonymous callers', anonymous, 200],
    ['[SYS-5]', true, 'a user', user, 200],
    ['[SYS-6]', 'authenticated', 'anonymous callers', anonymous, 401],
    ['[SYS-6]', 'authenticated', 'a user', user, 200],
    ['[SYS-6]', 'authenticated', 'a key with the scope', reader, 200],
    ['[SYS-6]', 'authenticated', 'a key without it', key('db:table:*:read'), 401],
  ]
  for (const [rule, schemaEndpoint, who, caller, status] of cases) {
    test(`${rule} in mode ${schemaEndpoint} the schema endpoint returns ${status} to ${who}`, async () => {
      const reply = await ask('system.schema', { config: () => ({ ...closed, schemaEndpoint }) }, caller)
      expect(reply.status).toBe(status)
      if (status === 200) expect(bodyOf(reply)).toEqual(empty)
    })

    test(`[SYS-11] in mode ${schemaEndpoint} the OpenAPI document ${status === 200 ? 'names' : 'hides'} the tables from ${who}`, async () => {
      const reply = await ask('system.openapi', { config: () => ({ ...closed, schemaEndpoint }) }, caller)
      expect(bodyOf(reply)).toEqual({ openapi: '3.1.0', tables: status === 200 ? empty : null })
    })
  }

  test('[SYS-14] a reloaded configuration is described immediately, an unchanged one only once', async () => {
    let current: SystemConfig = { ...closed, schemaEndpoint: true }
    let built = 0
    const none: [] = []
    const endpoints = createSystemEndpoints({
      config: () => current,
      clock,
      version: '1',
      findFaults: async () => noFaults,
      metrics: () => '',
      loadOpenApi: async () => () => ({ built: ++built }),
      functions: () => none,
      loadDocsPage: async () => ({ docsPage: '', docsPageHeaders: {} }),
      url: () => '',
      needsSetup: async () => false,
    })
    const openApi = endpoints.find(({ name }) => name === 'system.openapi')
    const call = { ...request, caller: anonymous, path: '/openapi.json' }
    const read = async () => bodyOf((await openApi?.handle(call)) as Reply)
    expect(await read()).toEqual({ built: 1 })
    expect(await read()).toEqual({ built: 1 })
    current = { ...current }
    expect(await read()).toEqual({ built: 2 })
  })
})

describe('pages', () => {
  test('[SYS-12] the documentation page has the type HTML', async () => {
    expect(await ask('system.docs', {})).toMatchObject({ status: 200, contentType: 'text/html; charset=utf-8' })
  })

  test('[SYS-13] metrics have the Prometheus text format', async () => {
    const reply = await ask('system.metrics', {}, key('*'))
    expect(reply.text).toBe('requests_total 7\n')
    expect(reply.contentType).toMatch(/^text\/plain; version=0\.0\.4/)
  })
})
