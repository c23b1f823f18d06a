/** Runs an endpoint: authorization and validation, then its handler. */

import type { Caller, ServiceCaller, ViewedUser } from '../access/caller.ts'
import type { AdmissionControl } from '../base/concurrency/admission-control.ts'
import { builtSchema } from '../base/schemas/lazy-schema.ts'
import { z } from '../base/schemas/z.ts'
import { ApiError, notFound, withHeaders } from '../errors.ts'
import { jsonBodyBytesMax } from '../limits/api.ts'
import { type Audit, isAudited } from './audit.ts'
import type { Endpoint, OpenCall, Reply } from './endpoint.ts'
import { hasNoBody, type JsonObject, readJsonObject } from './input/body.ts'
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

type EndpointParts = Pick<CallParts, 'audit' | 'dashboard'>

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
  const { mountedAt } = prepared.endpoint
  if (mountedAt !== undefined) context.path = context.path.slice(mountedAt.length)
  const caller = identify(parts, prepared.endpoint, context)
  return caller instanceof Promise
    ? callOnceKnown(parts, prepared, context, caller)
    : callAs(parts, prepared, context, caller)
}

const callOnceKnown = (
  parts: CallParts,
  prepared: PreparedEndpoint,
  context: RequestContext,
  caller: Promise<Caller>,
): Promise<Reply> => caller.then((known) => callAs(parts, prepared, context, known))

function callAs(
  parts: CallParts,
  prepared: PreparedEndpoint,
  context: RequestContext,
  caller: Caller,
): Reply | Promise<Reply> {
  context.caller = caller
  context.trace?.enter('validate')
  return prepared.endpoint.isExpensive === undefined
    ? answer(parts, prepared, context)
    : answerAdmitted(parts, prepared, context)
}

function answerAdmitted(parts: CallParts, prepared: PreparedEndpoint, context: RequestContext): Reply | Promise<Reply> {
  const { isExpensive } = prepared.endpoint
  const waitForAdmission = () => admit(parts.admission, context)
  if (isExpensive === 'by query') context.admit = waitForAdmission
  const admitted = isExpensive === true ? waitForAdmission() : undefined
  return admitted ? admitted.then(() => answer(parts, prepared, context)) : answer(parts, prepared, context)
}

function answer(parts: CallParts, prepared: PreparedEndpoint, context: RequestContext): Reply | Promise<Reply> {
  const { caller } = context
  const isChecked = caller.kind === 'user' || (caller.kind === 'service' && caller.admin !== undefined)
  const recheck = isChecked && prepared.body ? recheckOf(parts, prepared.endpoint, context) : null
  const viewed = viewedUser(caller)
  return viewed
    ? answerViewed(viewed, parts, prepared, context, recheck)
    : runEndpoint(prepared, context, recheck, parts)
}

const recheckOf = (parts: CallParts, endpoint: Endpoint, context: RequestContext) => (): unknown =>
  authenticateAgain(parts, endpoint, context)

/** The reply or the refusal with the headers that name the user. */
async function answerViewed(
  viewed: ViewedUser,
  parts: CallParts,
  prepared: PreparedEndpoint,
  context: RequestContext,
  recheck: (() => unknown) | null,
): Promise<Reply> {
  const headers = viewedHeaders(viewed)
  try {
    const reply = await runEndpoint(prepared, context, recheck, parts)
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
  return Object.assign(Object.create(Object.getPrototypeOf(call)), call, { caller: viewed.caller })
}

/**
 * Runs an endpoint for the caller of `call`. `recheck` is called once the body is read, and throws if the caller is no
 * longer valid.
 */
export function runEndpoint(
  { endpoint, readQuery, body, functionBody }: PreparedEndpoint,
  call: OpenCall,
  recheck: (() => unknown) | null,
  parts: EndpointParts | null = null,
): Reply | Promise<Reply> {
  authorize(endpoint, call.caller, call.params)
  call.query = readQuery(call.queryString)
  const schema = call.functionName === undefined ? body : functionBody
  if (!schema) return handle(endpoint, call, parts)
  if (!endpoint.isBodyOptional || !hasNoBody(call.headers)) return handleBody(endpoint, schema, call, recheck, parts)
  call.body = validate(schema, {})
  return handle(endpoint, call, parts)
}

function readBody(endpoint: Endpoint, { headers, params, rawBody }: OpenCall): Promise<JsonObject> {
  const { bodyBytesMax = jsonBodyBytesMax } = endpoint
  const bytesMax = typeof bodyBytesMax === 'number' ? bodyBytesMax : bodyBytesMax(params)
  return readJsonObject(headers.get('content-type'), rawBody, bytesMax, endpoint.textMembers)
}

function handleBody(
  endpoint: Endpoint,
  schema: z.ZodType,
  call: OpenCall,
  recheck: (() => unknown) | null,
  parts: EndpointParts | null,
): Promise<Reply> {
  const proceed = (json: JsonObject): Reply | Promise<Reply> => {
    call.body = validate(schema, json)
    return handle(endpoint, call, parts)
  }
  return readBody(endpoint, call).then((json) => {
    // A body that is refused explains the refusal.
    if (call.trace) call.body = json
    const checking = recheck?.()
    return checking instanceof Promise ? checking.then(() => proceed(json)) : proceed(json)
  })
}

function handle(endpoint: Endpoint, call: OpenCall, parts: EndpointParts | null): Reply | Promise<Reply> {
  const { caller } = call
  const { requiresRecentSignIn } = endpoint
  if (parts && typeof requiresRecentSignIn === 'function' && requiresRecentSignIn(call.body))
    requireRecentAdministrator(caller, parts.dashboard.now())
  call.trace?.enter('handle')
  if (!parts || !isAudited(endpoint, call, caller)) return endpoint.handle(callAsViewed(endpoint, call))
  return handleAudited(endpoint, call, caller, parts.audit)
}

const handleAudited = (
  endpoint: Endpoint,
  call: OpenCall,
  caller: ServiceCaller,
  audit: Audit,
): Reply | Promise<Reply> => audit.record({ caller, endpoint, call }, () => endpoint.handle(call))
