/**
 * Identities: which account a person at a provider is. Owns their table, and the one place where a provider's word
 * about somebody becomes an account; that the word is good is `oauth-flow`'s.
 *
 * What keeps an account from being taken over through a provider that lets people claim any address, or by somebody who
 * waits inside for its owner: an e-mail counts only where the provider has verified it, and leads only to an account
 * that has verified it too. Whoever proves by mail to own an address that nobody has proved before finds none of the
 * identities that were linked until then (`email-ownership`).
 */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied, conflict, notFound } from '../../../errors.ts'
import { identitiesPerUserMax } from '../../../limits/users.ts'
import { type Account, lockCallerAccount } from '../accounts/accounts.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import { hasSignInMethod } from '../accounts/sign-in-methods.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo, MfaRequired, SignedIn } from '../sessions/complete-sign-in.ts'
import { msOf, usersTable } from '../tables.ts'
import type { OAuthProfile } from './profile.ts'

export interface Identity {
  readonly id: string
  readonly userId: string
  /** Its name in the configuration. */
  readonly provider: string
  /** As the provider told it when the two were linked. */
  readonly email: string | null
  readonly createdAtMs: number
}

/** Why somebody whom the provider knows does not get in; nothing was changed. */
export type SignInError = 'account-exists' | 'account-disabled' | 'signup-disabled'

export interface Identities {
  /** Oldest first. */
  list(userId: string): Promise<Identity[]>
  /** Signs in whoever this is, as a new user where it is nobody yet. */
  signIn(provider: string, profile: OAuthProfile, client: ClientInfo): Promise<SignedIn | MfaRequired | SignInError>
  /**
   * Makes the identity one more way into an account; an anonymous account becomes a real one, keeping its id. Linking
   * what is linked already changes nothing. Throws 409 where it is another's, or may not be linked, 403 where an
   * anonymous user may not sign up.
   */
  link(tx: Transaction, userId: string, provider: string, profile: OAuthProfile): Promise<[Identity, Account]>
  /**
   * Throws 403 where a recent sign-in is needed (`recent-sign-in`), 404 where the user has none of that id, 409 where
   * there would be no way left into the account.
   */
  remove(caller: SessionCaller, id: string): Promise<void>
}

interface Row {
  readonly id: string
  readonly user_id: string
  readonly provider: string
  readonly email: string | null
  readonly created_at: unknown
}

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'completeSignIn' | 'clock' | 'config'>

export function createIdentities({ database, accounts, completeSignIn, clock, config }: Deps): Identities {
  const rows = createIdentityRows(database, clock)

  /** The account that this is, locked. The row is read again behind the lock, since it may have gone meanwhile. */
  async function findOwner(tx: Transaction, provider: string, subject: string): Promise<Account | null> {
    const identity = await rows.findBySubject(tx, provider, subject)
    const owner = identity && (await accounts.find(tx, identity.userId, 'lock'))
    return owner && (await rows.findBySubject(tx, provider, subject)) ? owner : null
  }

  /** The account that signs in, its identity made where it is new. */
  async function enter(tx: Transaction, provider: string, profile: OAuthProfile): Promise<Account | SignInError> {
    const { subject, email, isEmailVerified, displayName, avatarUrl } = profile
    const owner = await findOwner(tx, provider, subject)
    if (owner) return owner.disabledAtMs === null ? owner : 'account-disabled'

    const namesake = email === null ? null : await accounts.findByEmail(tx, email, 'lock')
    if (namesake) {
      const isSamePerson = isEmailVerified && namesake.emailVerifiedAtMs !== null
      if (!isSamePerson || (await rows.count(tx, namesake.id)) >= identitiesPerUserMax) return 'account-exists'
      if (namesake.disabledAtMs !== null) return 'account-disabled'
      await rows.insert(tx, namesake.id, provider, profile)
      return namesake
    }
    if (!config().signup) return 'signup-disabled'
    const account = await accounts.insert(tx, {
      // An address that anybody could have typed in somewhere is not put on an account.
      ...(isEmailVerified ? { email, emailVerifiedAtMs: clock.now() } : {}),
      displayName,
      avatarUrl,
    })
    await rows.insert(tx, account.id, provider, profile)
    return account
  }

  /** What an account takes over from an identity that is linked to it. Throws 409 where it may not be linked. */
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
    if (account.isAnonymous) throw conflict('There is an account with this e-mail already')
    return changes
  }

  return {
    list: (userId) => rows.list(database, userId),

    signIn: (provider, profile, client) =>
      retryOnUniqueConflict(() =>
        database.write(async (tx) => {
          const account = await enter(tx, provider, profile)
          return typeof account === 'string' ? account : completeSignIn(tx, account, client)
        }),
      ),

    async link(tx, userId, provider, profile) {
      const account = await lockCallerAccount(accounts, tx, userId)
      const known = await rows.findBySubject(tx, provider, profile.subject)
      if (known?.userId === userId) return [known, account]
      if (known) throw conflict('This identity belongs to another account')
      // It would be a sign-up.
      if (account.isAnonymous && !config().signup) throw accessDenied()
      if ((await rows.count(tx, userId)) >= identitiesPerUserMax)
        throw conflict(`An account has at most ${identitiesPerUserMax} identities`)
      const changed = await accounts.update(tx, account, await adopt(tx, account, profile))
      return [await rows.insert(tx, userId, provider, profile), changed]
    },

    remove: (caller, id) =>
      database.write(async (tx) => {
        const userId = caller.auth.id
        const account = await accounts.find(tx, userId, 'lock')
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        if (!account || (await rows.remove(tx, userId, id)) === 0) throw notFound('Identity')
        // Thrown within the transaction, so that it is there again.
        if (!(await hasSignInMethod(tx, database.dialect, account)))
          throw conflict('This is the last way into the account')
      }),
  }
}

/** Attempts at a write that another one got in the way of with the same e-mail or identity. */
const attemptsMax = 3

/** Two sign-ins of a person who is new are both right: the one that comes second finds what the first has made. */
export async function retryOnUniqueConflict<T>(write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (attempt === attemptsMax || !(error instanceof EngineError) || error.kind !== 'unique') throw error
    }
  }
}

/** The table's rows. */
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
    /** Throws `EngineError` `unique` where it is somebody's already. */
    async insert(tx: Transaction, userId: string, provider: string, profile: OAuthProfile): Promise<Identity> {
      const identity: Identity = { id: newId(), userId, provider, email: profile.email, createdAtMs: clock.now() }
      await tx.run(sql`INSERT INTO ${table} (id, user_id, provider, subject, email, created_at)
        VALUES (${identity.id}, ${userId}, ${provider}, ${profile.subject}, ${profile.email}, ${identity.createdAtMs})`)
      return identity
    },
    /** Gives how many there were. Not every engine can be asked for any text. */
    remove: async (tx: Transaction, userId: string, id: string): Promise<number> =>
      isStorableText(id) ? tx.run(sql`DELETE FROM ${table} WHERE id = ${id} AND user_id = ${userId}`) : 0,
  }
}
