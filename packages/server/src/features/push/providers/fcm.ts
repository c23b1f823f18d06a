/**
 * Firebase Cloud Messaging: one attempt to send a message or to change topic memberships, and the meaning of the
 * response. `delivery` retries; `fcm-message` formats messages.
 */
import type { Clock } from '../../../base/clock.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { FcmConfig } from '../../../config/sections/push/push.ts'
import { type BoundedFetch, createBoundedFetch } from '../../../engines/fetch/bounded-fetch.ts'
import { pushAnswerBytesMax, pushRequestTimeoutMs } from '../../../limits/push.ts'
import type { Payload } from '../message.ts'
import { createFcmCredentials } from './fcm-credentials.ts'
import { type FcmTarget, fcmMessage } from './fcm-message.ts'
import { failed, type Later, later, type Outcome, removed, retryAfterOf, sent, unreachable } from './provider.ts'

/** Results of the Instance ID API per token, in order; null for success. */
export interface TopicAnswer {
  readonly status: 'answered'
  readonly errors: readonly (string | null)[]
}

/** Every method makes one attempt and never rejects. */
export interface Fcm {
  send(target: FcmTarget, payload: Payload): Promise<Outcome | Later>
  /** Accepts at most `fcmTopicTokensMax` tokens. */
  changeTopic(
    change: 'batchAdd' | 'batchRemove',
    topic: string,
    tokens: readonly string[],
  ): Promise<TopicAnswer | Outcome | Later>
}

const boundedFetch = createBoundedFetch({ timeoutMs: pushRequestTimeoutMs, bytesMax: pushAnswerBytesMax })

export function createFcm(config: FcmConfig, clock: Clock, fetch: BoundedFetch = boundedFetch): Fcm {
  const credentials = createFcmCredentials(config, fetch, clock)
  const { endpoints } = config

  /**
   * Makes a request with an access token, and repeats it once with a new token if the first is rejected. Returns the
   * failure if no token is available.
   */
  async function request(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    for (let isLast = false; ; isLast = true) {
      const grant = await credentials.get()
      if (!('token' in grant)) return grant
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${grant.token}`, ...headers },
        body: JSON.stringify(body),
      })
      if (response.status !== 401 || isLast) return response
      credentials.discard(grant.token)
    }
  }

  const isRetryable = ({ status }: Response): boolean => status === 429 || status >= 500
  const postpone = (response: Response, error: string): Later =>
    later(error, retryAfterOf(response.headers, clock.now()))

  return {
    async send(target, payload) {
      try {
        const response = await request(endpoints.send, fcmMessage(payload, target, clock))
        if (!(response instanceof Response)) return response
        if (response.status === 200) return sent
        const { isOfFcm, code, message } = await errorOf(response)
        const reason = message === '' ? code : `${code}: ${message}`
        if (isRetryable(response)) return postpone(response, reason)
        // Any other 404 means a wrong address and must not remove devices.
        const isUnregistered = code === 'UNREGISTERED' || (isOfFcm && response.status === 404)
        return isUnregistered ? removed('UNREGISTERED') : failed(reason)
      } catch (error) {
        return unreachable(error)
      }
    },

    async changeTopic(change, topic, tokens) {
      const body = { to: `/topics/${topic}`, registration_tokens: tokens }
      try {
        const response = await request(`${endpoints.topics}:${change}`, body, { access_token_auth: 'true' })
        if (!(response instanceof Response)) return response
        if (isRetryable(response)) return postpone(response, `HTTP_${response.status}`)
        if (response.status !== 200) return failed(`HTTP_${response.status}`)
        const { results } = (await response.json()) as { results?: unknown }
        return { status: 'answered', errors: tokens.map((_, at) => errorAt(results, at)) }
      } catch (error) {
        return unreachable(error)
      }
    },
  }
}

/** The error of one token, in a response of unchecked shape. */
function errorAt(results: unknown, at: number): string | null {
  const result: unknown = Array.isArray(results) ? results[at] : undefined
  if (typeof result !== 'object' || result === null) return 'NO_ANSWER'
  const { error } = result as { error?: unknown }
  return error === undefined ? null : String(error)
}

/** The details of an FCM error response; for a response from anything else, only the status. */
async function errorOf(response: Response): Promise<{ isOfFcm: boolean; code: string; message: string }> {
  const body = (await response.json().catch(() => null)) as { error?: JsonObject } | null
  const error = body?.error
  if (typeof error !== 'object' || error === null)
    return { isOfFcm: false, code: `HTTP_${response.status}`, message: '' }
  const { status, message, details } = error
  const detailed = (Array.isArray(details) ? details : []).find((detail) => typeof detail?.errorCode === 'string')
  const code = String(detailed?.errorCode ?? status ?? `HTTP_${response.status}`)
  return { isOfFcm: true, code, message: typeof message === 'string' ? message : '' }
}
