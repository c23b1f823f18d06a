/** The list of functions, for operators: what each is, what triggers it, and how it fares. */
import { relative } from 'node:path'
import { z } from '../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import type { FunctionDefinition } from './definitions/definition.ts'
import type { Invoker } from './invoke/invoker.ts'

const item = z.object({
  name: z.string(),
  kind: z.string(),
  trigger: z.string().meta({ description: 'What runs it: a path, a table, a schedule or a queue' }),
  state: z.enum(['active', 'failing']).meta({ description: '`failing` if its last call has failed' }),
  location: z.string().nullable().meta({ description: 'File and line of its declaration' }),
  calls: z.int().meta({ description: 'Since the start of this node' }),
  failures: z.int(),
  lastError: z.object({ at: z.string(), message: z.string(), location: z.string().nullable() }).nullable(),
})

export interface FunctionListDeps {
  readonly definitions: () => readonly FunctionDefinition[]
  readonly invoker: Invoker
  readonly projectFolder: string | null
}

/** What runs a function. */
function triggerOf(definition: FunctionDefinition): string {
  switch (definition.kind) {
    case 'rpc':
      return `POST /api/fn/${definition.name}`
    case 'http':
      return `${definition.method === 'all' ? 'any method of' : definition.method.toUpperCase()} /api/fn${definition.path}`
    case 'before':
      return `before ${definition.on.join(', ')} of ${definition.table}`
    case 'onChange':
    case 'webhook':
      return `after ${definition.on.join(', ')} of ${definition.table}`
    case 'schedule':
      return definition.tz === null ? definition.cron : `${definition.cron} (${definition.tz})`
    case 'queue':
      return `queue ${definition.queue}`
    case 'beforeSignUp':
      return 'before a user signs up'
    case 'claims':
      return 'claims of access tokens'
    case 'onUser':
      return `after a user was ${definition.on.join(', ')}`
  }
}

export function createFunctionList({ definitions, invoker, projectFolder }: FunctionListDeps): Endpoint {
  const format = (location: { readonly file: string; readonly line: number } | null): string | null =>
    location && `${relative(projectFolder ?? '', location.file)}:${location.line}`
  return endpoint({
    name: 'functions.list',
    method: 'GET',
    paths: ['/api/functions'],
    tag: 'Functions',
    summary: 'List the functions of the application',
    credentials: 'service',
    scope: () => 'functions:admin:*:read',
    rateLimit: 'functions',
    replies: { 200: { description: 'Every function, by name', schema: z.object({ items: z.array(item) }) } },
    handle: () =>
      json({
        items: definitions().map((definition) => {
          const { calls, failures, lastError, isFailing } = invoker.countsOf(definition.name)
          return {
            name: definition.name,
            kind: definition.kind,
            trigger: triggerOf(definition),
            state: isFailing ? 'failing' : 'active',
            location: format(definition.location),
            calls,
            failures,
            lastError: lastError && {
              at: lastError.at,
              message: lastError.message,
              location: format(lastError.location),
            },
          }
        }),
      }),
  })
}
