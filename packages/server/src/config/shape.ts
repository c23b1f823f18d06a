/**
 * The shape of a configuration: its keys and the type of each value. `validate.ts` checks relations between values;
 * `define.ts` has the types that editors show.
 */
import { z } from 'zod'
import { administratorPrefix } from '../access/caller.ts'
import type { InstanceRule } from '../access/definition.ts'
import { parseScope } from '../access/service-keys.ts'
import { parseCidr } from '../base/network/address.ts'
import { findDatetime } from '../base/text/datetime.ts'
import { parseDuration } from '../base/text/duration.ts'
import {
  rateLimitRequests,
  responseBytesLeast,
  responseBytesMost,
  searchWeightMax,
  serviceKeyCharsMax,
  serviceKeyCharsMin,
} from '../limits/api.ts'
import { changesBytesMin } from '../limits/sqlite.ts'
import { KiB, MiB } from '../limits/units.ts'
import type { FieldType } from '../query/table.ts'
import { type ConfigIssue, type Path, suggest } from './issues.ts'
import { analyticsShape } from './sections/analytics/analytics.ts'
import { authShape } from './sections/auth/auth.ts'
import { broadcastsShape } from './sections/broadcasts/broadcasts.ts'
import { dashboardShape } from './sections/dashboard/dashboard.ts'
import type { Compute } from './sections/databases/computed/read-computed.ts'
import { functionsShape } from './sections/functions/functions.ts'
import { kvShape } from './sections/kv/kv.ts'
import { pushShape } from './sections/push/push.ts'
import { roomsShape } from './sections/rooms/rooms.ts'
import { sqlShape } from './sections/sql/sql.ts'
import { vectorShape } from './sections/vector/vector.ts'
import { byteSize, isAsynchronous, isFunction, parsedWith, ruleShape, strictObject } from './shape-parts.ts'

const fieldTypes = [
  'string',
  'text',
  'number',
  'boolean',
  'datetime',
  'json',
  'geo',
] as const satisfies readonly FieldType[]

const instanceRuleShape = z.custom<InstanceRule>(isFunction, 'must be a function of the caller and the instance id')

export const fieldShape = strictObject({
  type: z.enum(fieldTypes),
  required: z.boolean().default(false),
  default: z.unknown().optional(),
  unique: z.boolean().default(false),
  min: z.number().optional(),
  max: z.number().optional(),
  pattern: z.string().optional(),
  enum: z
    .array(
      z.custom<string | number>((value) => ['string', 'number'].includes(typeof value), 'must be text or a number'),
    )
    .min(1)
    .optional(),
  references: z.string().optional(),
  index: z.boolean().default(false),
  computed: z
    .custom<Compute>(isFunction, 'must be a function of the fields')
    .refine((value) => !isAsynchronous(value), 'must not be asynchronous')
    .optional(),
})
export type WrittenField = z.output<typeof fieldShape>

const searchedShape = z.union(
  [z.string(), strictObject({ field: z.string(), weight: z.int().min(1).max(searchWeightMax).default(1) })],
  { error: 'must be the name of a field, or { field, weight }' },
)

const searchOptionsShape = strictObject({
  language: z
    .custom<'simple'>(
      (value) => value === 'simple',
      'must be "simple": words are compared as they are written, since the stemming of the engines differs',
    )
    .default('simple'),
  typos: z.boolean().default(false),
  prefix: z.boolean().default(true),
  substring: z.boolean().default(false),
})

const tableShape = strictObject({
  schema: z.record(z.string(), fieldShape).optional(),
  indexes: z
    .array(strictObject({ fields: z.array(z.string()).min(1), unique: z.boolean().default(false) }))
    .default([]),
  search: z.array(searchedShape).default([]),
  searchOptions: searchOptionsShape.optional(),
  hidden: z.array(z.string()).default([]),
  access: strictObject({
    read: ruleShape.default(false),
    insert: ruleShape.default(false),
    update: z
      .union([ruleShape, strictObject({ before: ruleShape, after: ruleShape })], {
        error: 'must be true, false, a function, or { before, after }',
      })
      .default(false),
    delete: ruleShape.default(false),
  }).prefault({}),
})
export type WrittenTable = z.output<typeof tableShape>

const namespaceShape = strictObject({
  instance: z.boolean().default(false),
  access: instanceRuleShape.optional(),
  tables: z.record(z.string(), tableShape),
})
export type WrittenNamespace = z.output<typeof namespaceShape>

const duration = parsedWith(parseDuration)

const changesSize = byteSize.refine((bytes) => bytes >= changesBytesMin, `must be at least ${changesBytesMin / MiB}mb`)
const responseBytes = byteSize.refine(
  (bytes) => bytes >= responseBytesLeast && bytes <= responseBytesMost,
  `must be from ${responseBytesLeast / KiB}kb to ${responseBytesMost / MiB}mb`,
)

const bucketShape = strictObject({
  maxFileSize: byteSize.optional(),
  quota: byteSize.optional(),
  userQuota: byteSize.optional(),
  images: z.boolean().default(false),
  access: strictObject({
    read: ruleShape.default(false),
    write: ruleShape.default(false),
    delete: ruleShape.default(false),
  }).prefault({}),
})
export type WrittenBucket = z.output<typeof bucketShape>

/** What a header can carry without being changed on the way. */
const keyPattern = /^[\x21-\x7e]*$/

/** Of a declared key and of the root key alike. */
export const keyShape = z
  .string({
    error: (issue) => (issue.input === undefined ? 'is missing. Is its environment variable set?' : undefined),
  })
  .min(serviceKeyCharsMin)
  .max(serviceKeyCharsMax)
  .regex(keyPattern, 'must be printable ASCII without spaces')

function checkedCidr(text: string): string {
  parseCidr(text)
  return text
}

const serviceKeyShape = strictObject({
  name: z
    .string()
    .min(1)
    .max(64)
    .refine(
      (name) => !name.startsWith(administratorPrefix),
      `must not start with "${administratorPrefix}", which marks administrators`,
    ),
  key: keyShape,
  scopes: z.array(parsedWith(parseScope)).min(1),
  expiresAt: parsedWith((text) => {
    const normal = findDatetime(text)
    if (normal === null) throw new Error('must be a timestamp such as "2030-01-31T12:00:00Z"')
    return Date.parse(normal)
  }).optional(),
  ipCidr: z.array(parsedWith(checkedCidr)).min(1).optional(),
})

/** Browsers send an origin in this one spelling, and it is compared as text. */
const origin = parsedWith((text) => {
  const url = text === '*' ? null : URL.parse(text)
  if (text !== '*' && (!url || !/^https?:$/.test(url.protocol) || url.origin !== text))
    throw new Error('must be "*" or an origin such as "https://app.example.com", without a path')
  return text
})

const rateLimitShape = strictObject({
  requests: z.int().min(1),
  window: duration.optional(),
})
const rateLimitGroups = Object.keys(rateLimitRequests) as (keyof typeof rateLimitRequests)[]

const schemaEndpointShape = z.union([z.boolean(), z.literal('authenticated')], {
  error: 'must be true, false or "authenticated"',
})

export const configShape = strictObject({
  databases: z.record(z.string(), namespaceShape).default({}),
  storage: strictObject({ buckets: z.record(z.string(), bucketShape).default({}) }).prefault({}),
  auth: authShape.prefault({}),
  broadcasts: broadcastsShape.default({}),
  rooms: roomsShape.default({}),
  vector: vectorShape.default({}),
  kv: kvShape.default({}),
  sql: sqlShape.default({}),
  push: pushShape.prefault({}),
  functions: functionsShape.prefault({}),
  analytics: analyticsShape.prefault({}),
  dashboard: dashboardShape.prefault({}),
  serviceKeys: z.array(serviceKeyShape).default([]),
  rateLimits: strictObject(
    Object.fromEntries(rateLimitGroups.map((group) => [group, rateLimitShape.optional()])) as Record<
      (typeof rateLimitGroups)[number],
      z.ZodOptional<typeof rateLimitShape>
    >,
  ).default({}),
  cors: strictObject({ origins: z.array(origin) }).default({ origins: [] }),
  api: strictObject({ schemaEndpoint: schemaEndpointShape.default(false) }).prefault({}),
  captcha: strictObject({ siteKey: z.string().min(1) }).optional(),
  changes: strictObject({ retention: duration.optional(), maxSize: changesSize.optional() }).optional(),
  limits: strictObject({ responseBytes: responseBytes.optional(), writeBytes: byteSize.optional() }).optional(),
  outbound: strictObject({ allow: z.array(parsedWith(parseCidr)).default([]) }).prefault({}),
})
export type WrittenConfig = z.output<typeof configShape>

const kinds: Readonly<Record<string, string>> = {
  object: 'an object',
  record: 'an object',
  array: 'a list',
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
}

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`

function describeIssue(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type': {
      if (issue.input === undefined) return issue.message.startsWith('is missing') ? issue.message : 'is missing'
      const found = issue.expected === 'int' ? String(issue.input) : kindOf(issue.input)
      return `must be ${kinds[issue.expected] ?? issue.expected}, not ${found}`
    }
    case 'invalid_value': {
      if (issue.input === undefined) return 'is missing'
      const values = issue.values.map(String)
      const hint = typeof issue.input === 'string' ? suggest(issue.input, values) : ''
      return `must be one of ${values.join(', ')}.${hint}`
    }
    case 'too_small':
      if (issue.origin === 'array') return 'must not be empty'
      return `must ${issue.origin === 'string' ? 'have' : 'be'} at least ${issue.minimum}${unitOf(issue.origin)}`
    case 'too_big':
      return `must ${issue.origin === 'string' ? 'have' : 'be'} at most ${issue.maximum}${unitOf(issue.origin)}`
    default:
      return issue.message
  }
}

const unitOf = (origin: string): string => (origin === 'string' ? ' characters' : '')

/** The mistakes that zod found; needs its issues with their input (`reportInput`). */
export function issuesOf(issues: readonly z.core.$ZodIssue[], under: Path = []): ConfigIssue[] {
  return issues.flatMap((issue): ConfigIssue[] => {
    const path = [...under, ...issue.path]
    if (issue.code === 'unrecognized_keys') {
      const messages = issue.message.split('\n')
      return issue.keys.map((key, index) => ({ path: [...path, key], message: messages[index] as string }))
    }
    if (issue.code === 'invalid_union') {
      // The variant that got past the kind of value is the one that was meant.
      const meant = issue.errors.find((errors) =>
        errors.every(({ path: { length }, code }) => length > 0 || code === 'unrecognized_keys'),
      )
      if (meant) return issuesOf(meant, path)
    }
    return [{ path, message: describeIssue(issue) }]
  })
}
