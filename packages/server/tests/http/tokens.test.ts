/** Access tokens over HTTP: which are valid, for how long, and which of their claims rules receive. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { manualClock } from '../../src/base/clock.ts'
import { forge, forgeWith, readToken, signingKey } from '../harness/records/forge.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, tokenSecret } from '../harness/server.ts'

const own = '/api/db/shared/tables/own'
const publicTable = '/api/db/shared/tables/public'
const clock = manualClock()

type Auth = {
  id: string
  email: string | null
  displayName: string | null
  role: string
  isAnonymous: boolean
  custom: Record<string, unknown>
} | null

const config = {
  databases: {
    shared: {
      tables: {
        own: {
          schema: { ownerId: { type: 'string' } },
          access: { read: (auth: Auth) => auth && { ownerId: auth.id } },
        },
        public: { schema: { n: { type: 'number' } }, access: { read: true, insert: true } },
        admins: { schema: { n: { type: 'number' } }, access: { read: (auth: Auth) => auth?.role === 'admin' } },
        claims: {
          schema: { n: { type: 'number' } },
          access: {
            read: (auth: Auth) =>
              auth !== null &&
              JSON.stringify([auth.email, auth.displayName, auth.role, auth.isAnonymous, auth.custom]) ===
                '["a@example.com","Ann","editor",true,{"plan":"pro"}]',
          },
        },
      },
    },
  },
} as const

describeServer('tokens', { config, clock }, (server) => {
  let good = ''
  beforeAll(async () => {
    good = await server.token('alice')
    await server.service.post(`${own}/batch`, {
      inserts: [
        { id: 'a', ownerId: 'alice' },
        { id: 'b', ownerId: 'bob' },
      ],
    })
  })

  const bearer = (token: string, path = own) => server.anonymous.get(path, { authorization: `Bearer ${token}` })
  const valid = (claims: Record<string, unknown> = {}): Record<string, unknown> => ({
    ...readToken(good).claims,
    ...claims,
  })
  const key = signingKey(tokenSecret)

  test('[AUTH-1] a bearer token identifies a user; the scheme is case-insensitive', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      const { status, body } = await server.anonymous.get(own, { authorization: `${scheme} ${good}` })
      expect(status).toBe(200)
      expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['a'])
    }
  })

  test('[AUTH-2, AUTH-4] a caller without credentials is anonymous', async () => {
    expect((await server.anonymous.get(publicTable)).status).toBe(200)
    expect(expectRefusal(await server.anonymous.get(own), 401).message).toBe('Authentication required')
  })

  test('[AUTH-7] another scheme or a missing token is 401', async () => {
    for (const authorization of [
      'Bearer',
      'Bearer ',
      'Basic YWxpY2U6eA==',
      'Token x',
      good,
      `Bearer ${good} ${good}`,
      `Bearer: ${good}`,
      'Digest username="x"',
      `Bearer ${good},Bearer ${good}`,
      'Negotiate x',
    ])
      for (const path of [own, publicTable]) expectRefusal(await server.anonymous.get(path, { authorization }), 401)
  })

  test('[TOKEN-1, TOKEN-2] a token has the documented claims and is valid for 15 minutes', () => {
    const { header, claims } = readToken(good)
    expect(header.alg).toBe('EdDSA')
    expect(Object.keys(claims).sort()).toEqual([
      'custom',
      'displayName',
      'email',
      'emailVerified',
      'exp',
      'iat',
      'isAnonymous',
      'iss',
      'jti',
      'role',
      'sid',
      'sub',
    ])
    expect((claims.exp as number) - (claims.iat as number)).toBe(15 * 60)
    expect(claims.sub).toBe('alice')
  })

  test('[TOKEN-3] the published keys verify a token and contain no private members', async () => {
    const { status, body } = await server.anonymous.get('/api/auth/jwks.json')
    expect(status).toBe(200)
    for (const jwk of body.keys)
      expect(Object.keys(jwk).filter((name) => ['d', 'k', 'p', 'q', 'dp', 'dq', 'qi'].includes(name))).toEqual([])
    expect(body.keys.map(({ kid }: { kid: string }) => kid)).toContain(readToken(good).header.kid)
    const { payload } = await jwtVerify(good, createLocalJWKSet(body), { currentDate: new Date(clock.now()) })
    expect(payload.sub).toBe('alice')
  })

  test('[TOKEN-4] a token expires at its exp, even if the server has accepted it before', async () => {
    const token = await server.token({ id: 'alice', expiresInMs: 60_000 })
    const fresh = await server.token({ id: 'alice', expiresInMs: 60_000 })
    expect((await bearer(token)).status).toBe(200)
    clock.advance(59_999)
    expect((await bearer(token)).status).toBe(200)
    clock.advance(1)
    for (const expired of [token, fresh, token])
      expect(expectRefusal(await bearer(expired), 401)).toMatchObject({
        message: 'Token expired',
        slug: 'token-expired',
      })
    expectRefusal(await bearer(token, publicTable), 401)
    good = await server.token('alice')
  })

  describe('forged tokens', () => {
    const otherKey = generateKeyPairSync('ed25519').privateKey
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const header = (more: Record<string, unknown> = {}) => ({ ...readToken(good).header, ...more })
    const without = (claim: string) => Object.fromEntries(Object.entries(valid()).filter(([name]) => name !== claim))
    const hmac = (secret: string | Buffer): string => {
      const [head, body] = forgeWith(header({ alg: 'HS256' }), valid({ role: 'admin' }), '').split('.')
      return `${head}.${body}.${createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url')}`
    }
    const publicX = (): Promise<string> =>
      server.anonymous.get('/api/auth/jwks.json').then(({ body }) => body.keys[0].x)

    const forgeries: Readonly<Record<string, () => string | Promise<string>>> = {
      '[TOKEN-5] signed with another key': () => forge(header(), valid(), otherKey),
      '[TOKEN-5] signed with the secret of another server': () =>
        forge(header(), valid(), signingKey('another-secret-0123456789-0123456789')),
      '[TOKEN-5] with another payload': () =>
        `${good.split('.')[0]}.${Buffer.from(JSON.stringify(valid({ role: 'admin' }))).toString('base64url')}.${good.split('.')[2]}`,
      '[TOKEN-5] with another header': () =>
        `${Buffer.from(JSON.stringify(header({ x: 1 }))).toString('base64url')}.${good.split('.')[1]}.${good.split('.')[2]}`,
      '[TOKEN-5] without a signature': () => good.split('.').slice(0, 2).join('.'),
      '[TOKEN-5] with an empty signature': () => `${good.split('.').slice(0, 2).join('.')}.`,
      '[TOKEN-5] with a signature of zeros': () => `${good.split('.').slice(0, 2).join('.')}.${'A'.repeat(86)}`,
      '[TOKEN-5] truncated by one character': () => good.slice(0, -1),
      '[TOKEN-5] with one character more': () => `${good}A`,
      '[TOKEN-5] two dots': () => '..',
      '[TOKEN-5] not a JWT': () => 'nonsense',
      '[TOKEN-5] JSON': () => '{"sub":"alice"}',
      '[TOKEN-6] alg none': () => forgeWith(header({ alg: 'none' }), valid(), ''),
      '[TOKEN-6] alg nOnE': () => forgeWith(header({ alg: 'nOnE' }), valid(), good.split('.')[2] ?? ''),
      '[TOKEN-6] HS256 keyed with the public key': async () => hmac(Buffer.from(await publicX(), 'base64url')),
      '[TOKEN-6] HS256 keyed with the encoded public key': async () => hmac(await publicX()),
      '[TOKEN-6] HS256 keyed with the secret': () => hmac(tokenSecret),
      '[TOKEN-6] RS256': () => forge(header({ alg: 'RS256' }), valid(), rsa),
      '[TOKEN-6] no alg': () => forge({ typ: 'JWT' }, valid(), key),
      '[TOKEN-7] another kid': () => forge(header({ kid: 'other' }), valid(), otherKey),
      '[TOKEN-7] a kid that is a path': () => forge(header({ kid: '../../../dev/null' }), valid(), otherKey),
      '[TOKEN-7] a kid with SQL': () => forge(header({ kid: "' UNION SELECT 'x" }), valid(), otherKey),
      '[TOKEN-7] an embedded key': () =>
        forge(header({ jwk: generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }) }), valid(), otherKey),
      '[TOKEN-7] jku': () => forge(header({ jku: 'http://127.0.0.1:1/jwks.json' }), valid(), otherKey),
      '[TOKEN-7] x5u': () => forge(header({ x5u: 'http://127.0.0.1:1/x.pem' }), valid(), otherKey),
      '[TOKEN-7] crit': () => forge(header({ crit: ['exp'] }), valid(), key),
      '[TOKEN-7] b64': () => forge(header({ b64: false, crit: ['b64'] }), valid(), key),
      '[TOKEN-8] a refresh token': () => forge(header(), valid({ type: 'refresh' }), key),
      '[TOKEN-9] another issuer': () => forge(header(), valid({ iss: 'https://evil.example' }), key),
      '[TOKEN-9] no issuer': () => forge(header(), without('iss'), key),
      '[TOKEN-9] no exp': () => forge(header(), without('exp'), key),
      '[TOKEN-9] no sub': () => forge(header(), without('sub'), key),
      '[TOKEN-9] an empty sub': () => forge(header(), valid({ sub: '' }), key),
      '[TOKEN-9] a sub that is a number': () => forge(header(), valid({ sub: 5 }), key),
      '[TOKEN-9] a sub that is an array': () => forge(header(), valid({ sub: ['alice'] }), key),
      '[TOKEN-9] a role that is an object': () => forge(header(), valid({ role: { admin: true } }), key),
      '[TOKEN-9] custom that is an array': () => forge(header(), valid({ custom: [] }), key),
      '[TOKEN-9] an exp that is a string': () => forge(header(), valid({ exp: '9999999999' }), key),
      '[TOKEN-9] not yet valid': () => forge(header(), valid({ nbf: Math.floor(clock.now() / 1000) + 600 }), key),
      '[TOKEN-9] claims that are an array': () => forge(header(), [valid()], key),
      '[TOKEN-10] over 8 KiB': () => forge(header(), valid({ custom: { x: 'x'.repeat(9000) } }), key),
    }
    for (const [name, make] of Object.entries(forgeries))
      test(`${name}`, async () => {
        const token = await make()
        for (const path of [own, publicTable, '/api/config'])
          expect(expectRefusal(await bearer(token, path), 401)).toMatchObject({
            message: 'Invalid token',
            slug: 'invalid-token',
          })
      })

    test('[TOKEN-5] the same token signed with the right key is valid, so each case above fails for its own reason', async () => {
      expect((await bearer(forge(header(), valid(), key))).status).toBe(200)
      const { body } = await bearer(forge(header(), valid({ sub: 'bob' }), key))
      expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['b'])
    })

    test('[AUTH-3, RULE-13] a request with an invalid token is never treated as anonymous', async () => {
      const before = await server.dump(publicTable)
      expectRefusal(await server.anonymous.post(publicTable, { n: 1 }, { authorization: 'Bearer nonsense' }), 401)
      expect(await server.dump(publicTable)).toEqual(before)
      expect((await server.anonymous.get('/api/health', { authorization: 'Bearer nonsense' })).status).toBe(200)
    })
  })

  test('[TOKEN-11] a rule receives the claims of the token', async () => {
    const claims = {
      id: 'ann',
      email: 'a@example.com',
      emailVerified: true,
      displayName: 'Ann',
      role: 'editor',
      isAnonymous: true,
      custom: { plan: 'pro' },
    }
    expect((await server.as(claims).get('/api/db/shared/tables/claims')).status).toBe(200)
    expectRefusal(await server.as({ ...claims, custom: { plan: 'free' } }).get('/api/db/shared/tables/claims'), 403)
  })

  test('[TOKEN-12] custom claims never replace reserved claims', async () => {
    const custom = {
      role: 'admin',
      sub: 'bob',
      id: 'bob',
      iss: 'x',
      exp: 1,
      custom: { role: 'admin' },
      __proto__: { role: 'admin' },
      constructor: 'x',
    }
    expectRefusal(await server.as({ id: 'eve', custom }).get('/api/db/shared/tables/admins'), 403)
    expect((await server.as({ id: 'eve', custom }).get(own)).body.items).toEqual([])
    expect((await server.as({ id: 'eve', role: 'admin' }).get('/api/db/shared/tables/admins')).status).toBe(200)
  })

  test('[TOKEN-13] tokens stay valid after a restart', async () => {
    const token = await server.token('alice')
    await server.restart()
    expect((await bearer(token)).status).toBe(200)
  })
})

describeServer('tokens in release mode', { config, mode: 'release', clock }, (server) => {
  test('[AUTH-3] an invalid token is 401', async () => {
    for (const authorization of [
      'Bearer nonsense',
      'Bearer',
      'Basic x',
      `Bearer ${forgeWith({ alg: 'none' }, { sub: 'alice' }, '')}`,
    ])
      expectRefusal(await server.anonymous.get(publicTable, { authorization }), 401)
  })
})
