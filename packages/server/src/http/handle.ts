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
import type { Begin, Call, Endpoint, Params, Reply, SocketEndpoint } from './endpoint.ts'
import { hasNoBody, readJsonObject } from './input/body.ts'
import { parseTarget } from './input/query-string.ts'
import { checkHead, createRequestBody } from './input/request-body.ts'
import { createQueryReader, validate } from './input/validate.ts'
import type { Meter, Metrics } from './metrics.ts'
import { isExempt, type RateLimiter } from './rate-limit.ts'
import { matchesEtag } from './replies/etags.ts'
import { createReplyTemplates, empty, isLarge, json, prepare, toResponse } from './replies/reply.ts'
import type { UnreadResponses } from './replies/unread-responses.ts'
import type { Admitted, Sockets } from './sockets/sockets.ts'

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
  readonly noteOf?: (endpoint: string) => NoteRequest
  /** True once no new work is taken. */
  readonly isDraining: () => boolean
  readonly responses: UnreadResponses
}

/** `userId` is null for whoever is no user. */
export type NoteRequest = (method: string, status: number, ms: number, userId: string | null) => void

/** The runtime's knowledge of who is at the other end of a connection, and its way to make a socket of it. */
export interface Peers {
  readonly pendingRequests: number
  timeout(request: Request, seconds: number): void
  requestIP(request: Request): { readonly address: string } | null
  upgrade(request: Request, options: { data: OpenedSocket }): boolean
}

/** What the runtime keeps with a socket. */
export interface OpenedSocket {
  readonly admitted: Admitted
  readonly begin: Begin
  readonly messageBytesMax: number
}

/** Answers one request; never throws or rejects. Nothing is left to answer where a socket was made of it. */
export type Answer = (
  request: Request,
  params: Params,
  peers: Peers,
) => Response | undefined | Promise<Response | undefined>

export interface Handle {
  /** Executes an endpoint. */
  endpoint(endpoint: Endpoint): Answer
  /** Makes a socket of a request. */
  socket(endpoint: SocketEndpoint): Answer
  /** Answers a request that belongs to no endpoint; it is counted and logged under `name`. */
  stray(name: string, respond: (request: Request, path: string) => Reply): Answer
}

/** A request on its way: what its handler is called with, filled in step by step, and what is needed around it. */
interface Exchange extends Call {
  query: unknown
  body: unknown
  caller: Caller
  /** Endpoint's name, for logs and counts. */
  readonly name: string
  readonly peers: Peers
  readonly queryString: string
  readonly startMs: number
  readonly request: Request
}

/** An endpoint, and what can be prepared before it is asked. */
interface Work {
  readonly endpoint: Endpoint
  readonly readQuery: (queryString: string) => unknown
}

/** Tells processes and their requests apart in gathered logs; unguessability is not needed. */
const processPrefix = crypto.randomUUID().slice(0, 8)
let requests = 0

export function createHandle(parts: HandleParts): Handle {
  const { log, metrics, limiter, serviceKeys, authenticate, cors, trustProxy, sockets, noteOf, isDraining, responses } =
    parts
  const templates = createReplyTemplates(cors.common)

  /**
   * What every request goes through, whatever it asks. Waits only where there is something to wait for: each turn of
   * the loop costs as much as a look at the rate limit.
   */
  function frame(name: string, work: (exchange: Exchange) => Reply | Promise<Reply>, isSecret = false): Answer {
    const meter = metrics.meter(name)
    const note = noteOf?.(name)
    const end = (exchange: Exchange, reply: Reply): Response | undefined => {
      const response = finish(exchange, reply, meter, note)
      if (isSecret) response?.headers.set('Cache-Control', 'no-store')
      return response
    }
    return (request, params, peers) => {
      metrics.started()
      const exchange = begin(name, request, params, peers)
      let reply: Reply | Promise<Reply>
      try {
        if (isDraining()) throw unavailable()
        checkHead(exchange.headers)
        reply = work(exchange)
      } catch (error) {
        return end(exchange, refuse(error, exchange))
      }
      const fail = (error: unknown) => end(exchange, refuse(error, exchange))
      const endLarge = (large: Reply) => prepare(large).then((ready) => end(exchange, ready), fail)
      if (!(reply instanceof Promise)) return isLarge(reply) ? endLarge(reply) : end(exchange, reply)
      return reply.then((late) => (isLarge(late) ? endLarge(late) : end(exchange, late)), fail)
    }
  }

  function begin(name: string, request: Request, params: Params, peers: Peers): Exchange {
    const { headers, method, url } = request
    const { path, query: queryString } = parseTarget(url)
    const address = clientAddress(headers, peers.requestIP(request)?.address ?? null, trustProxy)
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
      peers,
      queryString,
      address,
      startMs: performance.now(),
    }
  }

  function finish(exchange: Exchange, reply: Reply, meter: Meter, note?: NoteRequest): Response | undefined {
    if (reply === upgraded) {
      record(exchange, 101, meter, note)
      return undefined
    }
    const response = respond(exchange, reply)
    response.headers.set('X-Request-Id', exchange.requestId)
    cors.expose(exchange.headers, response.headers)
    if (isDraining()) response.headers.set('Connection', 'close')
    record(exchange, response.status, meter, note)
    return response
  }

  function record(exchange: Exchange, status: number, meter: Meter, note?: NoteRequest): void {
    const ms = performance.now() - exchange.startMs
    meter.record(status, ms / 1000)
    metrics.ended()
    logRequest(exchange, status, ms)
    try {
      note?.(exchange.method, status, ms, exchange.caller.auth?.id ?? null)
    } catch (error) {
      // What is written down of a request never changes its answer.
      log.error('http.response_hook_failed', { requestId: exchange.requestId, error })
    }
  }

  const noteDownload = ({ request, peers }: Exchange): void =>
    responses.download(peers.pendingRequests, (seconds) => peers.timeout(request, seconds))

  function respond(exchange: Exchange, reply: Reply): Response {
    try {
      const fresh = freshen(exchange, reply)
      if (exchange.method === 'HEAD') return toResponse(fresh, templates)
      const { source } = fresh
      if (source !== undefined && !(source instanceof Uint8Array)) noteDownload(exchange)
      return toResponse(fresh, templates, responses.bodyOf)
    } catch (error) {
      // A header or status that cannot be sent.
      return toResponse(refuse(error, exchange), templates)
    }
  }

  /**
   * An endpoint's part of a request. The order is part of the contract: nothing is read for a caller who may not ask.
   */
  function execute(work: Work, exchange: Exchange): Reply | Promise<Reply> {
    const { endpoint } = work
    const caller = endpoint.ignoresCredentials ? recognize(exchange) : identify(endpoint, exchange)
    return caller instanceof Promise
      ? caller.then((late) => callEndpoint(work, exchange, late))
      : callEndpoint(work, exchange, caller)
  }

  function callEndpoint({ endpoint, readQuery }: Work, exchange: Exchange, caller: Caller): Reply | Promise<Reply> {
    exchange.caller = caller
    permit(endpoint, caller, exchange.params)
    exchange.query = readQuery(exchange.queryString)
    const schema = endpoint.body
    if (!schema) return endpoint.handle(exchange)
    if (endpoint.isBodyOptional && hasNoBody(exchange.headers)) {
      exchange.body = validate(schema, {})
      return endpoint.handle(exchange)
    }
    const { bodyBytesMax = jsonBodyBytesMax } = endpoint
    const bytesMax = typeof bodyBytesMax === 'number' ? bodyBytesMax : bodyBytesMax(exchange.params)
    const type = exchange.headers.get('content-type')
    return readJsonObject(type, exchange.rawBody, bytesMax, endpoint.textMembers).then((json) => {
      const handle = (): Reply | Promise<Reply> => {
        exchange.body = validate(schema, json)
        return endpoint.handle(exchange)
      }
      const still = caller.kind === 'user' ? authenticateAgain(exchange) : null
      return still instanceof Promise ? still.then(handle) : handle()
    })
  }

  /**
   * A body takes as long to come as its sender likes, by a byte a minute for hours: whoever was let in before it may
   * have been thrown out since, or their token have ended. Throws or rejects with a 401.
   */
  const authenticateAgain = ({ headers }: Exchange): UserCaller | Promise<UserCaller> =>
    authenticate(parseBearer(headers.get('authorization') ?? ''))

  /**
   * A socket instead of an answer. Who is there, it will say itself; only a service key comes with the request.
   */
  async function openSocket(
    endpoint: SocketEndpoint,
    exchange: Exchange,
    readQuery: Work['readQuery'],
  ): Promise<Reply> {
    const { request, peers, headers, address } = exchange
    const key = headers.get('x-platform-service-key')
    const service = key === null ? null : serviceKeys.find(key, address)
    if (!service || !isExempt(service, endpoint.rateLimit)) await limiter.count(endpoint.rateLimit, address)
    if (key !== null && !service) throw invalidServiceKey()
    if (service) exchange.caller = service
    exchange.query = readQuery(exchange.queryString)
    const begin = await endpoint.open(exchange)
    if (typeof begin !== 'function') return begin
    if (isDraining()) throw unavailable()
    const { kind } = endpoint
    const bound = (most: number | ((call: Call) => number)): number =>
      typeof most === 'number' ? most : most(exchange)
    const [authTimeoutMs, messageBytesMax] = [bound(endpoint.authTimeoutMs), bound(endpoint.messageBytesMax)]
    const isKeyGood = (): boolean => key !== null && serviceKeys.find(key, address) !== null
    const from = { kind, address: countedAddress(address), caller: exchange.caller, isKeyGood, authTimeoutMs }
    const admitted = sockets.admit(from)
    if (!admitted) return endpoint.refuseCrowd(exchange)
    if (peers.upgrade(request, { data: { admitted, begin, messageBytesMax } })) return upgraded
    admitted.ended()
    throw badRequest('This path is for WebSockets')
  }

  /** The caller of an endpoint that refuses no credentials. */
  function recognize({ headers, address, caller }: Exchange): Caller {
    const key = headers.get('x-platform-service-key')
    return (key === null ? null : serviceKeys.find(key, address)) ?? caller
  }

  /**
   * Authenticates the caller. A service key is accepted or refused but never ignored, and only a good one for this
   * endpoint is exempt from the rate limit, so that neither keys nor tokens can be guessed faster than it allows.
   */
  function identify(endpoint: Endpoint, exchange: Exchange): Caller | Promise<Caller> {
    const key = exchange.headers.get('x-platform-service-key')
    const service = key === null ? null : serviceKeys.find(key, exchange.address)
    // An endpoint without a limit of its own does not become the place to guess keys at.
    const group = endpoint.rateLimit ?? (key === null || service ? null : 'auth')
    if (service && (group === null || isExempt(service, group, scopesOf(endpoint, exchange.params)))) return service
    const counting = group === null ? undefined : limiter.count(group, exchange.address)
    const proceed = (): Caller | Promise<Caller> => service ?? identifyUser(key, exchange)
    return counting instanceof Promise ? counting.then(proceed) : proceed()
  }

  function identifyUser(badKey: string | null, { headers, caller }: Exchange): Caller | Promise<Caller> {
    if (badKey !== null) throw invalidServiceKey()
    const authorization = headers.get('authorization')
    return authorization === null ? caller : authenticate(parseBearer(authorization))
  }

  function refuse(error: unknown, { requestId, name }: Exchange): Reply {
    const refusal = asRefusal(error)
    if (refusal.status === 500) log.error('http.request_failed', { requestId, endpoint: name, error })
    else if (refusal !== error) log.warn('http.engine_refused', { requestId, endpoint: name, error })
    return json(refusal.body(), refusal.status, refusal.headers)
  }

  function logRequest(
    { method, path, name, caller, requestId, address }: Exchange,
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
      const work: Work = { endpoint, readQuery }
      return frame(endpoint.name, (exchange) => execute(work, exchange), endpoint.isSecret)
    },
    socket(endpoint) {
      const readQuery = createQueryReader<unknown>(endpoint.query)
      return frame(endpoint.name, (exchange) => openSocket(endpoint, exchange, readQuery))
    },
    stray: (name, respond) => frame(name, ({ request, path }) => respond(request, path)),
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
function permit(endpoint: Endpoint, caller: Caller, params: Params): void {
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
function freshen({ method, headers }: Exchange, reply: Reply): Reply {
  const etag = reply.headers?.ETag
  if (etag === undefined || reply.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return reply
  const ifNoneMatch = headers.get('if-none-match')
  return ifNoneMatch !== null && matchesEtag(ifNoneMatch, etag) ? empty(304, reply.headers) : reply
}

/** What the caller may know of a failure: a refusal, an engine that is away or has too much work; else nothing. */
function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (isOutOfHandles(error)) return unavailable()
  if (error instanceof EngineError && error.kind === 'crowded') return rateLimited(1, error.message)
  if (error instanceof EngineError && error.kind !== 'unique' && error.kind !== 'oversized') return unavailable()
  return internal()
}
