/**
 * The request pipeline: rate limit, authentication, authorization, validation, the endpoint's handler, response,
 * metrics and access log. Independent of the runtime (`server` adapts it) and of features.
 */
import { z } from 'zod'
import type { Caller, UserCaller } from '../access/caller.ts'
import type { ServiceKeys } from '../access/service-keys.ts'
import { isOutOfHandles } from '../base/files/file-handles.ts'
import type { Log } from '../base/log.ts'
import { countedAddress, type TrustProxy } from '../base/network/address.ts'
import { EngineError } from '../engines/sql/error.ts'
import { ApiError, badRequest, internal, invalidServiceKey, rateLimited, unavailable } from '../errors.ts'
import { jsonBodyBytesMax } from '../limits/api.ts'
import { anonymous, authorize, parseBearer, scopesOf } from './authorization.ts'
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
  /** The user of a bearer token. Throws or rejects with 401. Returns a promise only where it needs I/O. */
  readonly authenticate: (bearerToken: string) => UserCaller | Promise<UserCaller>
  readonly cors: Cors
  readonly trustProxy: TrustProxy
  readonly sockets: Sockets
  /** Creates the listener that is called after each response of an endpoint. Must not block. */
  readonly onResponse?: (endpoint: string) => ResponseListener
  /** Whether the server is shutting down and refuses new requests. */
  readonly isDraining: () => boolean
  readonly responses: UnreadResponses
}

/** `userId` is null unless a user made the request. */
export type ResponseListener = (method: string, status: number, ms: number, userId: string | null) => void

/** The part of the runtime's server that requests need: the peer's address, timeouts and WebSocket upgrades. */
export interface RuntimeServer {
  readonly pendingRequests: number
  timeout(request: Request, seconds: number): void
  requestIP(request: Request): { readonly address: string } | null
  upgrade(request: Request, options: { data: SocketData }): boolean
}

/** The data that the runtime attaches to a WebSocket. */
export interface SocketData {
  readonly slot: SocketSlot
  readonly createHandler: SocketHandlerFactory
  readonly messageBytesMax: number
}

/** Handles one request; never throws or rejects. Returns undefined once the request was upgraded to a WebSocket. */
export type RequestHandler = (
  request: Request,
  params: Params,
  runtime: RuntimeServer,
) => Response | undefined | Promise<Response | undefined>

export interface Handle {
  /** Handles the requests of an endpoint. */
  endpoint(endpoint: Endpoint): RequestHandler
  /** Upgrades requests to WebSockets. */
  socket(endpoint: SocketEndpoint): RequestHandler
  /** Handles requests that match no endpoint; counted and logged under `name`. */
  fallback(name: string, respond: (request: Request, path: string) => Reply): RequestHandler
}

/** The state of one request: the handler's argument, filled in step by step, and what the pipeline needs. */
interface RequestContext extends Call {
  query: unknown
  body: unknown
  caller: Caller
  /** The endpoint's name, for logs and metrics. */
  readonly name: string
  readonly runtime: RuntimeServer
  readonly queryString: string
  readonly startMs: number
  readonly request: Request
}

/** An endpoint with everything that can be computed before its first request. */
interface PreparedEndpoint {
  readonly endpoint: Endpoint
  readonly readQuery: (queryString: string) => unknown
}

/** Makes request ids unique across processes in aggregated logs; they need not be unguessable. */
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
   * The steps common to all requests. Stays synchronous where nothing is pending: a microtask costs as much as a
   * rate-limit check.
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
      // A getter, because the runtime creates the signal on first access.
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
      // A failing listener must not change the response.
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
      // The reply has an invalid header or status.
      return toResponse(toErrorReply(error, context), templates)
    }
  }

  /** Runs an endpoint. The order matters: nothing is read for a caller without permission. */
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
      const recheck = caller.kind === 'user' ? authenticateAgain(context) : null
      return recheck instanceof Promise ? recheck.then(handle) : handle()
    })
  }

  /**
   * Bodies can trickle in for hours, so the user is authenticated again after reading: the session may have been
   * revoked or the token may have expired meanwhile. Throws or rejects with 401.
   */
  const authenticateAgain = ({ headers }: RequestContext): UserCaller | Promise<UserCaller> =>
    authenticate(parseBearer(headers.get('authorization') ?? ''))

  /** Upgrades to a WebSocket. Users authenticate over the socket; only a service key is sent with the request. */
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
    const origin = { kind, address: countedAddress(address), caller: context.caller, isKeyValid, authTimeoutMs }
    const slot = sockets.reserve(origin)
    if (!slot) return endpoint.tooManyPending(context)
    if (runtime.upgrade(request, { data: { slot, createHandler, messageBytesMax } })) return upgraded
    slot.release()
    throw badRequest('This endpoint requires a WebSocket upgrade')
  }

  /** The caller of an endpoint that ignores invalid credentials. */
  function findServiceKey({ headers, address, caller }: RequestContext): Caller {
    const key = headers.get('x-platform-service-key')
    return (key === null ? null : serviceKeys.find(key, address)) ?? caller
  }

  /**
   * Authenticates the caller. A service key is accepted or refused but never ignored, and only one that is valid for
   * this endpoint is exempt from the rate limit, so that neither keys nor tokens can be guessed faster than it allows.
   */
  function identify(endpoint: Endpoint, context: RequestContext): Caller | Promise<Caller> {
    const key = context.headers.get('x-platform-service-key')
    const service = key === null ? null : serviceKeys.find(key, context.address)
    // Wrong keys count against the `auth` group also where the endpoint has no rate limit, so they cannot be guessed
    // there.
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

/** The schema of endpoints without query parameters. */
const noQuery = z.object({})

/** Marks a request that was upgraded to a WebSocket and needs no response. */
const upgraded = empty(101)

/** Replaces a 200 whose `ETag` matches `If-None-Match` by 304. */
function applyConditionalGet({ method, headers }: RequestContext, reply: Reply): Reply {
  const etag = reply.headers?.ETag
  if (etag === undefined || reply.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return reply
  const ifNoneMatch = headers.get('if-none-match')
  return ifNoneMatch !== null && matchesEtag(ifNoneMatch, etag) ? empty(304, reply.headers) : reply
}

/**
 * The error as the client may see it: API errors as they are, an unavailable or overloaded engine as 503 or 429, and
 * anything else as a bare 500.
 */
function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (isOutOfHandles(error)) return unavailable()
  if (error instanceof EngineError && error.kind === 'crowded') return rateLimited(1, error.message)
  if (error instanceof EngineError && error.kind !== 'unique' && error.kind !== 'oversized') return unavailable()
  return internal()
}
