/** What of a manifest does not fit the configuration or itself. Every issue has the function and its location. */
import { relative } from 'node:path'
import { Cron } from 'croner'
import { parseWebhookKeys } from '../../../base/crypto/webhook-signature.ts'
import type { Config } from '../../../config/config.ts'
import { formatIssue } from '../../../config/issues.ts'
import { issuesOf } from '../../../config/shape.ts'
import type { CodeLocation, Manifest } from '../../../engines/hosts/hosts.ts'
import { ApiError } from '../../../errors.ts'
import { functionNameCharsMax } from '../../../limits/functions.ts'
import type { Table } from '../../../query/table.ts'
import { parseWhere } from '../dispatch/where.ts'
import { type FunctionDefinition, type HttpDefinition, textOf } from './definition.ts'
import { findHookTarget } from './hook-target.ts'
import { defineFunction } from './shapes.ts'

export interface CheckedManifest {
  readonly definitions: readonly FunctionDefinition[]
  /** One sentence each, in the order of the functions. */
  readonly issues: readonly string[]
}

export interface CheckParts {
  readonly config: Pick<Config, 'namespaces' | 'buckets'>
  /** The values of those that have one. */
  readonly secrets: ReadonlyMap<string, string>
  /** Locations are shown relative to it. */
  readonly folder: string
}

export function checkManifest(manifest: Manifest, { config, secrets, folder }: CheckParts): CheckedManifest {
  const issues: string[] = []
  const report = (location: CodeLocation | null, name: string, message: string): void => {
    const at = location ? `${relative(folder, location.file)}:${location.line}: ` : ''
    issues.push(`${at}${name}: ${message}`)
  }
  const definitions: FunctionDefinition[] = []
  for (const entry of manifest.functions) {
    if (!/^[A-Za-z_]\w*$/.test(entry.name) || entry.name.length > functionNameCharsMax || entry.name === 'default')
      report(
        entry.location,
        entry.name,
        `must be exported under a name of up to ${functionNameCharsMax} letters and digits`,
      )
    const defined = defineFunction(entry)
    if ('definition' in defined) definitions.push(defined.definition)
    else for (const issue of issuesOf(defined.issues)) report(entry.location, entry.name, formatIssue(issue))
  }
  for (const definition of definitions)
    for (const message of [
      ...checkTable(definition, config),
      ...checkCaused(definition, config),
      ...checkCron(definition),
      ...checkWebhook(definition, config, secrets),
    ])
      report(definition.location, definition.name, message)
  for (const [definition, message] of findCollisions(definitions)) report(definition.location, definition.name, message)
  for (const { name, location } of manifest.secrets)
    if (!secrets.has(name))
      report(
        location,
        `secret("${name}")`,
        `has no value. Set the environment variable ${name}, or run \`plinth secrets set ${name}\`.`,
      )
  return { definitions, issues }
}

function checkTable(definition: FunctionDefinition, config: CheckParts['config']): string[] {
  if (!('table' in definition)) return []
  const target = findHookTarget(definition.table, config)
  if (typeof target === 'string') return [target]
  return 'where' in definition ? checkWhere(target.table, definition.where) : []
}

function checkWhere(table: Table, where: object | null): string[] {
  try {
    parseWhere(table, where)
    return []
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // The errors by field are those of a filter, whose positions the declaration does not have.
    const details = Object.values(error.data ?? {}).map(({ message }) => message)
    return (details.length > 0 ? details : [error.message]).map((message) => `where: ${message}`)
  }
}

/** Functions that nothing would call are refused: a check that never runs is worse than none. */
function checkCaused(definition: FunctionDefinition, config: CheckParts['config']): string[] {
  if (definition.kind !== 'before') return []
  const target = findHookTarget(definition.table, config)
  return typeof target === 'object' && target.isPlatform
    ? [`"${definition.table}" is written by the server itself, before which no function runs`]
    : []
}

function checkCron(definition: FunctionDefinition): string[] {
  if (definition.kind !== 'schedule') return []
  const { cron, tz } = definition
  try {
    if (tz !== null) new Intl.DateTimeFormat('en', { timeZone: tz })
  } catch {
    return [`tz: "${tz}" is not a time zone; write one such as "Europe/Berlin"`]
  }
  try {
    if (!/^\S+(?: +\S+){4,5}$/.test(cron.trim())) throw new Error('it must have five fields, or six with seconds first')
    if (new Cron(cron, { paused: true, ...(tz === null ? { utcOffset: 0 } : { timezone: tz }) }).nextRun() === null)
      throw new Error('it never runs')
    return []
  } catch (error) {
    return [`cron: "${cron}" is not a schedule: ${(error as Error).message}`]
  }
}

/** What no attempt to deliver could survive. Values of secrets are in no message. */
function checkWebhook(
  definition: FunctionDefinition,
  config: CheckParts['config'],
  secrets: CheckParts['secrets'],
): string[] {
  if (definition.kind !== 'webhook') return []
  const target = findHookTarget(definition.table, config)
  const fields = typeof target === 'object' ? target.sentFields : null
  const unknown = (definition.fields ?? []).filter((field) => fields?.has(field) === false)
  const issues = unknown.map((field) => `fields: there is no field "${field}" in ${definition.table}`)
  const url = textOf(definition.url, secrets)
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) issues.push('url: must be a URL')
  const secret = textOf(definition.secret, secrets)
  try {
    if (secret !== undefined) parseWebhookKeys(secret)
  } catch (error) {
    issues.push(`secret: ${(error as Error).message}`)
  }
  return issues
}

/** Two functions that only one can serve; reported for the later one. */
function* findCollisions(definitions: readonly FunctionDefinition[]): Generator<[FunctionDefinition, string]> {
  const names = new Map<string, FunctionDefinition>()
  const queues = new Map<string, FunctionDefinition>()
  const single = new Map<string, FunctionDefinition>()
  const served: HttpDefinition[] = []
  for (const definition of definitions) {
    const twin = names.get(definition.name.toLowerCase())
    if (twin) yield [definition, `differs from "${twin.name}" only in upper and lower case`]
    names.set(definition.name.toLowerCase(), definition)
    if (definition.kind === 'beforeSignUp' || definition.kind === 'claims') {
      const other = single.get(definition.kind)
      if (other) yield [definition, `auth.${definition.kind} is declared as "${other.name}" already`]
      single.set(definition.kind, definition)
    }
    if (definition.kind === 'queue') {
      const other = queues.get(definition.queue)
      if (other) yield [definition, `the queue "${definition.queue}" is that of "${other.name}"`]
      queues.set(definition.queue, definition)
    }
    if (definition.kind === 'http') {
      const other = served.find((one) => isSamePath(one.path, definition.path) && isSameMethod(one, definition))
      if (other) yield [definition, `${definition.path} is served by "${other.name}"`]
      served.push(definition)
    }
  }
  for (const definition of definitions) {
    if (definition.kind !== 'rpc') continue
    const other = served.find(({ path, method }) => path === `/${definition.name}` && /^(?:post|all)$/.test(method))
    if (other) yield [definition, `POST /api/fn/${definition.name} is served by "${other.name}"`]
  }
}

const isSameMethod = (a: HttpDefinition, b: HttpDefinition): boolean => a.method === b.method

/** Whether two paths differ only in the names of their parameters. */
const isSamePath = (a: string, b: string): boolean => shapeOf(a) === shapeOf(b)
const shapeOf = (path: string): string => path.replaceAll(/:\w+/g, ':')
