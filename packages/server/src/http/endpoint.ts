/**
 * The declaration of an endpoint: one object drives routing, credentials, scope, validation, rate limit and OpenAPI.
 * Knows no feature and no runtime; `http/handle` executes it, `http/openapi` describes it.
 */
import type { z } from 'zod'
import type { Caller } from '../access/caller.ts'
import type { BlobSource } from '../engines/blobs/blobs.ts'
import type { rateLimitRequests } from '../limits/api.ts'
import type { RequestBody } from './input/request-body.ts'
import type { Connection, SocketHandler } from './sockets/socket-handler.ts'
import type { SocketKind } from './sockets/sockets.ts'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'

export type RateLimitGroup = keyof typeof rateLimitRequests

/**
 * Who may ask at all. `public`: anyone; `rules`: anyone, the feature's access rules decide; `user`: a signed-in
 * user or a service key; `service`: the service key only; `key`: the same, but 403 instead of 401 where none is given.
 */
export type Credentials = 'public' | 'rules' | 'user' | 'service' | 'key'

export type Params = Readonly<Record<string, string>>

/** Everything a handler gets: already authenticated, rate limited and validated. */
export interface Call<Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly caller: Caller
  readonly headers: Headers
  readonly method: string
  /** Path as sent, without the query string. */
  readonly path: string
  readonly requestId: string
  /** The client's address, as rate limits and the log know it. */
  readonly address: string
  /** As the runtime gives it: absolute with the `Host` of the request, or only the target where that is no host. */
  readonly url: string
  /** Aborted when the client disconnects before the answer. */
  readonly signal: AbortSignal
  /** For endpoints whose body is not JSON. */
  readonly rawBody: RequestBody
}

/** What a handler answers. `http/reply` makes them. */
export interface Reply {
  readonly status: number
  /** Serialized already, as text or as its UTF-8; null for no body, for a `source` and for a `value`. */
  readonly text: string | Uint8Array<ArrayBuffer> | null
  /** What is too large to be serialized in one step: `http/handle` does it in slices. */
  readonly value?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Default `application/json`. */
  readonly contentType?: string
  /** A body of bytes instead of text, with all of its headers among `headers`. */
  readonly source?: BlobSource | Uint8Array<ArrayBuffer>
}

export interface Endpoint<Query = unknown, Body = unknown> {
  /** `records.list`: OpenAPI operationId and SDK method. */
  readonly name: string
  readonly method: Method
  /**
   * One or more paths with `:param` segments, e.g. the static and the dynamic form of a table's path. One segment may
   * be `:param+`: one or more segments, slashes and all.
   */
  readonly paths: readonly string[]
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly credentials: Credentials
  /**
   * Service-key scope the call needs, e.g. `db:table:posts:read`; absent where no key is needed or any will do. Several
   * where the body decides which of them: one lets the body be read, and the handler asks for the right one.
   */
  readonly scope?: (params: Params) => string | readonly string[]
  /**
   * Credentials are never refused: a good service key makes a service caller, everything else an anonymous one. Health
   * alone says so.
   */
  readonly ignoresCredentials?: true
  readonly rateLimit: RateLimitGroup | null
  /** Query parameters as strings, each at most once; without it the endpoint takes none. Unknown names are 400. */
  readonly query?: z.ZodType<Query>
  /** For what others write the query of: providers add parameters of their own, and pages are opened from links. */
  readonly allowsUnknownQuery?: true
  /** JSON body; its presence makes `application/json` mandatory. */
  readonly body?: z.ZodType<Body>
  /** Whether a request without a body counts as one with `{}`. */
  readonly isBodyOptional?: boolean
  /** What a body that is not JSON is, for OpenAPI; the handler reads it from `rawBody`. */
  readonly accepts?: { readonly contentType: string; readonly schema?: z.ZodType }
  /** Default `jsonBodyBytesMax`. */
  readonly bodyBytesMax?: number | ((params: Params) => number)
  /** Members of the body that are stored as they are: where the body is large, each may be a `JsonText`. */
  readonly textMembers?: readonly string[]
  /** Answers may hold a token or another secret, so no cache may store them: `Cache-Control: no-store`. */
  readonly isSecret?: true
  /** How long the connection may be silent while this is answered; default `connectionIdleSeconds`. */
  readonly answerSeconds?: number
  /** Success replies for OpenAPI: status to description and schema. */
  readonly replies: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>
  /** Statuses of refusals beyond the ones every endpoint of its kind can give. */
  readonly errors?: readonly number[]
  readonly handle: (call: Call<Query, Body>) => Reply | Promise<Reply>
}

/** An endpoint that is answered with a WebSocket. */
export interface SocketEndpoint<Query = unknown> {
  readonly name: string
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly kind: SocketKind
  readonly rateLimit: RateLimitGroup
  readonly query: z.ZodType<Query>
  readonly authTimeoutMs: number | ((call: Call<Query>) => number)
  readonly messageBytesMax: number | ((call: Call<Query>) => number)
  /** Gives what begins the conversation once the socket is open, or the answer that refuses it. */
  readonly open: (call: Call<Query>) => SocketHandlerFactory | Reply | Promise<SocketHandlerFactory | Reply>
  /** The answer when too many sockets from the address are pending. */
  readonly tooManyPending: (call: Call<Query>) => Reply
}

/** Begins the conversation of one protocol; which one is erased here, as the types of queries are. */
export type SocketHandlerFactory = (connection: Connection<never>) => SocketHandler

export const socketEndpoint = <Query>(declaration: SocketEndpoint<Query>): SocketEndpoint =>
  declaration as unknown as SocketEndpoint

/** Gives a declaration its types; the list of a feature's endpoints erases them again. */
export const endpoint = <Query, Body>(declaration: Endpoint<Query, Body>): Endpoint =>
  declaration as unknown as Endpoint
