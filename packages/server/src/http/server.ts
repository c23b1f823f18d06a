/** The listener: endpoints as the runtime's own routes, replaced while running, and drained before it closes. */
import { isOutOfHandles, readHandleLimit } from '../base/files/file-handles.ts'
import { releaseHandles } from '../base/open-files.ts'
import { connectionIdleSeconds, drainTimeoutMs, pendingRequestsShare } from '../limits/api.ts'
import { socketBufferBytesMax, socketMessageBytesMax } from '../limits/sockets.ts'
import type { Endpoint, Params, SocketEndpoint } from './endpoint.ts'
import { createHandle, type HandleParts, type RequestHandler, type RuntimeServer, type SocketData } from './handle.ts'
import { parseTarget } from './input/query-string.ts'
import { empty } from './replies/reply.ts'
import { createUnreadResponses, type UnreadResponsesOptions } from './replies/unread-responses.ts'
import { answerUnmatched, createRoutes } from './routes.ts'

/** What a reload may replace. */
export interface Served {
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints: readonly SocketEndpoint[]
  readonly parts: Omit<HandleParts, 'isDraining' | 'responses'>
}

export interface ServerOptions extends Served {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Seconds without traffic before a connection is closed. */
  readonly idleSeconds?: number
  /**
   * The largest body of any endpoint: the runtime ends the connection beyond it, whatever reads the body. The listener
   * keeps it for as long as it lives.
   */
  readonly bodyBytesMax: number
  /** How long work in progress may take once draining has begun. */
  readonly drainTimeoutMs?: number
  /** How responses that are not read are bounded, where it is not by the process's handles. */
  readonly unread?: UnreadResponsesOptions
}

export interface Server {
  readonly url: string
  readonly port: number
  readonly isDraining: boolean
  /** Sends a text to every socket that listens to a topic. */
  publish(topic: string, text: string): void
  /** Serves other endpoints from the next request on; requests in progress finish as they began. */
  replace(served: Served): void
  /** Takes no new work, lets work in progress finish within the time given for it, then closes every connection. */
  drain(): Promise<void>
}

type RoutedRequest = Request & { readonly params: Params }
type Route = (request: RoutedRequest, peers: RunningServer) => Response | undefined | Promise<Response | undefined>
/** What is used of the runtime's server while it answers. */
type RunningServer = RuntimeServer

/** Listens on host and port. Throws when the port is taken or two endpoints claim the same path. */
export function openServer(options: ServerOptions): Server {
  let isDraining = false
  const responses = createUnreadResponses(
    options.unread ?? { pendingMax: Math.floor(readHandleLimit() * pendingRequestsShare) },
  )

  function listenerOf({ endpoints, socketEndpoints, parts }: Served) {
    const { log, cors } = parts
    const handle = createHandle({ ...parts, isDraining: () => isDraining, responses })
    const routes = createRoutes([...endpoints, ...socketEndpoints.map(asEndpoint)])
    const answerOf = (endpoint: Endpoint): RequestHandler => {
      const socket = socketEndpoints.find(({ name }) => name === endpoint.name)
      return socket ? handle.socket(socket) : handle.endpoint(endpoint)
    }
    const nowhere = handle.fallback('stray', (request, path) => answerUnmatched(routes, cors, request, path))
    const deep = new Map<Endpoint, RequestHandler>()
    const stray: RequestHandler = (request, params, peers) => {
      const found = routes.findDeep(request.method, parseTarget(request.url).path)
      if (!found) return nowhere(request, params, peers)
      const answer = deep.get(found.endpoint) ?? handle.endpoint(found.endpoint)
      deep.set(found.endpoint, answer)
      return answer(request, found.params, peers)
    }
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
                return [method, asRoute(endpoint, method === 'OPTIONS' ? unlessPreflight(answer, nowhere) : answer)]
              }),
            ),
          },
        ]),
      ),
      fetch: (request: Request, peers: RuntimeServer) => stray(request, {}, peers),
      error(error: unknown) {
        log.error('http.listener_failed', { error })
        // A file is opened by the runtime, once its answer has been made.
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
    // Otherwise the runtime shares the port with whoever has it, and each gets half of the requests.
    reusePort: false,
    ...listenerOf(options),
  })
  return {
    url: server.url.origin,
    port: server.port ?? options.port,
    get isDraining() {
      return isDraining
    },
    publish: (topic, text) => void server.publish(topic, text),
    replace: (served) => void server.reload(listenerOf(served)),
    async drain() {
      isDraining = true
      options.parts.sockets.closeAll()
      const timeout = Promise.withResolvers<void>()
      const timer = setTimeout(timeout.resolve, options.drainTimeoutMs ?? drainTimeoutMs)
      // The runtime closes idle connections at once and the others as their answers go out.
      await Promise.race([server.stop(), timeout.promise])
      clearTimeout(timer)
      await server.stop(true)
    },
  }
}

/** Starts the listener. What the runtime throws is given the `endpoint` it could not have, with its `hostname`. */
function listen(options: Parameters<typeof Bun.serve<SocketData>>[0] & { hostname: string; port: number }) {
  try {
    return Bun.serve<SocketData>(options)
  } catch (error) {
    const { hostname, port } = options
    if (error instanceof Error) Object.assign(error, { endpoint: `Port ${port} on ${hostname}`, hostname })
    throw error
  }
}

/** The runtime's events of all sockets, brought to the one they concern. */
const socketHandlers: Bun.WebSocketHandler<SocketData> = {
  idleTimeout: 0,
  sendPings: false,
  perMessageDeflate: false,
  maxPayloadLength: socketMessageBytesMax,
  backpressureLimit: socketBufferBytesMax,
  closeOnBackpressureLimit: true,
  open: (wire) => wire.data.slot.socket.onOpen(wire, wire.data.createHandler),
  message: (wire, data) => wire.data.slot.socket.onFrame(data, wire.data.messageBytesMax),
  pong: (wire) => wire.data.slot.socket.onPong(),
  ping: (wire) => wire.data.slot.socket.onPong(),
  drain: (wire) => wire.data.slot.socket.onDrain(),
  close: (wire) => wire.data.slot.release(),
}

/** A socket's path among the others, for what is said of it to requests of another method. */
const asEndpoint = ({ name, path, tag, summary }: SocketEndpoint): Endpoint => ({
  name,
  method: 'GET',
  paths: [path],
  tag,
  summary,
  credentials: 'public',
  rateLimit: null,
  replies: {},
  handle: () => empty(426),
})

function asRoute({ answerSeconds }: Endpoint, answer: RequestHandler): Route {
  if (answerSeconds === undefined) return (request, server) => answer(request, request.params, server)
  return (request, server) => {
    server.timeout(request, answerSeconds)
    return answer(request, request.params, server)
  }
}

/** A browser that asks whether it may ask is not asking the endpoint. */
const unlessPreflight =
  (answer: RequestHandler, preflight: RequestHandler): RequestHandler =>
  (request, params, peers) =>
    (request.headers.has('access-control-request-method') ? preflight : answer)(request, params, peers)

const routedMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/**
 * The methods a path does not answer. Left out, the runtime would try the next pattern that fits, and `DELETE
 * /…/count` would delete a record of that name.
 */
const unmatchedMethods = (answered: ReadonlyMap<string, Endpoint>, stray: RequestHandler): Record<string, Route> =>
  Object.fromEntries(
    routedMethods
      .filter((method) => !answered.has(method))
      .map((method) => [method, (request, peers) => stray(request, {}, peers)]),
  )
