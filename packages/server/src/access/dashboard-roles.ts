/**
 * Roles of the dashboard: what each permits, as scopes of service keys. The configuration may add roles of its own.
 */
import { permitsScope } from './service-keys.ts'

export interface DashboardRole {
  readonly scopes: readonly string[]
  /** Requests of other methods than GET and HEAD are refused, whatever the scopes. */
  readonly isReadOnly: boolean
}

/** What every built-in role may see. Reading SQL databases is running statements, which may write. */
const readEverything = [
  'db:table:*:read',
  'storage:bucket:*:read',
  'auth:admin:*:read',
  'kv:namespace:*:read',
  'vector:index:*:query',
  'rooms:namespace:*:read',
  'push:token:*:read',
  'push:log:*:read',
  'analytics:*:*:read',
  'functions:admin:*:read',
  'schema:endpoint:*:read',
  'system:*:*:read',
  'dashboard:*:*:read',
]

const role = (scopes: readonly string[], isReadOnly = false): DashboardRole =>
  Object.freeze({ scopes: Object.freeze(scopes), isReadOnly })

/** The scope to view data and files as a user; reading them needs the scopes for it as well. */
export const impersonationScope = 'dashboard:users:*:impersonate'

/** The role that may give roles to others, and do everything else. */
export const ownerRole = 'owner'

export const dashboardRoles: ReadonlyMap<string, DashboardRole> = new Map([
  [ownerRole, role(['*'])],
  [
    'editor',
    role([
      ...readEverything,
      'db:*:*:*',
      'storage:*:*:*',
      'kv:*:*:*',
      'sql:*:*:*',
      'vector:*:*:*',
      'rooms:*:*:*',
      'push:*:*:*',
      'functions:*:*:*',
      'dashboard:rules:*:explain',
      'dashboard:views:*:write',
    ]),
  ],
  [
    'support',
    role([
      ...readEverything,
      'auth:admin:*:write',
      'dashboard:rules:*:explain',
      'dashboard:views:*:write',
      impersonationScope,
    ]),
  ],
  ['viewer', role(readEverything, true)],
])

/** A role of the configuration. */
export const customRole = (scopes: readonly string[]): DashboardRole => role(scopes)

/**
 * The scope that changing an account with a dashboard role requires: with the scope to administer users alone, a caller
 * could set the password of an owner and sign in as one.
 */
export const administratorsScope = 'dashboard:admins:*:write'

export const mayChangeAdministrators = (scopes: readonly string[]): boolean => permitsScope(scopes, administratorsScope)
