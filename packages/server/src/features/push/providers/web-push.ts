/**
 * Web push with VAPID (RFC 8030, 8292): one attempt to send a message, and the meaning of the push service's response.
 * Endpoints are untrusted input: requests use `public-fetch`.
 */
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { VapidConfig } from '../../../config/sections/push/push.ts'
import type { BoundedFetch } from '../../../engines/fetch/bounded-fetch.ts'
import { createPublicFetch, NotPublicError, type OutboundPolicy } from '../../../engines/fetch/public-fetch.ts'
import {
  pushAnswerBytesMax,
  pushRequestTimeoutMs,
  pushTtlSecondsMax,
  vapidLifetimeMs,
  vapidTokensMax,
  webPushPlainBytesMax,
} from '../../../limits/push.ts'
import { findSubscription } from '../devices/subscription.ts'
import type { Payload } from '../message.ts'
import { failed, type Later, later, type Outcome, removed, retryAfterOf, sent, unreachable } from './provider.ts'
import { encryptWebPush } from './web-push-encryption.ts'
import { webTopicOf } from './web-push-topic.ts'

export interface WebPush {
  /** Makes one attempt; never rejects. */
  send(token: string, payload: Payload): Promise<Outcome | Later>
}

/** The data that the service worker receives. */
function textOf({ title, body, image, badge, data, silent, collapseId }: Payload): string {
  return JSON.stringify({ title, body, image, badge, data, silent, tag: collapseId })
}

export function createWebPush(
  config: VapidConfig,
  clock: Clock,
  policy: () => OutboundPolicy,
  ownFetch?: BoundedFetch,
): WebPush {
  const fetch =
    ownFetch ??
    createPublicFetch({
      timeoutMs: pushRequestTimeoutMs,
      bytesMax: pushAnswerBytesMax,
      trusted: (origin) => config.localServices.has(origin),
      policy,
    })
  const tokens = createLru<string, { readonly text: string; readonly renewMs: number }>(vapidTokensMax)

  /** The VAPID `Authorization` header for one push service. */
  async function authorization(origin: string): Promise<string> {
    const known = tokens.get(origin)
    if (known && clock.now() < known.renewMs) return known.text
    const { SignJWT } = await import('jose/jwt/sign')
    const token = await new SignJWT()
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .setAudience(origin)
      .setSubject(config.subject)
      .setExpirationTime(Math.floor((clock.now() + vapidLifetimeMs) / 1000))
      .sign(config.privateKey)
    const text = `vapid t=${token}, k=${config.publicKey}`
    tokens.set(origin, { text, renewMs: clock.now() + vapidLifetimeMs / 2 })
    return text
  }

  async function post(token: string, payload: Payload): Promise<Response | Outcome> {
    const subscription = findSubscription(token)
    const text = textOf(payload)
    if (!subscription) return failed('INVALID_SUBSCRIPTION')
    if (Buffer.byteLength(text) > webPushPlainBytesMax) return failed('MESSAGE_TOO_LARGE')
    const { endpoint, keys } = subscription
    const { ttl = pushTtlSecondsMax, silent = false, collapseId } = payload
    return fetch(endpoint.href, {
      method: 'POST',
      headers: {
        Authorization: await authorization(endpoint.origin),
        'Content-Type': 'application/octet-stream',
        'Content-Encoding': 'aes128gcm',
        TTL: String(ttl),
        Urgency: silent ? 'normal' : 'high',
        ...(collapseId === undefined ? {} : { Topic: webTopicOf(collapseId) }),
      },
      body: encryptWebPush(text, keys),
    })
  }

  return {
    async send(token, payload) {
      try {
        const answer = await post(token, payload)
        if (!(answer instanceof Response)) return answer
        const { status, headers } = answer
        if (status >= 200 && status < 300) return sent
        if (status === 404 || status === 410) return removed(`HTTP_${status}`)
        if (status === 429 || status >= 500) return later(`HTTP_${status}`, retryAfterOf(headers, clock.now()))
        return failed(`HTTP_${status}`)
      } catch (error) {
        return error instanceof NotPublicError ? failed('ENDPOINT_NOT_PUBLIC') : unreachable(error)
      }
    },
  }
}
