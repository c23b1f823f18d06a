/**
 * Access tokens for FCM: exchanges a signed assertion of the service account for a token, which is cached until shortly
 * before it expires. `fcm` makes the requests that use it.
 */
import type { Clock } from '../../../base/clock.ts'
import type { FcmConfig } from '../../../config/sections/push/push.ts'
import type { BoundedFetch } from '../../../engines/fetch/bounded-fetch.ts'
import { fcmAssertionLifetimeMs, fcmRefusalMs, fcmTokenMarginMs } from '../../../limits/push.ts'
import { failed, type Later, later, type Outcome, retryAfterOf, unreachable } from './provider.ts'

const scope = 'https://www.googleapis.com/auth/firebase.messaging'
const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** A token, or the reason why there is none. */
type Grant = { readonly token: string; readonly endsMs: number } | Later | Outcome

export interface FcmCredentials {
  /** The cached token or a new one; concurrent callers share one request. Never rejects. */
  get(): Promise<Grant>
  /** Drops a rejected token from the cache, unless it was replaced meanwhile. */
  discard(token: string): void
}

export function createFcmCredentials(config: FcmConfig, fetch: BoundedFetch, clock: Clock): FcmCredentials {
  let known: { readonly grant: Grant; readonly goodUntilMs: number } | null = null
  let pending: Promise<Grant> | null = null

  const sign = async (): Promise<string> => {
    const { SignJWT } = await import('jose/jwt/sign')
    const issuedAt = Math.floor(clock.now() / 1000)
    const header = { alg: 'RS256', typ: 'JWT', ...(config.keyId === null ? {} : { kid: config.keyId }) }
    return new SignJWT({ scope })
      .setProtectedHeader(header)
      .setIssuer(config.clientEmail)
      .setAudience(config.endpoints.token)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + fcmAssertionLifetimeMs / 1000)
      .sign(config.privateKey)
  }

  async function requestToken(): Promise<Grant> {
    const body = new URLSearchParams({ grant_type: grantType, assertion: await sign() })
    const response = await fetch(config.endpoints.token, { method: 'POST', body })
    if (response.status === 429 || response.status >= 500)
      return later(`OAUTH_${response.status}`, retryAfterOf(response.headers, clock.now()))
    if (response.status !== 200) return failed(`CREDENTIALS_REFUSED: ${response.status}`)
    const { access_token: token, expires_in: seconds } = (await response.json()) as Record<string, unknown>
    if (typeof token !== 'string' || typeof seconds !== 'number') return failed('CREDENTIALS_REFUSED: no token')
    return { token, endsMs: clock.now() + seconds * 1000 }
  }

  async function renew(): Promise<Grant> {
    const grant = await requestToken().catch(unreachable)
    if ('token' in grant) known = { grant, goodUntilMs: grant.endsMs - fcmTokenMarginMs }
    // Caches a rejection, so that thousands of messages do not repeat the request.
    else known = { grant, goodUntilMs: grant.status === 'failed' ? clock.now() + fcmRefusalMs : 0 }
    return grant
  }

  return {
    async get() {
      if (known && clock.now() < known.goodUntilMs) return known.grant
      pending ??= renew().finally(() => {
        pending = null
      })
      return pending
    },
    discard(token) {
      if (known && 'token' in known.grant && known.grant.token === token) known = null
    },
  }
}
