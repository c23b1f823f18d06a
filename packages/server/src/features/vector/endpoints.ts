/** HTTP endpoint of vector indexes: one path, seven actions. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import {
  vectorBatchMax,
  vectorBodyBytesMax,
  vectorIdBytesMax,
  vectorMatches,
  vectorMatchesMax,
  vectorMetadataBytesMax,
  vectorNamespaceBytesMax,
  vectorsFetchedMax,
} from '../../limits/resources.ts'
import { findIdMistake, findNamespaceMistake } from './input.ts'

/** A text in which `find` finds no error. */
const nameText = (find: (text: string) => string | null, description: string) =>
  z
    .string()
    .check((context) => {
      const message = find(context.value)
      if (message !== null)
        context.issues.push({ code: 'custom', message, input: context.value, params: { code: 'pattern' } })
    })
    .meta({ description })

const id = nameText(findIdMistake, `1 to ${vectorIdBytesMax} bytes of UTF-8`)
const namespace = nameText(findNamespaceMistake, `1 to ${vectorNamespaceBytesMax} bytes of UTF-8`)

/** Validated by a loop in `input.ts`, not by zod: a request has hundreds of thousands of numbers. */
const values = z
  .unknown()
  .meta({ type: 'array', items: { type: 'number' }, description: 'One number per dimension of the index' })

const vectors = z
  .array(
    z.object({
      id,
      values,
      metadata: z
        .unknown()
        .optional()
        .meta({
          type: 'object',
          description: `At most ${vectorMetadataBytesMax} bytes as JSON`,
          additionalProperties: true,
        }),
      namespace: namespace.nullish().meta({ description: 'Overrides the namespace of the request' }),
    }),
  )
  .min(1)
  .max(vectorBatchMax)

const query = {
  topK: z.int().min(1).max(vectorMatchesMax).default(vectorMatches),
  filter: z.unknown().optional().meta({
    type: 'object',
    description: 'Maps a metadata field to a value or to operators: $eq $ne $gt $gte $lt $lte $in $nin',
    additionalProperties: true,
  }),
  namespace: namespace.optional().meta({ description: 'Restricts the search to this namespace' }),
  returnValues: z.boolean().default(false),
  returnMetadata: z
    .union([z.boolean(), z.enum(['all', 'indexed', 'none'])])
    .default(false)
    .meta({ description: '`true` means `all`, `false` means `none`' }),
}

const write = {
  vectors,
  namespace: namespace.optional().meta({ description: 'Namespace of vectors without their own' }),
}

const commandBody = z.discriminatedUnion('action', [
  z.object({ action: z.literal('upsert'), ...write }),
  z.object({ action: z.literal('insert'), ...write }),
  z.object({ action: z.literal('search'), vector: values, ...query }),
  z.object({ action: z.literal('queryById'), vectorId: id, ...query }),
  z.object({ action: z.literal('getByIds'), ids: z.array(id).min(1).max(vectorsFetchedMax) }),
  z.object({ action: z.literal('delete'), ids: z.array(id).min(1).max(vectorBatchMax) }),
  z.object({ action: z.literal('describe') }),
])

export type VectorCommand = z.output<typeof commandBody>
export type VectorCommandOf<Action extends VectorCommand['action']> = Extract<VectorCommand, { action: Action }>

const floats = z.array(z.number())
const metadata = z.record(z.string(), z.unknown()).nullable()
const written = z.object({ ok: z.literal(true), count: z.number(), ids: z.array(z.string()) })
const truncated = z
  .literal(true)
  .optional()
  .meta({ description: 'Present if the result was truncated to fit into the response' })
const found = z.object({
  matches: z.array(
    z.object({
      id: z.string(),
      score: z.number(),
      namespace: z.string().optional(),
      values: floats.optional(),
      metadata: metadata.optional(),
    }),
  ),
  count: z.number(),
  truncated,
})
const fetched = z.object({
  vectors: z.array(z.object({ id: z.string(), values: floats, metadata, namespace: z.string().nullable() })),
  truncated,
})
const described = z.object({ vectorCount: z.number(), dimensions: z.number(), metric: z.string() })

/** The scope that a service key needs for actions of one kind. */
export const scopeOf = (index: string, kind: 'query' | 'write'): string => `vector:index:${index}:${kind}`

export const vectorEndpoints = (
  perform: (call: Call<unknown, VectorCommand>) => Promise<Reply>,
): readonly Endpoint[] => [
  endpoint({
    name: 'vector.perform',
    method: 'POST',
    paths: ['/api/vector/:index'],
    tag: 'Vector',
    summary: 'Write, search, fetch or delete vectors of an index, or describe it',
    description:
      'Needs the scope `vector:index:{index}:write` for `upsert`, `insert` and `delete`, `vector:index:{index}:query` for the others. An `insert` with an existing id returns 409 and inserts nothing.',
    credentials: 'service',
    scope: ({ index = '' }) => [scopeOf(index, 'query'), scopeOf(index, 'write')],
    rateLimit: 'auth',
    body: commandBody,
    bodyBytesMax: vectorBodyBytesMax,
    replies: {
      200: {
        description: 'The written or deleted ids, the matches (best first), the vectors, or the description',
        schema: z.union([written, found, fetched, described]),
      },
    },
    errors: [404, 409, 503],
    handle: perform,
  }),
]
