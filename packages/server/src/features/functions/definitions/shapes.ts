/** The shape of each kind of function in a manifest, and the definition that comes of it. */
import { z } from '../../../base/schemas/z.ts'
import { parseDuration } from '../../../base/text/duration.ts'
import { parsedWith, strictObject } from '../../../config/shape-parts.ts'
import type { ManifestEntry } from '../../../engines/hosts/hosts.ts'
import { functionPathCharsMax, functionTimeoutMs, functionTimeoutMsMax } from '../../../limits/functions.ts'
import { hookOperations } from '../../before-hooks.ts'
import type { FunctionDefinition } from './definition.ts'
import { parseLimit } from './limit.ts'

const operationList = z.array(z.enum(hookOperations)).min(1)
const onAny = operationList.default([...hookOperations])
const limit = parsedWith(parseLimit).nullable().default(null)
const timeout = parsedWith(parseDuration).refine(
  (ms) => ms <= functionTimeoutMsMax,
  `must be at most ${functionTimeoutMsMax / 60_000}m`,
)
const jobTimeout = timeout.nullable().default(null)
const retries = z.int().min(0).max(100).nullable().default(null)
const where = z.record(z.string(), z.unknown()).nullable().default(null)
const schema = z
  .union([z.literal(true), z.record(z.string(), z.unknown())], {
    error: 'must be a Standard Schema, such as one of zod or valibot',
  })
  .optional()
const table = z.string().regex(/^[^.]+\../, 'must be "namespace.table" or "storage.bucket"')
const secretOrText = z.union([z.string().min(1), strictObject({ secret: z.string() })], {
  error: 'must be text or secret("NAME")',
})

const path = z
  .string()
  .max(functionPathCharsMax)
  .regex(/^(?:\/(?:[\w.~-]+|:[A-Za-z_]\w*))+$/, 'must begin with "/" and have segments such as "orders" or ":id"')
  .refine((text) => {
    const names = text.split('/').filter((segment) => segment.startsWith(':'))
    return new Set(names).size === names.length
  }, 'must not have two parameters of the same name')

const shapes = {
  before: strictObject({ table, on: operationList }),
  onChange: strictObject({
    table,
    on: onAny,
    where,
    retries,
    timeout: jobTimeout,
    recursive: z.boolean().default(false),
  }),
  rpc: strictObject({
    caller: z
      .union([z.enum(['anyone', 'user', 'service']), z.literal(true)], {
        error: 'must be "anyone", "user", "service" or a function',
      })
      .default('user'),
    limit,
    timeout: timeout.default(functionTimeoutMs),
    input: schema,
    output: schema,
    streams: z.literal(true).optional(),
  }),
  http: strictObject({
    method: z.enum(['get', 'post', 'put', 'patch', 'delete', 'all']),
    path,
    rawBody: z.boolean().default(false),
    limit,
    timeout: timeout.default(functionTimeoutMs),
  }),
  schedule: strictObject({
    cron: z.string(),
    tz: z.string().nullable().default(null),
    missed: z.enum(['skip', 'run-once']).default('skip'),
    timeout: jobTimeout,
    retries,
  }),
  queue: strictObject({
    queue: z.string().regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, or any of _ . -'),
    input: schema,
    concurrency: z.int().min(1).max(1000).nullable().default(null),
    rate: limit,
    retries,
    timeout: jobTimeout,
    uniqueBy: z.literal(true).optional(),
  }),
  webhook: strictObject({
    table,
    url: secretOrText,
    secret: secretOrText,
    on: onAny,
    where,
    fields: z.array(z.string()).min(1).nullable().default(null),
  }),
  beforeSignUp: strictObject({}),
  claims: strictObject({}),
  onUser: strictObject({ on: z.array(z.enum(['created', 'deleted', 'disabled'])).min(1) }),
} as const

type Kind = keyof typeof shapes
type Shaped<K extends Kind> = z.output<(typeof shapes)[K]>
type Named = Pick<FunctionDefinition, 'name' | 'location'>

const definers: { readonly [K in Kind]: (named: Named, shaped: Shaped<K>) => FunctionDefinition } = {
  before: (named, shaped) => ({ ...named, kind: 'before', ...shaped }),
  onChange: (named, { timeout: timeoutMs, ...shaped }) => ({ ...named, kind: 'onChange', ...shaped, timeoutMs }),
  rpc: (named, { timeout: timeoutMs, input, output, caller, streams, ...shaped }) => ({
    ...named,
    kind: 'rpc',
    ...shaped,
    caller: caller === true ? 'function' : caller,
    timeoutMs,
    inputSchema: typeof input === 'object' ? input : null,
    outputSchema: typeof output === 'object' ? output : null,
    streams: streams === true,
  }),
  http: (named, { timeout: timeoutMs, ...shaped }) => ({ ...named, kind: 'http', ...shaped, timeoutMs }),
  schedule: (named, { timeout: timeoutMs, ...shaped }) => ({ ...named, kind: 'schedule', ...shaped, timeoutMs }),
  queue: (named, { timeout: timeoutMs, uniqueBy, input: _, ...shaped }) => ({
    ...named,
    kind: 'queue',
    ...shaped,
    timeoutMs,
    hasUniqueBy: uniqueBy === true,
  }),
  webhook: (named, shaped) => ({ ...named, kind: 'webhook', ...shaped }),
  beforeSignUp: (named) => ({ ...named, kind: 'beforeSignUp' }),
  claims: (named) => ({ ...named, kind: 'claims' }),
  onUser: (named, shaped) => ({ ...named, kind: 'onUser', ...shaped }),
}

/** The definition of an entry, or the issues of its options. */
export function defineFunction(
  entry: ManifestEntry,
): { readonly definition: FunctionDefinition } | { readonly issues: readonly z.core.$ZodIssue[] } {
  const { name, kind, location, ...options } = entry
  const { data, error } = shapes[kind as Kind].safeParse(options, { reportInput: true })
  if (error) return { issues: error.issues }
  const define = definers[kind as Kind] as (named: Named, shaped: unknown) => FunctionDefinition
  return { definition: Object.freeze(define({ name, location }, data)) }
}
