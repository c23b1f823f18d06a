/**
 * The declaration of an endpoint: one object drives routing, credentials, scope, validation, rate limit and OpenAPI.
 * Knows no feature and no runtime; `http/handle` executes it, `http/pages/openapi` describes it.
 */
import type { z } from 'zod'
import type { Caller } from '../access/caller.ts'
import type { RequestTrace } from '../base/tracing/request-trace.ts'
import type { BlobSource } from '../engines/blobs/blobs.ts'
import type { rateLimitRequests } from '../limits/api.ts'
import type { AuditedChange } from './audited-change.ts'
import type { RequestBody } from './input/request-body.ts'
import type { Connection, SocketHandler } from './sockets/socket-handler.ts'
import type { SocketKind } from './sockets/sockets.ts'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'

export type RateLimitGroup = keyof typeof rateLimitRequests

/**
 * Required credentials. `public`: none; `rules`: none, the feature's access rules decide; `user`: a signed-in user or a
 * service key; `service`: a service key; `key`: the same, but 403 instead of 401 without credentials.
 */
export type Credentials = 'public' | 'rules' | 'user' | 'service' | 'key' | DashboardCredentials

/**
 * Of endpoints that the page of the dashboard alone calls. `admin`: the cookie of a session; `page`: none, such as to
 * sign in. Keys and tokens are refused, and `security/dashboard-access` checks that the page sent the request.
 */
export type DashboardCredentials = 'admin' | 'page'

export type Params = Readonly<Record<string, string>>

/** The argument of a handler: an authenticated, rate-limited and validated request. */
export interface Call<Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly caller: Caller
  readonly headers: Headers
  readonly method: string
  /** Path as sent, without the query string; below the mount of the endpoint where it has one. */
  readonly path: string
  readonly requestId: string
  /**
   * Names the effect that a write of a job is: a repeated attempt of the job gets the first response again and changes
   * nothing. Only requests of the server's own code have one.
   */
  readonly effectKey?: string
  /** The function of the application that has made the request; then `functionBody` applies. */
  readonly functionName?: string
  /** The client's IP address, after trusted proxies. */
  readonly address: string
  /**
   * As the runtime provides it: absolute with the request's `Host`, or only the target where `Host` is not a host name.
   */
  readonly url: string
  /** Aborted when the client disconnects before the response. */
  readonly signal: AbortSignal
  /**
   * Sets after how many seconds without traffic the connection is closed, from 1 to 255; 0 for never, which the
   * caller must bound. Requests of the server's own code have no connection.
   */
  readonly setIdleSeconds?: (seconds: number) => void
  /** For endpoints whose body is not JSON. */
  readonly rawBody: RequestBody
  /**
   * Waits until an expensive request may go on (`base/concurrency/admission-control`); undefined where it may at once.
   * For endpoints that are expensive by query; absent for the others, and for requests of the server's own code.
   */
  readonly admit?: () => Promise<void> | undefined
  /** Adds to the audit log what a request has changed; absent where the request is not recorded. */
  readonly audit?: (change: AuditedChange) => void
}

/** A handler's argument whose query, body and caller are filled in step by step. */
export interface OpenCall extends Call {
  admit?: () => Promise<void> | undefined
  audit?: (change: AuditedChange) => void
  path: string
  query: unknown
  body: unknown
  caller: Caller
  readonly queryString: string
  /** Null or absent where the request is not sampled. */
  readonly trace?: RequestTrace | null
}

/** A handler's response, created with the functions of `replies/reply`. */
export interface Reply {
  readonly status: number
  /** The serialized body, as text or UTF-8 bytes; null without a body and with a `source` or a `value`. */
  readonly text: string | Uint8Array<ArrayBuffer> | null
  /** A value too large to serialize in one step; `http/handle` serializes it in slices of the event loop. */
  readonly value?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Values of `Set-Cookie`, which a response can have several of. */
  readonly cookies?: readonly string[]
  /** Default `application/json`. */
  readonly contentType?: string
  /** A binary body; `headers` contains all of its headers. */
  readonly source?: BlobSource | Uint8Array<ArrayBuffer>
}

export interface Endpoint<Query = unknown, Body = unknown> {
  /** Such as `records.list`: the OpenAPI operationId and SDK method. */
  readonly name: string
  readonly method: Method
  /**
   * Paths with `:param` segments, such as the static and the dynamic form of a table's path. One segment may be
   * `:param+`, which matches one or more segments including the slashes.
   */
  readonly paths: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly credentials: Credentials
  /**
   * The service-key scope that the call requires, such as `db:table:posts:read`; absent where any key is accepted.
   * Several where the body decides which one is required: any of them permits reading the body, then the handler
   * checks.
   */
  readonly scope?: (params: Params) => string | readonly string[]
  /**
   * Invalid credentials are ignored instead of refused: a valid service key makes a service caller, anything else an
   * anonymous one. Used by the health endpoint only.
   */
  readonly ignoresCredentials?: true
  /**
   * Whether `Authorization` may be meant for the application: what is no valid token of this server then makes an
   * anonymous caller instead of 401. Asked only about a request with such a header. Wrong service keys stay refused.
   */
  readonly allowsForeignAuthorization?: (request: { readonly method: string; readonly path: string }) => boolean
  readonly rateLimit: RateLimitGroup | null
  /**
   * Administrators must have signed in within the last ten minutes, for every request or by its body; other callers are
   * not concerned.
   */
  readonly requiresRecentSignIn?: true | ((body: Body) => boolean)
  /** Also for administrators whose role may only read, although the method is not GET. */
  readonly isForReaders?: true
  /**
   * While an administrator views as a user, it answers as that user, if the role of the administrator permits reading
   * the same. All others answer as the administrator.
   */
  readonly answersViewedUser?: true
  /**
   * Whether a request changes anything, by its body; such requests of service keys are audited. By default those of
   * other methods than GET, HEAD and OPTIONS.
   */
  readonly changes?: boolean | ((body: Body) => boolean)
  /** The audit log does not show the body. Default `isSecret`. */
  readonly hidesBody?: boolean
  /** Where the endpoint is mounted a second time, its paths begin with this; `path` of a call does not. */
  readonly mountedAt?: string
  /** Query parameters as strings, each at most once; none if absent. Unknown names are 400. */
  readonly query?: z.ZodType<Query>
  /**
   * For URLs that third parties construct: OAuth providers add parameters of their own, links may carry tracking ones.
   */
  readonly allowsUnknownQuery?: true
  /** Schema of the JSON body. With it, `Content-Type: application/json` is required. */
  readonly body?: z.ZodType<Body>
  /** In place of `body` for requests of functions, where it has members that no client may send. */
  readonly functionBody?: z.ZodType<Body>
  /** Whether a request needs no body. A JSON body that is absent is treated as `{}`. */
  readonly isBodyOptional?: boolean
  /** A body other than JSON, for OpenAPI; the handler reads it from `rawBody`. */
  readonly accepts?: { readonly contentType: string; readonly schema?: z.ZodType }
  /** Default `jsonBodyBytesMax`. */
  readonly bodyBytesMax?: number | ((params: Params) => number)
  /** Members of the body that are stored verbatim: in a large body each may be a `JsonText`. */
  readonly textMembers?: readonly string[]
  /** Responses may contain a token or another secret and are sent with `Cache-Control: no-store`. */
  readonly isSecret?: true
  /**
   * Whether a request takes milliseconds of the event loop or of another bounded resource: such requests begin round
   * robin over callers, and are refused first under overload. `by query`: the handler decides, and calls `admit`.
   */
  readonly isExpensive?: true | 'by query'
  /** Idle timeout of the connection while the request is processed; default `connectionIdleSeconds`. */
  readonly answerSeconds?: number
  /** Successful responses for OpenAPI, by status. */
  readonly replies: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>
  /** Error statuses beyond those common to all endpoints of its kind. */
  readonly errors?: readonly number[]
  readonly handle: (call: Call<Query, Body>) => Reply | Promise<Reply>
}

/** An endpoint that upgrades to a WebSocket. */
export interface SocketEndpoint<Query = unknown> {
  readonly name: string
  readonly path: string
  /** Set where the endpoint is mounted for the dashboard, whose page opens it with its cookie. */
  readonly mountedAt?: string
  readonly tag: string
  readonly summary: string
  readonly kind: SocketKind
  readonly rateLimit: RateLimitGroup
  readonly query: z.ZodType<Query>
  readonly authTimeoutMs: number | ((call: Call<Query>) => number)
  readonly messageBytesMax: number | ((call: Call<Query>) => number)
  /** Returns the factory of the socket's handler, or the response that refuses the upgrade. */
  readonly open: (call: Call<Query>) => SocketHandlerFactory | Reply | Promise<SocketHandlerFactory | Reply>
  /** The response when too many sockets from the address are pending. */
  readonly tooManyPending: (call: Call<Query>) => Reply
}

/** Creates the handler of one protocol. The message types are erased here, as query types are. */
export type SocketHandlerFactory = (connection: Connection<never>) => SocketHandler

export const socketEndpoint = <Query>(declaration: SocketEndpoint<Query>): SocketEndpoint =>
  declaration as unknown as SocketEndpoint

/** Infers the types of a declaration; the feature's list of endpoints erases them. */
export const endpoint = <Query, Body>(declaration: Endpoint<Query, Body>): Endpoint =>
  declaration as unknown as Endpoint
