/**
 * The request pipeline: rate limit, authentication, authorization, validation, the endpoint's handler, response,
 * metrics and access log. Independent of the runtime (`server` adapts it) and of features.
 */
import type { TrustProxy } from '../base/network/address.ts'
import { type RequestTrace, runTraced } from '../base/tracing/request-trace.ts'
import { unavailable } from '../errors.ts'
import { type CallParts, callEndpoint, prepareEndpoint } from './call-endpoint.ts'
import type { Endpoint, Params, Reply, SocketEndpoint } from './endpoint.ts'
import { checkHead } from './input/request-body.ts'
import { createQueryReader } from './input/validate.ts'
import { createReplyTemplates, isLarge, prepare } from './replies/reply.ts'
import { createContext, type RequestContext, type RuntimeServer } from './request-context.ts'
import { createResponder, type Responder, type ResponderParts, type RespondingEndpoint } from './responder.ts'
import { isDashboardPath } from './security/dashboard-access.ts'
import { type UpgradeParts, upgrade } from './upgrade.ts'

export interface HandleParts extends CallParts, UpgradeParts, ResponderParts {
  readonly trustProxy: TrustProxy
}

/** Handles one request; never throws or rejects. Returns undefined once the request was upgraded to a WebSocket. */
export type RequestHandler = (
  request: Request,
  params: Params,
  runtime: RuntimeServer,
) => Response | undefined | Promise<Response | undefined>

type Work = (context: RequestContext) => Reply | Promise<Reply>

export interface Handle {
  /** Handles the requests of an endpoint. */
  endpoint(endpoint: Endpoint): RequestHandler
  /** Upgrades requests to WebSockets. */
  socket(endpoint: SocketEndpoint): RequestHandler
  /** Handles requests that match no endpoint; counted and logged under `name`. */
  fallback(name: string, respond: (request: Request, path: string) => Reply): RequestHandler
}

type Ended = ReturnType<Responder['end']>

const workTraced = (trace: RequestTrace, work: Work, context: RequestContext): ReturnType<Work> =>
  runTraced(trace, () => work(context))

const endLater = (responder: Responder, context: RequestContext, reply: Promise<Reply>): Promise<Ended> =>
  reply.then(
    (resolved) => end(responder, context, resolved),
    (error: unknown) => responder.fail(context, error),
  )

function end(responder: Responder, context: RequestContext, reply: Reply): Ended | Promise<Ended> {
  context.trace?.enter('respond')
  return isLarge(reply) ? endLarge(responder, context, reply) : responder.end(context, reply)
}

const endLarge = (responder: Responder, context: RequestContext, reply: Reply): Promise<Ended> =>
  prepare(reply).then(
    (ready) => responder.end(context, ready),
    (error: unknown) => responder.fail(context, error),
  )

export function createHandle(parts: HandleParts): Handle {
  const { metrics, trustProxy, isDraining } = parts
  const templates = createReplyTemplates(parts.cors.common)

  /**
   * The steps common to all requests. Stays synchronous where nothing is pending: a microtask costs as much as a
   * rate-limit check. Creates no closure that a request may not need: its memory is in no cache of the processor.
   */
  function withLifecycle(endpoint: RespondingEndpoint, work: Work): RequestHandler {
    const { name } = endpoint
    const responder = createResponder(parts, templates, endpoint)
    return (request, params, runtime) => {
      metrics.started()
      const trace = endpoint.isDashboard ? null : (parts.recorder?.begin(name) ?? null)
      const context = createContext(name, request, params, runtime, trustProxy, trace)
      let reply: Reply | Promise<Reply>
      try {
        if (isDraining()) throw unavailable()
        checkHead(context.headers)
        reply = trace === null ? work(context) : workTraced(trace, work, context)
      } catch (error) {
        return responder.fail(context, error)
      }
      return reply instanceof Promise ? endLater(responder, context, reply) : end(responder, context, reply)
    }
  }

  return {
    endpoint(endpoint) {
      const prepared = prepareEndpoint(endpoint)
      const { name, isSecret = false, paths } = endpoint
      const isDashboard = paths.some(isDashboardPath)
      return withLifecycle({ name, isSecret, isDashboard }, (context) => callEndpoint(parts, prepared, context))
    },
    socket(endpoint) {
      const prepared = { endpoint, readQuery: createQueryReader<unknown>(endpoint.query) }
      const { name } = endpoint
      const isDashboard = isDashboardPath(endpoint.path)
      return withLifecycle({ name, isSecret: false, isDashboard }, (context) => upgrade(parts, prepared, context))
    },
    fallback: (name, respond) =>
      withLifecycle({ name, isSecret: false, isDashboard: false }, ({ request, path }) => respond(request, path)),
  }
}
