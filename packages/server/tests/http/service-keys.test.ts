/**
 * Service keys over HTTP: every endpoint with every scope, expiry, allowed networks, and that keys are never logged or
 * returned.
 */
import { beforeEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { parseTrustProxy } from '../../src/base/network/address.ts'
import type { Answer, Client } from '../harness/client.ts'
import { open, parseTestConfig } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey } from '../harness/server.ts'

const posts = '/api/db/shared/tables/posts'
const notes = '/api/db/shared/tables/notes'
const inSpace = '/api/db/space/x/tables/posts'
const schema = { title: { type: 'string' }, secret: { type: 'string' } } as const
const closed = { schema, hidden: ['secret'], search: ['title'] } as const

/** Scopes by the name of the key; `keyOf` derives the key from the name. */
const scopes: Readonly<Record<string, readonly string[]>> = {
  readPosts: ['db:table:posts:read'],
  writePosts: ['db:table:posts:write'],
  bothPosts: ['db:table:posts:read', 'db:table:posts:write'],
  anyOfPosts: ['db:table:posts:*'],
  readAll: ['db:table:*:read'],
  writeAll: ['db:table:*:write'],
  allOfDb: ['db:*:*:*'],
  broadcast: ['db:channel:*:broadcast'],
  schema: ['schema:endpoint:*:read'],
  storage: ['storage:bucket:*:read'],
  analytics: ['analytics:*:*:*'],
  everything: ['*'],
  fourStars: ['*:*:*:*'],
  readEverything: ['*:*:*:read'],
}
const keyOf = (name: string): string => `key-of-${name}-0123456789`
const clock = manualClock()

const config = {
  databases: {
    shared: { tables: { posts: closed, notes: { schema, access: open } } },
    space: { instance: true, tables: { posts: closed } },
  },
  api: { schemaEndpoint: 'authenticated' },
  serviceKeys: [
    ...Object.entries(scopes).map(([name, list]) => ({ name, key: keyOf(name), scopes: list })),
    { name: 'expiring', key: keyOf('expiring'), scopes: ['*'], expiresAt: '2026-01-31T13:00:00+01:00' },
    { name: 'local', key: keyOf('local'), scopes: ['*'], ipCidr: ['127.0.0.0/8', '::1'] },
    { name: 'office', key: keyOf('office'), scopes: ['*'], ipCidr: ['203.0.113.0/24', '2001:db8::/32'] },
  ],
} as const

interface ScopedRequest {
  readonly needs: string
  readonly send: (client: Client) => Promise<Answer>
}

const requestsOf = (base: string, table: string): Readonly<Record<string, ScopedRequest>> => ({
  list: { needs: `db:table:${table}:read`, send: (client) => client.get(base) },
  'list by cursor': { needs: `db:table:${table}:read`, send: (client) => client.get(`${base}?after=`) },
  get: { needs: `db:table:${table}:read`, send: (client) => client.get(`${base}/a`) },
  head: { needs: `db:table:${table}:read`, send: (client) => client.request('HEAD', `${base}/a`) },
  count: { needs: `db:table:${table}:read`, send: (client) => client.get(`${base}/count`) },
  search: { needs: `db:table:${table}:read`, send: (client) => client.get(`${base}/search?q=x`) },
  insert: { needs: `db:table:${table}:write`, send: (client) => client.post(base, { title: 'x' }) },
  upsert: {
    needs: `db:table:${table}:write`,
    send: (client) => client.post(`${base}?upsert=true`, { id: 'a', title: 'x' }),
  },
  update: { needs: `db:table:${table}:write`, send: (client) => client.patch(`${base}/a`, { title: 'x' }) },
  delete: { needs: `db:table:${table}:write`, send: (client) => client.delete(`${base}/a`) },
  batch: {
    needs: `db:table:${table}:write`,
    send: (client) => client.post(`${base}/batch`, { updates: [{ id: 'a', data: { title: 'y' } }] }),
  },
  'empty batch': { needs: `db:table:${table}:write`, send: (client) => client.post(`${base}/batch`, {}) },
  'batch by filter': {
    needs: `db:table:${table}:write`,
    send: (client) => client.post(`${base}/batch-by-filter`, { action: 'delete' }),
  },
})

const scopedRequests: Readonly<Record<string, ScopedRequest>> = {
  ...Object.fromEntries(Object.entries(requestsOf(posts, 'posts')).map(([name, one]) => [`${name} of posts`, one])),
  ...Object.fromEntries(
    Object.entries(requestsOf(inSpace, 'posts')).map(([name, one]) => [`${name} of posts in an instance`, one]),
  ),
  'list of notes': { needs: 'db:table:notes:read', send: (client) => client.get(notes) },
  'insert of notes': { needs: 'db:table:notes:write', send: (client) => client.post(notes, { title: 'x' }) },
  schema: { needs: 'schema:endpoint:*:read', send: (client) => client.get('/api/schema') },
}

/** Whether a list of scopes covers the scope that a request needs, part by part. */
const covers = (list: readonly string[], need: string): boolean =>
  list.some(
    (scope) => scope === '*' || scope.split(':').every((part, at) => part === '*' || part === need.split(':')[at]),
  )

describeServer('service keys', { config, clock }, (server) => {
  beforeEach(async () => {
    for (const table of [posts, notes, inSpace]) {
      await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })
      expect((await server.service.post(table, { id: 'a', title: 'x', secret: 's' })).status).toBe(201)
    }
  })

  describe('scopes', () => {
    for (const [name, list] of Object.entries(scopes))
      test(`[KEY-4, KEY-5, KEY-6, KEY-7] the requests that ${list} allows`, async () => {
        const client = server.withKey(keyOf(name))
        for (const [what, { needs, send }] of Object.entries(scopedRequests)) {
          const before = await server.dump(posts, notes, inSpace)
          const answer = await send(client)
          if (covers(list, needs)) {
            if (answer.status >= 300) throw new Error(`${what} was refused with ${answer.status}: ${answer.text}`)
            for (const table of [posts, inSpace])
              await server.service.post(`${table}?upsert=true`, { id: 'a', title: 'x', secret: 's' })
          } else {
            expect({ what, status: answer.status }).toEqual({ what, status: 401 })
            if (what.startsWith('head')) continue
            expect(expectRefusal(answer, 401).message).toBe('Invalid service key')
            expect(await server.dump(posts, notes, inSpace)).toEqual(before)
          }
        }
      })

    test('[KEY-4] a key without the scope gets the same response as a wrong key', async () => {
      const outOfScope = await server.withKey(keyOf('readPosts')).post(posts, { title: 'x' })
      const wrong = await server.withKey('nothing like a key').post(posts, { title: 'x' })
      expect(outOfScope.text).toBe(wrong.text)
    })

    test('[KEY-5] a scope allows a table in every namespace, and no other table', async () => {
      const client = server.withKey(keyOf('readPosts'))
      expect((await client.get(posts)).status).toBe(200)
      expect((await client.get(inSpace)).status).toBe(200)
      expectRefusal(await client.get(notes), 401)
      for (const path of [
        '/api/db/shared/tables/posts%3Aread',
        '/api/db/shared/tables/POSTS',
        '/api/db/shared/tables/*',
        '/api/db/shared/tables/posts%00',
        '/api/db/shared/tables/nope',
      ]) {
        const { status } = await client.get(path)
        if (status !== 401 && status !== 404) throw new Error(`${path} returned ${status}`)
      }
    })

    test('[KEY-1, AUTH-3] a limited key can request public endpoints', async () => {
      for (const path of ['/api/config', '/openapi.json', '/docs', '/api/auth/jwks.json'])
        expect((await server.withKey(keyOf('readPosts')).get(path)).status).toBe(200)
    })
  })

  test('[KEY-3] the root key bypasses every rule and reads hidden fields', async () => {
    expect((await server.service.get(`${posts}/a`)).body.secret).toBe('s')
    expect((await server.service.get('/metrics')).status).toBe(200)
    expect((await server.service.get(inSpace)).status).toBe(200)
  })

  test('[KEY-13] a key with a read scope reads hidden fields', async () => {
    const client = server.withKey(keyOf('readPosts'))
    expect((await client.get(`${posts}/a`)).body.secret).toBe('s')
    expect((await client.get(`${posts}?sort=secret:asc&fields=secret`)).body.items).toEqual([{ secret: 's' }])
  })

  test('[KEY-1, KEY-2] a wrong key is refused everywhere except by health', async () => {
    for (const path of [
      posts,
      notes,
      `${notes}/a`,
      '/api/config',
      '/api/schema',
      '/openapi.json',
      '/docs',
      '/metrics',
      '/api/auth/jwks.json',
    ])
      expect(expectRefusal(await server.withKey('wrong').get(path), 401).message).toBe('Invalid service key')
    expect((await server.withKey('wrong').get('/api/health')).status).toBe(200)
    const before = await server.dump(notes)
    expectRefusal(await server.withKey('wrong').post(notes, { title: 'x' }), 401)
    expect(await server.dump(notes)).toEqual(before)
  })

  test('[KEY-10] variations of the key, and the key in other places of the request, are refused', async () => {
    for (const key of [
      rootKey.slice(0, -1),
      `${rootKey}x`,
      rootKey.toUpperCase(),
      `x${rootKey}`,
      `"${rootKey}"`,
      `Bearer ${rootKey}`,
      `${rootKey},${rootKey}`,
      'x'.repeat(5000),
      '*',
      'root',
      'null',
      'undefined',
      '__proto__',
    ])
      expectRefusal(await server.withKey(key).get(notes), 401)
    expectRefusal(await server.anonymous.get(notes, { 'x-platform-service-key': '' }), 401)
    expectRefusal(
      await server.anonymous.get(`${posts}?key=${rootKey}&service_key=${rootKey}&x-platform-service-key=${rootKey}`),
      400,
    )
    expectRefusal(await server.anonymous.get(posts, { authorization: `Bearer ${rootKey}` }), 401)
    expectRefusal(await server.anonymous.get(posts, { 'x-service-key': rootKey, apikey: rootKey }), 401)
  })

  test('[KEY-1] the name of the header is case-insensitive', async () => {
    expect((await server.anonymous.get(posts, { 'X-PLATFORM-service-key': rootKey })).status).toBe(200)
  })

  test('[AUTH-6] a bearer token beside a service key is ignored', async () => {
    const token = await server.token('alice')
    for (const authorization of [`Bearer ${token}`, 'Bearer nonsense', 'Basic eDp5', '']) {
      expect((await server.anonymous.get(posts, { 'x-platform-service-key': rootKey, authorization })).status).toBe(200)
      expect(
        expectRefusal(await server.anonymous.get(notes, { 'x-platform-service-key': 'wrong', authorization }), 401)
          .message,
      ).toBe('Invalid service key')
    }
  })

  test('[AUTH-4, AUTH-5] an endpoint for service keys is 401 without credentials and 403 for a user', async () => {
    expect(expectRefusal(await server.anonymous.get('/metrics'), 401).message).toBe('Authentication required')
    expect(expectRefusal(await server.as({ id: 'alice', role: 'admin' }).get('/metrics'), 403).message).toBe(
      'Access denied',
    )
    expect(expectRefusal(await server.withKey(keyOf('readPosts')).get('/metrics'), 401).message).toBe(
      'Invalid service key',
    )
  })

  test('[KEY-8] a key expires at its expiresAt', async () => {
    clock.set(Date.UTC(2026, 0, 31, 11, 59, 59, 999))
    expect((await server.withKey(keyOf('expiring')).get(posts)).status).toBe(200)
    clock.set(Date.UTC(2026, 0, 31, 12))
    expectRefusal(await server.withKey(keyOf('expiring')).get(posts), 401)
    expectRefusal(await server.withKey(keyOf('expiring')).get('/api/config'), 401)
    expect((await server.service.get(posts)).status).toBe(200)
  })

  test('[KEY-9] a key with networks is refused from other addresses', async () => {
    expect((await server.withKey(keyOf('local')).get(posts)).status).toBe(200)
    expectRefusal(await server.withKey(keyOf('office')).get(posts), 401)
    expectRefusal(
      await server.anonymous.get(posts, {
        'x-platform-service-key': keyOf('office'),
        'x-forwarded-for': '203.0.113.7',
      }),
      401,
    )
  })

  test('[KEY-11] no response and no log contains a key', async () => {
    const wrong = 'a-wrong-key-that-must-not-be-logged'
    const texts = [
      (await server.withKey(wrong).get(posts)).text,
      (await server.service.get('/metrics')).text,
      (await server.service.get('/openapi.json')).text,
      (await server.service.get('/api/config')).text,
      (await server.anonymous.get(`${posts}?key=${rootKey}`)).text,
      (await server.service.post(notes, { nope: 1 })).text,
      (await server.service.get('/nope')).text,
    ]
    const everything = texts.join('\n') + server.logged()
    expect(server.logged()).toContain('request')
    for (const key of [rootKey, wrong, keyOf('readPosts'), 'secret-for-tests']) expect(everything).not.toContain(key)
  })
})

describeServer(
  'service keys behind a proxy',
  { config, clock, settings: { trustProxy: parseTrustProxy('1') } },
  (server) => {
    test('[KEY-9] the address of the client is the one that the proxy reports', async () => {
      const from = (address: string) =>
        server.anonymous.get(posts, { 'x-platform-service-key': keyOf('office'), 'x-forwarded-for': address })
      for (const address of ['203.0.113.7', '::ffff:203.0.113.7', '2001:db8:5::1'])
        expect({ address, status: (await from(address)).status }).toEqual({ address, status: 200 })
      for (const address of ['203.0.114.7', '2001:db9::1', '127.0.0.1', 'nonsense', '203.0.113.7, 198.51.100.1'])
        expectRefusal(await from(address), 401)
    })
  },
)

test('[KEY-12] an unknown scope is a configuration error that names it', () => {
  for (const scope of [
    'db',
    'db:table:posts',
    'db:table:posts:delete',
    'db:tables:posts:read',
    'posts:read',
    '',
    '**',
    'db:table:posts:read:extra',
    'auth:admin:x:y',
  ])
    expect(() =>
      parseTestConfig({ serviceKeys: [{ name: 'k', key: keyOf('k'), scopes: [scope] }] }, 'release', rootKey),
    ).toThrow('serviceKeys[0].scopes[0]')
})
