/**
 * Requests of the server's own code, such as `room.db`: through the same endpoints, permissions and validation as over
 * HTTP, and with the same answers. They pass no listener, so no rate limit of an address and no access log apply.
 */
import type { Caller } from '../access/caller.ts'
import type { Log } from '../base/log.ts'
import { methodNotAllowed, notFound } from '../errors.ts'
import { type PreparedEndpoint, prepareEndpoint, runEndpoint } from './call-endpoint.ts'
import type { Endpoint, OpenCall, Params, Reply, SocketEndpoint } from './endpoint.ts'
import { parseTarget } from './input/query-string.ts'
import { createInternalBody } from './input/request-body.ts'
import { createReplyTemplates, empty, isLarge, prepare, toResponse } from './replies/reply.ts'
import { applyConditionalGet, toErrorReply } from './responder.ts'
import { createRoutes, type Found, type Routes, socketRoute } from './routes.ts'

/** A request with everything that HTTP would add to it. */
export interface InternalRequest {
  readonly method: string
  /** The path, with the query string. */
  readonly target: string
  readonly headers?: HeadersInit
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null
  /** Credentials in the headers are ignored. */
  readonly caller: Caller
  /** In the log, in the response and beside the changes that the request makes. */
  readonly requestId: string
  /** See `Call`. */
  readonly effectKey?: string | undefined
  /** See `Call`. */
  readonly functionName?: string | undefined
  /** The address on whose behalf the request is made; none by default. */
  readonly address?: string
  readonly signal?: AbortSignal | undefined
}

/** Runs a request. Never rejects: an error is a response, as over HTTP. */
export type RunInternally = (request: InternalRequest) => Promise<Response>

export interface InternalRequestsDeps {
  readonly endpoints: readonly Endpoint[]
  /** Refused: a request of this kind has no socket. */
  readonly socketEndpoints: readonly SocketEndpoint[]
  readonly log: Log
}

const templates = createReplyTemplates({})

export function createInternalRequests({ endpoints, socketEndpoints, log }: InternalRequestsDeps): RunInternally {
  const routes = createRoutes([...endpoints, ...socketEndpoints.map(socketRoute)])
  const prepared = new Map<Endpoint, PreparedEndpoint>()
  const preparedOf = (endpoint: Endpoint): PreparedEndpoint => {
    const known = prepared.get(endpoint) ?? prepareEndpoint(endpoint)
    prepared.set(endpoint, known)
    return known
  }
  return async (request) => {
    const { method, requestId } = request
    let name = 'stray'
    try {
      const { path, query } = parseTarget(request.target)
      const { endpoint, params } = findEndpoint(routes, method, path)
      name = endpoint.name
      const call = createCall(request, { path, query, params })
      const reply = await runEndpoint(preparedOf(endpoint), call, null)
      const ready = applyConditionalGet(call, isLarge(reply) ? await prepare(reply) : reply)
      return respond(method === 'HEAD' ? empty(ready.status, ready.headers) : ready, requestId)
    } catch (error) {
      return respond(toErrorReply(log, error, { requestId, name }), requestId)
    }
  }
}

function respond(reply: Reply, requestId: string): Response {
  const response = toResponse(reply, templates)
  response.headers.set('X-Request-Id', requestId)
  return response
}

/** Throws 404 for a path that no endpoint has or that cannot be decoded, and 405 for another method. */
function findEndpoint(routes: Routes, method: string, path: string): Found {
  const found = routes.find(method, path)
  if (found) return found
  const allowed = routes.allowed(path)
  throw allowed.length === 0 || allowed.includes(method) ? notFound('Path') : methodNotAllowed(allowed)
}

export interface Matched {
  readonly path: string
  readonly query: string
  readonly params: Params
}

/** The argument of a handler for a request that was matched to it. */
export function createCall(internal: InternalRequest, { path, query, params }: Matched): OpenCall {
  const { method, target, caller, requestId, effectKey, functionName, address = '', signal } = internal
  const body = method === 'GET' || method === 'HEAD' ? null : (internal.body ?? null)
  const headers = headersOf(internal.headers, body)
  return {
    params,
    query: undefined,
    body: undefined,
    caller,
    headers,
    method,
    path,
    queryString: query,
    requestId,
    ...(effectKey === undefined ? {} : { effectKey }),
    ...(functionName === undefined ? {} : { functionName }),
    address,
    url: target,
    signal: signal ?? new AbortController().signal,
    rawBody: createInternalBody(headers, body),
  }
}

/** The headers, with those that say how long the body is. */
function headersOf(given: HeadersInit | undefined, body: InternalRequest['body']): Headers {
  const headers = new Headers(given)
  headers.delete('content-length')
  headers.delete('transfer-encoding')
  if (body instanceof ReadableStream) headers.set('transfer-encoding', 'chunked')
  else headers.set('content-length', String(body ? Buffer.byteLength(body) : 0))
  return headers
}
