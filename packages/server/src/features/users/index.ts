/**
 * The users feature: makes its parts in their order, hands out what proves a caller, and lists the chapter's endpoints.
 * The only file that knows every area of it.
 */

import { join } from 'node:path'
import type { Auth, UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Mode } from '../../config/config.ts'
import type { AuthConfig } from '../../config/sections/auth/auth.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import type { Sql, Transaction } from '../../engines/sql/sql.ts'
import type { Endpoint } from '../../http/endpoint.ts'
import type { RateLimiter } from '../../http/rate-limit.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import { oneTimeTokensSweptMax, sessionsSweptMax } from '../../limits/users.ts'
import type { Feature } from '../feature.ts'
import { type Account, createAccounts, type SyncPublicUser } from './accounts/accounts.ts'
import { createAttempts } from './accounts/attempts.ts'
import { createAccountEndpoints } from './accounts/endpoints.ts'
import { createPasswordAccounts } from './accounts/password-accounts.ts'
import { createPasswords } from './accounts/passwords.ts'
import { createUserAdmin } from './admin/admin.ts'
import { createAdminEndpoints } from './admin/endpoints.ts'
import { createImport } from './admin/import.ts'
import { createKeyAdmin, createKeyEndpoints } from './admin/keys.ts'
import { createSetup, createSetupEndpoints, type Setup } from './admin/setup.ts'
import { createEmailAddress } from './email/address.ts'
import { createEmailEndpoints } from './email/endpoints.ts'
import { createMailLinks } from './email/links.ts'
import { openMailer } from './email/mailer.ts'
import { createOneTimeTokens } from './email/one-time-tokens.ts'
import { createEmailOwnership } from './email/ownership.ts'
import { createMfaEndpoints } from './mfa/endpoints.ts'
import { createMfa } from './mfa/mfa.ts'
import { createOAuthEndpoints } from './oauth/endpoints.ts'
import { createOAuthFlows } from './oauth/flow.ts'
import { createIdentities } from './oauth/identities.ts'
import { createIdentitiesEndpoints } from './oauth/identities-endpoints.ts'
import { createOAuthProviders } from './oauth/providers.ts'
import type { UsersParts } from './parts.ts'
import { createPasskeyEndpoints } from './passkeys/endpoints.ts'
import { createPasskeys } from './passkeys/passkeys.ts'
import { type Authentication, createAuthentication } from './sessions/authentication.ts'
import { createCompleteSignIn } from './sessions/complete-sign-in.ts'
import { createSessionEndpoints } from './sessions/endpoints.ts'
import { createRevocation, type Revocation, type RevocationDeps } from './sessions/revocation.ts'
import { createSessions } from './sessions/sessions.ts'
import { openSigningKeys, type StoredSigningKeys } from './sessions/signing-keys.ts'
import { createTokens, sealClaims, verifiedEmail } from './sessions/tokens.ts'
import { prepareUsersTables, usersAddress } from './tables.ts'

export interface UsersDeps {
  readonly sql: Sql
  readonly cluster: Cluster
  readonly limiter: RateLimiter
  readonly syncPublicUser: SyncPublicUser
  readonly config: () => AuthConfig
  readonly mode: Mode
  readonly dataFolder: string
  /** The server's secret; everyone who knows it can sign tokens. */
  readonly secret: string
  readonly publicUrl: () => string | null
  /** Bytes of a JSON response, at most. */
  readonly responseBytes: () => number
  /** What must end in the same transaction as a session, or as all that a user has. */
  readonly onRevoking: RevocationDeps['onRevoking']
  readonly clock: Clock
  readonly log: Log
}

export interface Users extends Feature, Authentication {
  close(): Promise<void>
  /**
   * The user with what is true of them now, to judge what they signed before; null once they are disabled or deleted.
   */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /**
   * Whether the user and the session are still there, both kept as found until the transaction ends: for what is
   * written on their behalf and goes when they do.
   */
  readonly lockActiveUser: (tx: Transaction, user: UserCaller) => Promise<boolean>
  /** See `Revocation`: for whatever stays open longer than a request. */
  readonly onRevoked: Revocation['onRevoked']
  readonly onChanged: Revocation['onChanged']
  /** A token for the link by which the first administrator is made; null once there is one. */
  readonly issueSetupToken: Setup['issue']
  readonly needsSetup: Setup['isNeeded']
}

/** The parts that endpoints are made from, and those that only this file has to do with. */
type Made = UsersParts &
  Authentication & {
    readonly keys: StoredSigningKeys
    readonly setup: Setup
    close(): Promise<void>
  }

async function openParts(deps: UsersDeps): Promise<Made> {
  const { sql, cluster, syncPublicUser, config, mode, secret, clock, log } = deps
  const database = sql.database(usersAddress)
  const { dialect } = database
  await prepareUsersTables(database)
  const keys = await openSigningKeys({ database, bus: cluster, secret, clock })
  const revocation = createRevocation({ bus: cluster, onRevoking: deps.onRevoking, log })
  const tokens = createTokens(keys, clock)
  const accounts = createAccounts({ dialect, syncPublicUser, onAuthChanged: revocation.change, clock })
  const passwords = createPasswords(() => config().passwordCharsMin)
  const attempts = createAttempts({ database, limiter: deps.limiter, secret, clock })
  const sessionsMax = () => config().sessionsPerUserMax
  const { issueDeviceToken } = attempts
  const sessions = createSessions({
    database,
    accounts,
    tokens,
    keys,
    revocation,
    issueDeviceToken,
    sessionsMax,
    clock,
  })
  const oneTimeTokens = createOneTimeTokens({ database, clock, secret })
  const completeSignIn = createCompleteSignIn({ dialect, sessions, oneTimeTokens })
  const outboxFolder = join(deps.dataFolder, 'outbox')
  const mailer = openMailer({ config: () => config().mail, mode, outboxFolder, clock, log })
  return {
    database,
    accounts,
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
    ...createAuthentication({ database, tokens, revocation, clock }),
    keys,
    setup: createSetup({ database, accounts, passwords, oneTimeTokens, completeSignIn, clock }),
    async close() {
      keys.close()
      revocation.close()
      await mailer.close()
    },
  }
}

function listEndpoints(parts: Made, { cluster, responseBytes }: UsersDeps): readonly Endpoint[] {
  const providers = createOAuthProviders(parts)
  const identities = createIdentities(parts)
  const flows = createOAuthFlows({ ...parts, providers, identities })
  const linkTo = createMailLinks(parts)
  const ownership = createEmailOwnership(parts)
  const address = createEmailAddress({ ...parts, linkTo, ownership })
  return [
    ...createAccountEndpoints(createPasswordAccounts({ ...parts, welcome: address.welcome }), parts.config),
    ...createSessionEndpoints(parts),
    ...createEmailEndpoints({ ...parts, linkTo, ownership, address }),
    ...createMfaEndpoints(createMfa({ ...parts, counters: cluster })),
    ...createPasskeyEndpoints(createPasskeys(parts)),
    ...createOAuthEndpoints({ ...parts, flows, providers }),
    ...createIdentitiesEndpoints({ ...parts, identities, flows }),
    ...createSetupEndpoints(parts.setup),
    ...createAdminEndpoints({ admin: createUserAdmin({ ...parts, responseBytes }), importUsers: createImport(parts) }),
    ...createKeyEndpoints(createKeyAdmin(parts)),
  ]
}

/** Public whoever asks: the keys that tokens are checked with, and a page without content of its own. */
const publicEndpoints: ReadonlySet<string> = new Set(['users.jwks', 'users.setupPage'])

/** Answers about users hold tokens, tickets, secrets or personal data, so the default is that no cache stores them. */
const keepSecret = (declared: Endpoint): Endpoint =>
  publicEndpoints.has(declared.name) ? declared : { ...declared, isSecret: true }

/** What rules see of an account, as its next token would say it. */
const authOf = ({ id, email, emailVerifiedAtMs, displayName, role, isAnonymous, customClaims }: Account): Auth =>
  Object.freeze({
    id,
    ...verifiedEmail(email, emailVerifiedAtMs !== null),
    displayName,
    role,
    isAnonymous,
    custom: sealClaims(customClaims),
  })

/** Makes the tables where they are missing. Must be closed. */
export async function openUsers(deps: UsersDeps): Promise<Users> {
  const parts = await openParts(deps)
  const { sessions, oneTimeTokens, keys, clock } = parts

  /** Removes what has expired, in steps of a bounded size, and begins none after the signal. */
  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await sessions.sweep(sessionsSweptMax)) === sessionsSweptMax);
    while (!signal.aborted && (await oneTimeTokens.sweep(clock.now())) === oneTimeTokensSweptMax);
  }

  return {
    name: 'users',
    authenticate: parts.authenticate,
    refreshClaims: parts.refreshClaims,
    async reloadUser(user) {
      const account = await parts.accounts.find(parts.database, user.auth.id)
      if (account && account.disabledAtMs !== null) return null
      // Without a session the token was made by whoever has the secret: its user need not exist, and is as it says.
      if (user.sessionId === null) return user
      return account && Object.freeze({ ...user, auth: authOf(account) })
    },
    async lockActiveUser(tx, { auth, sessionId }) {
      const account = await parts.accounts.find(tx, auth.id, 'lock')
      if (!account || account.disabledAtMs !== null) return !account && sessionId === null
      return sessionId === null || parts.sessions.lock(tx, auth.id, sessionId)
    },
    onRevoked: parts.revocation.onRevoked,
    onChanged: parts.revocation.onChanged,
    endpoints: listEndpoints(parts, deps).map(keepSecret),
    issueSetupToken: parts.setup.issue,
    needsSetup: parts.setup.isNeeded,
    jobs: [
      // Other nodes may have created keys.
      { name: 'users.reloadKeys', intervalMs: housekeepingIntervalMs, perNode: true, run: () => keys.reload() },
      { name: 'users.sweep', intervalMs: housekeepingIntervalMs, run: sweep },
    ],
    /** Sends what is queued and closes every connection. */
    close: parts.close,
  }
}
