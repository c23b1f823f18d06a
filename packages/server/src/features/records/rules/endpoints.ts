/** Endpoints of the tools for access rules, for service keys and administrators. */

import type { ServiceCaller } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import type { Mode } from '../../../config/config.ts'
import { accessDenied } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { type CallersOfQuestions, type ExplainAccessDeps, explainAccess } from './explain-access.ts'
import { callerKinds } from './matrix/cells.ts'
import { buildMatrix, type MatrixDeps, matrixOperations } from './matrix/matrix.ts'
import { questionSchema } from './question.ts'
import { ruleSource } from './shadow/rule-source.ts'
import { type RunRuleSource, shadowOperation, shadowRun, shadowSchema } from './shadow/shadow-run.ts'

/** What the endpoints need of other features. */
export interface RulesTools {
  readonly callers: CallersOfQuestions
  readonly buckets: MatrixDeps['buckets']
  readonly mode: () => Mode
  readonly runRuleSource: RunRuleSource
}

export const explainScope = 'dashboard:rules:*:explain'

const clause = z.object({
  text: z.string(),
  path: z.string().meta({ description: 'The rule and the place in it, such as `update.before.and[1].not`' }),
  result: z
    .boolean()
    .nullable()
    .meta({ description: 'Null: an empty field, which counts as false, or no record to decide it' }),
  values: z.record(z.string(), z.unknown()).meta({ description: 'Of the record, by field' }),
})

const explanationSchema = z.object({
  allowed: z.boolean(),
  verdict: z.union([z.literal(200), z.literal(401), z.literal(403), z.literal(404)]),
  reason: z.string().nullable(),
  listed: z.boolean().nullable().meta({ description: 'Of a list with a record: whether the list has it' }),
  auth: z.unknown().meta({ description: 'The caller as rules see it; null without credentials' }),
  clauses: z.array(clause),
  truncated: z.boolean(),
  sql: z.string().nullable(),
  parameters: z.array(z.unknown()),
  plan: z.array(z.string()),
  suggestions: z.array(z.object({ table: z.string(), fields: z.array(z.string()) })).meta({
    description: 'Indexes that would help',
  }),
})

const cell = z.object({
  access: z.enum(['always', 'never', 'depends']),
  condition: z.string().nullable().meta({ description: 'What it depends on' }),
})

const matrixSchema = z.object({
  tables: z.array(
    z.object({
      kind: z.enum(['table', 'bucket']),
      namespace: z.string().nullable(),
      hasInstances: z.boolean().meta({ description: 'Whether the namespace has one set of tables per instance' }),
      name: z.string(),
      operations: z.record(z.enum(matrixOperations), z.record(z.enum(callerKinds), cell)),
      reads: z.array(z.string()).meta({ description: 'Properties of the caller beside its id that the rules read' }),
      failures: z.array(z.string()).meta({ description: 'Rules that failed for a sample caller, and so deny' }),
    }),
  ),
})

const changed = z.object({
  count: z.int(),
  ids: z.array(z.string()),
  rows: z
    .array(z.object({ id: z.string(), before: z.array(clause), after: z.array(clause) }))
    .meta({ description: 'The first of them with the clauses of both rules that decide' }),
})

const position = z.object({ line: z.int(), column: z.int() })

const shadowReply = z.object({
  rows: z.int().meta({ description: 'Records that were compared' }),
  callers: z.array(
    z.object({
      auth: z.unknown(),
      gained: changed,
      lost: changed,
      before: z.string(),
      after: z.string(),
      error: z.string().nullable().meta({ description: 'Why the edited rule failed, and so denies' }),
      errorAt: position.nullable().meta({ description: 'Where in its text, if that is known' }),
    }),
  ),
})

const sourceQuery = z.strictObject({
  namespace: z.string(),
  table: z.string(),
  operation: shadowOperation,
})

const sourceReply = z.object({ rule: z.string(), path: z.string() })

const common = { tag: 'Rules', credentials: 'service', scope: () => explainScope, rateLimit: 'db' } as const

export const createRulesEndpoints = (deps: ExplainAccessDeps & MatrixDeps & RulesTools): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'rules.explain',
    method: 'POST',
    changes: false,
    paths: ['/api/rules/explain'],
    summary: 'Explain what a caller may do with a record',
    description:
      'The verdict is what the endpoint of the operation answers to this caller; nothing is written. Functions of the application do not run. Without the scope to read the table, the values of stored records are not shown.',
    body: questionSchema,
    replies: { 200: { description: 'The verdict and the clauses that lead to it', schema: explanationSchema } },
    errors: [404],
    handle: async (call) => json(await explainAccess(deps, call.caller as ServiceCaller, call.body)),
  }),
  endpoint({
    ...common,
    name: 'rules.matrix',
    method: 'GET',
    paths: ['/api/rules/matrix'],
    summary: 'Show what kinds of callers may do with the records of each table',
    description:
      'Computed from the rules, without records. `owner`: every field that a rule compares with the id of the caller has it; `otherUser`: no record has the id of the caller; `otherTenant`: nor any claim of it, and its instance is another one.',
    replies: { 200: { description: 'The tables and buckets', schema: matrixSchema } },
    handle: async () => json({ tables: await buildMatrix(deps) }),
  }),
  endpoint({
    ...common,
    name: 'rules.source',
    method: 'GET',
    paths: ['/api/rules/source'],
    summary: 'Get the text of a rule of the configuration',
    description:
      'In development mode only. The text is as the runtime has it: without types and comments. Names that it uses of the rest of the configuration are not part of it.',
    query: sourceQuery,
    replies: { 200: { description: 'The text and its place in the configuration', schema: sourceReply } },
    errors: [404],
    handle({ query }) {
      if (deps.mode() !== 'development') throw accessDenied('The text of a rule needs development mode')
      return json(ruleSource(deps.namespaces(), query))
    },
  }),
  endpoint({
    ...common,
    name: 'rules.shadow',
    method: 'POST',
    paths: ['/api/rules/shadow'],
    summary: 'Show what an edited rule would change for the last records',
    description:
      'In development mode only, since it runs code: in a process of its own. Needs the scope to read the table as well.',
    body: shadowSchema,
    replies: { 200: { description: 'For each caller the records gained and lost', schema: shadowReply } },
    errors: [404, 503],
    async handle(call) {
      if (deps.mode() !== 'development') throw accessDenied('A shadow run needs development mode')
      return json(await shadowRun(deps, call.caller as ServiceCaller, call.body))
    },
  }),
]
