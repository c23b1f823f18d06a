/** The HTTP listener: registers endpoints as routes of the runtime, replaces them on reload and drains on shutdown. */
import { isOutOfHandles, readHandleLimit } from '../base/files/file-handles.ts'
import { releaseHandles } from '../base/files/open-files.ts'
import { connectionIdleSeconds, drainTimeoutMs, pendingRequestsShare } from '../limits/api.ts'
import { socketBufferBytesMax, socketMessageBytesMax } from '../limits/sockets.ts'
import type { Endpoint, Params, SocketEndpoint } from './endpoint.ts'
import { createHandle, type HandleParts, type RequestHandler } from './handle.ts'
import { parseTarget } from './input/query-string.ts'
import { createUnreadResponses, type UnreadResponsesOptions } from './replies/unread-responses.ts'
import type { RuntimeServer, SocketData } from './request-context.ts'
import { answerUnmatched, createRoutes, socketRoute } from './routes.ts'

/** The parts that a reload replaces. */
export interface Served {
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints: readonly SocketEndpoint[]
  readonly parts: Omit<HandleParts, 'isDraining' | 'responses'>
}

export interface ServerOptions extends Served {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Seconds without traffic before a connection is closed. */
  readonly idleSeconds?: number
  /**
   * The largest body of any endpoint in bytes. The runtime closes the connection beyond it. Cannot change while the
   * listener is open.
   */
  readonly bodyBytesMax: number
  /** How long requests in progress may take once draining has begun. */
  readonly drainTimeoutMs?: number
  /** Bounds of unread responses; derived from the process's file handle limit by default. */
  readonly unread?: UnreadResponsesOptions
}

export interface Server {
  readonly url: string
  readonly port: number
  readonly isDraining: boolean
  /** Sends a text to every socket subscribed to a topic. */
  publish(topic: string, data: string | Uint8Array): void
  /** Serves other endpoints from the next request on; requests in progress finish with the old ones. */
  replace(served: Served): void
  /** Refuses new requests, waits for those in progress up to the timeout, then closes every connection. */
  drain(): Promise<void>
}

/** A handler that its first request creates: a start does not prepare hundreds of endpoints, most of them unused. */
function onFirstRequest(create: () => RequestHandler): RequestHandler {
  let handler: RequestHandler | null = null
  return (request, params, runtime) => {
    handler ??= create()
    return handler(request, params, runtime)
  }
}

type RoutedRequest = Request & { readonly params: Params }
type Route = (request: RoutedRequest, runtime: RuntimeServer) => Response | undefined | Promise<Response | undefined>

/** Listens on host and port. Throws when the port is taken or two endpoints claim the same path. */
export function openServer(options: ServerOptions): Server {
  let isDraining = false
  const responses = createUnreadResponses(
    options.unread ?? { pendingMax: Math.floor(readHandleLimit() * pendingRequestsShare) },
  )

  function listenerOf({ endpoints, socketEndpoints, parts }: Served) {
    const { log, cors } = parts
    const handle = createHandle({ ...parts, isDraining: () => isDraining, responses })
    const routes = createRoutes([...endpoints, ...socketEndpoints.map(socketRoute)])
    const answerOf = (endpoint: Endpoint): RequestHandler =>
      onFirstRequest(() => {
        const socket = socketEndpoints.find(({ name }) => name === endpoint.name)
        return socket ? handle.socket(socket) : handle.endpoint(endpoint)
      })
    const unmatched = handle.fallback('stray', (request, path) => answerUnmatched(routes, cors, request, path))
    const deep = new Map<Endpoint, RequestHandler>()
    const fallback: RequestHandler = (request, params, runtime) => {
      const found = routes.findDeep(request.method, parseTarget(request.url).path)
      if (!found) return unmatched(request, params, runtime)
      const answer = deep.get(found.endpoint) ?? handle.endpoint(found.endpoint)
      deep.set(found.endpoint, answer)
      const { answerSeconds } = found.endpoint
      if (answerSeconds !== undefined) runtime.timeout(request, answerSeconds)
      return answer(request, found.params, runtime)
    }
    const stray: Route = (request, runtime) => fallback(request, {}, runtime)
    return {
      websocket: socketHandlers,
      routes: Object.fromEntries(
        [...routes.byPath].map(([path, methods]) => [
          path,
          {
            ...unmatchedMethods(methods, stray),
            ...Object.fromEntries(
              [...methods].map(([method, endpoint]) => {
                const answer = answerOf(endpoint)
                return [method, asRoute(endpoint, method === 'OPTIONS' ? unlessPreflight(answer, unmatched) : answer)]
              }),
            ),
          },
        ]),
      ),
      fetch: (request: Request, runtime: RuntimeServer) => fallback(request, {}, runtime),
      error(error: unknown) {
        log.error('http.listener_failed', { error })
        // The runtime opens files only after the handler has returned, so running out of handles appears here.
        if (isOutOfHandles(error)) {
          releaseHandles()
          return new Response(null, { status: 503, headers: { 'Retry-After': '1' } })
        }
        return new Response(null, { status: 500 })
      },
    }
  }

  const server = listen({
    hostname: options.host,
    port: options.port,
    idleTimeout: options.idleSeconds ?? connectionIdleSeconds,
    maxRequestBodySize: options.bodyBytesMax,
    development: false,
    // With SO_REUSEPORT a second server on the same port would receive half of the requests instead of failing.
    reusePort: false,
    ...listenerOf(options),
  })
  return {
    url: server.url.origin,
    port: server.port ?? options.port,
    get isDraining() {
      return isDraining
    },
    publish: (topic, data) => void server.publish(topic, data as string | Uint8Array<ArrayBuffer>),
    replace: (served) => void server.reload(listenerOf(served)),
    async drain() {
      isDraining = true
      options.parts.sockets.closeAll()
      const timeout = Promise.withResolvers<void>()
      const timer = setTimeout(timeout.resolve, options.drainTimeoutMs ?? drainTimeoutMs)
      // The runtime closes idle connections at once and the others after their responses.
      await Promise.race([server.stop(), timeout.promise])
      clearTimeout(timer)
      await server.stop(true)
    },
  }
}

/**
 * Starts the listener. Adds the `endpoint` and `hostname` that could not be bound to the error that the runtime throws.
 */
function listen(options: Parameters<typeof Bun.serve<SocketData>>[0] & { hostname: string; port: number }) {
  try {
    return Bun.serve<SocketData>(options)
  } catch (error) {
    const { hostname, port } = options
    if (error instanceof Error) Object.assign(error, { endpoint: `Port ${port} on ${hostname}`, hostname })
    throw error
  }
}

/** Dispatches the runtime's WebSocket events to the socket they belong to. */
const socketHandlers: Bun.WebSocketHandler<SocketData> = {
  idleTimeout: 0,
  sendPings: false,
  perMessageDeflate: false,
  maxPayloadLength: socketMessageBytesMax,
  backpressureLimit: socketBufferBytesMax,
  closeOnBackpressureLimit: true,
  open: (socket) => socket.data.socket.onOpen(socket, socket.data.createHandler),
  message: (socket, data) => socket.data.socket.onFrame(data, socket.data.messageBytesMax),
  pong: (socket) => socket.data.socket.onPong(),
  ping: (socket) => socket.data.socket.onPong(),
  drain: (socket) => socket.data.socket.onDrain(),
  close: (socket) => socket.data.release(),
}

function asRoute({ answerSeconds }: Endpoint, answer: RequestHandler): Route {
  if (answerSeconds === undefined) return (request, server) => answer(request, request.params, server)
  return (request, server) => {
    server.timeout(request, answerSeconds)
    return answer(request, request.params, server)
  }
}

/** CORS preflights are answered before an endpoint that declares OPTIONS itself (tus). */
const unlessPreflight =
  (answer: RequestHandler, preflight: RequestHandler): RequestHandler =>
  (request, params, runtime) =>
    (request.headers.has('access-control-request-method') ? preflight : answer)(request, params, runtime)

const routedMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/**
 * Routes for the methods that a path does not support. Without them the runtime would try the next matching pattern,
 * and `DELETE /…/count` would delete the record `count`.
 */
const unmatchedMethods = (supported: ReadonlyMap<string, Endpoint>, stray: Route): Record<string, Route> =>
  Object.fromEntries(routedMethods.filter((method) => !supported.has(method)).map((method) => [method, stray]))
