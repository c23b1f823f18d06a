/**
 * One request from its first look to its line in the log: who asks, whether they may, what they say, the endpoint's
 * handler, and the answer. Knows no runtime (`server` does) and no feature.
 */
import { z } from 'zod'
import type { Caller, UserCaller } from '../access/caller.ts'
import { permitsScope, type ServiceKeys } from '../access/service-keys.ts'
import { isOutOfHandles } from '../base/files/file-handles.ts'
import type { Log } from '../base/log.ts'
import { countedAddress, type TrustProxy } from '../base/network/address.ts'
import { EngineError } from '../engines/sql/error.ts'
import {
  ApiError,
  accessDenied,
  authenticationRequired,
  badRequest,
  internal,
  invalidServiceKey,
  invalidToken,
  rateLimited,
  unavailable,
} from '../errors.ts'
import { jsonBodyBytesMax } from '../limits/api.ts'
import { clientAddress } from './client-address.ts'
import type { Cors } from './cors.ts'
import type { Call, Endpoint, Params, Reply, SocketEndpoint, SocketHandlerFactory } from './endpoint.ts'
import { hasNoBody, readJsonObject } from './input/body.ts'
import { parseTarget } from './input/query-string.ts'
import { checkHead, createRequestBody } from './input/request-body.ts'
import { createQueryReader, validate } from './input/validate.ts'
import type { Meter, Metrics } from './metrics.ts'
import { isExempt, type RateLimiter } from './rate-limit.ts'
import { matchesEtag } from './replies/etags.ts'
import { createReplyTemplates, empty, isLarge, json, prepare, toResponse } from './replies/reply.ts'
import type { UnreadResponses } from './replies/unread-responses.ts'
import type { SocketSlot, Sockets } from './sockets/sockets.ts'

export interface HandleParts {
  readonly log: Log
  readonly metrics: Metrics
  readonly limiter: RateLimiter
  readonly serviceKeys: ServiceKeys
  /** The user a bearer token proves; throws or rejects with a 401. A promise only where something must be asked. */
  readonly authenticate: (bearerToken: string) => UserCaller | Promise<UserCaller>
  readonly cors: Cors
  readonly trustProxy: TrustProxy
  readonly sockets: Sockets
  /** What is told of each request of an endpoint once it is answered; must take no time. */
  readonly onResponse?: (endpoint: string) => ResponseListener
  /** True once no new work is taken. */
  readonly isDraining: () => boolean
  readonly responses: UnreadResponses
}

/** `userId` is null for whoever is no user. */
export type ResponseListener = (method: string, status: number, ms: number, userId: string | null) => void

/** The runtime's knowledge of who is at the other end of a connection, and its way to make a socket of it. */
export interface RuntimeServer {
  readonly pendingRequests: number
  timeout(request: Request, seconds: number): void
  requestIP(request: Request): { readonly address: string } | null
  upgrade(request: Request, options: { data: SocketData }): boolean
}

/** What the runtime keeps with a socket. */
export interface SocketData {
  readonly slot: SocketSlot
  readonly createHandler: SocketHandlerFactory
  readonly messageBytesMax: number
}

/** Answers one request; never throws or rejects. Nothing is left to answer where a socket was made of it. */
export type RequestHandler = (
  request: Request,
  params: Params,
  runtime: RuntimeServer,
) => Response | undefined | Promise<Response | undefined>

export interface Handle {
  /** Executes an endpoint. */
  endpoint(endpoint: Endpoint): RequestHandler
  /** Makes a socket of a request. */
  socket(endpoint: SocketEndpoint): RequestHandler
  /** Answers a request that belongs to no endpoint; it is counted and logged under `name`. */
  fallback(name: string, respond: (request: Request, path: string) => Reply): RequestHandler
}

/** A request on its way: what its handler is called with, filled in step by step, and what is needed around it. */
interface RequestContext extends Call {
  query: unknown
  body: unknown
  caller: Caller
  /** Endpoint's name, for logs and counts. */
  readonly name: string
  readonly runtime: RuntimeServer
  readonly queryString: string
  readonly startMs: number
  readonly request: Request
}

/** An endpoint, and what can be prepared before it is asked. */
interface PreparedEndpoint {
  readonly endpoint: Endpoint
  readonly readQuery: (queryString: string) => unknown
}

/** Tells processes and their requests apart in gathered logs; unguessability is not needed. */
const processPrefix = crypto.randomUUID().slice(0, 8)
let requests = 0

export function createHandle(parts: HandleParts): Handle {
  const {
    log,
    metrics,
    limiter,
    serviceKeys,
    authenticate,
    cors,
    trustProxy,
    sockets,
    onResponse,
    isDraining,
    responses,
  } = parts
  const templates = createReplyTemplates(cors.common)

  /**
   * What every request goes through, whatever it asks. Waits only where there is something to wait for: each turn of
   * the loop costs as much as a look at the rate limit.
   */
  function withLifecycle(
    name: string,
    work: (context: RequestContext) => Reply | Promise<Reply>,
    isSecret = false,
  ): RequestHandler {
    const meter = metrics.meter(name)
    const listener = onResponse?.(name)
    const end = (context: RequestContext, reply: Reply): Response | undefined => {
      const response = finish(context, reply, meter, listener)
      if (isSecret) response?.headers.set('Cache-Control', 'no-store')
      return response
    }
    return (request, params, runtime) => {
      metrics.started()
      const context = createContext(name, request, params, runtime)
      let reply: Reply | Promise<Reply>
      try {
        if (isDraining()) throw unavailable()
        checkHead(context.headers)
        reply = work(context)
      } catch (error) {
        return end(context, toErrorReply(error, context))
      }
      const fail = (error: unknown) => end(context, toErrorReply(error, context))
      const endLarge = (large: Reply) => prepare(large).then((ready) => end(context, ready), fail)
      if (!(reply instanceof Promise)) return isLarge(reply) ? endLarge(reply) : end(context, reply)
      return reply.then((resolved) => (isLarge(resolved) ? endLarge(resolved) : end(context, resolved)), fail)
    }
  }

  function createContext(name: string, request: Request, params: Params, runtime: RuntimeServer): RequestContext {
    const { headers, method, url } = request
    const { path, query: queryString } = parseTarget(url)
    const address = clientAddress(headers, runtime.requestIP(request)?.address ?? null, trustProxy)
    return {
      params,
      query: undefined,
      body: undefined,
      caller: anonymous(address),
      headers,
      method,
      path,
      requestId: `${processPrefix}-${(++requests).toString(36)}`,
      url,
      // A getter, because the runtime makes the signal when it is first asked for.
      get signal() {
        return request.signal
      },
      rawBody: createRequestBody(request),
      name,
      request,
      runtime,
      queryString,
      address,
      startMs: performance.now(),
    }
  }

  function finish(
    context: RequestContext,
    reply: Reply,
    meter: Meter,
    listener?: ResponseListener,
  ): Response | undefined {
    if (reply === upgraded) {
      record(context, 101, meter, listener)
      return undefined
    }
    const response = respond(context, reply)
    response.headers.set('X-Request-Id', context.requestId)
    cors.expose(context.headers, response.headers)
    if (isDraining()) response.headers.set('Connection', 'close')
    record(context, response.status, meter, listener)
    return response
  }

  function record(context: RequestContext, status: number, meter: Meter, listener?: ResponseListener): void {
    const ms = performance.now() - context.startMs
    meter.record(status, ms / 1000)
    metrics.ended()
    logRequest(context, status, ms)
    try {
      listener?.(context.method, status, ms, context.caller.auth?.id ?? null)
    } catch (error) {
      // What is written down of a request never changes its answer.
      log.error('http.response_hook_failed', { requestId: context.requestId, error })
    }
  }

  const trackDownload = ({ request, runtime }: RequestContext): void =>
    responses.download(runtime.pendingRequests, (seconds) => runtime.timeout(request, seconds))

  function respond(context: RequestContext, reply: Reply): Response {
    try {
      const fresh = applyConditionalGet(context, reply)
      if (context.method === 'HEAD') return toResponse(fresh, templates)
      const { source } = fresh
      if (source !== undefined && !(source instanceof Uint8Array)) trackDownload(context)
      return toResponse(fresh, templates, responses.bodyOf)
    } catch (error) {
      // A header or status that cannot be sent.
      return toResponse(toErrorReply(error, context), templates)
    }
  }

  /**
   * An endpoint's part of a request. The order is part of the contract: nothing is read for a caller who may not ask.
   */
  function execute(work: PreparedEndpoint, context: RequestContext): Reply | Promise<Reply> {
    const { endpoint } = work
    const caller = endpoint.ignoresCredentials ? findServiceKey(context) : identify(endpoint, context)
    return caller instanceof Promise
      ? caller.then((resolved) => callEndpoint(work, context, resolved))
      : callEndpoint(work, context, caller)
  }

  function callEndpoint(
    { endpoint, readQuery }: PreparedEndpoint,
    context: RequestContext,
    caller: Caller,
  ): Reply | Promise<Reply> {
    context.caller = caller
    authorize(endpoint, caller, context.params)
    context.query = readQuery(context.queryString)
    const schema = endpoint.body
    if (!schema) return endpoint.handle(context)
    if (endpoint.isBodyOptional && hasNoBody(context.headers)) {
      context.body = validate(schema, {})
      return endpoint.handle(context)
    }
    const { bodyBytesMax = jsonBodyBytesMax } = endpoint
    const bytesMax = typeof bodyBytesMax === 'number' ? bodyBytesMax : bodyBytesMax(context.params)
    const type = context.headers.get('content-type')
    return readJsonObject(type, context.rawBody, bytesMax, endpoint.textMembers).then((json) => {
      const handle = (): Reply | Promise<Reply> => {
        context.body = validate(schema, json)
        return endpoint.handle(context)
      }
      const still = caller.kind === 'user' ? authenticateAgain(context) : null
      return still instanceof Promise ? still.then(handle) : handle()
    })
  }

  /**
   * A body takes as long to come as its sender likes, by a byte a minute for hours: whoever was let in before it may
   * have been thrown out since, or their token have ended. Throws or rejects with a 401.
   */
  const authenticateAgain = ({ headers }: RequestContext): UserCaller | Promise<UserCaller> =>
    authenticate(parseBearer(headers.get('authorization') ?? ''))

  /**
   * A socket instead of an answer. Who is there, it will say itself; only a service key comes with the request.
   */
  async function openSocket(
    endpoint: SocketEndpoint,
    context: RequestContext,
    readQuery: PreparedEndpoint['readQuery'],
  ): Promise<Reply> {
    const { request, runtime, headers, address } = context
    const key = headers.get('x-platform-service-key')
    const service = key === null ? null : serviceKeys.find(key, address)
    if (!service || !isExempt(service, endpoint.rateLimit)) await limiter.count(endpoint.rateLimit, address)
    if (key !== null && !service) throw invalidServiceKey()
    if (service) context.caller = service
    context.query = readQuery(context.queryString)
    const createHandler = await endpoint.open(context)
    if (typeof createHandler !== 'function') return createHandler
    if (isDraining()) throw unavailable()
    const { kind } = endpoint
    const bound = (most: number | ((call: Call) => number)): number => (typeof most === 'number' ? most : most(context))
    const [authTimeoutMs, messageBytesMax] = [bound(endpoint.authTimeoutMs), bound(endpoint.messageBytesMax)]
    const isKeyValid = (): boolean => key !== null && serviceKeys.find(key, address) !== null
    const from = { kind, address: countedAddress(address), caller: context.caller, isKeyValid, authTimeoutMs }
    const slot = sockets.reserve(from)
    if (!slot) return endpoint.tooManyPending(context)
    if (runtime.upgrade(request, { data: { slot, createHandler, messageBytesMax } })) return upgraded
    slot.release()
    throw badRequest('This path is for WebSockets')
  }

  /** The caller of an endpoint that refuses no credentials. */
  function findServiceKey({ headers, address, caller }: RequestContext): Caller {
    const key = headers.get('x-platform-service-key')
    return (key === null ? null : serviceKeys.find(key, address)) ?? caller
  }

  /**
   * Authenticates the caller. A service key is accepted or refused but never ignored, and only a good one for this
   * endpoint is exempt from the rate limit, so that neither keys nor tokens can be guessed faster than it allows.
   */
  function identify(endpoint: Endpoint, context: RequestContext): Caller | Promise<Caller> {
    const key = context.headers.get('x-platform-service-key')
    const service = key === null ? null : serviceKeys.find(key, context.address)
    // An endpoint without a limit of its own does not become the place to guess keys at.
    const group = endpoint.rateLimit ?? (key === null || service ? null : 'auth')
    if (service && (group === null || isExempt(service, group, scopesOf(endpoint, context.params)))) return service
    const counting = group === null ? undefined : limiter.count(group, context.address)
    const proceed = (): Caller | Promise<Caller> => service ?? identifyUser(key, context)
    return counting instanceof Promise ? counting.then(proceed) : proceed()
  }

  function identifyUser(badKey: string | null, { headers, caller }: RequestContext): Caller | Promise<Caller> {
    if (badKey !== null) throw invalidServiceKey()
    const authorization = headers.get('authorization')
    return authorization === null ? caller : authenticate(parseBearer(authorization))
  }

  function toErrorReply(error: unknown, { requestId, name }: RequestContext): Reply {
    const refusal = toApiError(error)
    if (refusal.status === 500) log.error('http.request_failed', { requestId, endpoint: name, error })
    else if (refusal !== error) log.warn('http.engine_refused', { requestId, endpoint: name, error })
    return json(refusal.body(), refusal.status, refusal.headers)
  }

  function logRequest(
    { method, path, name, caller, requestId, address }: RequestContext,
    status: number,
    exactMs: number,
  ): void {
    const ms = Math.round(exactMs * 1000) / 1000
    const who = caller.kind === 'service' ? caller.keyName : caller.kind
    log.info('http.request', { method, path, endpoint: name, status, ms, caller: who, requestId, address })
  }

  return {
    endpoint(endpoint) {
      const readQuery = createQueryReader<unknown>(endpoint.query ?? noQuery, endpoint.allowsUnknownQuery)
      const work: PreparedEndpoint = { endpoint, readQuery }
      return withLifecycle(endpoint.name, (context) => execute(work, context), endpoint.isSecret)
    },
    socket(endpoint) {
      const readQuery = createQueryReader<unknown>(endpoint.query)
      return withLifecycle(endpoint.name, (context) => openSocket(endpoint, context, readQuery))
    },
    fallback: (name, respond) => withLifecycle(name, ({ request, path }) => respond(request, path)),
  }
}

/** Of endpoints that declare no query parameters. */
const noQuery = z.object({})

/** The reply of a request that has become a socket: nothing is left to answer. */
const upgraded = empty(101)

const anonymous = (address: string): Caller => ({ kind: 'anonymous', auth: null, address: countedAddress(address) })

/**
 * The token of `Bearer <token>`. Another scheme is a mistake to be told, not a reason to go on as nobody. Throws 401.
 */
function parseBearer(authorization: string): string {
  const token = /^bearer +([^\s]+) *$/i.exec(authorization)?.[1]
  if (token === undefined) throw invalidToken()
  return token
}

/** The scopes of which an endpoint needs one; none where any key will do. */
function scopesOf({ scope }: Endpoint, params: Params): readonly string[] {
  const needed = scope?.(params) ?? []
  return typeof needed === 'string' ? [needed] : needed
}

/** Whether this kind of caller may ask at all; what they may see is for the feature's rules. Throws 401 or 403. */
function authorize(endpoint: Endpoint, caller: Caller, params: Params): void {
  if (caller.kind === 'service') {
    const needed = scopesOf(endpoint, params)
    if (needed.length > 0 && !needed.some((scope) => permitsScope(caller.scopes, scope))) throw invalidServiceKey()
    return
  }
  if (endpoint.credentials === 'public' || endpoint.credentials === 'rules') return
  if (endpoint.credentials === 'key') throw accessDenied()
  if (caller.kind === 'anonymous') throw authenticationRequired()
  if (endpoint.credentials === 'service') throw accessDenied()
}

/** A client that has the answer already is told so: 304 instead of a 200 whose `ETag` it named. */
function applyConditionalGet({ method, headers }: RequestContext, reply: Reply): Reply {
  const etag = reply.headers?.ETag
  if (etag === undefined || reply.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return reply
  const ifNoneMatch = headers.get('if-none-match')
  return ifNoneMatch !== null && matchesEtag(ifNoneMatch, etag) ? empty(304, reply.headers) : reply
}

/** What the caller may know of a failure: a refusal, an engine that is away or has too much work; else nothing. */
function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (isOutOfHandles(error)) return unavailable()
  if (error instanceof EngineError && error.kind === 'crowded') return rateLimited(1, error.message)
  if (error instanceof EngineError && error.kind !== 'unique' && error.kind !== 'oversized') return unavailable()
  return internal()
}
