/**
 * Self-service accounts: sign-up with email and password or anonymously, sign-in by password, change of the password,
 * and the profile.
 */
import { callerKey, type UserCaller, userKey } from '../../../access/caller.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { accessDenied, conflict, invalidCredentials, invalidToken, notFound } from '../../../errors.ts'
import type { LinkTarget } from '../email/links.ts'
import { mapUniqueToConflict, normalizeEmail } from '../email/normalize.ts'
import type { EmailVerification } from '../email/verification.ts'
import type { UsersParts } from '../parts.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import type { Account, NewAccount } from './account.ts'
import type { ClientInfo } from './client-info.ts'
import { createPasswordSignIn, type PasswordSignIn } from './password-sign-in.ts'

export interface SignUp {
  readonly email: string
  readonly password: string
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly locale: string | null
  /** Target of the link that verifies the address, if one is mailed. */
  readonly target: LinkTarget
}

export type ProfileChanges = Partial<
  Pick<Account, 'displayName' | 'avatarUrl' | 'emailVisibility' | 'locale' | 'metadata'>
>

export interface PasswordAccounts {
  /**
   * Creates an account, or upgrades the caller's anonymous one, which keeps its id, its data and its session. Rejects
   * with 400, 403 if sign-up is off, 409 for a taken address, 401 if the anonymous session has ended, and as the hook
   * of sign-ups does, which runs for a taken address too.
   */
  signUp(input: SignUp, client: ClientInfo, anonymous: UserCaller | null): Promise<SignedIn>
  signUpAnonymously(client: ClientInfo): Promise<SignedIn>
  readonly signIn: PasswordSignIn<SignedIn>
  /**
   * Ends every session and opens a new one for the caller. Rejects with 401 if the current password is wrong or the
   * caller's session has ended.
   */
  changePassword(caller: UserCaller, current: string, next: string, client: ClientInfo): Promise<SignedIn>
  /** Rejects with 404 for a token whose user does not exist. */
  get(id: string): Promise<Account>
  changeProfile(id: string, changes: ProfileChanges): Promise<Account>
}

type Deps = Pick<
  UsersParts,
  | 'database'
  | 'accounts'
  | 'hooks'
  | 'passwords'
  | 'completeSignIn'
  | 'sessions'
  | 'oneTimeTokens'
  | 'attempts'
  | 'config'
> & {
  /** Called for each sign-up with an email. */
  readonly welcome: EmailVerification['welcome']
}

export function createPasswordAccounts(deps: Deps): PasswordAccounts {
  const { database, accounts, hooks, passwords, sessions, oneTimeTokens, attempts, config } = deps

  /** The caller's anonymous account, locked, to be upgraded. */
  async function getAnonymous(tx: Transaction, { auth: { id }, sessionId }: UserCaller): Promise<Account> {
    const account = await accounts.find(tx, id, 'lock')
    if (!account) throw notFound('User')
    // The user may have been disabled, or the session revoked, while the password was being hashed.
    const isActive = account.disabledAtMs === null && (sessionId === null || (await sessions.lock(tx, id, sessionId)))
    if (!isActive) throw invalidToken()
    // The token predates the upgrade of the account. Creating a second account would not be what the client meant.
    if (!account.isAnonymous) throw conflict('The account is no longer anonymous; sign in to it')
    return account
  }

  async function get(id: string): Promise<Account> {
    const account = await accounts.find(database, id)
    if (!account) throw notFound('User')
    return account
  }

  return {
    signIn: createPasswordSignIn(deps),

    async signUp({ email, password, displayName, avatarUrl, locale, target }, client, anonymous) {
      if (!config().signup) throw accessDenied()
      const address = normalizeEmail(email)
      passwords.check(password)
      const passwordHash = await passwords.hash(password, callerKey(client.request.caller))
      const origin = { provider: 'password', request: client.request }
      const { account, signedIn } = await mapUniqueToConflict(() =>
        hooks.write(async (tx) => {
          const before = anonymous && (await getAnonymous(tx, anonymous))
          const given: NewAccount = {
            email: address,
            passwordHash,
            displayName: displayName ?? before?.displayName ?? null,
            avatarUrl: avatarUrl ?? before?.avatarUrl ?? null,
            locale: locale ?? before?.locale ?? null,
            isAnonymous: false,
          }
          const account = before
            ? await accounts.update(tx, before, given, origin)
            : await accounts.insert(tx, given, origin)
          return { account, signedIn: await sessions.open(tx, account, client) }
        }),
      )
      await deps.welcome(account, client, target)
      return signedIn
    },

    async signUpAnonymously(client) {
      if (!config().anonymous) throw accessDenied()
      const origin = { provider: 'anonymous', request: client.request }
      return hooks.write(async (tx) =>
        sessions.open(tx, await accounts.insert(tx, { isAnonymous: true }, origin), client),
      )
    },

    async changePassword(caller, current, next, client) {
      const { auth, sessionId } = caller
      const { id } = auth
      passwords.check(next, 'newPassword')
      const { passwordHash: known } = await get(id)
      await attempts.countPassword(caller)
      const wrong = invalidCredentials('The current password is wrong')
      if (!(await passwords.verify(current, known, userKey(id)))) throw wrong
      const passwordHash = await passwords.hash(next, userKey(id))
      return hooks.write(async (tx) => {
        const account = await accounts.find(tx, id, 'lock')
        if (!account || account.passwordHash !== known || account.disabledAtMs !== null) throw wrong
        const changed = await accounts.update(tx, account, { passwordHash })
        // Links that were mailed before would undo the change.
        await oneTimeTokens.removeAll(tx, id)
        const signedIn = await sessions.replaceAll(tx, changed, sessionId, client)
        // The session may have been revoked while the passwords were being hashed.
        if (!signedIn) throw invalidToken()
        return signedIn
      })
    },

    get,

    changeProfile: (id, changes) =>
      database.write(async (tx) => {
        const account = await accounts.find(tx, id, 'lock')
        if (!account) throw notFound('User')
        return accounts.update(tx, account, changes)
      }),
  }
}
