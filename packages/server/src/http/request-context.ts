/** The state of one request: the handler's argument, filled in step by step, and what the pipeline needs. */
import type { Caller } from '../access/caller.ts'
import type { TrustProxy } from '../base/network/address.ts'
import type { RequestTrace } from '../base/tracing/request-trace.ts'
import type { OpenCall, Params, SocketHandlerFactory } from './endpoint.ts'
import { parseTarget } from './input/query-string.ts'
import { createRequestBody, type RequestBody } from './input/request-body.ts'
import { anonymous } from './security/authorization.ts'
import { clientAddress, type Peer } from './security/client-address.ts'
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

export const createContext = (
  name: string,
  request: Request,
  params: Params,
  runtime: RuntimeServer,
  trustProxy: TrustProxy,
  trace: RequestTrace | null,
): RequestContext => new IncomingRequest(name, request, params, runtime, trustProxy, trace)

/** A class because one is created per request: a function of each object takes memory of its own. */
class IncomingRequest implements RequestContext, Peer {
  readonly headers: Headers
  readonly method: string
  readonly url: string
  readonly queryString: string
  readonly address: string
  readonly requestId = `${processPrefix}-${(++requests).toString(36)}`
  readonly rawBody: RequestBody
  readonly startMs: number
  path: string
  caller: Caller
  query: unknown = undefined
  body: unknown = undefined

  constructor(
    readonly name: string,
    readonly request: Request,
    readonly params: Params,
    readonly runtime: RuntimeServer,
    trustProxy: TrustProxy,
    readonly trace: RequestTrace | null,
  ) {
    const { headers, method, url } = request
    const { path, query } = parseTarget(url)
    this.headers = headers
    this.method = method
    this.url = url
    this.path = path
    this.queryString = query
    this.address = clientAddress(this, trustProxy)
    this.caller = anonymous(this.address)
    this.rawBody = createRequestBody(request)
    this.startMs = performance.now()
  }

  /** The runtime creates it on first access. */
  get signal(): AbortSignal {
    return this.request.signal
  }

  readPeer(): string | null {
    return this.runtime.requestIP(this.request)?.address ?? null
  }

  setIdleSeconds(seconds: number): void {
    this.runtime.timeout(this.request, seconds)
  }
}
