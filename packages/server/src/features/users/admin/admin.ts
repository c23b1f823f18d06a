/**
 * User administration with a service key, shared by the HTTP endpoints and the command line (ADMIN-1). Every change is
 * one transaction that locks the user's row first, so that it is serialized with sign-ins and token refreshes of the
 * same user.
 */
import { type Caller, callerKey } from '../../../access/caller.ts'
import { administratorsScope, mayChangeAdministrators } from '../../../access/dashboard-roles.ts'
import type { Clock } from '../../../base/clock.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Database, Reader, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied, invalidField, notFound } from '../../../errors.ts'
import { fitItems, itemBytesMax } from '../../../http/replies/large-responses.ts'
import { createListCursors } from '../../../http/replies/list-cursor.ts'
import type { Account } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { type AdminView, adminView, type ListedUser, listedView } from '../accounts/admin-view.ts'
import type { Passwords } from '../accounts/passwords.ts'
import { emailTaken, mapUniqueToConflict, normalizeEmail } from '../email/normalize.ts'
import type { OneTimeTokens } from '../email/one-time-tokens.ts'
import type { AccountHooks } from '../hooks/account-hooks.ts'
import type { HookedRequest } from '../hooks/hooked-request.ts'
import { usersTable } from '../migrations.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { type CreateInput, isUserId, type UpdateInput } from './input.ts'

export interface UserPage {
  readonly users: readonly ListedUser[]
  /** Null on the last page. */
  readonly cursor: string | null
  /** Present if the page ends early because of the maximum response size. */
  readonly truncated?: true
}

/**
 * Every function except `list` and `create` rejects with 404 for an unknown id, and those that change an account with a
 * dashboard role with 403 unless the caller may change administrators.
 */
export interface UserAdmin {
  /**
   * Newest first. `cursor` continues after a previous page; null and `0` start at the first. `email` selects the one
   * user with that address. `search` selects the users that it finds (`accounts.search`), on one page. Rejects with 400
   * for an invalid cursor.
   */
  list(page: {
    readonly limit: number
    readonly cursor: string | null
    readonly email: string | null
    readonly search: string | null
  }): Promise<UserPage>
  get(id: string): Promise<AdminView>
  /** Rejects with 400, with 409 if the email is taken, and as the hook of sign-ups does. */
  create(input: CreateInput, request: HookedRequest): Promise<AdminView>
  /**
   * Replaces the given fields. Disabling and a new password end every session and invalidate every pending one-time
   * token; a new address invalidates the tokens, and upgrades an anonymous user. Rejects with 400, with 409 if the
   * email is taken, and as the hook of sign-ups does.
   */
  update(id: string, input: UpdateInput, request: HookedRequest): Promise<AdminView>
  /** Replaces all custom claims. Open sockets get them at once, requests with the next access token. */
  setClaims(id: string, claims: JsonObject, caller: Caller): Promise<void>
  /** Ends every session and every sign-in that waits for its second factor. */
  revoke(id: string, caller: Caller): Promise<void>
  /** Deletes the user and everything that belongs to the user. */
  remove(id: string, caller: Caller): Promise<void>
  /** Removes all second factors and recovery codes. Passkeys are a sign-in method of their own and stay. */
  removeFactors(id: string, caller: Caller): Promise<void>
}

export interface UserAdminDeps {
  readonly database: Database
  readonly accounts: Accounts
  readonly hooks: Pick<AccountHooks, 'write'>
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly oneTimeTokens: OneTimeTokens
  /** Maximum size of a JSON response in bytes. */
  readonly responseBytes: () => number
  /** Key material that seals cursors. */
  readonly secret: string
  readonly clock: Clock
}

/** The cursor of the first page. */
const startCursor = '0'

/** Disabling a disabled account keeps its original time. */
const disabledAt = ({ disabledAtMs }: Account, disabled: boolean, clock: Clock): number | null =>
  disabled ? (disabledAtMs ?? clock.now()) : null

/** Throws 403 for an administrator's account that the caller may not change; see `administratorsScope`. */
function checkMayChange({ dashboardRole }: Account, caller: Caller): void {
  if (dashboardRole !== null && !(caller.kind === 'service' && mayChangeAdministrators(caller.scopes)))
    throw accessDenied(`The user is an administrator; changing one requires the scope ${administratorsScope}`)
}

/** A new address set by an administrator counts as verified unless `emailVerified` is false. Throws 400. */
function addressChanges(
  account: Account,
  { email, emailVerified }: { readonly email: string | undefined; readonly emailVerified: boolean | undefined },
  clock: Clock,
): Partial<Account> {
  const isNew = email !== undefined && email !== account.email
  const isVerified = emailVerified ?? (isNew || account.emailVerifiedAtMs !== null)
  if (isVerified && email === undefined && account.email === null)
    throw invalidField('emailVerified', 'required', 'cannot be true: the user has no email address')
  const isSame = !isNew && isVerified === (account.emailVerifiedAtMs !== null)
  return {
    ...(isNew ? { email, isAnonymous: false } : {}),
    ...(isSame ? {} : { emailVerifiedAtMs: isVerified ? clock.now() : null }),
  }
}

const isEmpty = (changes: object): boolean => Object.keys(changes).length === 0

export function createUserAdmin(deps: UserAdminDeps): UserAdmin {
  const { database, accounts, hooks, passwords, sessions, oneTimeTokens, responseBytes, clock } = deps
  const { dialect } = database
  const cursors = createListCursors<[createdAtMs: number, id: string]>(deps.secret, 'users list')

  async function getAccount(on: Reader, id: string, lock?: 'lock'): Promise<Account> {
    const account = isUserId(id) ? await accounts.find(on, id, lock) : null
    if (!account) throw notFound('User')
    return account
  }

  /** Runs `work` in a transaction with the row of the user locked. */
  const change = <T>(id: string, caller: Caller, work: (tx: Transaction, account: Account) => Promise<T>): Promise<T> =>
    database.write(async (tx) => {
      const account = await getAccount(tx, id, 'lock')
      checkMayChange(account, caller)
      return work(tx, account)
    })

  return {
    async list({ limit, cursor: given, email, search }) {
      const position = given === null || given === startCursor ? null : cursors.parse([], given)
      if (email !== null) {
        const account = await accounts.findByEmail(database, normalizeEmail(email))
        return { users: account ? [listedView(account)] : [], cursor: null }
      }
      if (search !== null) {
        const found = isStorableText(search) ? await accounts.search(database, search, limit) : []
        return { users: found.map(listedView), cursor: null }
      }
      const after = position && { createdAtMs: position[0], id: position[1] }
      // One more than requested shows whether there is another page.
      const found = await accounts.list(database, { limit: limit + 1, after })
      const { items: users, isCut } = await fitItems(
        found.slice(0, limit).map(listedView),
        itemBytesMax(responseBytes()),
      )
      const last = found[users.length - 1]
      const cursor = found.length > users.length && last ? cursors.format([], [last.createdAtMs, last.id]) : null
      return isCut ? { users, cursor, truncated: true } : { users, cursor }
    },

    get: async (id) => adminView(await getAccount(database, id)),

    async create({ email: written, password, displayName = null, role = 'user', emailVerified = true }, request) {
      const email = normalizeEmail(written)
      passwords.check(password)
      // Avoids a useless hash. The unique index rejects concurrent duplicates.
      if (await accounts.findByEmail(database, email)) throw emailTaken()
      const passwordHash = await passwords.hash(password, callerKey(request.caller))
      const emailVerifiedAtMs = emailVerified ? clock.now() : null
      const account = { email, emailVerifiedAtMs, passwordHash, isAdminPassword: true, displayName, role }
      const insert = (tx: Transaction) => accounts.insert(tx, account, { provider: null, request })
      return adminView(await mapUniqueToConflict(() => hooks.write(insert)))
    },

    async update(id, { disabled, email: written, emailVerified, password, ...fields }, request) {
      const email = written === undefined ? undefined : normalizeEmail(written)
      if (password !== undefined) {
        passwords.check(password)
        // No hash is computed for a user who does not exist.
        checkMayChange(await getAccount(database, id), request.caller)
      }
      const set =
        password === undefined
          ? {}
          : { passwordHash: await passwords.hash(password, callerKey(request.caller)), isAdminPassword: true }
      return mapUniqueToConflict(() =>
        hooks.write(async (tx) => {
          const account = await getAccount(tx, id, 'lock')
          checkMayChange(account, request.caller)
          const address = addressChanges(account, { email, emailVerified }, clock)
          const changes = {
            ...fields,
            ...set,
            ...address,
            ...(disabled === undefined ? {} : { disabledAtMs: disabledAt(account, disabled, clock) }),
          }
          // Sessions may belong to someone who knew the old password.
          if (disabled || password !== undefined) await sessions.endAll(tx, id)
          if (disabled || password !== undefined || address.email !== undefined) await oneTimeTokens.removeAll(tx, id)
          if (isEmpty(changes)) return adminView(account)
          return adminView(await accounts.update(tx, account, changes, { provider: null, request }))
        }),
      )
    },

    setClaims: (id, customClaims, caller) =>
      change(id, caller, async (tx, account) => {
        await accounts.update(tx, account, { customClaims })
      }),

    revoke: (id, caller) =>
      change(id, caller, async (tx) => {
        await sessions.endAll(tx, id)
        await oneTimeTokens.removeAll(tx, id, 'mfa-ticket')
      }),

    remove: (id, caller) =>
      change(id, caller, async (tx) => {
        await sessions.endAll(tx, id)
        await accounts.remove(tx, id)
      }),

    removeFactors: (id, caller) =>
      change(id, caller, async (tx) => {
        await tx.run(sql`DELETE FROM ${usersTable(dialect, 'factors')} WHERE user_id = ${id}`)
        await tx.run(sql`DELETE FROM ${usersTable(dialect, 'recovery_codes')} WHERE user_id = ${id}`)
        // Tickets ask for a factor that no longer exists; users sign in again.
        await oneTimeTokens.removeAll(tx, id, 'mfa-ticket')
      }),
  }
}
