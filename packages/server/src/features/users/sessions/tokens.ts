/**
 * Access and refresh tokens: what they say, and which are believed. Sessions and the people themselves are not known
 * here; a token is judged by its signature, its claims and the clock alone. Keys are `signing-keys`'; what ends a token
 * before its time is `revocation`'s.
 */
import { sign as signBytes } from 'node:crypto'
import { errors, type JWTHeaderParameters, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Auth, UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { ApiError, invalidToken, tokenExpired } from '../../../errors.ts'
import { accessTokenCharsMax, accessTokenLifetimeMs, jsonDepthMax } from '../../../limits/api.ts'
import { refreshTokenLifetimeMs } from '../../../limits/users.ts'
import type { SigningKey, SigningKeys } from './signing-keys.ts'

/** Whom a token is for and what it claims; what is left out is null, `user`, false or empty. */
export interface AccessTokenSubject {
  readonly id: string
  readonly email?: string | null
  /** Default false; rules see the e-mail only where it is true. */
  readonly emailVerified?: boolean
  readonly displayName?: string | null
  readonly role?: string
  readonly isAnonymous?: boolean
  /** Any JSON object; it travels under `custom`, so none of its names can replace a reserved claim. */
  readonly custom?: JsonObject
  /** The session the token belongs to, its `sid`. */
  readonly sessionId?: string | null
  /** Default `accessTokenLifetimeMs`; cut to whole seconds, as `exp` counts them. */
  readonly expiresInMs?: number
}

/** What an access token proves. */
export interface VerifiedToken {
  readonly caller: UserCaller
  /** From this instant on it proves nothing. */
  readonly expiresAtMs: number
}

/** A refresh token is made of nothing but this: the same values give the same token, whoever makes it and when. */
export interface RefreshTokenContent {
  readonly userId: string
  readonly sessionId: string
  /** Counts the refreshes of a session. */
  readonly generation: number
  readonly issuedAtMs: number
  /** Signs the token; of the time it was issued. */
  readonly key: SigningKey
}

export interface Tokens {
  /** Signs an access token. Throws RangeError for claims that would make one longer than is accepted back. */
  signAccess(subject: AccessTokenSubject): string
  /** Rejects with 401 `Token expired`, or `Invalid token` for everything else. */
  verifyAccess(token: string): Promise<VerifiedToken>
  signRefresh(content: RefreshTokenContent): string
  /** The session a refresh token is of; whether it is the session's newest is not known here. Rejects like access. */
  verifyRefresh(token: string): Promise<{ readonly sessionId: string; readonly userId: string }>
}

export const issuer = 'plinth'
const algorithm = 'EdDSA'
/**
 * Three base64url segments, the last exactly 64 bytes. Its final character carries 4 unused bits, which must be zero:
 * otherwise one signature would have 16 spellings.
 */
const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

const accessClaims = z.object({
  sub: z.string().min(1),
  email: z.string().nullable(),
  /** Tokens of before this claim existed have none. */
  emailVerified: z.boolean().default(false),
  displayName: z.string().nullable(),
  role: z.string().min(1),
  isAnonymous: z.boolean(),
  custom: z.custom<JsonObject>(isObject).transform((claims) => sealClaims(claims)),
  jti: z.string().min(1),
  sid: z.string().min(1).nullable(),
  iat: z.int(),
  exp: z.int(),
  /** A refresh token says `refresh` and is refused in this one's place. */
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

/** At once, so that a token can be made within a transaction. */
function signClaims(claims: JsonObject, { kid, privateKey }: SigningKey): string {
  const content = `${encode({ alg: algorithm, typ: 'JWT', kid })}.${encode(claims)}`
  return `${content}.${signBytes(null, Buffer.from(content), privateKey).toString('base64url')}`
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000)

export function createTokens(keys: SigningKeys, clock: Clock): Tokens {
  const uuid = createUuid7(clock)

  async function resolveKey(header: JWTHeaderParameters): Promise<SigningKey['publicKey']> {
    // Ours say exactly `alg`, `typ` and `kid`. Anything more (`jwk`, `jku`, `x5c`, `crit`) asks for treatment we do not
    // give.
    if (typeof header.kid !== 'string' || Object.keys(header).length !== 3) throw invalidToken()
    const key = await keys.findByKid(header.kid)
    if (!key) throw invalidToken()
    return key.publicKey
  }

  async function verify<T>(token: string, schema: z.ZodType<T>): Promise<T> {
    if (token.length > accessTokenCharsMax || !tokenPattern.test(token)) throw invalidToken()
    const { payload } = await jwtVerify(token, resolveKey, {
      algorithms: [algorithm],
      typ: 'JWT',
      issuer,
      requiredClaims: ['exp'],
      currentDate: new Date(clock.now()),
    }).catch(refuse)
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

/** jose reports expiry only after the signature and the issuer were found good; the claims' details stay inside. */
function refuse(cause: unknown): never {
  // No judgement of the token: the keys could not be asked for.
  if (cause instanceof ApiError || cause instanceof EngineError) throw cause
  throw cause instanceof errors.JWTExpired ? tokenExpired() : invalidToken()
}

/** What rules see of an address: nothing of one that is not verified, since anyone can sign up with any address. */
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
  return Object.freeze({ kind: 'user', auth, sessionId: claims.sid, expiresAtMs: claims.exp * 1000 })
}

/**
 * A deep, frozen copy whose objects inherit nothing: a rule that looks up `custom[name]` finds what was set, never
 * `constructor`. A member called `__proto__` is left out, because a later copy could turn it into a prototype.
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
