/** The commands that a request to an index may contain: their schemas, and the scopes that they need. */
import { z } from '../../base/schemas/z.ts'
import {
  vectorBatchMax,
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

export const commandBody = z.discriminatedUnion('action', [
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

/** What a scope permits. */
export type CommandKind = 'query' | 'write'

export const kindOf: Readonly<Record<VectorCommand['action'], CommandKind>> = {
  upsert: 'write',
  insert: 'write',
  delete: 'write',
  search: 'query',
  queryById: 'query',
  getByIds: 'query',
  describe: 'query',
}

/** The scope that a service key needs for commands of one kind. */
export const scopeOf = (index: string, kind: CommandKind): string => `vector:index:${index}:${kind}`
