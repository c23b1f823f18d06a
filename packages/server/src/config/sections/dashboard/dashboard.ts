/**
 * The section `dashboard`: its shape, the names in it, and the form that the dashboard runs on. What users write it
 * with is `define-dashboard`.
 */
import { z } from 'zod'
import { customRole, type DashboardRole, dashboardRoles } from '../../../access/dashboard-roles.ts'
import { parseScope } from '../../../access/service-keys.ts'
import { dashboardRoleCharsMax, dashboardRolesMax } from '../../../limits/dashboard.ts'
import type { ConfigIssue } from '../../issues.ts'
import { membersOf, parsedWith, strictObject } from '../../shape-parts.ts'

export interface DashboardConfig {
  /** The built-in roles and those of the configuration, by name. */
  readonly roles: ReadonlyMap<string, DashboardRole>
  readonly requiresMfa: boolean
}

export const dashboardShape = z.union(
  [
    z.literal(false),
    strictObject({
      roles: z.record(z.string(), z.array(parsedWith(parseScope)).min(1)).default({}),
      requireMfa: z.boolean().optional(),
    }),
  ],
  { error: 'must be false, or { roles, requireMfa }' },
)
export type WrittenDashboard = z.output<typeof dashboardShape>

const roleName = new RegExp(`^[a-z][a-z0-9-]{0,${dashboardRoleCharsMax - 1}}$`)

/** What is wrong with the section beyond its shape: the names of its roles. */
export function checkDashboard(written: unknown): ConfigIssue[] {
  const names = membersOf(Object.fromEntries(membersOf(written)).roles).map(([name]) => name)
  const mistakes = names.flatMap((name): ConfigIssue[] => {
    const message = dashboardRoles.has(name)
      ? 'is a built-in role; choose another name'
      : roleName.test(name)
        ? null
        : `must be a lowercase letter, then lowercase letters, digits and "-", at most ${dashboardRoleCharsMax}`
    return message === null ? [] : [{ path: ['dashboard', 'roles', name], message }]
  })
  if (names.length > dashboardRolesMax)
    mistakes.push({ path: ['dashboard', 'roles'], message: `must have at most ${dashboardRolesMax} roles` })
  return mistakes
}

/** The section with everything that was left out filled in; null where the dashboard is switched off. */
export const createDashboardConfig = (written: WrittenDashboard, mode: string): DashboardConfig | null =>
  written === false
    ? null
    : Object.freeze({
        roles: new Map([
          ...dashboardRoles,
          ...Object.entries(written.roles).map(([name, scopes]) => [name, customRole(scopes)] as const),
        ]),
        requiresMfa: written.requireMfa ?? mode === 'release',
      })
