/** Runs an endpoint: authorization and validation, then its handler. */
import type { Caller } from '../access/caller.ts'
import { jsonBodyBytesMax } from '../limits/api.ts'
import type { Endpoint, Reply } from './endpoint.ts'
import { hasNoBody, readJsonObject } from './input/body.ts'
import { validate } from './input/validate.ts'
import type { RequestContext } from './request-context.ts'
import { authorize } from './security/authorization.ts'
import { authenticateAgain, type IdentifyParts, identify } from './security/identify.ts'

/** An endpoint with everything that can be computed before its first request. */
export interface PreparedEndpoint {
  readonly endpoint: Endpoint
  readonly readQuery: (queryString: string) => unknown
}

/** The order matters: nothing is read for a caller without permission. */
export function callEndpoint(
  parts: IdentifyParts,
  prepared: PreparedEndpoint,
  context: RequestContext,
): Reply | Promise<Reply> {
  const caller = identify(parts, prepared.endpoint, context)
  return caller instanceof Promise
    ? caller.then((resolved) => callAs(resolved, parts, prepared, context))
    : callAs(caller, parts, prepared, context)
}

function callAs(
  caller: Caller,
  parts: IdentifyParts,
  { endpoint, readQuery }: PreparedEndpoint,
  context: RequestContext,
): Reply | Promise<Reply> {
  context.caller = caller
  authorize(endpoint, caller, context.params)
  context.query = readQuery(context.queryString)
  const schema = endpoint.body
  if (!schema) return endpoint.handle(context)
  if (endpoint.isBodyOptional && hasNoBody(context.headers)) {
    context.body = validate(schema, {})
    return endpoint.handle(context)
  }
  const { bodyBytesMax = jsonBodyBytesMax } = endpoint
  const bytesMax = typeof bodyBytesMax === 'number' ? bodyBytesMax : bodyBytesMax(context.params)
  const type = context.headers.get('content-type')
  return readJsonObject(type, context.rawBody, bytesMax, endpoint.textMembers).then((json) => {
    const handle = (): Reply | Promise<Reply> => {
      context.body = validate(schema, json)
      return endpoint.handle(context)
    }
    const recheck = caller.kind === 'user' ? authenticateAgain(parts, context) : null
    return recheck instanceof Promise ? recheck.then(handle) : handle()
  })
}
