/**
 * Generates the OpenAPI 3.1 document from endpoint declarations: the same schemas validate requests.
 */
import { z } from 'zod'
import { builtSchema } from '../../base/schemas/lazy-schema.ts'
import type { Field, FieldType } from '../../query/table.ts'
import type { Credentials, Endpoint, SocketEndpoint } from '../endpoint.ts'
import { defaultKey } from '../input/query-schema.ts'
import { describeFunctions, type FunctionOutline } from './openapi-functions.ts'

/** The public part of a table: its declared fields without hidden ones. */
export interface TableOutline {
  readonly namespace: string
  readonly fields: Readonly<Record<string, FieldOutline>>
}

export interface FieldOutline extends Omit<Field, 'name' | 'pattern'> {
  readonly pattern?: string
}

export interface OpenApiParts {
  readonly endpoints: readonly Endpoint[]
  readonly sockets: readonly SocketEndpoint[]
  readonly version: string
  /** Tables by displayed name; null omits all tables. */
  readonly tables: { readonly tables: Readonly<Record<string, TableOutline>> } | null
  /** Functions of the application that are shown. */
  readonly functions?: readonly FunctionOutline[]
}

type Json = Readonly<Record<string, unknown>>

/** Builds the document. Throws `Error` for a schema that JSON Schema cannot express. */
export function buildOpenApi({ endpoints, sockets, version, tables, functions = [] }: OpenApiParts): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const endpoint of endpoints) {
    for (const path of endpoint.paths) {
      const template = path.replaceAll(/:(\w+)\+?/g, '{$1}')
      const operation = describeOperation(endpoint, path)
      const head = endpoint.method === 'GET' ? { head: describeHead(operation) } : {}
      paths[template] = { ...head, ...paths[template], [endpoint.method.toLowerCase()]: operation }
    }
  }
  for (const socket of sockets) paths[socket.path] = { ...paths[socket.path], get: describeSocket(socket) }
  const described = describeFunctions(functions)
  for (const [path, operations] of Object.entries(described.paths)) paths[path] = { ...paths[path], ...operations }
  const tags = [...new Set([...endpoints, ...sockets].map(({ tag }) => tag))].map((name) => ({ name }))
  return {
    openapi: '3.1.0',
    info: { title: 'Plinth', version },
    servers: [{ url: '/' }],
    tags,
    paths,
    components: {
      schemas: { Error: errorSchema, ...describeTables(tables?.tables ?? {}), ...described.schemas },
      responses: { Error: errorResponse },
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'A signed-in user’s access token.',
        },
        serviceKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Platform-Service-Key',
          description: 'For servers only. When it is present, bearer tokens are ignored.',
        },
      },
    },
  }
}

interface Operation extends Json {
  readonly operationId: string
  readonly summary: string
  readonly responses: Readonly<Record<string, Json>>
}

function describeOperation(endpoint: Endpoint, path: string): Operation {
  const {
    tag,
    summary,
    description,
    credentials,
    ignoresCredentials,
    query,
    body,
    isBodyOptional,
    accepts,
    scope,
    rateLimit,
  } = endpoint
  const params = paramsOf(path)
  const placeholders = Object.fromEntries(params.map((name) => [name, `{${name}}`]))
  return {
    operationId: operationId(endpoint, path),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: ignoresCredentials ? [] : security[credentials],
    ...(scope ? { 'x-service-key-scope': [scope(placeholders)].flat().join(' or ') } : {}),
    ...(rateLimit === null ? {} : { 'x-rate-limit': rateLimit }),
    parameters: [
      ...params.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...(query ? describeQuery(query) : []),
    ],
    ...(body ? { requestBody: { required: !isBodyOptional, content: jsonContent(toJsonSchema(body, 'input')) } } : {}),
    ...(accepts ? { requestBody: { required: !isBodyOptional, content: describeBytes(accepts) } } : {}),
    responses: describeReplies(endpoint),
  }
}

/** Every GET endpoint supports HEAD: the same headers without the body. */
function describeHead({ operationId, summary, responses, ...operation }: ReturnType<typeof describeOperation>): Json {
  return {
    ...operation,
    operationId: `${operationId}.head`,
    summary: `${summary}: headers only`,
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, { description }]) => [
        status,
        { description: description ?? 'Refused, without the body that says why' },
      ]),
    ),
  }
}

/** A WebSocket upgrade, which OpenAPI can only describe as a GET with status 101. */
function describeSocket({ name, tag, summary, kind, query, rateLimit, ...bounds }: SocketEndpoint): Json {
  const { authTimeoutMs, messageBytesMax } = bounds
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: 'A WebSocket upgrade (RFC 6455). Credentials are sent as the first message, not as headers.',
    security: [{}, { serviceKey: [] }],
    'x-rate-limit': rateLimit,
    'x-websocket': {
      kind,
      // A bound that depends on the namespace's configuration is described in the guide.
      ...(typeof authTimeoutMs === 'number' ? { authTimeoutMs } : {}),
      ...(typeof messageBytesMax === 'number' ? { messageBytesMax } : {}),
    },
    parameters: [
      { name: 'Upgrade', in: 'header', required: true, schema: { type: 'string', const: 'websocket' } },
      ...describeQuery(query),
    ],
    responses: {
      101: { description: 'The socket is open' },
      ...Object.fromEntries(
        [400, 401, 403, 404, 429, 503].map((status) => [
          String(status),
          { ...errorReference(), description: statusTexts[status] ?? 'Refused' },
        ]),
      ),
    },
  }
}

const paramsOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)

/**
 * The operation id: the endpoint's name for its first path, with the additional parameters for others:
 * `records.list.byInstanceId`.
 */
function operationId({ name, paths }: Endpoint, path: string): string {
  const [first = ''] = paths
  if (path === first) return name
  const added = paramsOf(path).filter((param) => !paramsOf(first).includes(param))
  const suffix = added.map((param) => param.charAt(0).toUpperCase() + param.slice(1)).join('And')
  return `${name}.by${suffix || `Path${paths.indexOf(path) + 1}`}`
}

const anyone = [{}, { bearer: [] }, { serviceKey: [] }]
const security: Readonly<Record<Credentials, readonly Json[]>> = {
  public: anyone,
  rules: anyone,
  user: [{ bearer: [] }, { serviceKey: [] }],
  service: [{ serviceKey: [] }],
  key: [{ serviceKey: [] }],
  // Endpoints of the dashboard are not described: they are for its page.
  admin: [],
  page: [],
}

function describeQuery(query: z.ZodType): Json[] {
  const { properties = {}, required = [] } = toJsonSchema(query, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, [defaultKey]: fallback, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: { type: 'string', ...schema, ...(fallback === undefined ? {} : { default: fallback }) },
  }))
}

function describeReplies(endpoint: Endpoint): Operation['responses'] {
  const replies = Object.entries(endpoint.replies).map(([status, { description, schema }]) => [
    status,
    schema ? { description, content: jsonContent(toJsonSchema(schema, 'output')) } : { description },
  ])
  const refusals = [...refusalsOf(endpoint)]
    .sort((a, b) => a - b)
    .map((status) => [String(status), { ...errorReference(), description: statusTexts[status] ?? 'Refused' }])
  return { ...Object.fromEntries([...replies, ...refusals]), default: { $ref: '#/components/responses/Error' } }
}

/** The error statuses common to endpoints of its kind, and those that it declares. */
function refusalsOf({ credentials, ignoresCredentials, query, body, rateLimit, errors = [] }: Endpoint): Set<number> {
  const refusals = new Set(errors)
  if (query || body) refusals.add(400)
  if (!ignoresCredentials) refusals.add(401)
  if (credentials !== 'public' && credentials !== 'user') refusals.add(403)
  if (body) refusals.add(413).add(415)
  if (rateLimit !== null) refusals.add(429)
  return refusals
}

const statusTexts: Readonly<Record<number, string>> = {
  400: 'A parameter or the body is malformed; `data` names every bad field',
  401: 'Credentials are missing, expired or wrong',
  403: 'These credentials may not do this',
  404: 'What is addressed does not exist, or not for this caller',
  409: 'It conflicts with what is stored',
  412: 'What it depends on has changed',
  413: 'The body is too large',
  415: 'The body is not `application/json`',
  429: 'Too many requests; `Retry-After` says when to go on',
  503: 'Not available right now; `Retry-After` says when to try again',
}

const describeBytes = ({ contentType, schema }: NonNullable<Endpoint['accepts']>): Json => ({
  [contentType]: { schema: schema ? toJsonSchema(schema, 'input') : { type: 'string', format: 'binary' } },
})
const jsonContent = (schema: Json): Json => ({ 'application/json': { schema } })
const errorReference = (): Json => ({ content: jsonContent({ $ref: '#/components/schemas/Error' }) })
const errorResponse: Json = {
  description: 'Every refusal has this form; `X-Request-Id` names the request in the server’s log',
  headers: { 'X-Request-Id': { schema: { type: 'string' } } },
  ...errorReference(),
}
const errorSchema: Json = {
  type: 'object',
  required: ['code', 'message', 'slug'],
  properties: {
    code: { type: 'integer', description: 'The HTTP status' },
    message: { type: 'string' },
    slug: { type: 'string', description: 'A stable word for programs, such as `not-found`' },
    data: {
      type: 'object',
      description: 'Field to its mistake',
      additionalProperties: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
}

/** Recursive schemas are refused: their references could not be resolved in the document. */
function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...described } = z.toJSONSchema(builtSchema(schema), {
    io,
    unrepresentable: 'any',
    cycles: 'throw',
  })
  if ('$defs' in described) throw new Error('A schema of an endpoint must not define parts of its own')
  return described
}

const describeTables = (tables: Readonly<Record<string, TableOutline>>): Json =>
  Object.fromEntries(Object.entries(tables).map(([name, table]) => [`Table.${name}`, describeTable(name, table)]))

function describeTable(name: string, { namespace, fields }: TableOutline): Json {
  return {
    title: name,
    description: `A record of namespace \`${namespace}\``,
    type: 'object',
    required: Object.keys(fields),
    properties: Object.fromEntries(Object.entries(fields).map(([field, outline]) => [field, describeField(outline)])),
  }
}

const jsonTypes: Readonly<Record<FieldType, string | null>> = {
  string: 'string',
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  datetime: 'string',
  json: null,
  geo: 'array',
}

/** `[longitude, latitude]`. */
const locationSchema: Json = {
  prefixItems: [
    { type: 'number', minimum: -180, maximum: 180 },
    { type: 'number', minimum: -90, maximum: 90 },
  ],
  minItems: 2,
  maxItems: 2,
}

/** The schema of a field in a record: nullable unless required. */
function describeField({
  type,
  required,
  unique,
  default: preset,
  min,
  max,
  pattern,
  enum: values,
  references,
  readOnly,
}: FieldOutline): Json {
  const jsonType = jsonTypes[type]
  const [least, most] = type === 'number' ? ['minimum', 'maximum'] : ['minLength', 'maxLength']
  return {
    ...(jsonType === null ? {} : { type: required ? jsonType : [jsonType, 'null'] }),
    ...(type === 'datetime' ? { format: 'date-time' } : {}),
    ...(type === 'geo' ? locationSchema : {}),
    ...(preset === undefined ? {} : { default: preset }),
    ...(min === undefined ? {} : { [least as string]: min }),
    ...(max === undefined ? {} : { [most as string]: max }),
    ...(pattern === undefined ? {} : { pattern }),
    ...(values === undefined ? {} : { enum: required ? values : [...values, null] }),
    ...(unique ? { 'x-unique': true } : {}),
    ...(readOnly ? { readOnly } : {}),
    ...(references === undefined ? {} : { description: `The id of a record of \`${references}\`` }),
  }
}
