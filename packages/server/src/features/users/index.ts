/** The users feature: creates its services in order of dependency and lists the endpoints of all its areas. */
import { randomUUID } from 'node:crypto'
import { type Auth, type UserCaller, userCallerOf } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { HashCost } from '../../base/crypto/argon2.ts'
import type { Log } from '../../base/log.ts'
import type { JsonObject } from '../../base/text/json.ts'
import type { AuthConfig } from '../../config/sections/auth/auth.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import type { Mails } from '../../engines/mail/mail.ts'
import type { Sql, Transaction } from '../../engines/sql/sql.ts'
import { conflict, notFound } from '../../errors.ts'
import type { Call, Endpoint } from '../../http/endpoint.ts'
import type { RateLimiter } from '../../http/security/rate-limit.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import { oneTimeTokensSweptMax, sessionsSweptMax } from '../../limits/users.ts'
import type { AuthHooks, UserEventRow } from '../auth-hooks.ts'
import type { Feature } from '../feature.ts'
import { type Account, emptyAccount } from './accounts/account.ts'
import { type AccountName, findAccountNames } from './accounts/account-names.ts'
import { createAccounts, type SyncPublicUser } from './accounts/accounts.ts'
import { adminView } from './accounts/admin-view.ts'
import { createAttempts } from './accounts/attempts.ts'
import { createAccountEndpoints } from './accounts/endpoints.ts'
import { createLastOwner } from './accounts/last-owner.ts'
import { createPasswordAccounts } from './accounts/password-accounts.ts'
import { createPasswords } from './accounts/passwords.ts'
import { createUserAdmin } from './admin/admin.ts'
import { createCredentialsEndpoints } from './admin/credentials.ts'
import { createDashboardRoleEndpoints, createDashboardRoles } from './admin/dashboard-roles.ts'
import { createAdminEndpoints, userSchema } from './admin/endpoints.ts'
import { createImport } from './admin/import.ts'
import { isUserId } from './admin/input.ts'
import { createInvitationEndpoints } from './admin/invitations.ts'
import { createKeyAdmin, createKeyEndpoints } from './admin/keys.ts'
import { createSetup, createSetupEndpoints, type Setup } from './admin/setup.ts'
import { createEmailEndpoints } from './email/endpoints.ts'
import { createMailLinks } from './email/links.ts'
import { openMailer } from './email/mailer.ts'
import { createOneTimeTokens } from './email/one-time-tokens.ts'
import { createEmailOwnership } from './email/ownership.ts'
import { createMailSamples, type MailSamples } from './email/samples.ts'
import { createEmailVerification } from './email/verification.ts'
import { createAccountHooks } from './hooks/account-hooks.ts'
import { hookedRequest } from './hooks/hooked-request.ts'
import { createMfaEndpoints } from './mfa/endpoints.ts'
import { createMfa } from './mfa/mfa.ts'
import { prepareUsersTables, usersAddress } from './migrations.ts'
import { createOAuthEndpoints } from './oauth/endpoints.ts'
import { createOAuthFlows } from './oauth/flow.ts'
import { createIdentities } from './oauth/identities.ts'
import { createIdentitiesEndpoints } from './oauth/identities-endpoints.ts'
import { createOAuthProviders } from './oauth/providers.ts'
import type { UsersParts } from './parts.ts'
import { findRelyingParty } from './passkeys/ceremony.ts'
import { createPasskeyEndpoints } from './passkeys/endpoints.ts'
import { createPasskeys } from './passkeys/passkeys.ts'
import { type Authentication, createAuthentication } from './sessions/authentication.ts'
import { apiTarget, createCompleteSignIn, type SignInTarget } from './sessions/complete-sign-in.ts'
import { createSessionEndpoints } from './sessions/endpoints.ts'
import { openRevocation, type Revocation, type RevocationDeps } from './sessions/revocation.ts'
import { createSessions } from './sessions/sessions.ts'
import { createSignInMethods, type SignInMethods } from './sessions/sign-in-methods.ts'
import { openSigningKeys, type StoredSigningKeys } from './sessions/signing-keys.ts'
import { createTokens, sealClaims, verifiedEmail } from './sessions/tokens.ts'

export interface UsersDeps {
  readonly sql: Sql
  readonly cluster: Cluster
  readonly limiter: RateLimiter
  readonly syncPublicUser: SyncPublicUser
  /** Appends an event of a user to the log that functions follow. */
  readonly appendUserEvent: (tx: Transaction, event: UserEventRow) => Promise<void>
  /** The functions of the application that accounts call. */
  readonly hooks: () => AuthHooks
  readonly config: () => AuthConfig
  readonly mails: Mails
  /** The server's secret; tokens are signed with keys derived from it. */
  readonly secret: string
  readonly passwordCost: HashCost
  readonly publicUrl: () => string | null
  /** Maximum size of a JSON response in bytes. */
  readonly responseBytes: () => number
  /** Called in the transaction that ends a session or all sessions of a user. */
  readonly onRevoking: RevocationDeps['onRevoking']
  /** Whether there is a dashboard, whose page sets up the first administrator. */
  readonly hasDashboard: () => boolean
  /** Names of the dashboard roles that users may have. */
  readonly dashboardRoles: () => readonly string[]
  /** Called in the transaction that changes the dashboard role of a user. */
  readonly onDashboardRoleChanged: (tx: Transaction, userId: string) => void
  /** See `AppOptions`. */
  readonly mayEndLastOwner: boolean
  readonly clock: Clock
  readonly log: Log
}

export interface Users extends Feature, Authentication {
  close(): Promise<void>
  /**
   * The user with current role, claims and email, to authorize something signed earlier; null if the user was disabled
   * or deleted.
   */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /**
   * The user as an access token issued now would make it, without a session; `disabled` for one whose tokens are
   * refused, null for an unknown one. `computedClaims` are in place of those that the last token got from the
   * application.
   */
  readonly findCaller: (userId: string, computedClaims?: JsonObject | null) => Promise<UserCaller | 'disabled' | null>
  /**
   * The claims that the application computes for a token issued to a user now, which are not kept; null if it computes
   * none. Rejects with 404 for an unknown user, 409 for a disabled one, and as the function of the application does.
   */
  readonly computeClaims: (
    userId: string,
    call: Pick<Call, 'address' | 'requestId' | 'signal'>,
  ) => Promise<JsonObject | null>
  /**
   * Whether the user and the session are still active, with both rows locked until the transaction ends. For rows that
   * are deleted together with the session or the user.
   */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  /** See `Revocation`; for connections that outlive a request. */
  readonly onRevoked: Revocation['onRevoked']
  readonly onChanged: Revocation['onChanged']
  /** The ways to sign in to something other than the API. */
  readonly signInTo: <Result>(target: SignInTarget<Result>) => SignInMethods<Result>
  /** The account, unless it is disabled or was deleted. */
  readonly findActive: (id: string) => Promise<Account | null>
  /** The email and display name of each of these users that exists. */
  readonly namesOf: (ids: readonly string[]) => Promise<readonly AccountName[]>
  /**
   * The custom claims of a token that is issued to a user now; a user without an account has these fields. For tests,
   * which sign tokens themselves.
   */
  readonly claimsForToken: (user: Pick<Account, 'id' | 'role' | 'customClaims'>) => Promise<JsonObject>
  /** A token for the set-up link of the first administrator; null if there is an administrator. */
  readonly issueSetupToken: Setup['issue']
  /** Mails with sample values. */
  readonly mailSamples: MailSamples
  readonly needsSetup: Setup['isNeeded']
}

/** The shared services, and those that only this file uses. */
type OpenedParts = UsersParts &
  Authentication & {
    readonly keys: StoredSigningKeys
    readonly setup: Setup
    close(): Promise<void>
  }

async function openParts(deps: UsersDeps): Promise<OpenedParts> {
  const { sql, cluster, syncPublicUser, config, secret, clock, log } = deps
  const database = sql.database(usersAddress)
  const { dialect } = database
  await prepareUsersTables(database)
  const keys = await openSigningKeys({ database, bus: cluster, secret, clock })
  const revocation = openRevocation({ bus: cluster, onRevoking: deps.onRevoking, log })
  const tokens = createTokens(keys, clock)
  const hooks = createAccountHooks({ hooks: deps.hooks, database })
  const lastOwner = createLastOwner({
    dialect,
    hasPasskeys: () => findRelyingParty(config()) !== null,
    mayEnd: deps.mayEndLastOwner,
  })
  const accounts = createAccounts({
    dialect,
    syncPublicUser,
    recordEvent: async (tx, event, account) => {
      if (deps.hooks().waitsFor(event)) await deps.appendUserEvent(tx, { event, user: adminView(account) })
    },
    onAuthChanged: revocation.change,
    hooks,
    lastOwner,
    clock,
  })
  const passwords = createPasswords(() => config().passwordCharsMin, deps.passwordCost)
  const attempts = createAttempts({ database, limiter: deps.limiter, secret, clock })
  const sessionsMax = () => config().sessionsPerUserMax
  const { issueDeviceToken } = attempts
  const sessions = createSessions({
    database,
    accounts,
    hooks,
    tokens,
    keys,
    revocation,
    issueDeviceToken,
    sessionsMax,
    clock,
  })
  const oneTimeTokens = createOneTimeTokens({ database, clock, secret })
  const completeSignIn = createCompleteSignIn({ dialect, oneTimeTokens, target: apiTarget(sessions) })
  const mailer = openMailer({ config: () => config().mail, mails: deps.mails, log })
  return {
    database,
    accounts,
    lastOwner,
    hooks,
    passwords,
    completeSignIn,
    sessions,
    oneTimeTokens,
    mailer,
    revocation,
    attempts,
    clock,
    log,
    secret,
    config,
    publicUrl: deps.publicUrl,
    ...createAuthentication({ database, tokens, revocation, hooks, clock }),
    keys,
    setup: createSetup({ database, accounts, hooks, passwords, oneTimeTokens, completeSignIn, clock }),
    async close() {
      keys.close()
      revocation.close()
      await mailer.close()
    },
  }
}

function listEndpoints(
  parts: OpenedParts,
  { cluster, responseBytes, hasDashboard, dashboardRoles, onDashboardRoleChanged }: UsersDeps,
): readonly Endpoint[] {
  const providers = createOAuthProviders(parts)
  const identities = createIdentities(parts)
  const flows = createOAuthFlows({ ...parts, providers, identities })
  const linkTo = createMailLinks(parts)
  const ownership = createEmailOwnership(parts)
  const verification = createEmailVerification({ ...parts, linkTo, ownership })
  return [
    ...createAccountEndpoints(createPasswordAccounts({ ...parts, welcome: verification.welcome }), parts.config),
    ...createSessionEndpoints(parts),
    ...createEmailEndpoints({ ...parts, linkTo, ownership, verification }),
    ...createMfaEndpoints(createMfa({ ...parts, target: 'api', counters: cluster })),
    ...createPasskeyEndpoints(createPasskeys({ ...parts, target: 'api' })),
    ...createOAuthEndpoints({ ...parts, flows, providers }),
    ...createIdentitiesEndpoints({ ...parts, identities, flows }),
    ...createSetupEndpoints(parts.setup, hasDashboard),
    ...createAdminEndpoints({ admin: createUserAdmin({ ...parts, responseBytes }), importUsers: createImport(parts) }),
    ...createDashboardRoleEndpoints(
      createDashboardRoles({ ...parts, roleNames: dashboardRoles, onRoleChanged: onDashboardRoleChanged }),
    ),
    ...createCredentialsEndpoints(parts),
    ...createInvitationEndpoints({ ...parts, linkTo, userSchema }),
    ...createKeyEndpoints(createKeyAdmin(parts)),
  ]
}

/** Responses that caches may store: the public keys, and a static page. */
const publicEndpoints: ReadonlySet<string> = new Set(['users.jwks', 'users.setupPage'])

/** Responses of this feature contain tokens, tickets, secrets or personal data; by default no cache stores them. */
const withoutCaching = (declared: Endpoint): Endpoint =>
  publicEndpoints.has(declared.name) ? declared : { ...declared, isSecret: true }

/** An account as access rules see it: with `custom`, the content of its next access token. */
const authOf = (account: Account, custom: JsonObject): Auth =>
  Object.freeze({
    id: account.id,
    ...verifiedEmail(account.email, account.emailVerifiedAtMs !== null),
    displayName: account.displayName,
    role: account.role,
    isAnonymous: account.isAnonymous,
    custom: sealClaims(custom),
  })

function claimsForToken(
  { accounts, hooks, clock }: OpenedParts,
  user: Pick<Account, 'id' | 'role' | 'customClaims'>,
): Promise<JsonObject> {
  const caller = { kind: 'anonymous', auth: null, address: '' } as const
  const { signal } = new AbortController()
  const request = hookedRequest({ caller, requestId: randomUUID(), signal })
  const atMs = clock.now()
  return hooks.write(async (tx) => {
    const account = await accounts.find(tx, user.id, 'lock')
    const unknown: Account = { ...emptyAccount, createdAtMs: atMs, updatedAtMs: atMs, ...user }
    return accounts.claimsForToken(tx, account ?? unknown, request)
  })
}

/** Creates the tables if they are missing. Must be closed. */
export async function openUsers(deps: UsersDeps): Promise<Users> {
  const parts = await openParts(deps)
  const { accounts, hooks, sessions, oneTimeTokens, keys, clock } = parts

  /** Deletes expired rows in bounded batches; starts no batch after the signal. */
  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await sessions.sweep(sessionsSweptMax)) === sessionsSweptMax);
    while (!signal.aborted && (await oneTimeTokens.sweep(clock.now())) === oneTimeTokensSweptMax);
  }

  return {
    name: 'users',
    authenticate: parts.authenticate,
    authenticateHeader: parts.authenticateHeader,
    refreshClaims: parts.refreshClaims,
    async reloadUser(user) {
      const account = await accounts.find(parts.database, user.auth.id)
      if (account && account.disabledAtMs !== null) return null
      // A token without a session was signed with the server secret: its user need not exist.
      if (user.sessionId === null) return user
      return account && Object.freeze({ ...user, auth: authOf(account, hooks.customOf(account)) })
    },
    async findCaller(userId, computedClaims) {
      const account = await accounts.find(parts.database, userId)
      if (!account) return null
      if (account.disabledAtMs !== null) return 'disabled'
      const { customClaims, hookClaims } = account
      const claims = { customClaims, hookClaims: computedClaims === undefined ? hookClaims : computedClaims }
      return userCallerOf(authOf(account, hooks.customOf(claims)))
    },
    computeClaims(userId, { address, requestId, signal }) {
      // As at a sign-in.
      const caller = { kind: 'anonymous', auth: null, address } as const
      const request = hookedRequest({ caller, requestId, signal })
      return hooks.write(async (tx) => {
        const account = isUserId(userId) ? await accounts.find(tx, userId) : null
        if (!account) throw notFound('User')
        if (account.disabledAtMs !== null) throw conflict('The user is disabled and sees nothing')
        return hooks.claimsOf(account, request)
      })
    },
    async lockActiveUser(tx, { auth, sessionId }) {
      const account = await accounts.find(tx, auth.id, 'lock')
      if (!account || account.disabledAtMs !== null) return !account && sessionId === null
      return sessionId === null || sessions.lock(tx, auth.id, sessionId)
    },
    onRevoked: parts.revocation.onRevoked,
    onChanged: parts.revocation.onChanged,
    endpoints: listEndpoints(parts, deps).map(withoutCaching),
    signInTo: (target) => createSignInMethods(parts, deps.cluster, target),
    async findActive(id) {
      const account = await accounts.find(parts.database, id)
      return account?.disabledAtMs === null ? account : null
    },
    namesOf: (ids) => findAccountNames(parts.database, ids),
    claimsForToken: (user) => claimsForToken(parts, user),
    issueSetupToken: parts.setup.issue,
    mailSamples: createMailSamples({ ...parts, linkTo: createMailLinks(parts) }),
    needsSetup: parts.setup.isNeeded,
    jobs: [
      // Other nodes may have created keys.
      { name: 'users.reloadKeys', intervalMs: housekeepingIntervalMs, perNode: true, run: () => keys.reload() },
      { name: 'users.sweep', intervalMs: housekeepingIntervalMs, run: sweep },
    ],
    finishDue: parts.mailer.idle,
    /** Sends queued mails and closes every connection. */
    close: parts.close,
  }
}
