/**
 * A local Firebase Cloud Messaging server, as documented: OAuth tokens for signed assertions, messages, and topics
 * through the Instance ID API. Records the requests; tests script the responses.
 */
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../../src/base/clock.ts'
import { createWatch } from './watch.ts'

/** A response of FCM: an error code, or an arbitrary response. Null is success. */
export type FcmAnswer = FcmError | (() => Response | Promise<Response>) | null

export interface FcmError {
  readonly status: number
  readonly errorCode?: string
  readonly retryAfter?: string
}

/** A message as sent to FCM. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely; a wrong guess fails the test.
export type FcmMessage = any

export interface Fcm {
  /** For `push.fcm` of a configuration. */
  readonly config: {
    projectId: string
    serviceAccount: string
    endpoints: { token: string; send: string; topics: string }
  }
  /** PEM; must not appear in logs or responses. */
  readonly privateKey: string
  /** Accepted messages, in order. */
  readonly messages: FcmMessage[]
  /** The number of attempts for a token or `/topics/…`, including failures. */
  attempts(target: string): number
  /** Claims of every assertion received. */
  readonly assertions: JWTPayload[]
  /** Tokens subscribed to a topic. */
  membersOf(topic: string): readonly string[]
  /** The next responses for a token or `/topics/…`; success afterwards. */
  script(target: string, ...answers: FcmAnswer[]): void
  /** The next responses of the token endpoint and of the Instance ID API. */
  scriptOAuth(...answers: FcmAnswer[]): void
  scriptTopics(...answers: FcmAnswer[]): void
  /** Requests to the Instance ID API so far. */
  readonly topicCalls: number
  /** Tokens that the Instance ID API does not know. */
  readonly unknown: Set<string>
  /** Invalidates every access token issued so far. */
  expireTokens(): void
  /** The most requests that were in progress at once. */
  readonly busiest: number
  /** Resolves once the condition is true; checked after every request. */
  until(isSo: () => boolean): Promise<void>
  close(): Promise<void>
}

export const projectId = 'demo-project'
const clientEmail = 'push@demo-project.iam.example.com'

/** Must be closed. Assertions are judged by the clock. */
export function openFcm(clock: Clock = { now: () => Date.now() }): Fcm {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const messages: FcmMessage[] = []
  const tries = new Map<string, number>()
  const assertions: JWTPayload[] = []
  const members = new Map<string, Set<string>>()
  const scripts = new Map<string, FcmAnswer[]>()
  const unknown = new Set<string>()
  const watch = createWatch()
  let goodTokens = new Set<string>()
  let running = 0
  let topicCalls = 0
  let busiest = 0

  const notifyWatchers = (): void => {
    watch.notify()
  }
  const play = (name: string): FcmAnswer => scripts.get(name)?.shift() ?? null
  const give = (answer: Exclude<FcmAnswer, null>): Response | Promise<Response> =>
    typeof answer === 'function' ? answer() : errorResponse(answer)
  const isAuthorized = ({ headers }: Request): boolean =>
    goodTokens.has((headers.get('authorization') ?? '').replace('Bearer ', ''))

  async function grant(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    const options = { issuer: clientEmail, audience: `${origin}/token`, algorithms: ['RS256'] }
    const currentDate = new Date(clock.now())
    try {
      if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') throw new Error('grant type')
      const assertion = form.get('assertion') ?? ''
      const { payload, protectedHeader } = await jwtVerify(assertion, createPublicKey(publicKey), {
        ...options,
        currentDate,
      })
      if (payload.scope !== 'https://www.googleapis.com/auth/firebase.messaging') throw new Error('scope')
      if (protectedHeader.kid !== 'key-1' || (payload.exp ?? 0) - (payload.iat ?? 0) > 3600) throw new Error('claims')
      assertions.push(payload)
    } catch (error) {
      return Response.json({ error: 'invalid_grant', error_description: String(error) }, { status: 400 })
    }
    const scripted = play('oauth')
    if (scripted) return give(scripted)
    const token = `access-token-${crypto.randomUUID()}`
    goodTokens.add(token)
    return Response.json({ access_token: token, expires_in: 3600, token_type: 'Bearer' })
  }

  async function send(request: Request): Promise<Response> {
    const { message } = (await request.json()) as { message: FcmMessage }
    const target = message.token ?? `/topics/${message.topic}`
    tries.set(target, (tries.get(target) ?? 0) + 1)
    notifyWatchers()
    if (!isAuthorized(request)) return errorResponse({ status: 401 })
    const scripted = play(target)
    if (scripted) return give(scripted)
    const wrong = Object.values(message.data ?? {}).some((value) => typeof value !== 'string')
    if (wrong || [message.token, message.topic].filter(Boolean).length !== 1)
      return errorResponse({ status: 400, errorCode: 'INVALID_ARGUMENT' })
    messages.push(message)
    return Response.json({ name: `projects/${projectId}/messages/${messages.length}` })
  }

  async function changeTopic(request: Request, isAdded: boolean): Promise<Response> {
    const { to, registration_tokens: tokens } = (await request.json()) as { to: string; registration_tokens: string[] }
    if (!isAuthorized(request) || request.headers.get('access_token_auth') !== 'true')
      return errorResponse({ status: 401 })
    topicCalls += 1
    const scripted = play('topics')
    if (scripted) return give(scripted)
    if (!to.startsWith('/topics/') || tokens.length > 1000)
      return Response.json({ error: 'InvalidRequest' }, { status: 400 })
    const topic = to.replace('/topics/', '')
    const known = members.get(topic) ?? new Set()
    members.set(topic, known)
    for (const token of tokens) if (!unknown.has(token)) isAdded ? known.add(token) : known.delete(token)
    return Response.json({ results: tokens.map((token) => (unknown.has(token) ? { error: 'NOT_FOUND' } : {})) })
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      running += 1
      busiest = Math.max(busiest, running)
      try {
        const { pathname } = new URL(request.url)
        if (pathname === '/token') return await grant(request)
        if (pathname === `/v1/projects/${projectId}/messages:send`) return await send(request)
        if (pathname === '/iid/v1:batchAdd') return await changeTopic(request, true)
        if (pathname === '/iid/v1:batchRemove') return await changeTopic(request, false)
        return new Response('nothing here', { status: 404 })
      } finally {
        running -= 1
        notifyWatchers()
      }
    },
  })
  const origin: string = server.url.origin
  const account = { type: 'service_account', project_id: projectId, private_key_id: 'key-1', private_key: privateKey }

  return {
    config: {
      projectId,
      serviceAccount: JSON.stringify({ ...account, client_email: clientEmail }),
      endpoints: { token: `${origin}/token`, send: origin, topics: `${origin}/iid/v1` },
    },
    privateKey,
    messages,
    attempts: (target) => tries.get(target) ?? 0,
    assertions,
    membersOf: (topic) => [...(members.get(topic) ?? [])].sort(),
    script: (target, ...answers) => void scripts.set(target, answers),
    scriptOAuth: (...answers) => void scripts.set('oauth', answers),
    scriptTopics: (...answers) => void scripts.set('topics', answers),
    get topicCalls() {
      return topicCalls
    },
    unknown,
    expireTokens() {
      goodTokens = new Set()
    },
    get busiest() {
      return busiest
    },
    until: watch.until,
    close: () => server.stop(true),
  }
}

/** An error in the form of Google's APIs. */
function errorResponse({ status, errorCode, retryAfter }: FcmError): Response {
  const details = errorCode === undefined ? [] : [fcmDetail(errorCode)]
  const error = {
    code: status,
    message: `about ${errorCode ?? status}`,
    status: statuses[status] ?? 'UNKNOWN',
    details,
  }
  const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  return Response.json({ error }, { status, headers })
}

const fcmDetail = (errorCode: string) => ({
  '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError',
  errorCode,
})

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}
