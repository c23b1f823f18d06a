/**
 * Firebase Cloud Messaging: one attempt at a message or at a change of topics, and what the answer means. Trying again
 * is `delivery`'s; the form of a message is `fcm-message`'s.
 */
import type { Clock } from '../../base/clock.ts'
import type { JsonObject } from '../../base/text/json.ts'
import type { FcmConfig } from '../../config/sections/push/push.ts'
import { type BoundedFetch, createBoundedFetch } from '../../engines/fetch/bounded-fetch.ts'
import { pushAnswerBytesMax, pushRequestTimeoutMs } from '../../limits/push.ts'
import { createFcmCredentials } from './fcm-credentials.ts'
import { type FcmTarget, fcmMessage } from './fcm-message.ts'
import type { Payload } from './message.ts'
import { failed, type Later, later, type Outcome, removed, retryAfterOf, sent, unreachable } from './provider.ts'

/** What the Instance ID API says of each token, in their order: null when done. */
export interface TopicAnswer {
  readonly status: 'answered'
  readonly errors: readonly (string | null)[]
}

/** Every function is one attempt, and never rejects. */
export interface Fcm {
  send(target: FcmTarget, payload: Payload): Promise<Outcome | Later>
  /** At most `fcmTopicTokensMax` tokens. */
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

  /** Asks with a token, and once more with a new one where it is refused; or says why there is none to ask with. */
  async function ask(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
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

  const isWrongMoment = ({ status }: Response): boolean => status === 429 || status >= 500
  const postpone = (response: Response, error: string): Later =>
    later(error, retryAfterOf(response.headers, clock.now()))

  return {
    async send(target, payload) {
      try {
        const response = await ask(endpoints.send, fcmMessage(payload, target, clock))
        if (!(response instanceof Response)) return response
        if (response.status === 200) return sent
        const { isOfFcm, code, message } = await errorOf(response)
        const said = message === '' ? code : `${code}: ${message}`
        if (isWrongMoment(response)) return postpone(response, said)
        // Any other 404 is a wrong address, by which no device must be forgotten.
        const isGone = code === 'UNREGISTERED' || (isOfFcm && response.status === 404)
        return isGone ? removed('UNREGISTERED') : failed(said)
      } catch (error) {
        return unreachable(error)
      }
    },

    async changeTopic(change, topic, tokens) {
      const body = { to: `/topics/${topic}`, registration_tokens: tokens }
      try {
        const response = await ask(`${endpoints.topics}:${change}`, body, { access_token_auth: 'true' })
        if (!(response instanceof Response)) return response
        if (isWrongMoment(response)) return postpone(response, `HTTP_${response.status}`)
        if (response.status !== 200) return failed(`HTTP_${response.status}`)
        const { results } = (await response.json()) as { results?: unknown }
        return { status: 'answered', errors: tokens.map((_, at) => errorAt(results, at)) }
      } catch (error) {
        return unreachable(error)
      }
    },
  }
}

/** The error of one token, in an answer that may be anything. */
function errorAt(results: unknown, at: number): string | null {
  const result: unknown = Array.isArray(results) ? results[at] : undefined
  if (typeof result !== 'object' || result === null) return 'NO_ANSWER'
  const { error } = result as { error?: unknown }
  return error === undefined ? null : String(error)
}

/** What a refusal of FCM says; of an answer that is none of its, the status alone. */
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
