/**
 * Validates a written configuration: returns a frozen `Config`, or all issues with their paths. Reads no files.
 */
import type { NamespaceDefinition } from '../access/definition.ts'
import type { ServiceKey } from '../access/service-keys.ts'
import {
  rateLimitDevelopmentFactor,
  rateLimitRequests,
  rateLimitWindowMs,
  rateLimitWindowsMs,
  responseBytesMax,
} from '../limits/api.ts'
import { changesBytesMax, changesRetentionMs } from '../limits/sqlite.ts'
import { writeBudgetBytes } from '../limits/writes.ts'
import type { Config, Mode, RateLimit } from './config.ts'
import { ConfigError, type ConfigIssue, formatIssue, formatPath } from './issues.ts'
import { findNameMistake } from './names.ts'
import { rehearseRules } from './rehearsal.ts'
import { createAnalyticsConfig } from './sections/analytics/analytics.ts'
import { checkAuth, createAuth } from './sections/auth/auth.ts'
import { checkSharedNamespace, withPublicUsers } from './sections/auth/public-users.ts'
import { checkBroadcasts, createBroadcasts } from './sections/broadcasts/broadcasts.ts'
import { checkDashboard, createDashboardConfig } from './sections/dashboard/dashboard.ts'
import { checkTable, createTable, findCaseInsensitiveDuplicates } from './sections/databases/tables.ts'
import { createFunctionsConfig } from './sections/functions/functions.ts'
import { checkKv, createKvNamespace } from './sections/kv/kv.ts'
import { createPush, findPushWarnings } from './sections/push/push.ts'
import { checkRooms, createRoomNamespace } from './sections/rooms/rooms.ts'
import { checkSql, createSqlDatabase } from './sections/sql/sql.ts'
import { checkBuckets, createBucket } from './sections/storage/buckets.ts'
import { checkVector, createVectorIndexDefinition } from './sections/vector/vector.ts'
import { configShape, issuesOf, type WrittenConfig, type WrittenNamespace } from './shape.ts'
import { membersOf } from './shape-parts.ts'

export interface ParsedConfig {
  readonly config: Config
  /** Valid but probably unintended settings, as sentences. */
  readonly warnings: readonly string[]
}

/**
 * Parses a written configuration. `rootKey` becomes the service key `root` with all permissions. Throws `ConfigError`
 * with all issues.
 */
export function parseConfig(written: unknown, { mode, rootKey }: { mode: Mode; rootKey: string }): ParsedConfig {
  const { data, mistakes } = readShape(written, rootKey)
  if (mistakes.length > 0 || !data) throw new ConfigError(mistakes.join('\n'))
  const declared = new Map(
    Object.entries(data.databases).map(([name, namespace]) => [name, createNamespace(name, namespace)]),
  )
  const auth = createAuth(data.auth, { allowsLocalRedirects: mode === 'development' })
  const root: ServiceKey = { name: rootName, key: rootKey, scopes: Object.freeze(['*']) }
  const config: Config = Object.freeze({
    mode,
    namespaces: auth.publicUsers === null ? declared : withPublicUsers(declared, auth.publicUsers),
    storedNamespaces: withPublicUsers(declared, false),
    auth,
    buckets: new Map(Object.entries(data.storage.buckets).map(([name, bucket]) => [name, createBucket(name, bucket)])),
    broadcasts: createBroadcasts(data.broadcasts),
    rooms: new Map(Object.entries(data.rooms).map(([name, written]) => [name, createRoomNamespace(name, written)])),
    vector: new Map(
      Object.entries(data.vector).map(([name, written]) => [name, createVectorIndexDefinition(name, written)]),
    ),
    kv: new Map(Object.entries(data.kv).map(([name, written]) => [name, createKvNamespace(name, written)])),
    sql: new Map(Object.entries(data.sql).map(([name, written]) => [name, createSqlDatabase(written)])),
    push: createPush(data.push),
    functions: createFunctionsConfig(data.functions),
    analytics: createAnalyticsConfig(data.analytics),
    dashboard: createDashboardConfig(data.dashboard, mode),
    serviceKeys: Object.freeze([root, ...data.serviceKeys.map(createServiceKey)].map((key) => Object.freeze(key))),
    rateLimits: createRateLimits(data.rateLimits, mode),
    cors: Object.freeze({ origins: Object.freeze(data.cors.origins) }),
    schemaEndpoint: data.api.schemaEndpoint,
    captcha: data.captcha ? Object.freeze(data.captcha) : null,
    changes: Object.freeze({
      retentionMs: data.changes?.retention ?? changesRetentionMs,
      bytesMax: data.changes?.maxSize ?? changesBytesMax,
    }),
    limits: Object.freeze({
      responseBytes: data.limits?.responseBytes ?? responseBytesMax,
      writeBytes:
        data.limits?.writeBytes ?? writeBudgetBytes * (mode === 'development' ? rateLimitDevelopmentFactor : 1),
    }),
    outbound: Object.freeze({ allow: Object.freeze(data.outbound.allow) }),
  })
  const rehearsed = rehearseRules(config)
  if (rehearsed.mistakes.length > 0) throw new ConfigError(rehearsed.mistakes.map(formatIssue).join('\n'))
  return { config, warnings: [...findWarnings(data), ...rehearsed.warnings] }
}

/** The configuration with another root key. Throws `ConfigError` if a declared key is the same. */
export function withRootKey({ config, warnings }: ParsedConfig, rootKey: string): ParsedConfig {
  const [root, ...declared] = config.serviceKeys
  const mistakes = checkServiceKeys(declared, rootKey)
  if (mistakes.length > 0) throw new ConfigError(mistakes.map(formatIssue).join('\n'))
  const serviceKeys = Object.freeze([Object.freeze({ ...(root as ServiceKey), key: rootKey }), ...declared])
  return { config: Object.freeze({ ...config, serviceKeys }), warnings }
}

/** All issues, one line each, beginning with the path; schema violations come before inconsistencies. */
export const findMistakes = (written: unknown, rootKey: string): readonly string[] =>
  readShape(written, rootKey).mistakes

function readShape(
  written: unknown,
  rootKey: string,
): { readonly data: WrittenConfig | undefined; readonly mistakes: readonly string[] } {
  // A shape that is used once is not worth compiling.
  const { data, error } = configShape.safeParse(written, { reportInput: true, jitless: true })
  const { databases, storage, auth, broadcasts, rooms, kv, sql, vector, dashboard, serviceKeys } = Object.fromEntries(
    membersOf(written),
  )
  const found = [
    ...issuesOf(error?.issues ?? []),
    ...checkDatabases(databases),
    ...checkSharedNamespace(databases),
    ...checkAuth(auth),
    ...checkBuckets(Object.fromEntries(membersOf(storage)).buckets),
    ...checkBroadcasts(broadcasts),
    ...checkRooms(rooms),
    ...checkVector(vector),
    ...checkKv(kv),
    ...checkSql(sql),
    ...checkDashboard(dashboard),
    ...checkServiceKeys(serviceKeys, rootKey),
  ]
  return { data, mistakes: [...new Set(found.map(formatIssue))] }
}

const rootName = 'root'

function checkDatabases(databases: unknown): ConfigIssue[] {
  const namespaces = membersOf(databases)
  const names = namespaces.map(([name]) => name)
  const mistakes = findCaseInsensitiveDuplicates(names, ['databases'])
  for (const [name, written] of namespaces) {
    const path = ['databases', name]
    const wrongName = findNameMistake(name)
    if (wrongName !== null) mistakes.push({ path, message: wrongName })
    const { instance, access, tables } = Object.fromEntries(membersOf(written))
    if (access !== undefined && instance !== true)
      mistakes.push({ path: [...path, 'access'], message: 'is only for namespaces with instance: true' })
    const tableNames = new Set(membersOf(tables).map(([table]) => table))
    mistakes.push(...findCaseInsensitiveDuplicates([...tableNames], [...path, 'tables']))
    for (const [table, declared] of membersOf(tables)) {
      const at = [...path, 'tables', table]
      const wrong = findNameMistake(table)
      if (wrong !== null) mistakes.push({ path: at, message: wrong })
      mistakes.push(...checkTable(declared, at, tableNames))
    }
  }
  return mistakes
}

/** Two keys with the same value would be one key with the scopes of the first. */
function checkServiceKeys(serviceKeys: unknown, rootKey: string): ConfigIssue[] {
  const names = new Map([[rootName, 'is the name of the root key']])
  const keys = new Map([[rootKey, 'is the root key; a key with scopes must be another']])
  const mistakes: ConfigIssue[] = []
  for (const [at, written] of (Array.isArray(serviceKeys) ? serviceKeys : []).entries()) {
    const { name, key } = Object.fromEntries(membersOf(written))
    const check = (known: Map<string, string>, value: unknown, option: string): void => {
      if (typeof value !== 'string') return
      const path = ['serviceKeys', at, option]
      const message = known.get(value)
      if (message !== undefined) mistakes.push({ path, message })
      else known.set(value, `is the same as serviceKeys[${at}].${option}`)
    }
    check(names, name, 'name')
    check(keys, key, 'key')
  }
  return mistakes
}

function createNamespace(name: string, { instance, access, tables }: WrittenNamespace): NamespaceDefinition {
  return Object.freeze({
    name,
    instance,
    access: access ?? null,
    tables: new Map(
      Object.entries(tables).map(([table, written]) => [
        table,
        createTable({ namespace: name, name: table, perInstance: instance }, written),
      ]),
    ),
  })
}

function createServiceKey({ name, key, scopes, expiresAt, ipCidr }: WrittenConfig['serviceKeys'][number]): ServiceKey {
  return {
    name,
    key,
    scopes: Object.freeze(scopes),
    ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }),
    ...(ipCidr === undefined ? {} : { ipCidr: Object.freeze(ipCidr) }),
  }
}

/** Declared limits apply in every mode; only the defaults are higher in development. */
function createRateLimits(declared: WrittenConfig['rateLimits'], mode: Mode): Config['rateLimits'] {
  const factor = mode === 'development' ? rateLimitDevelopmentFactor : 1
  const limitOf = (group: keyof typeof rateLimitRequests): RateLimit => {
    const own = declared[group]
    const windowMs = own?.window ?? rateLimitWindowsMs[group] ?? rateLimitWindowMs
    return { requests: own?.requests ?? rateLimitRequests[group] * factor, windowMs }
  }
  const groups = Object.keys(rateLimitRequests) as (keyof typeof rateLimitRequests)[]
  return Object.freeze(
    Object.fromEntries(groups.map((group) => [group, Object.freeze(limitOf(group))])),
  ) as Config['rateLimits']
}

function findWarnings({ databases, rooms, push }: WrittenConfig): string[] {
  const closed = Object.entries(databases).filter(([, { instance, access }]) => instance && access === undefined)
  const joinless = Object.entries(rooms).filter(([, { access }]) => access.join === undefined)
  return [
    ...closed.map(
      ([name]) =>
        `${formatPath(['databases', name])}: without an access rule only the service key can use its instances`,
    ),
    ...joinless.map(([name]) => `${formatPath(['rooms', name])}: without the rule access.join every join is denied`),
    ...findPushWarnings(push),
  ]
}
