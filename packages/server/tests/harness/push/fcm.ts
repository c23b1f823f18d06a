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

export const projectId = 'demo-project'
const clientEmail = 'push@demo-project.iam.example.com'

/** Must be closed. Assertions are validated with the clock. */
export const openFcm = (clock: Clock = { now: () => Date.now() }): Fcm => new Fcm(clock)

export class Fcm {
  /** For `push.fcm` of a configuration. */
  readonly config: {
    projectId: string
    serviceAccount: string
    endpoints: { token: string; send: string; topics: string }
  }
  /** PEM; must not appear in logs or responses. */
  readonly privateKey: string
  /** Accepted messages, in order. */
  readonly messages: FcmMessage[] = []
  /** Claims of every assertion received. */
  readonly assertions: JWTPayload[] = []
  /** Tokens that the Instance ID API does not know. */
  readonly unknown = new Set<string>()
  /** Requests to the Instance ID API so far. */
  topicCalls = 0
  /** The most requests that were in progress at once. */
  busiest = 0
  readonly #clock: Clock
  readonly #publicKey: string
  readonly #server: Bun.Server<undefined>
  readonly #attempts = new Map<string, number>()
  readonly #members = new Map<string, Set<string>>()
  readonly #scripts = new Map<string, FcmAnswer[]>()
  readonly #watch = createWatch()
  readonly #goodTokens = new Set<string>()
  #running = 0

  constructor(clock: Clock) {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    this.#clock = clock
    this.#publicKey = publicKey
    this.privateKey = privateKey
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch: (request) => this.#handle(request),
    })
    const { origin } = this.#server.url
    this.config = {
      projectId,
      serviceAccount: JSON.stringify({
        type: 'service_account',
        project_id: projectId,
        private_key_id: 'key-1',
        private_key: privateKey,
        client_email: clientEmail,
      }),
      endpoints: { token: `${origin}/token`, send: origin, topics: `${origin}/iid/v1` },
    }
  }

  /** The number of attempts for a token or `/topics/…`, including failures. */
  attempts(target: string): number {
    return this.#attempts.get(target) ?? 0
  }

  /** Tokens subscribed to a topic. */
  membersOf(topic: string): readonly string[] {
    return [...(this.#members.get(topic) ?? [])].sort()
  }

  /** The next responses for a token or `/topics/…`; success afterwards. */
  script(target: string, ...answers: FcmAnswer[]): void {
    this.#scripts.set(target, answers)
  }

  /** The next responses of the token endpoint. */
  scriptOAuth(...answers: FcmAnswer[]): void {
    this.script('oauth', ...answers)
  }

  /** The next responses of the Instance ID API. */
  scriptTopics(...answers: FcmAnswer[]): void {
    this.script('topics', ...answers)
  }

  /** Invalidates every access token issued so far. */
  expireTokens(): void {
    this.#goodTokens.clear()
  }

  /** Resolves once the condition is true; checked after every request. */
  until(isTrue: () => boolean): Promise<void> {
    return this.#watch.until(isTrue)
  }

  close(): Promise<void> {
    return this.#server.stop(true)
  }

  async #handle(request: Request): Promise<Response> {
    this.#running += 1
    this.busiest = Math.max(this.busiest, this.#running)
    try {
      const { pathname } = new URL(request.url)
      if (pathname === '/token') return await this.#grant(request)
      if (pathname === `/v1/projects/${projectId}/messages:send`) return await this.#send(request)
      if (pathname === '/iid/v1:batchAdd') return await this.#changeTopic(request, true)
      if (pathname === '/iid/v1:batchRemove') return await this.#changeTopic(request, false)
      return new Response('nothing here', { status: 404 })
    } finally {
      this.#running -= 1
      this.#watch.notify()
    }
  }

  async #grant(request: Request): Promise<Response> {
    try {
      this.assertions.push(await this.#verify(new URLSearchParams(await request.text())))
    } catch (error) {
      return Response.json({ error: 'invalid_grant', error_description: String(error) }, { status: 400 })
    }
    const scripted = this.#nextAnswer('oauth')
    if (scripted) return scripted
    const token = `access-token-${crypto.randomUUID()}`
    this.#goodTokens.add(token)
    return Response.json({ access_token: token, expires_in: 3600, token_type: 'Bearer' })
  }

  /** The claims of a signed assertion. */
  async #verify(form: URLSearchParams): Promise<JWTPayload> {
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') throw new Error('grant type')
    const { payload, protectedHeader } = await jwtVerify(
      form.get('assertion') ?? '',
      createPublicKey(this.#publicKey),
      {
        issuer: clientEmail,
        audience: this.config.endpoints.token,
        algorithms: ['RS256'],
        currentDate: new Date(this.#clock.now()),
      },
    )
    if (payload.scope !== 'https://www.googleapis.com/auth/firebase.messaging') throw new Error('scope')
    if (protectedHeader.kid !== 'key-1' || (payload.exp ?? 0) - (payload.iat ?? 0) > 3600) throw new Error('claims')
    return payload
  }

  async #send(request: Request): Promise<Response> {
    const { message } = (await request.json()) as { message: FcmMessage }
    const target = message.token ?? `/topics/${message.topic}`
    this.#attempts.set(target, this.attempts(target) + 1)
    this.#watch.notify()
    if (!this.#isAuthorized(request)) return errorResponse({ status: 401 })
    const scripted = this.#nextAnswer(target)
    if (scripted) return scripted
    const wrong = Object.values(message.data ?? {}).some((value) => typeof value !== 'string')
    if (wrong || [message.token, message.topic].filter(Boolean).length !== 1)
      return errorResponse({ status: 400, errorCode: 'INVALID_ARGUMENT' })
    this.messages.push(message)
    return Response.json({ name: `projects/${projectId}/messages/${this.messages.length}` })
  }

  async #changeTopic(request: Request, isAdded: boolean): Promise<Response> {
    const { to, registration_tokens: tokens } = (await request.json()) as { to: string; registration_tokens: string[] }
    if (!this.#isAuthorized(request) || request.headers.get('access_token_auth') !== 'true')
      return errorResponse({ status: 401 })
    this.topicCalls += 1
    const scripted = this.#nextAnswer('topics')
    if (scripted) return scripted
    if (!to.startsWith('/topics/') || tokens.length > 1000)
      return Response.json({ error: 'InvalidRequest' }, { status: 400 })
    const topic = to.replace('/topics/', '')
    const known = this.#members.get(topic) ?? new Set()
    this.#members.set(topic, known)
    for (const token of tokens) if (!this.unknown.has(token)) isAdded ? known.add(token) : known.delete(token)
    return Response.json({ results: tokens.map((token) => (this.unknown.has(token) ? { error: 'NOT_FOUND' } : {})) })
  }

  /** Null once the script is used up. */
  #nextAnswer(name: string): Response | Promise<Response> | null {
    const answer = this.#scripts.get(name)?.shift() ?? null
    return typeof answer === 'function' ? answer() : answer && errorResponse(answer)
  }

  #isAuthorized({ headers }: Request): boolean {
    return this.#goodTokens.has((headers.get('authorization') ?? '').replace('Bearer ', ''))
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
