/** Turns the reply or the error of a request into its response, and records it in metrics and in the access log. */
import type { Caller } from '../access/caller.ts'
import { isOutOfHandles } from '../base/files/file-handles.ts'
import type { Log } from '../base/log.ts'
import type { RequestTrace } from '../base/tracing/request-trace.ts'
import { EngineError } from '../engines/sql/error.ts'
import { ApiError, internal, rateLimited, unavailable } from '../errors.ts'
import type { Params, Reply } from './endpoint.ts'
import type { Metrics } from './metrics.ts'
import { matchesEtag } from './replies/etags.ts'
import { empty, json, type ReplyTemplates, toResponse } from './replies/reply.ts'
import type { UnreadResponses } from './replies/unread-responses.ts'
import type { RequestContext } from './request-context.ts'
import type { Cors } from './security/cors.ts'
import { isDashboardPath } from './security/dashboard-access.ts'
import { upgraded } from './upgrade.ts'

/** `userId` is null unless a user made the request. */
export type ResponseListener = (method: string, status: number, ms: number, userId: string | null) => void

/** What is known of a request once it is answered. */
export interface SeenRequest {
  readonly requestId: string
  readonly method: string
  readonly path: string
  /** Without `?`. */
  readonly query: string
  /** Name of the endpoint; `stray` where none matched. */
  readonly endpoint: string
  readonly status: number
  /** Of the error; null for other responses. */
  readonly slug: string | null
  readonly message: string | null
  readonly ms: number
  readonly caller: Caller
  readonly address: string
  /** Null where the request was not sampled. */
  readonly traced: TracedRequest | null
}

/** What is known of a sampled request beside. */
export interface TracedRequest {
  readonly trace: RequestTrace
  readonly params: Params
  /** The JSON body after validation; undefined without one. */
  readonly body: unknown
  readonly userAgent: string | null
  /** Null where it is not known before it has been sent or received. */
  readonly requestBytes: number | null
  readonly responseBytes: number | null
}

/** Must not block or throw. */
export interface RequestRecorder {
  /** The trace of a request to an endpoint that begins; null if it is not sampled. */
  begin(endpoint: string): RequestTrace | null
  record(request: SeenRequest): void
}

export interface ResponderParts {
  readonly log: Log
  readonly metrics: Metrics
  readonly cors: Cors
  /** Creates the listener that is called after each response of an endpoint. Must not block. */
  readonly onResponse?: (endpoint: string) => ResponseListener
  /** Whether the server is shutting down and refuses new requests. */
  readonly isDraining: () => boolean
  readonly responses: UnreadResponses
  /** Keeps the requests that are not to the dashboard. */
  readonly recorder?: RequestRecorder
}

/** Ends the requests of one endpoint. */
export interface Responder {
  /** Undefined once the request was upgraded to a WebSocket. */
  end(context: RequestContext, reply: Reply): Response | undefined
  fail(context: RequestContext, error: unknown): Response | undefined
}

export interface RespondingEndpoint {
  readonly name: string
  /** No cache stores the responses. */
  readonly isSecret: boolean
  /** Its responses are for pages of this server only, and it is not part of the statistics of the API. */
  readonly isDashboard: boolean
}

export function createResponder(
  parts: ResponderParts,
  templates: ReplyTemplates,
  { name, isSecret, isDashboard }: RespondingEndpoint,
): Responder {
  const { log, metrics, cors, isDraining, responses } = parts
  const meter = metrics.meter(name)
  const listener = isDashboard ? undefined : parts.onResponse?.(name)

  function end(context: RequestContext, reply: Reply, refusal: ApiError | null = null): Response | undefined {
    if (reply === upgraded) {
      record(context, 101, null, reply)
      return undefined
    }
    const response = respond(context, reply)
    response.headers.set('X-Request-Id', context.requestId)
    if (!isDashboard && !isDashboardPath(context.path)) cors.expose(context.headers, response.headers)
    if (isDraining()) response.headers.set('Connection', 'close')
    record(context, response.status, refusal, reply)
    if (isSecret) response.headers.set('Cache-Control', 'no-store')
    return response
  }

  function respond(context: RequestContext, reply: Reply): Response {
    try {
      const fresh = applyConditionalGet(context, reply)
      if (context.method === 'HEAD') return toResponse(fresh, templates)
      const { source } = fresh
      if (source !== undefined && !(source instanceof Uint8Array)) trackDownload(context)
      return toResponse(fresh, templates, responses.bodyOf)
    } catch (error) {
      // The reply has an invalid header or status.
      return toResponse(toErrorReply(log, error, context), templates)
    }
  }

  const trackDownload = ({ request, runtime }: RequestContext): void =>
    responses.download(runtime.pendingRequests, (seconds) => runtime.timeout(request, seconds))

  function record(context: RequestContext, status: number, refusal: ApiError | null, reply: Reply): void {
    context.trace?.end()
    const ms = performance.now() - context.startMs
    meter.record(status, ms / 1000)
    metrics.ended()
    logRequest(log, context, status, ms)
    if (!isDashboard) parts.recorder?.record(seenRequest(context, status, ms, refusal, reply))
    try {
      listener?.(context.method, status, ms, context.caller.auth?.id ?? null)
    } catch (error) {
      // A failing listener must not change the response.
      log.error('http.response_hook_failed', { requestId: context.requestId, error })
    }
  }

  return { end, fail: (context, error) => end(context, toErrorReply(log, error, context), toApiError(error)) }
}

/** Bytes of the body; null for a stream. */
function bytesOf({ text, source }: Reply): number | null {
  if (source !== undefined) {
    if (source instanceof Uint8Array) return source.byteLength
    return source.kind === 'file' ? source.end - source.start : null
  }
  if (text === null) return 0
  return typeof text === 'string' ? Buffer.byteLength(text) : text.byteLength
}

function tracedRequest({ trace, params, body, headers }: RequestContext, reply: Reply): SeenRequest['traced'] {
  if (trace === null) return null
  const length = headers.get('content-length')
  const requestBytes = length === null ? (headers.has('transfer-encoding') ? null : 0) : Number(length)
  const userAgent = headers.get('user-agent')
  return { trace, params, body, userAgent, requestBytes, responseBytes: bytesOf(reply) }
}

const seenRequest = (
  context: RequestContext,
  status: number,
  ms: number,
  refusal: ApiError | null,
  reply: Reply,
): SeenRequest => {
  const { requestId, method, path, queryString, name, caller, address } = context
  return {
    requestId,
    method,
    path,
    query: queryString,
    endpoint: name,
    status,
    slug: refusal?.slug ?? null,
    message: refusal?.message ?? null,
    ms,
    caller,
    address,
    traced: tracedRequest(context, reply),
  }
}

/** The reply that refuses a request; what is not an error of the API is logged. */
export function toErrorReply(
  log: Log,
  error: unknown,
  { requestId, name }: Pick<RequestContext, 'requestId' | 'name'>,
): Reply {
  const refusal = toApiError(error)
  if (refusal.status === 500) log.error('http.request_failed', { requestId, endpoint: name, error })
  else if (refusal !== error) log.warn('http.engine_refused', { requestId, endpoint: name, error })
  return json(refusal.body(), refusal.status, refusal.headers)
}

function logRequest(
  log: Log,
  { method, path, name, caller, requestId, address }: RequestContext,
  status: number,
  exactMs: number,
): void {
  const ms = Math.round(exactMs * 1000) / 1000
  const who = caller.kind === 'service' ? caller.keyName : caller.kind
  log.info('http.request', { method, path, endpoint: name, status, ms, caller: who, requestId, address })
}

/** Replaces a 200 whose `ETag` matches `If-None-Match` by 304. */
export function applyConditionalGet(
  { method, headers }: Pick<RequestContext, 'method' | 'headers'>,
  reply: Reply,
): Reply {
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
