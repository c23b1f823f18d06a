/** What of the declared functions runs in the background: the functions with jobs, hooks after changes, schedules. */
import type { Config } from '../../../config/config.ts'
import { bulkJobsRunningMax } from '../../../limits/dashboard.ts'
import { functionMailRetries, webhookPausesMs } from '../../../limits/function-deliveries.ts'
import { functionRetries } from '../../../limits/function-jobs.ts'
import type { BackgroundFunction, Declared } from '../background.ts'
import type { FunctionDefinition } from '../definitions/definition.ts'
import { findHookTarget } from '../definitions/hook-target.ts'
import type { ChangeHook } from '../dispatch/change-hooks.ts'
import { parseWhere } from '../dispatch/where.ts'
import { mailFunction } from '../mail/mails.ts'
import { bulkFunction } from './bulk-jobs.ts'

type ChangeKinds = Extract<FunctionDefinition, { kind: 'onChange' | 'webhook' }>

type Targets = Pick<Config, 'namespaces' | 'buckets' | 'dashboard'>

/** Null for a table that is not declared any more. */
function hookOf(definition: ChangeKinds, config: Targets): ChangeHook | null {
  const target = findHookTarget(definition.table, config)
  if (typeof target === 'string') return null
  const { namespace, name, table, view } = target
  return {
    name: definition.name,
    kind: definition.kind,
    namespace,
    table: name,
    on: new Set(definition.on),
    where: parseWhere(table, definition.where),
    view,
    recursive: definition.kind === 'onChange' && definition.recursive,
  }
}

function functionOf(definition: FunctionDefinition): BackgroundFunction | null {
  const unbounded = { name: definition.name, queue: null, concurrency: null, rate: null }
  switch (definition.kind) {
    case 'onChange':
    case 'schedule':
      return { ...unbounded, kind: definition.kind, retries: definition.retries ?? functionRetries }
    case 'queue': {
      const { queue, concurrency, rate, retries } = definition
      return {
        ...unbounded,
        kind: 'queue',
        queue,
        concurrency,
        rate: rate && { count: rate.calls, windowMs: rate.windowMs },
        retries: retries ?? functionRetries,
      }
    }
    case 'onUser':
      return { ...unbounded, kind: 'onUser', retries: functionRetries }
    case 'webhook':
      return { ...unbounded, kind: 'webhook', retries: webhookPausesMs.length }
    default:
      return null
  }
}

/** Changes of many records by administrators; not of the code, so that the list of functions has none. */
const bulk: BackgroundFunction = {
  name: bulkFunction,
  kind: 'bulk',
  queue: null,
  retries: functionRetries,
  concurrency: bulkJobsRunningMax,
  rate: null,
  isOnDemand: true,
}

/** Any function can send mails. */
const mails: BackgroundFunction = {
  name: mailFunction,
  kind: 'mail',
  queue: null,
  retries: functionMailRetries,
  concurrency: null,
  rate: null,
}

export function declaredJobs(definitions: readonly FunctionDefinition[], config: Targets): Declared {
  const functions = definitions.map(functionOf).filter((one) => one !== null)
  if (definitions.length > 0) functions.push(mails)
  if (config.dashboard !== null) functions.push(bulk)
  const changes = definitions.filter(({ kind }) => kind === 'onChange' || kind === 'webhook') as ChangeKinds[]
  const schedules = definitions.filter((definition) => definition.kind === 'schedule')
  const users = definitions.filter((definition) => definition.kind === 'onUser')
  return {
    functions: new Map(functions.map((one) => [one.name, one])),
    hooks: changes.map((definition) => hookOf(definition, config)).filter((hook) => hook !== null),
    userHooks: users.map(({ name, on }) => ({ name, on: new Set(on) })),
    schedules: schedules.map(({ name, cron, tz, missed }) => ({ name, cron, tz, missed })),
  }
}
