/** Runs an endpoint: authorization and validation, then its handler. */

import type { Caller, ViewedUser } from '../access/caller.ts'
import type { AdmissionControl } from '../base/concurrency/admission-control.ts'
import { builtSchema } from '../base/schemas/lazy-schema.ts'
import { z } from '../base/schemas/z.ts'
import { ApiError, notFound, withHeaders } from '../errors.ts'
import { jsonBodyBytesMax } from '../limits/api.ts'
import { type Audit, isAudited } from './audit.ts'
import type { Endpoint, OpenCall, Reply } from './endpoint.ts'
import { hasNoBody, readJsonObject } from './input/body.ts'
import { createQueryReader, validate } from './input/validate.ts'
import type { RequestContext } from './request-context.ts'
import { admit } from './security/admit.ts'
import { authorize } from './security/authorization.ts'
import { requireRecentAdministrator, viewedHeaders } from './security/dashboard-access.ts'
import { authenticateAgain, type IdentifyParts, identify } from './security/identify.ts'

/** An endpoint with everything that can be computed before its first request. */
export interface PreparedEndpoint {
  readonly endpoint: Endpoint
  readonly readQuery: (queryString: string) => unknown
  readonly body: z.ZodType | undefined
  /** Of requests of functions. */
  readonly functionBody: z.ZodType | undefined
}

export interface CallParts extends IdentifyParts {
  readonly audit: Audit
  readonly admission: AdmissionControl
}

/** The schema of endpoints without query parameters. */
const noQuery = z.object({})

export function prepareEndpoint(endpoint: Endpoint): PreparedEndpoint {
  const { query = noQuery, body, functionBody = body, allowsUnknownQuery } = endpoint
  return {
    endpoint,
    readQuery: createQueryReader<unknown>(query, allowsUnknownQuery),
    body: body && builtSchema(body),
    functionBody: functionBody && builtSchema(functionBody),
  }
}

/** The order matters: nothing is read for a caller without permission. */
export function callEndpoint(
  parts: CallParts,
  prepared: PreparedEndpoint,
  context: RequestContext,
): Reply | Promise<Reply> {
  const { mountedAt, isExpensive } = prepared.endpoint
  if (mountedAt !== undefined) context.path = context.path.slice(mountedAt.length)
  const run = (caller: Caller): Reply | Promise<Reply> => {
    context.caller = caller
    context.trace?.enter('validate')
    const isChecked = caller.kind === 'user' || (caller.kind === 'service' && caller.admin !== undefined)
    const recheck = isChecked ? () => authenticateAgain(parts, prepared.endpoint, context) : null
    const viewed = viewedUser(caller)
    const answer = (): Reply | Promise<Reply> => runEndpoint(prepared, context, recheck, parts)
    const runNow = (): Reply | Promise<Reply> => (viewed ? withViewedHeaders(viewed, answer) : answer())
    if (isExpensive === undefined) return runNow()
    const waitForAdmission = () => admit(parts.admission, context)
    if (isExpensive === 'by query') context.admit = waitForAdmission
    const admitted = isExpensive === true ? waitForAdmission() : undefined
    return admitted ? admitted.then(runNow) : runNow()
  }
  const caller = identify(parts, prepared.endpoint, context)
  return caller instanceof Promise ? caller.then(run) : run(caller)
}

/** The reply or the refusal with the headers that name the user. */
async function withViewedHeaders(viewed: ViewedUser, answer: () => Reply | Promise<Reply>): Promise<Reply> {
  const headers = viewedHeaders(viewed)
  try {
    const reply = await answer()
    return { ...reply, headers: { ...reply.headers, ...headers } }
  } catch (error) {
    throw error instanceof ApiError ? withHeaders(error, headers) : error
  }
}

const viewedUser = (caller: Caller): ViewedUser | undefined =>
  caller.kind === 'service' ? caller.admin?.viewedAs : undefined

/**
 * The handler's argument: while an administrator views as a user, with that user as the caller where the endpoint
 * answers so. The scopes of the administrator were checked before, so that it shows nothing more. Throws 404 if the
 * user has been disabled or deleted.
 */
function callAsViewed(endpoint: Endpoint, call: OpenCall): OpenCall {
  const viewed = endpoint.answersViewedUser && viewedUser(call.caller)
  if (!viewed) return call
  if (!viewed.caller) throw notFound('User')
  return { ...call, caller: viewed.caller }
}

/**
 * Runs an endpoint for the caller of `call`. `recheck` is called once the body is read, and throws if the caller is no
 * longer valid.
 */
export function runEndpoint(
  { endpoint, readQuery, body, functionBody }: PreparedEndpoint,
  call: OpenCall,
  recheck: (() => unknown) | null,
  parts: Pick<CallParts, 'audit' | 'dashboard'> | null = null,
): Reply | Promise<Reply> {
  const handle = (): Reply | Promise<Reply> => {
    const { caller } = call
    const { audit, dashboard } = parts ?? {}
    const { requiresRecentSignIn } = endpoint
    if (dashboard && typeof requiresRecentSignIn === 'function' && requiresRecentSignIn(call.body))
      requireRecentAdministrator(caller, dashboard.now())
    call.trace?.enter('handle')
    if (!audit || !isAudited(endpoint, call, caller)) return endpoint.handle(callAsViewed(endpoint, call))
    return audit.record({ caller, endpoint, call }, () => endpoint.handle(call))
  }
  authorize(endpoint, call.caller, call.params)
  call.query = readQuery(call.queryString)
  const schema = call.functionName === undefined ? body : functionBody
  if (!schema) return handle()
  if (endpoint.isBodyOptional && hasNoBody(call.headers)) {
    call.body = validate(schema, {})
    return handle()
  }
  const { bodyBytesMax = jsonBodyBytesMax } = endpoint
  const bytesMax = typeof bodyBytesMax === 'number' ? bodyBytesMax : bodyBytesMax(call.params)
  const type = call.headers.get('content-type')
  return readJsonObject(type, call.rawBody, bytesMax, endpoint.textMembers).then((json) => {
    const proceed = (): Reply | Promise<Reply> => {
      call.body = validate(schema, json)
      return handle()
    }
    // A body that is refused explains the refusal.
    if (call.trace) call.body = json
    const checking = recheck?.()
    return checking instanceof Promise ? checking.then(proceed) : proceed()
  })
}
