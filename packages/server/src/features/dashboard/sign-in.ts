/**
 * Signing in to the dashboard: the users feature proves the identity, and this file decides who may enter and opens the
 * session. `sessions` stores sessions.
 */
import type { ServiceCaller, ViewedUser } from '../../access/caller.ts'
import { administratorPrefix } from '../../access/caller.ts'
import type { DashboardRole } from '../../access/dashboard-roles.ts'
import { permitsScope } from '../../access/service-keys.ts'
import type { DashboardConfig } from '../../config/sections/dashboard/dashboard.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { noDashboardRole } from '../../errors.ts'
import type { AdministratorSession } from '../../http/security/dashboard-access.ts'
import type { DashboardSession, DashboardSessions, OpenedSession } from './sessions.ts'

/** The account of an administrator, as far as the dashboard needs it. */
export interface AdministratorAccount {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly dashboardRole: string | null
}

/** A session that was opened, with its administrator. */
export interface SignedInAdministrator {
  readonly session: OpenedSession
  readonly account: AdministratorAccount
}

interface SignInClient {
  readonly address: string
  readonly userAgent: string | null
}

/** What the users feature completes a sign-in with. */
export interface DashboardTarget {
  readonly name: 'dashboard'
  readonly admit: (account: AdministratorAccount) => void
  readonly requiresFactor: () => boolean
  readonly open: (
    tx: Transaction,
    account: AdministratorAccount,
    client: SignInClient,
  ) => Promise<SignedInAdministrator>
}

export interface SignInDeps {
  readonly config: () => DashboardConfig | null
  readonly sessions: DashboardSessions
  /** The account, unless it is disabled or was deleted. */
  readonly findActive: (userId: string) => Promise<AdministratorAccount | null>
  /** The user whom a session views as; null for none. */
  readonly findViewed: (sessionId: string) => Promise<ViewedUser | null>
}

/** The role of an account; null for none, and for one that the configuration no longer has. */
export const findRole = (
  config: DashboardConfig | null,
  { dashboardRole }: AdministratorAccount,
): DashboardRole | null => (dashboardRole === null ? null : (config?.roles.get(dashboardRole) ?? null))

/**
 * Whether what an administrator has signed, such as the URL of a file, is still permitted: by the current role, without
 * a session. `keyName` is that of the administrator as a caller; false for the name of a key.
 */
export async function administratorPermits(
  { config, findActive }: Pick<SignInDeps, 'config' | 'findActive'>,
  keyName: string,
  scope: string,
): Promise<boolean> {
  if (!keyName.startsWith(administratorPrefix)) return false
  const account = await findActive(keyName.slice(administratorPrefix.length))
  const role = account && findRole(config(), account)
  return role !== null && permitsScope(role.scopes, scope)
}

export const createTarget = ({ config, sessions }: Pick<SignInDeps, 'config' | 'sessions'>): DashboardTarget => ({
  name: 'dashboard',
  admit(account) {
    if (!findRole(config(), account)) throw noDashboardRole()
  },
  requiresFactor: () => config()?.requiresMfa ?? true,
  open: async (tx, account, client) => ({ account, session: await sessions.open(tx, account.id, client) }),
})

/** The caller that an administrator is to the other features: a service key with the scopes of the role. */
const callerOf = (
  account: AdministratorAccount,
  role: DashboardRole,
  session: Pick<DashboardSession, 'id' | 'createdAtMs'>,
  viewedAs: ViewedUser | null = null,
): ServiceCaller =>
  Object.freeze({
    kind: 'service',
    auth: null,
    keyName: `${administratorPrefix}${account.id}`,
    scopes: role.scopes,
    admin: Object.freeze({
      userId: account.id,
      email: account.email,
      role: account.dashboardRole ?? '',
      sessionId: session.id,
      signedInAtMs: session.createdAtMs,
      ...(viewedAs && { viewedAs }),
    }),
  })

/**
 * The caller that an administrator is for work that goes on after the request, with the current role; null for one who
 * is disabled or may no longer write. The session may have ended.
 */
export const createFindAdministrator =
  ({ config, findActive }: Pick<SignInDeps, 'config' | 'findActive'>) =>
  async (given: {
    readonly userId: string
    readonly sessionId: string
    readonly signedInAtMs: number
  }): Promise<ServiceCaller | null> => {
    const account = await findActive(given.userId)
    const role = account && findRole(config(), account)
    const { sessionId: id, signedInAtMs: createdAtMs } = given
    return role && !role.isReadOnly ? callerOf(account, role, { id, createdAtMs }) : null
  }

/**
 * The session of a cookie with the current role of its user. Reads both for each request: an end applies at once.
 * `use`: whether it is a use of the session.
 */
export const createFindSession =
  ({ config, sessions, findActive, findViewed }: SignInDeps, use: 'find' | 'check') =>
  async (token: string): Promise<AdministratorSession | null> => {
    const session = await sessions[use](token)
    if (!session) return null
    const [account, viewedAs] = await Promise.all([findActive(session.userId), findViewed(session.id)])
    const role = account && findRole(config(), account)
    return (
      role && {
        caller: callerOf(account, role, session, viewedAs),
        isReadOnly: role.isReadOnly || viewedAs !== null,
      }
    )
  }
