/** The question that an explanation of access answers, as the endpoint takes it. */

import type { Auth } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { recordSchema } from '../table-endpoint.ts'

/** What a rule sees of a caller that is given by its claims; what is absent has the value of a new account. */
const authSchema = z.strictObject({
  id: z.string().min(1).max(128),
  email: z.string().max(320).nullable().optional(),
  displayName: z.string().max(256).nullable().optional(),
  role: z.string().max(128).optional(),
  isAnonymous: z.boolean().optional(),
  emailVerified: z.boolean().optional(),
  custom: z.record(z.string(), z.unknown()).optional(),
})

export const callerSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('anonymous') }),
    z.strictObject({ kind: z.literal('user'), id: z.string().min(1).max(128) }),
    z.strictObject({ kind: z.literal('claims'), auth: authSchema }),
  ])
  .meta({ description: 'A caller without credentials, a user as stored, or a user with these properties' })

const operations = ['list', 'get', 'create', 'update', 'delete', 'read', 'insert'] as const

export const questionSchema = z.strictObject({
  namespace: z.string(),
  instanceId: z.string().optional(),
  table: z.string(),
  operation: z.enum(operations).meta({
    description: '`insert` stands for `create`; `read` for `get` with an id or a row, and for `list` without',
  }),
  caller: callerSchema,
  id: z.string().optional().meta({ description: 'A stored record' }),
  row: recordSchema.optional().meta({
    description:
      'The body of a `create`; with `id` the body of an `update`; otherwise a record in place of a stored one, whose absent fields are empty',
  }),
  filter: z.unknown().optional().meta({ description: 'Conditions of a `list`' }),
  sort: z.string().optional().meta({ description: 'Order of a `list`' }),
})

export type Question = z.infer<typeof questionSchema>
export type CallerQuestion = Question['caller']
type ClaimsQuestion = z.infer<typeof authSchema>

/** What an explanation is about, with the synonyms resolved. */
export type Operation = 'list' | 'get' | 'create' | 'update' | 'delete'

export function operationOf({ operation, id, row }: Pick<Question, 'operation' | 'id' | 'row'>): Operation {
  if (operation === 'insert') return 'create'
  if (operation !== 'read') return operation
  return id === undefined && row === undefined ? 'list' : 'get'
}

/** The properties of a caller given by claims; `seal` freezes claims as those of a token. */
export function authOfClaims(given: ClaimsQuestion, seal: (claims: Record<string, unknown>) => Auth['custom']): Auth {
  const { id, displayName = null, role = 'user', isAnonymous = false, custom = {} } = given
  const emailVerified = given.emailVerified ?? typeof given.email === 'string'
  // As everywhere, rules see no address that is not verified.
  const email = emailVerified ? (given.email ?? null) : null
  return Object.freeze({
    id,
    email,
    emailVerified: email !== null,
    displayName,
    role,
    isAnonymous,
    custom: seal(custom),
  })
}
