/** The state of one request: the handler's argument, filled in step by step, and what the pipeline needs. */
import type { TrustProxy } from '../base/network/address.ts'
import type { RequestTrace } from '../base/tracing/request-trace.ts'
import type { OpenCall, Params, SocketHandlerFactory } from './endpoint.ts'
import { parseTarget } from './input/query-string.ts'
import { createRequestBody } from './input/request-body.ts'
import { anonymous } from './security/authorization.ts'
import { clientAddress } from './security/client-address.ts'
import type { SocketSlot } from './sockets/sockets.ts'

/** The part of the runtime's server that requests need: the peer's address, timeouts and WebSocket upgrades. */
export interface RuntimeServer {
  readonly pendingRequests: number
  timeout(request: Request, seconds: number): void
  requestIP(request: Request): { readonly address: string } | null
  upgrade(request: Request, options: { data: SocketData }): boolean
}

/** The data that the runtime attaches to a WebSocket. */
export interface SocketData extends SocketSlot {
  readonly createHandler: SocketHandlerFactory
  readonly messageBytesMax: number
}

export interface RequestContext extends OpenCall {
  /** The endpoint's name, for logs and metrics. */
  readonly name: string
  readonly runtime: RuntimeServer
  readonly startMs: number
  readonly request: Request
  /** Null where the request is not sampled. */
  readonly trace: RequestTrace | null
}

/** Makes request ids unique across processes in aggregated logs; they need not be unguessable. */
const processPrefix = crypto.randomUUID().slice(0, 8)
let requests = 0

export function createContext(
  name: string,
  request: Request,
  params: Params,
  runtime: RuntimeServer,
  trustProxy: TrustProxy,
  trace: RequestTrace | null,
): RequestContext {
  const { headers, method, url } = request
  const { path, query: queryString } = parseTarget(url)
  const address = clientAddress(headers, () => runtime.requestIP(request)?.address ?? null, trustProxy)
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
    setIdleSeconds: (seconds) => runtime.timeout(request, seconds),
    rawBody: createRequestBody(request),
    name,
    request,
    runtime,
    queryString,
    address,
    startMs: performance.now(),
    trace,
  }
}
