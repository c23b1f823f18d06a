import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { type Endpoint, endpoint } from '../endpoint.ts'
import { json } from '../replies/reply.ts'
import { buildOpenApi, type OpenApiParts } from './openapi.ts'

const list = endpoint({
  name: 'records.list',
  method: 'GET',
  paths: ['/db/:namespace/:table', '/db/:namespace/:instanceId/:table'],
  tag: 'Database',
  summary: 'List records',
  description: 'With filters.',
  credentials: 'rules',
  scope: ({ table }) => `db:table:${table}:read`,
  rateLimit: 'db',
  query: z.object({
    q: z.string().describe('Words.'),
    limit: z.coerce.number().int().min(1).optional(),
    filter: z.unknown(),
  }),
  replies: { 200: { description: 'A page', schema: z.object({ items: z.array(z.object({ id: z.string() })) }) } },
  errors: [404],
  handle: () => json({}),
})
const insert = endpoint({
  name: 'records.insert',
  method: 'POST',
  paths: ['/db/:namespace/:table'],
  tag: 'Database',
  summary: 'Insert',
  credentials: 'service',
  rateLimit: null,
  body: z.strictObject({ title: z.string(), kind: z.enum(['a', 'b']).default('a') }),
  replies: { 201: { description: 'Stored' } },
  handle: () => json({}),
})
const health = endpoint({
  name: 'system.health',
  method: 'GET',
  paths: ['/health'],
  tag: 'System',
  summary: 'Health',
  credentials: 'public',
  ignoresCredentials: true,
  rateLimit: null,
  replies: { 200: { description: 'Fine' } },
  handle: () => json({}),
})

const bytes = (method: 'POST' | 'PATCH', more: Partial<Endpoint> = {}): Endpoint => ({
  ...health,
  name: `bytes.${method}`,
  method,
  paths: ['/bytes'],
  accepts: { contentType: 'application/octet-stream' },
  ...more,
})

interface Operation {
  readonly operationId: string
  readonly security: object[]
  readonly parameters: { name: string; in: string }[]
  readonly requestBody?: { required: boolean; content: Record<string, { schema: object }> }
  readonly responses: Record<string, { content?: Record<string, { schema: object }> }>
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { schemas: Record<string, object> }
  readonly tags: object[]
}
const build = (endpoints: readonly Endpoint[], tables: OpenApiParts['tables'] = null) =>
  buildOpenApi({ endpoints, sockets: [], version: '1.2.3', tables }) as unknown as Document

describe('buildOpenApi', () => {
  const document = build([list, insert, health])
  const operation = (path: string, method: string): Operation => document.paths[path]?.[method] as Operation

  test('lists every path and method once, with unique operation ids', () => {
    expect(Object.entries(document.paths).map(([path, item]) => [path, Object.keys(item)])).toEqual([
      ['/db/{namespace}/{table}', ['head', 'get', 'post']],
      ['/db/{namespace}/{instanceId}/{table}', ['head', 'get']],
      ['/health', ['head', 'get']],
    ])
    expect(operation('/db/{namespace}/{table}', 'get').operationId).toBe('records.list')
    expect(operation('/db/{namespace}/{instanceId}/{table}', 'get').operationId).toBe('records.list.byInstanceId')
    expect(document.tags).toEqual([{ name: 'Database' }, { name: 'System' }])
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } })
  })

  test('path and query parameters', () => {
    expect(operation('/db/{namespace}/{table}', 'get')).toMatchObject({
      summary: 'List records',
      description: 'With filters.',
      'x-service-key-scope': 'db:table:{table}:read',
      'x-rate-limit': 'db',
      parameters: [
        { name: 'namespace', in: 'path', required: true },
        { name: 'table', in: 'path', required: true },
        { name: 'q', in: 'query', required: true, description: 'Words.', schema: { type: 'string' } },
        { name: 'limit', in: 'query', required: false, schema: { type: 'integer', minimum: 1 } },
        { name: 'filter', in: 'query', schema: { type: 'string' } },
      ],
    })
  })

  test('describes request bodies and responses', () => {
    const sent = operation('/db/{namespace}/{table}', 'post').requestBody?.content['application/json']?.schema
    expect(sent).toMatchObject({ required: ['title'], additionalProperties: false })
    const received = operation('/db/{namespace}/{table}', 'get').responses['200']?.content?.['application/json']?.schema
    expect(received).toMatchObject({ required: ['items'] })
    expect(JSON.stringify(document)).not.toContain('$schema')
  })

  test('a binary body is required unless it is optional', () => {
    const { paths } = build([bytes('PATCH'), bytes('POST', { isBodyOptional: true })])
    const content = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
    expect(paths['/bytes']?.patch?.requestBody).toEqual({ required: true, content })
    expect(paths['/bytes']?.post?.requestBody).toEqual({ required: false, content })
  })

  test('error responses follow from the declaration', () => {
    const refusals = (path: string, method: string) => Object.keys(operation(path, method).responses).join(' ')
    expect(refusals('/db/{namespace}/{table}', 'get')).toBe('200 400 401 403 404 429 default')
    expect(refusals('/db/{namespace}/{table}', 'post')).toBe('201 400 401 403 413 415 default')
    expect(refusals('/health', 'get')).toBe('200 default')
  })

  test('credentials', () => {
    expect(operation('/db/{namespace}/{table}', 'get').security).toEqual([{}, { bearer: [] }, { serviceKey: [] }])
    expect(operation('/db/{namespace}/{table}', 'post').security).toEqual([{ serviceKey: [] }])
    expect(operation('/health', 'get').security).toEqual([])
  })

  test('contains tables only if they are given', () => {
    expect(Object.keys(document.components.schemas)).toEqual(['Error'])
    const { schemas } = build([list], {
      tables: {
        Error: {
          namespace: 'shared',
          fields: {
            id: { type: 'string', required: true, unique: true },
            title: { type: 'string', required: false, unique: false, min: 1, max: 9, pattern: '^a' },
            views: { type: 'number', required: true, unique: false, min: 0, default: 0 },
            kind: { type: 'string', required: false, unique: false, enum: ['a'] },
            at: { type: 'datetime', required: false, unique: false },
            tags: { type: 'json', required: false, unique: false },
            spot: { type: 'geo', required: false, unique: false },
            authorId: { type: 'string', required: true, unique: false, references: 'authors' },
          },
        },
      },
    }).components
    expect(Object.keys(schemas)).toEqual(['Error', 'Table.Error'])
    expect(schemas['Table.Error']).toEqual({
      title: 'Error',
      description: 'A record of namespace `shared`',
      type: 'object',
      required: ['id', 'title', 'views', 'kind', 'at', 'tags', 'spot', 'authorId'],
      properties: {
        id: { type: 'string', 'x-unique': true },
        title: { type: ['string', 'null'], minLength: 1, maxLength: 9, pattern: '^a' },
        views: { type: 'number', default: 0, minimum: 0 },
        kind: { type: ['string', 'null'], enum: ['a', null] },
        at: { type: ['string', 'null'], format: 'date-time' },
        tags: {},
        spot: {
          type: ['array', 'null'],
          prefixItems: [
            { type: 'number', minimum: -180, maximum: 180 },
            { type: 'number', minimum: -90, maximum: 90 },
          ],
          minItems: 2,
          maxItems: 2,
        },
        authorId: { type: 'string', description: 'The id of a record of `authors`' },
      },
    })
  })
})
