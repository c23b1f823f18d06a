/** Dashboard roles of users: who may open the dashboard, and as what. */

import { administratorsScope } from '../../../access/dashboard-roles.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { conflict, invalidField, notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { administratorsListedMax, dashboardRoleCharsMax } from '../../../limits/dashboard.ts'
import type { Account } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { isUserId } from './input.ts'

/** A user with a dashboard role, as the dashboard lists them. */
export interface AdministratorView {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly dashboardRole: string | null
  readonly disabled: boolean
  readonly createdAt: string
}

export interface DashboardRoles {
  /** Oldest first, at most `administratorsListedMax`. */
  list(): Promise<readonly AdministratorView[]>
  /**
   * Gives a user a role, or removes it with null; ends the dashboard sessions of the user. Rejects with 400 for an
   * unknown role, 404 for an unknown user, 409 if no owner would remain.
   */
  set(id: string, role: string | null): Promise<{ before: AdministratorView; after: AdministratorView }>
}

export interface DashboardRolesDeps {
  readonly database: Database
  readonly accounts: Accounts
  /** Names of the roles; empty where the dashboard is switched off. */
  readonly roleNames: () => readonly string[]
  /** Called in the transaction that changes the role of a user. */
  readonly onRoleChanged: (tx: Transaction, userId: string) => void
}

const viewOf = (
  account: Pick<Account, 'id' | 'email' | 'displayName' | 'dashboardRole' | 'disabledAtMs' | 'createdAtMs'>,
) => ({
  id: account.id,
  email: account.email,
  displayName: account.displayName,
  dashboardRole: account.dashboardRole,
  disabled: account.disabledAtMs !== null,
  createdAt: formatDatetime(account.createdAtMs),
})

export function createDashboardRoles({
  database,
  accounts,
  roleNames,
  onRoleChanged,
}: DashboardRolesDeps): DashboardRoles {
  return {
    list: async () => (await accounts.listAdministrators(database, administratorsListedMax)).map(viewOf),

    async set(id, role) {
      const names = roleNames()
      if (role !== null && !names.includes(role))
        throw invalidField('role', 'enum', `must be null or one of ${names.join(', ')}`)
      return database.write(async (tx) => {
        const account = isUserId(id) ? await accounts.find(tx, id, 'lock') : null
        if (!account) throw notFound('User')
        if (account.isAnonymous && role !== null) throw conflict('An anonymous user cannot sign in to the dashboard')
        const before = viewOf(account)
        if (account.dashboardRole === role) return { before, after: before }
        onRoleChanged(tx, id)
        return { before, after: viewOf(await accounts.update(tx, account, { dashboardRole: role })) }
      })
    },
  }
}

const view = z.object({
  id: z.string(),
  email: z.string().nullable(),
  displayName: z.string().nullable(),
  dashboardRole: z.string().nullable(),
  disabled: z.boolean(),
  createdAt: z.iso.datetime(),
})
const body = z.strictObject({
  role: z.string().max(dashboardRoleCharsMax).nullable().meta({ description: 'Null removes the role' }),
})
const common = { tag: 'Admin users', credentials: 'service', rateLimit: 'auth' } as const

export const createDashboardRoleEndpoints = (roles: DashboardRoles): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'admin.listAdministrators',
    method: 'GET',
    paths: ['/api/auth/admin/administrators'],
    summary: 'List the users who may open the dashboard',
    scope: () => 'dashboard:admins:*:read',
    replies: { 200: { description: 'Oldest first', schema: z.object({ administrators: z.array(view) }) } },
    handle: async () => json({ administrators: await roles.list() }),
  }),
  endpoint({
    ...common,
    name: 'admin.setDashboardRole',
    method: 'PUT',
    paths: ['/api/auth/admin/users/:id/dashboard-role'],
    summary: 'Set what a user may do in the dashboard',
    description: 'Ends the dashboard sessions of the user. The last owner stays one.',
    scope: () => administratorsScope,
    requiresRecentSignIn: true,
    body,
    replies: { 200: { description: 'The user', schema: view } },
    errors: [404, 409],
    async handle({ params, body: { role }, audit }) {
      const { before, after } = await roles.set(params.id ?? '', role)
      audit?.({ before, after })
      return json(after)
    },
  }),
]
