/** Serves `/api/fn`: finds the function, checks its caller and limit, reads the body, and replies with its result. */
import type { Caller } from '../../../access/caller.ts'
import { permitsScope, scopeMissing } from '../../../access/service-keys.ts'
import type { Counters } from '../../../engines/cluster/cluster.ts'
import type { HttpInput, InvocationResult } from '../../../engines/hosts/hosts.ts'
import { accessDenied, authenticationRequired, notFound } from '../../../errors.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { hasNoBody, parseJson, readJsonValue } from '../../../http/input/body.ts'
import { bytes, empty, jsonText } from '../../../http/replies/reply.ts'
import { functionInputBytesMax, functionRawBodyBytesMax } from '../../../limits/functions.ts'
import type { HttpDefinition, RpcDefinition } from '../definitions/definition.ts'
import type { FoundPath, HttpPaths } from '../definitions/http-paths.ts'
import { countCall } from '../definitions/limit.ts'
import { eventStream } from './events.ts'
import { toApiError } from './failures.ts'
import type { FunctionCall, Invoker } from './invoker.ts'
import { keepConnection, releasingAtEnd } from './kept-connection.ts'

/** The functions that callers can reach. */
export interface ServedFunctions {
  readonly rpc: ReadonlyMap<string, RpcDefinition>
  readonly paths: HttpPaths
}

export interface ServeDeps {
  readonly served: () => ServedFunctions
  readonly invoker: Invoker
  readonly counters: Counters
  /** The address of the server, for the URL of a request that has none. */
  readonly url: () => string
}

export const functionsPath = '/api/fn'

/** Headers that describe the connection or the coding of the body, and the platform's own credentials. */
const withheld = /^(?:x-platform-service-key|connection|keep-alive|transfer-encoding|upgrade|content-encoding)$/
/** Headers of a response that the runtime sets. */
const ours = /^(?:connection|keep-alive|transfer-encoding|upgrade|content-length|date|set-cookie)$/

/** The function of kind `http` that serves a request; null if none does. */
export function findHttp({ paths }: ServedFunctions, request: Pick<Call, 'method' | 'path'>): FoundPath | null {
  const path = request.path.slice(functionsPath.length)
  return paths(request.method, path) ?? (request.method === 'HEAD' ? paths('GET', path) : null)
}

/** Replies to one request below `/api/fn`. */
export async function serveFunction(deps: ServeDeps, call: Call): Promise<Reply> {
  const served = deps.served()
  const found = findHttp(served, call)
  if (found) return serveHttp(deps, call, found.definition, found.params)
  const definition = call.method === 'POST' ? served.rpc.get(call.path.slice(functionsPath.length + 1)) : undefined
  if (!definition) throw notFound('Function')
  return serveRpc(deps, call, definition)
}

/** Throws 401 or 403. A condition of the function's own is checked by its host. */
function checkCaller(caller: Caller, required: RpcDefinition['caller'] | null, name: string): void {
  if (caller.kind === 'service') {
    if (!permitsScope(caller.scopes, `functions:function:${name}:call`)) throw scopeMissing(caller)
    return
  }
  if (required === null || required === 'anyone') return
  if (caller.kind === 'anonymous') throw authenticationRequired()
  if (required === 'service') throw accessDenied()
}

async function serveRpc(deps: ServeDeps, call: Call, definition: RpcDefinition): Promise<Reply> {
  const { name, caller: required, limit, timeoutMs } = definition
  const { caller, headers, rawBody, requestId } = call
  checkCaller(caller, required, name)
  if (limit) await countCall(deps.counters, name, limit, caller)
  const input = hasNoBody(headers)
    ? null
    : await readJsonValue(headers.get('content-type'), rawBody, functionInputBytesMax)
  return invoke(deps, call, { name, input, caller, requestId, timeoutMs, signal: () => call.signal })
}

async function serveHttp(
  deps: ServeDeps,
  call: Call,
  definition: HttpDefinition,
  params: Readonly<Record<string, string>>,
): Promise<Reply> {
  const { name, rawBody, limit, timeoutMs } = definition
  const { caller, method, requestId } = call
  checkCaller(caller, null, name)
  if (limit) await countCall(deps.counters, name, limit, caller)
  const hasBody = method !== 'GET' && method !== 'HEAD' && !hasNoBody(call.headers)
  const body = hasBody ? await call.rawBody.read(rawBody ? functionRawBodyBytesMax : functionInputBytesMax) : null
  if (body && !rawBody && /^application\/json\b/i.test(call.headers.get('content-type') ?? '')) parseJson(body)
  const input: HttpInput = {
    method,
    url: new URL(call.url, deps.url()).href,
    headers: [...call.headers].filter(([header]) => !withheld.test(header)),
    body,
    params,
  }
  return invoke(deps, call, { name, input, caller, requestId, timeoutMs, signal: () => call.signal })
}

/** The reply of a function. Its connection is kept while the function runs, and while what it streams is read. */
async function invoke({ invoker }: ServeDeps, call: Call, invocation: FunctionCall): Promise<Reply> {
  const release = keepConnection(call, invocation.timeoutMs)
  const result = await invoker.invoke(invocation).catch((error) => {
    release()
    throw toApiError(error)
  })
  if (result.kind === 'stream')
    return bytes({ kind: 'stream', stream: releasingAtEnd(eventStream(result.values), release) }, 200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      // Proxies such as nginx would hold events back.
      'X-Accel-Buffering': 'no',
    })
  if (result.kind === 'response' && result.body && call.method !== 'HEAD')
    return replyOf({ ...result, body: releasingAtEnd(result.body, release) })
  release()
  if (result.kind === 'response' && result.body) {
    // Ends a function that still streams.
    await result.body.cancel()
    return replyOf({ ...result, body: null })
  }
  return result.kind === 'value' ? jsonText(result.json ?? 'null') : replyOf(result)
}

function replyOf({ status, headers, body }: InvocationResult & { kind: 'response' }): Reply {
  const sent = Object.fromEntries(headers.filter(([name]) => !ours.test(name.toLowerCase())))
  const cookies = headers.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value)
  const reply = body ? bytes({ kind: 'stream', stream: body }, status, sent) : empty(status, sent)
  return cookies.length > 0 ? { ...reply, cookies } : reply
}
