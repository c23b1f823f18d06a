/**
 * Identities: the mapping from a person at a provider to an account. Owns the table, and is the only place that turns
 * a provider profile into an account; `flow` verifies the profile.
 *
 * Prevents account takeover through providers that let users claim any address, and pre-hijacking: an email counts
 * only if the provider verified it, and matches only an account that has verified it too. The first verification of an
 * address by mail removes all identities linked before (`email/ownership`).
 */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied, conflict, notFound } from '../../../errors.ts'
import { identitiesPerUserMax } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import { lockCallerAccount } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import { hasSignInMethod } from '../accounts/sign-in-methods.ts'
import type { SignUpOrigin } from '../hooks/account-hooks.ts'
import type { HookedRequest } from '../hooks/hooked-request.ts'
import { msOf, usersTable } from '../migrations.ts'
import type { UsersParts } from '../parts.ts'
import type { MfaRequired } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import type { OAuthProfile } from './profile.ts'

export interface Identity {
  readonly id: string
  readonly userId: string
  /** Name of the provider in the configuration. */
  readonly provider: string
  /** The address that the provider sent when the identity was linked. */
  readonly email: string | null
  readonly createdAtMs: number
}

/** Why a sign-in through a provider was rejected. Nothing was changed. */
export type SignInError = 'account-exists' | 'account-disabled' | 'signup-disabled'

export interface Identities {
  /** Oldest first. */
  list(userId: string): Promise<Identity[]>
  /** Signs in the owner of the identity, creating an account if needed. */
  signIn(provider: string, profile: OAuthProfile, client: ClientInfo): Promise<SignedIn | MfaRequired | SignInError>
  /**
   * Links the identity to the account; upgrades an anonymous account, which keeps its id. Linking a linked identity
   * again changes nothing. Rejects with 409 if it belongs to another account or may not be linked, 403 if an anonymous
   * user may not sign up, and as the hook of sign-ups does. To be called in `hooks.write`.
   */
  link(tx: Transaction, input: Link): Promise<[Identity, Account]>
  /**
   * * Rejects with 403 if a recent sign-in is required (`recent-sign-in`), 404 if the user has no such identity, 409 if
   * it is the last sign-in method.
   */
  remove(caller: SessionCaller, id: string): Promise<void>
}

interface Link {
  readonly userId: string
  readonly provider: string
  readonly profile: OAuthProfile
  readonly request: HookedRequest
}

interface Row {
  readonly id: string
  readonly user_id: string
  readonly provider: string
  readonly email: string | null
  readonly created_at: unknown
}

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'hooks' | 'completeSignIn' | 'clock' | 'config'>

export function createIdentities(deps: Deps): Identities {
  const { database, accounts, hooks, completeSignIn, clock, config } = deps
  const rows = createIdentityRows(database, clock)

  /** The account of the identity, locked. Reads the row again under the lock, since it may have been deleted. */
  async function findOwner(tx: Transaction, provider: string, subject: string): Promise<Account | null> {
    const identity = await rows.findBySubject(tx, provider, subject)
    const owner = identity && (await accounts.find(tx, identity.userId, 'lock'))
    return owner && (await rows.findBySubject(tx, provider, subject)) ? owner : null
  }

  /** The account of the identity, created or linked if needed. */
  async function findOrCreate(
    tx: Transaction,
    profile: OAuthProfile,
    origin: SignUpOrigin & { readonly provider: string },
  ): Promise<Account | SignInError> {
    const { provider } = origin
    const { subject, email, isEmailVerified, displayName, avatarUrl } = profile
    const owner = await findOwner(tx, provider, subject)
    if (owner) return owner.disabledAtMs === null ? owner : 'account-disabled'

    const sameEmail = email === null ? null : await accounts.findByEmail(tx, email, 'lock')
    if (sameEmail) {
      const areBothVerified = isEmailVerified && sameEmail.emailVerifiedAtMs !== null
      if (!areBothVerified || (await rows.count(tx, sameEmail.id)) >= identitiesPerUserMax) return 'account-exists'
      if (sameEmail.disabledAtMs !== null) return 'account-disabled'
      await rows.insert(tx, sameEmail.id, provider, profile)
      return sameEmail
    }
    if (!config().signup) return 'signup-disabled'
    // An unverified address is not stored.
    const address = isEmailVerified ? { email, emailVerifiedAtMs: clock.now() } : {}
    const account = await accounts.insert(tx, { ...address, displayName, avatarUrl }, origin)
    await rows.insert(tx, account.id, provider, profile)
    return account
  }

  /** The fields that an account takes over from a newly linked identity. Rejects with 409 if it may not be linked. */
  async function adopt(tx: Transaction, account: Account, profile: OAuthProfile): Promise<Partial<Account>> {
    const { email, isEmailVerified, displayName, avatarUrl } = profile
    const changes: Partial<Account> = {
      displayName: account.displayName ?? displayName,
      avatarUrl: account.avatarUrl ?? avatarUrl,
      isAnonymous: false,
    }
    const verified = { email, emailVerifiedAtMs: clock.now() }
    if (!isEmailVerified || email === null) return changes
    if (account.email === email) return account.emailVerifiedAtMs === null ? { ...changes, ...verified } : changes
    if (account.email !== null) return changes
    if (!(await accounts.findByEmail(tx, email))) return { ...changes, ...verified }
    if (account.isAnonymous)
      throw conflict('An account with this email exists; sign in to it and link the provider there')
    return changes
  }

  return {
    list: (userId) => rows.list(database, userId),

    signIn: (provider, profile, client) =>
      retryOnUniqueConflict(() =>
        hooks.write(async (tx) => {
          const account = await findOrCreate(tx, profile, { provider, request: client.request })
          return typeof account === 'string' ? account : completeSignIn(tx, account, client)
        }),
      ),

    async link(tx, { userId, provider, profile, request }) {
      const account = await lockCallerAccount(accounts, tx, userId)
      const known = await rows.findBySubject(tx, provider, profile.subject)
      if (known?.userId === userId) return [known, account]
      if (known) throw conflict('This identity belongs to another account')
      // Upgrading an anonymous account is a sign-up.
      if (account.isAnonymous && !config().signup) throw accessDenied()
      if ((await rows.count(tx, userId)) >= identitiesPerUserMax)
        throw conflict(`An account has at most ${identitiesPerUserMax} identities`)
      const changed = await accounts.update(tx, account, await adopt(tx, account, profile), { provider, request })
      return [await rows.insert(tx, userId, provider, profile), changed]
    },

    remove: (caller, id) =>
      database.write(async (tx) => {
        const userId = caller.auth.id
        const account = await accounts.find(tx, userId, 'lock')
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        if (!account || (await rows.remove(tx, userId, id)) === 0) throw notFound('Identity')
        // Thrown within the transaction, which rolls the deletion back.
        if (!(await hasSignInMethod(tx, database.dialect, account)))
          throw conflict('This is the last sign-in method of the account; add another one first')
      }),
  }
}

/** Attempts at a write that conflicts with a concurrent one on the same email or identity. */
const attemptsMax = 3

/**
 * Repeats a write after a unique conflict: of two concurrent first sign-ins the second finds the account of the first.
 */
export async function retryOnUniqueConflict<T>(write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (attempt === attemptsMax || !(error instanceof EngineError) || error.kind !== 'unique') throw error
    }
  }
}

/** Access to the rows of the table. */
function createIdentityRows(database: Database, clock: Clock) {
  const { dialect } = database
  const table = usersTable(dialect, 'identities')
  const newId = createUuid7(clock)

  const select = async (on: Reader, condition: SqlText): Promise<Identity[]> => {
    const found = await on.all<Row>(
      sql`SELECT id, user_id, provider, email, created_at FROM ${table} WHERE ${condition} ORDER BY created_at, id`,
    )
    return found.map((row) => ({
      id: row.id,
      userId: row.user_id,
      provider: row.provider,
      email: row.email,
      createdAtMs: msOf(row.created_at),
    }))
  }

  return {
    list: (on: Reader, userId: string) => select(on, sql`user_id = ${userId}`),
    async findBySubject(on: Reader, provider: string, subject: string): Promise<Identity | null> {
      const [identity] = await select(on, sql`provider = ${provider} AND subject = ${subject}`)
      return identity ?? null
    },
    async count(on: Reader, userId: string): Promise<number> {
      const [row] = await on.all(sql`SELECT count(*) AS n FROM ${table} WHERE user_id = ${userId}`)
      return Number(row?.n)
    },
    /** Throws `EngineError` `unique` if the identity is linked already. */
    async insert(tx: Transaction, userId: string, provider: string, profile: OAuthProfile): Promise<Identity> {
      const identity: Identity = { id: newId(), userId, provider, email: profile.email, createdAtMs: clock.now() }
      await tx.run(sql`INSERT INTO ${table} (id, user_id, provider, subject, email, created_at)
        VALUES (${identity.id}, ${userId}, ${provider}, ${profile.subject}, ${profile.email}, ${identity.createdAtMs})`)
      return identity
    },
    /** Returns the number of deleted rows. Not every engine accepts arbitrary text as a parameter. */
    remove: async (tx: Transaction, userId: string, id: string): Promise<number> =>
      isStorableText(id) ? tx.run(sql`DELETE FROM ${table} WHERE id = ${id} AND user_id = ${userId}`) : 0,
  }
}
