import { describe, expect, test } from 'bun:test'
import { createHmac, createPrivateKey, generateKeyPairSync, hkdfSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JWK, jwtVerify } from 'jose'
import type { UserCaller } from '../../../access/caller.ts'
import { manualClock } from '../../../base/clock.ts'
import { ApiError } from '../../../errors.ts'
import { accessTokenCharsMax, accessTokenLifetimeMs } from '../../../limits/api.ts'
import { createFirstSigningKey } from './signing-keys.ts'
import { createTokens } from './tokens.ts'

const secret = 'a secret that only tests know'
const clock = manualClock()
const keys = createFirstSigningKey(secret)
const tokens = createTokens(keys, clock)
const kid = String(keys.jwks().keys[0]?.kid)
const ada = { id: 'ada', email: 'ada@example.org', displayName: 'Ada', role: 'editor', sessionId: 'session-1' }

/** The derivation written a second time: a change of label or encoding would end every session of a running server. */
const ownKey = createPrivateKey({
  key: Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    Buffer.from(hkdfSync('sha256', secret, '', 'plinth access token ed25519 v1', 32)),
  ]),
  format: 'der',
  type: 'pkcs8',
})

const seconds = (ms: number): number => Math.floor(ms / 1000)
const goodHeader = { alg: 'EdDSA', typ: 'JWT', kid }
const goodClaims = () => ({
  sub: 'ada',
  email: null,
  displayName: null,
  role: 'user',
  isAnonymous: false,
  custom: {},
  jti: 'token-1',
  sid: 'session-1',
  iss: 'plinth',
  iat: seconds(clock.now()),
  exp: seconds(clock.now()) + 60,
})
const encode = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** A token of any header and claims, signed by `key`; nothing about it is checked. */
function forge(header: object, claims: object | string, key: KeyObject = ownKey): string {
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
}

const callerOf = async (token: string, by = tokens): Promise<UserCaller> => (await by.verifyAccess(token)).caller

/** The refusal's message, or the caller when there is none. */
async function verdict(token: string): Promise<string | UserCaller> {
  try {
    return await callerOf(token)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    return error.message
  }
}

describe('signing', () => {
  test('[TOKEN-1, TOKEN-2] a token has the documented claims and a lifetime of 15 minutes', async () => {
    const token = tokens.signAccess({ ...ada, custom: { plan: 'pro' } })
    expect(decodeProtectedHeader(token)).toEqual(goodHeader)
    const { jti, ...claims } = decodeJwt(token)
    expect(jti).toMatch(/^[0-9a-f-]{36}$/)
    expect(claims).toEqual({
      sub: 'ada',
      email: 'ada@example.org',
      emailVerified: false,
      displayName: 'Ada',
      role: 'editor',
      isAnonymous: false,
      custom: { plan: 'pro' },
      sid: 'session-1',
      iss: 'plinth',
      iat: seconds(clock.now()),
      exp: seconds(clock.now() + accessTokenLifetimeMs),
    })
  })

  test('[TOKEN-3] the published key verifies it and has no private member', async () => {
    const { keys: published } = keys.jwks()
    expect(published).toHaveLength(1)
    expect(Object.keys(published[0] ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x'])
    const keySet = createLocalJWKSet({ keys: published.map((key) => ({ ...key }) as unknown as JWK) })
    const { payload } = await jwtVerify(tokens.signAccess(ada), keySet, { currentDate: new Date(clock.now()) })
    expect(payload.sub).toBe('ada')
  })

  test('[TOKEN-13] the key is derived from the secret alone', async () => {
    const token = tokens.signAccess(ada)
    expect((await callerOf(token, createTokens(createFirstSigningKey(secret), clock))).auth.id).toBe('ada')
    const otherKeys = createFirstSigningKey(`${secret}.`)
    expect(otherKeys.jwks()).not.toEqual(keys.jwks())
    await expect(callerOf(token, createTokens(otherKeys, clock))).rejects.toThrow('Invalid token')
  })

  test('claims that would exceed the maximum token length are not signed', () => {
    expect(() => tokens.signAccess({ ...ada, custom: { note: 'x'.repeat(accessTokenCharsMax) } })).toThrow(RangeError)
  })
})

describe('the caller of a token', () => {
  test('[TOKEN-11] has the signed claims, with defaults for omitted ones', async () => {
    const caller = await callerOf(tokens.signAccess({ id: 'bob' }))
    expect(caller.sessionId).toBeNull()
    const { custom, ...auth } = caller.auth
    expect(auth).toEqual({
      id: 'bob',
      email: null,
      emailVerified: false,
      displayName: null,
      role: 'user',
      isAnonymous: false,
    })
    expect({ ...custom }).toEqual({})
  })

  test('[TOKEN-11, USER-19] has an email only if the token marks it as verified', async () => {
    expect((await callerOf(tokens.signAccess(ada))).auth).toMatchObject({ email: null, emailVerified: false })
    const verified = await callerOf(tokens.signAccess({ ...ada, emailVerified: true }))
    expect(verified.auth).toMatchObject({ email: ada.email, emailVerified: true })
    const without = await callerOf(tokens.signAccess({ id: 'bob', emailVerified: true }))
    expect(without.auth).toMatchObject({ email: null, emailVerified: false })
  })

  test('[TOKEN-11] is deeply frozen', async () => {
    const { auth } = await callerOf(tokens.signAccess({ ...ada, custom: { teams: ['a', { b: [1] }] } }))
    expect(Object.isFrozen(auth)).toBe(true)
    for (const part of [auth.custom, auth.custom.teams, auth.custom.teams[1], auth.custom.teams[1].b]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  test('[TOKEN-12] ignores reserved names among the custom claims', async () => {
    const custom = {
      sub: 'eve',
      role: 'admin',
      iss: 'eve',
      exp: 9e9,
      sid: 'x',
      isAnonymous: true,
      custom: { a: 1 },
      type: 'refresh',
    }
    const token = tokens.signAccess({ ...ada, custom })
    const caller = await callerOf(token)
    expect(caller).toMatchObject({ sessionId: 'session-1', auth: { id: 'ada', role: 'editor', isAnonymous: false } })
    expect(caller.auth.custom).toMatchObject(custom)
    expect(decodeJwt(token).exp).toBe(seconds(clock.now() + accessTokenLifetimeMs))
  })

  test('[TOKEN-12] has custom claims without a prototype and without __proto__', async () => {
    const custom = JSON.parse('{"__proto__":{"admin":true},"deep":{"__proto__":{"admin":true},"kept":1}}')
    const fromSigner = await callerOf(tokens.signAccess({ ...ada, custom }))
    const fromWire = await callerOf(
      forge(
        goodHeader,
        JSON.stringify({ ...goodClaims(), custom: 0 }).replace('"custom":0', `"custom":${JSON.stringify(custom)}`),
      ),
    )
    for (const { auth } of [fromSigner, fromWire]) {
      expect(auth.custom.admin).toBeUndefined()
      expect(auth.custom.constructor).toBeUndefined()
      expect(auth.custom.deep.admin).toBeUndefined()
      expect(Object.keys(auth.custom.deep)).toEqual(['kept'])
      expect(Object.assign({}, auth.custom).admin).toBeUndefined()
    }
  })
})

describe('time', () => {
  test('[TOKEN-4] a token is expired from the second of its exp', async () => {
    const own = manualClock(10_000)
    const mine = createTokens(keys, own)
    const remembered = mine.signAccess({ ...ada, expiresInMs: 60_000 })
    const fresh = mine.signAccess({ ...ada, expiresInMs: 60_000 })
    own.set(69_999)
    expect((await callerOf(remembered, mine)).auth.id).toBe('ada')
    own.set(70_000)
    await expect(callerOf(remembered, mine)).rejects.toThrow('Token expired')
    await expect(callerOf(remembered, mine)).rejects.toThrow('Token expired')
    await expect(callerOf(fresh, mine)).rejects.toThrow('Token expired')
  })

  test('[TOKEN-4] an expired token signed with a foreign key is invalid, not expired', async () => {
    const foreignKey = generateKeyPairSync('ed25519').privateKey
    expect(await verdict(forge(goodHeader, { ...goodClaims(), exp: 1 }, foreignKey))).toBe('Invalid token')
  })

  test('[TOKEN-9] a token is invalid before its nbf', async () => {
    const nbf = seconds(clock.now())
    expect(await verdict(forge(goodHeader, { ...goodClaims(), nbf: nbf + 1 }))).toBe('Invalid token')
    expect(await verdict(forge(goodHeader, { ...goodClaims(), nbf }))).toMatchObject({ kind: 'user' })
  })
})

describe('rejected tokens', () => {
  test('a forged token with valid claims and the right key is accepted, so each case below fails for its own reason', async () => {
    expect(await verdict(forge(goodHeader, goodClaims()))).toMatchObject({ kind: 'user', auth: { id: 'ada' } })
    expect(await verdict(forge(goodHeader, { ...goodClaims(), type: 'access' }))).toMatchObject({ kind: 'user' })
  })

  const foreignKeys = generateKeyPairSync('ed25519')
  const foreignJwk = foreignKeys.publicKey.export({ format: 'jwk' })
  const hs256 = (key: string | Buffer): string => {
    const input = `${encode({ ...goodHeader, alg: 'HS256' })}.${encode(goodClaims())}`
    return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
  }
  const publicX = String(keys.jwks().keys[0]?.x)
  const { kid: _kid, ...noKid } = goodHeader

  const forged: readonly [title: string, token: () => string][] = [
    ['[TOKEN-5] a token signed with a foreign key', () => forge(goodHeader, goodClaims(), foreignKeys.privateKey)],
    ['[TOKEN-5] a token without its last character', () => forge(goodHeader, goodClaims()).slice(0, -1)],
    ['[TOKEN-5] a token with a space behind', () => `${forge(goodHeader, goodClaims())} `],
    ['[TOKEN-5] a token with an empty signature', () => forge(goodHeader, goodClaims()).replace(/[^.]+$/, '')],
    ['[TOKEN-5] a token of four parts', () => `${forge(goodHeader, goodClaims())}.${'A'.repeat(86)}`],
    ['[TOKEN-5] a token whose payload is no JSON', () => forge(goodHeader, 'sub')],
    ['[TOKEN-5] a token whose payload is an array', () => forge(goodHeader, '[]')],
    ['[TOKEN-5] a token that is empty', () => ''],
    ['[TOKEN-5] a token of three dots', () => '...'],
    ['[TOKEN-6] a token of alg none', () => `${encode({ ...goodHeader, alg: 'none' })}.${encode(goodClaims())}.`],
    ['[TOKEN-6] a token of alg None with a signature', () => forge({ ...goodHeader, alg: 'None' }, goodClaims())],
    ['[TOKEN-6] a token of HS256 keyed with the public key as text', () => hs256(publicX)],
    ['[TOKEN-6] a token of HS256 keyed with the public key as bytes', () => hs256(Buffer.from(publicX, 'base64url'))],
    ['[TOKEN-6] a token of HS256 keyed with the secret', () => hs256(secret)],
    ['[TOKEN-6] a token of alg Ed25519', () => forge({ ...goodHeader, alg: 'Ed25519' }, goodClaims())],
    ['[TOKEN-7] a token of another kid', () => forge({ ...goodHeader, kid: 'other' }, goodClaims())],
    ['[TOKEN-7] a token of a kid that is a path', () => forge({ ...goodHeader, kid: '../../dev/null' }, goodClaims())],
    ['[TOKEN-7] a token without a kid', () => forge(noKid, goodClaims())],
    [
      '[TOKEN-7] a token with a key of its own',
      () => forge({ ...goodHeader, jwk: foreignJwk }, goodClaims(), foreignKeys.privateKey),
    ],
    [
      '[TOKEN-7] a token with a key besides the right kid',
      () => forge({ ...goodHeader, jwk: foreignJwk }, goodClaims()),
    ],
    ['[TOKEN-7] a token with jku', () => forge({ ...goodHeader, jku: 'https://example.org/jwks' }, goodClaims())],
    ['[TOKEN-7] a token with x5c', () => forge({ ...goodHeader, x5c: ['AAAA'] }, goodClaims())],
    ['[TOKEN-7] a token with crit', () => forge({ ...goodHeader, crit: ['exp'] }, goodClaims())],
    [
      '[TOKEN-7] a token with an unencoded payload',
      () => forge({ ...goodHeader, b64: false, crit: ['b64'] }, goodClaims()),
    ],
    ['[TOKEN-8] a token for refreshing', () => forge(goodHeader, { ...goodClaims(), type: 'refresh' })],
    ['[TOKEN-9] a token of an unknown type', () => forge(goodHeader, { ...goodClaims(), type: 'room' })],
    ['[TOKEN-9] a token of another typ', () => forge({ ...goodHeader, typ: 'at+jwt' }, goodClaims())],
    ['[TOKEN-9] a token of another issuer', () => forge(goodHeader, { ...goodClaims(), iss: 'plinth2' })],
    ['[TOKEN-9] a token of several issuers', () => forge(goodHeader, { ...goodClaims(), iss: ['plinth'] })],
    ['[TOKEN-10] a token of 64 kB', () => forge(goodHeader, { ...goodClaims(), displayName: 'x'.repeat(64 * 1024) })],
  ]
  for (const [title, token] of forged) {
    test(`${title} is invalid`, async () => {
      expect(await verdict(token())).toBe('Invalid token')
    })
  }

  const wrongClaims: readonly Record<string, unknown>[] = [
    ...[
      { sub: '' },
      { sub: 1 },
      { sub: null },
      { sub: ['ada'] },
      { sub: undefined },
      { email: 1 },
      { displayName: {} },
    ],
    ...[
      { role: null },
      { role: '' },
      { role: ['admin'] },
      { isAnonymous: 'false' },
      { custom: [] },
      { custom: null },
      { custom: 'x' },
    ],
    ...[
      { exp: undefined },
      { exp: '9999999999' },
      { exp: null },
      { exp: 9e99 },
      { iat: 'now' },
      { sid: 7 },
      { jti: undefined },
      { nbf: '0' },
    ],
  ]
  for (const claims of wrongClaims) {
    const [name = ''] = Object.keys(claims)
    test(`[TOKEN-9] a token whose ${name} is ${JSON.stringify(claims[name])} is invalid`, async () => {
      expect(await verdict(forge(goodHeader, { ...goodClaims(), ...claims }))).toBe('Invalid token')
    })
  }

  test('[TOKEN-9] too deeply nested custom claims are invalid', async () => {
    const custom = `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`
    const claims = JSON.stringify({ ...goodClaims(), custom: 0 }).replace('"custom":0', `"custom":${custom}`)
    expect(await verdict(forge(goodHeader, claims))).toBe('Invalid token')
  })
})

describe('mutations', () => {
  test('[TOKEN-5] a token with any changed character is invalid', async () => {
    const token = tokens.signAccess(ada)
    expect(await verdict(token)).toMatchObject({ kind: 'user' })
    const position = fc.nat({ max: token.length - 1 })
    const character = fc.oneof(fc.constantFrom(...'AQgwZz09-_.+/= \n'), fc.string({ minLength: 1, maxLength: 3 }))
    const mutation = fc.oneof(
      fc.tuple(position, character).map(([at, text]) => token.slice(0, at) + text + token.slice(at + 1)),
      fc.tuple(position, character).map(([at, text]) => token.slice(0, at) + text + token.slice(at)),
      fc.tuple(position, position).map(([from, to]) => token.slice(0, from) + token.slice(to)),
      fc.tuple(position, position).map(([from, to]) => token.slice(from, to)),
    )
    await fc.assert(
      fc.asyncProperty(mutation, async (changed) => {
        fc.pre(changed !== token)
        expect(await verdict(changed)).toBe('Invalid token')
      }),
      { numRuns: 3000 },
    )
  })

  test('[TOKEN-5] a token with another encoding of its last character is invalid', async () => {
    const token = tokens.signAccess(ada)
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (const last of alphabet) {
      if (last !== token.at(-1)) expect(await verdict(token.slice(0, -1) + last)).toBe('Invalid token')
    }
  })

  test('[TOKEN-5] arbitrary text is invalid', async () => {
    const segment = fc.string({ maxLength: 40 }).map((text) => Buffer.from(text).toString('base64url'))
    const text = fc.oneof(
      fc.string(),
      fc.tuple(segment, segment, fc.constant('A'.repeat(86))).map((parts) => parts.join('.')),
    )
    await fc.assert(
      fc.asyncProperty(text, async (token) => {
        expect(await verdict(token)).toBe('Invalid token')
      }),
      { numRuns: 1000 },
    )
  })
})
