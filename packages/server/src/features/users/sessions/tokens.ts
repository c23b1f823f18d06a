/**
 * Access and refresh tokens: their claims, signing and verification. A token is verified by its signature, its claims
 * and the clock alone; `revocation` handles tokens that end early, and `signing-keys` provides the keys.
 */
import { sign as signBytes } from 'node:crypto'
import type { JWTHeaderParameters } from 'jose'
import { type Auth, type UserCaller, userCallerOf } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { z } from '../../../base/schemas/z.ts'
import { isJsonObject, type JsonObject } from '../../../base/text/json.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { ApiError, invalidToken, tokenExpired } from '../../../errors.ts'
import { accessTokenCharsMax, accessTokenLifetimeMs, jsonDepthMax } from '../../../limits/api.ts'
import { refreshTokenLifetimeMs } from '../../../limits/users.ts'
import type { SigningKey, SigningKeys } from './signing-keys.ts'

/** Subject and claims of a new access token. Omitted fields default to null, `user`, false or `{}`. */
export interface AccessTokenSubject {
  readonly id: string
  readonly email?: string | null
  /** Default false. Access rules see the email only if true. */
  readonly emailVerified?: boolean
  readonly displayName?: string | null
  readonly role?: string
  readonly isAnonymous?: boolean
  /** Any JSON object. It is nested under `custom`, so its names cannot override reserved claims. */
  readonly custom?: JsonObject
  /** Session of the token, its `sid`. */
  readonly sessionId?: string | null
  /** Default `accessTokenLifetimeMs`. Rounded down to seconds, the unit of `exp`. */
  readonly expiresInMs?: number
}

/** A verified access token. */
export interface VerifiedToken {
  readonly caller: UserCaller
  /** The token is invalid from this time on. */
  readonly expiresAtMs: number
}

/** Content of a refresh token. Signing is deterministic: equal content yields an equal token on every node. */
export interface RefreshTokenContent {
  readonly userId: string
  readonly sessionId: string
  /** Counts the refreshes of a session. */
  readonly generation: number
  readonly issuedAtMs: number
  /** The signing key at the time of issue. */
  readonly key: SigningKey
}

export interface Tokens {
  /** Signs an access token. Throws RangeError if the token would exceed `accessTokenCharsMax`. */
  signAccess(subject: AccessTokenSubject): string
  /** Rejects with 401 `Token expired`, or `Invalid token` for any other reason. */
  verifyAccess(token: string): Promise<VerifiedToken>
  signRefresh(content: RefreshTokenContent): string
  /** The session of a refresh token. Does not check that it is the newest. Rejects like `verifyAccess`. */
  verifyRefresh(token: string): Promise<{ readonly sessionId: string; readonly userId: string }>
}

export const issuer = 'plinth'
const algorithm = 'EdDSA'
/**
 * Three base64url segments, the last exactly 64 bytes. Its final character carries 4 unused bits, which must be zero:
 * otherwise one signature would have 16 spellings.
 */
const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/

const accessClaims = z.object({
  sub: z.string().min(1),
  email: z.string().nullable(),
  /** Tokens signed before this claim existed lack it. */
  emailVerified: z.boolean().default(false),
  displayName: z.string().nullable(),
  role: z.string().min(1),
  isAnonymous: z.boolean(),
  custom: z.custom<JsonObject>(isJsonObject).transform((claims) => sealClaims(claims)),
  jti: z.string().min(1),
  sid: z.string().min(1).nullable(),
  iat: z.int(),
  exp: z.int(),
  /** Refresh tokens have `refresh` and are rejected as access tokens. */
  type: z.literal('access').optional(),
})

const refreshClaims = z.object({
  sub: z.string().min(1),
  sid: z.string().min(1),
  gen: z.int(),
  exp: z.int(),
  type: z.literal('refresh'),
})

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Synchronous, so that tokens can be signed within a transaction. */
function signClaims(claims: JsonObject, { kid, privateKey }: SigningKey): string {
  const content = `${encode({ alg: algorithm, typ: 'JWT', kid })}.${encode(claims)}`
  return `${content}.${signBytes(null, Buffer.from(content), privateKey).toString('base64url')}`
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000)

export function createTokens(keys: SigningKeys, clock: Clock): Tokens {
  const uuid = createUuid7(clock)

  async function resolveKey(header: JWTHeaderParameters): Promise<SigningKey['publicKey']> {
    // Our headers have exactly `alg`, `typ` and `kid`. Others (`jwk`, `jku`, `x5c`, `crit`) request processing that is
    // not supported.
    if (typeof header.kid !== 'string' || Object.keys(header).length !== 3) throw invalidToken()
    const key = await keys.findByKid(header.kid)
    if (!key) throw invalidToken()
    return key.publicKey
  }

  async function verify<T>(token: string, schema: z.ZodType<T>): Promise<T> {
    if (token.length > accessTokenCharsMax || !tokenPattern.test(token)) throw invalidToken()
    // Loaded with the first token: a start verifies none, and verified ones are cached.
    const [{ jwtVerify }, { JWTExpired }] = await Promise.all([import('jose/jwt/verify'), import('jose/errors')])
    const { payload } = await jwtVerify(token, resolveKey, {
      algorithms: [algorithm],
      typ: 'JWT',
      issuer,
      requiredClaims: ['exp'],
      currentDate: new Date(clock.now()),
    }).catch((cause: unknown) => refuse(cause, cause instanceof JWTExpired))
    try {
      return schema.parse(payload)
    } catch {
      throw invalidToken()
    }
  }

  return {
    signAccess(subject) {
      const nowMs = clock.now()
      const claims = {
        sub: subject.id,
        email: subject.email ?? null,
        emailVerified: subject.emailVerified ?? false,
        displayName: subject.displayName ?? null,
        role: subject.role ?? 'user',
        isAnonymous: subject.isAnonymous ?? false,
        custom: sealClaims(subject.custom ?? {}),
        jti: uuid(),
        sid: subject.sessionId ?? null,
        iss: issuer,
        iat: secondsOf(nowMs),
        exp: secondsOf(nowMs + (subject.expiresInMs ?? accessTokenLifetimeMs)),
      }
      const token = signClaims(claims, keys.current())
      if (token.length > accessTokenCharsMax) throw new RangeError('The claims are too large for an access token')
      return token
    },

    async verifyAccess(token) {
      const claims = await verify(token, accessClaims)
      return { caller: callerOf(claims), expiresAtMs: claims.exp * 1000 }
    },

    signRefresh({ userId, sessionId, generation, issuedAtMs, key }) {
      const iat = secondsOf(issuedAtMs)
      const exp = secondsOf(issuedAtMs + refreshTokenLifetimeMs)
      return signClaims({ sub: userId, sid: sessionId, gen: generation, type: 'refresh', iss: issuer, iat, exp }, key)
    },

    async verifyRefresh(token) {
      const { sub, sid } = await verify(token, refreshClaims)
      return { userId: sub, sessionId: sid }
    },
  }
}

/** jose reports expiry only for a valid signature and issuer. Details of invalid claims are not disclosed. */
function refuse(cause: unknown, isExpired: boolean): never {
  // The keys could not be loaded; this says nothing about the token.
  if (cause instanceof ApiError || cause instanceof EngineError) throw cause
  throw isExpired ? tokenExpired() : invalidToken()
}

/** The email as access rules see it: hidden until verified, since anyone can sign up with any address. */
export function verifiedEmail(email: string | null, isVerified: boolean): Pick<Auth, 'email' | 'emailVerified'> {
  return isVerified && email !== null ? { email, emailVerified: true } : { email: null, emailVerified: false }
}

function callerOf(claims: z.infer<typeof accessClaims>): UserCaller {
  const auth: Auth = Object.freeze({
    id: claims.sub,
    ...verifiedEmail(claims.email, claims.emailVerified),
    displayName: claims.displayName,
    role: claims.role,
    isAnonymous: claims.isAnonymous,
    custom: claims.custom,
  })
  return userCallerOf(auth, claims.sid, claims.exp * 1000)
}

/**
 * A deeply frozen copy without prototypes: a rule that reads `custom[name]` finds only claims that were set, never
 * `constructor`. Omits members named `__proto__`, which a later copy could turn into a prototype.
 */
export const sealClaims = (claims: JsonObject): JsonObject => seal(claims, 1) as JsonObject

function seal(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > jsonDepthMax) throw new RangeError(`Custom claims are nested deeper than ${jsonDepthMax}`)
  if (Array.isArray(value)) return Object.freeze(value.map((item) => seal(item, depth + 1)))
  const copy: Record<string, unknown> = Object.create(null)
  for (const [name, member] of Object.entries(value)) {
    if (name !== '__proto__') copy[name] = seal(member, depth + 1)
  }
  return Object.freeze(copy)
}
