/**
 * Accounts: the rows of `_users`, the public record that belongs to each, and the deletion of everything that belongs
 * to a user. Callers validate what they write; `user-view` decides what clients see.
 */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, type SqlValue, sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken } from '../../../errors.ts'
import type { UserEvent } from '../../auth-hooks.ts'
import type { AccountHooks, SignUpOrigin } from '../hooks/account-hooks.ts'
import type { HookedRequest } from '../hooks/hooked-request.ts'
import { msOf, msOrNullOf, type UsersTable, usersTable } from '../migrations.ts'
import { type Account, emptyAccount, type ListedAccount, type NewAccount, unlistedNames } from './account.ts'
import { type LastOwner, takesAccess } from './last-owner.ts'
import { type PublicUser, publicUserOf } from './public-user.ts'

export interface AccountsPage {
  readonly limit: number
  /** The last account of the previous page; null for the first page. */
  readonly after: { readonly createdAtMs: number; readonly id: string } | null
}

export interface Accounts {
  /** `'lock'` locks the row until the transaction ends. */
  find(on: Reader, id: string, lock?: 'lock'): Promise<Account | null>
  /** `email` must be normalized. */
  findByEmail(on: Reader, email: string, lock?: 'lock'): Promise<Account | null>
  /** Accounts with a dashboard role, oldest first. */
  listAdministrators(on: Reader, limit: number): Promise<ListedAccount[]>
  /** Newest first. */
  list(on: Reader, page: AccountsPage): Promise<ListedAccount[]>
  /**
   * Accounts with this id, then those whose email and those whose display name begin with `text`; at most `limit`.
   * Letters of ASCII match in both cases.
   */
  search(on: Reader, text: string, limit: number): Promise<ListedAccount[]>
  /**
   * Creates an account as the application admits it (`account-hooks`), which may change fields. Throws `EngineError`
   * `unique` if the id or the email is taken, and as `admit` does. To be called in `hooks.write`.
   */
  insert(tx: Transaction, account: NewAccount, origin: SignUpOrigin): Promise<Account>
  /**
   * Writes the fields that differ, and the public record. `account` was read in this transaction. Open connections
   * receive changes of role, claims and email. Throws `EngineError` `unique` if the email is taken. An upgrade of an
   * anonymous account is a sign-up, of which the origin is required, and to which applies what applies to `insert`.
   * Rejects with 409 if the last owner of the dashboard would lose access (`last-owner`).
   */
  update(tx: Transaction, account: Account, changes: Partial<Account>, origin?: SignUpOrigin): Promise<Account>
  /**
   * The custom claims of a token that is issued now; keeps what the application has computed. `account` was read with a
   * lock in this transaction. Throws as `claimsOf` does; nothing is written before.
   */
  claimsForToken(tx: Transaction, account: Account, request: HookedRequest): Promise<JsonObject>
  /**
   * Deletes the user and everything that belongs to the user; false if there is no such user. It does not revoke
   * access tokens: `revocation` does. Rejects with 409 for the last owner of the dashboard.
   */
  remove(tx: Transaction, id: string): Promise<boolean>
}

/** Writes the public record of a user within the transaction; null means no record. */
export type SyncPublicUser = (tx: Transaction, before: PublicUser | null, after: PublicUser | null) => Promise<void>

/** Records an event of an account in the transaction in which it happens. */
export type RecordUserEvent = (tx: Transaction, event: UserEvent, account: Account) => Promise<void>

/** Called in a transaction that changes what access rules see of a user: role, claims or verified email. */
export type OnAuthChanged = (tx: Transaction, userId: string) => void

const seenByRules = (account: Account): string =>
  JSON.stringify([account.role, account.customClaims, account.email, account.emailVerifiedAtMs !== null])

interface Column {
  readonly name: string
  readonly toSql: (value: never) => SqlValue
  readonly fromSql: (stored: unknown) => unknown
}

const same = (value: unknown): never => value as never
const text: Omit<Column, 'name'> = { toSql: same, fromSql: same }
const time: Omit<Column, 'name'> = { toSql: same, fromSql: msOrNullOf }
const flag: Omit<Column, 'name'> = { toSql: Number, fromSql: (stored) => stored === 1 }
const json: Omit<Column, 'name'> = { toSql: JSON.stringify, fromSql: (stored) => JSON.parse(stored as string) }
const jsonOrNull: Omit<Column, 'name'> = {
  toSql: (value) => (value === null ? null : JSON.stringify(value)),
  fromSql: (stored) => (stored === null ? null : JSON.parse(stored as string)),
}

const columns: { readonly [Name in keyof Account]: Column } = {
  id: { name: 'id', ...text },
  email: { name: 'email', ...text },
  passwordHash: { name: 'password_hash', ...text },
  isAdminPassword: { name: 'admin_password', ...flag },
  displayName: { name: 'display_name', ...text },
  avatarUrl: { name: 'avatar_url', ...text },
  role: { name: 'role', ...text },
  dashboardRole: { name: 'dashboard_role', ...text },
  emailVerifiedAtMs: { name: 'email_verified_at', ...time },
  emailVisibility: { name: 'email_visibility', ...text },
  locale: { name: 'locale', ...text },
  disabledAtMs: { name: 'disabled_at', ...time },
  isAnonymous: { name: 'is_anonymous', ...flag },
  metadata: { name: 'metadata', ...json },
  appMetadata: { name: 'app_metadata', ...json },
  customClaims: { name: 'custom_claims', ...json },
  hookClaims: { name: 'hook_claims', ...jsonOrNull },
  createdAtMs: { name: 'created_at', toSql: same, fromSql: msOf },
  updatedAtMs: { name: 'updated_at', toSql: same, fromSql: msOf },
}

const names = Object.keys(columns) as (keyof Account)[]
const columnList = join(
  names.map((name) => ident(columns[name].name)),
  ', ',
)

const listedNames = names.filter((name) => !(unlistedNames as readonly string[]).includes(name))
const listedColumns = join(
  listedNames.map((name) => ident(columns[name].name)),
  ', ',
)

const storedOf = (account: Account, name: keyof Account): SqlValue => columns[name].toSql(account[name] as never)

const lastCodePoint = '\u{10ffff}'

type StoredRow = Readonly<Record<string, unknown>>

const membersOf = (row: StoredRow, of: readonly (keyof Account)[]): object =>
  Object.fromEntries(of.map((name) => [name, columns[name].fromSql(row[columns[name].name])]))

const accountOf = (row: StoredRow): Account => membersOf(row, names) as Account

/** Tables whose rows belong to the user in their column `user_id`. */
const ownedTables: readonly UsersTable[] = [
  'sessions',
  'identities',
  'one_time_tokens',
  'factors',
  'recovery_codes',
  'passkeys',
]

export function createAccounts(deps: {
  dialect: Dialect
  syncPublicUser: SyncPublicUser
  recordEvent: RecordUserEvent
  onAuthChanged: OnAuthChanged
  hooks: Pick<AccountHooks, 'admit' | 'claimsOf' | 'customOf'>
  lastOwner: LastOwner
  clock: Clock
}): Accounts {
  const { dialect, syncPublicUser, recordEvent, onAuthChanged, hooks, lastOwner, clock } = deps
  const newId = createUuid7(clock)
  const users = usersTable(dialect, 'users')

  async function findBy(on: Reader, condition: SqlText, lock?: 'lock'): Promise<Account | null> {
    const suffix = lock ? dialect.forUpdate : sql``
    const [row] = await on.all(sql`SELECT ${columnList} FROM ${users} WHERE ${condition}${suffix}`)
    return row ? accountOf(row) : null
  }

  function admitUpgrade(account: Account, origin: SignUpOrigin | undefined): Account {
    if (!origin) throw new Error('An anonymous account is upgraded without an origin')
    return hooks.admit(account, origin)
  }

  return {
    find: (on, id, lock) => findBy(on, sql`id = ${id}`, lock),
    findByEmail: (on, email, lock) => findBy(on, sql`email = ${email}`, lock),
    async listAdministrators(on, limit) {
      const rows = await on.all(
        sql`SELECT ${listedColumns} FROM ${users} WHERE dashboard_role IS NOT NULL ORDER BY created_at, id LIMIT ${limit}`,
      )
      return rows.map((row) => membersOf(row, listedNames) as ListedAccount)
    },
    async list(on, { limit, after }) {
      const keyset = after ? sql` WHERE (created_at, id) < (CAST(${after.createdAtMs} AS BIGINT), ${after.id})` : sql``
      const rows = await on.all(
        sql`SELECT ${listedColumns} FROM ${users}${keyset} ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
      )
      return rows.map((row) => membersOf(row, listedNames) as ListedAccount)
    },
    async search(on, text, limit) {
      const email = text.toLowerCase()
      // Each is a range of an index. No text sorts after the last code point.
      const found = await Promise.all(
        [
          sql`id = ${text}`,
          sql`email >= ${email} AND email < ${email + lastCodePoint} ORDER BY email`,
          sql`display_name IS NOT NULL AND lower(display_name) >= lower(${text})
            AND lower(display_name) < lower(${text + lastCodePoint}) ORDER BY lower(display_name), id`,
        ].map((condition) => on.all(sql`SELECT ${listedColumns} FROM ${users} WHERE ${condition} LIMIT ${limit}`)),
      )
      const byId = new Map(found.flat().map((row) => [row.id, row]))
      return [...byId.values()].slice(0, limit).map((row) => membersOf(row, listedNames) as ListedAccount)
    },
    async insert(tx, given, origin) {
      const { request } = origin
      request.newAccount ??= { id: newId(), createdAtMs: clock.now() }
      const { id, createdAtMs } = request.newAccount
      const account = hooks.admit({ ...emptyAccount, id, createdAtMs, updatedAtMs: createdAtMs, ...given }, origin)
      const values = join(
        names.map((name) => sql`${storedOf(account, name)}`),
        ', ',
      )
      await tx.run(sql`INSERT INTO ${users} (${columnList}) VALUES (${values})`)
      await syncPublicUser(tx, null, publicUserOf(account))
      await recordEvent(tx, 'created', account)
      return account
    },
    async update(tx, account, changes, origin) {
      // Strictly increasing, so that two changes never share a timestamp.
      const updatedAtMs = Math.max(clock.now(), account.updatedAtMs + 1)
      const changedTo: Account = { ...account, ...changes, id: account.id, updatedAtMs }
      const after = account.isAnonymous && !changedTo.isAnonymous ? admitUpgrade(changedTo, origin) : changedTo
      const changed = names.filter((name) => storedOf(account, name) !== storedOf(after, name))
      const sets = changed.map((name) => sql`${ident(columns[name].name)} = ${storedOf(after, name)}`)
      await tx.run(sql`UPDATE ${users} SET ${join(sets, ', ')} WHERE id = ${account.id}`)
      if (takesAccess(account, after)) await lastOwner.checkRemains(tx, account)
      await syncPublicUser(tx, publicUserOf(account), publicUserOf(after))
      if (seenByRules(account) !== seenByRules(after)) onAuthChanged(tx, account.id)
      if (account.disabledAtMs === null && after.disabledAtMs !== null) await recordEvent(tx, 'disabled', after)
      return after
    },
    async claimsForToken(tx, account, request) {
      const hookClaims = hooks.claimsOf(account, request)
      const before = hooks.customOf(account)
      if (hookClaims === null) return before
      const custom = hooks.customOf({ ...account, hookClaims })
      if (storedOf(account, 'hookClaims') === columns.hookClaims.toSql(hookClaims as never)) return custom
      // Not a change of the user: its time stays.
      await tx.run(sql`UPDATE ${users} SET hook_claims = ${JSON.stringify(hookClaims)} WHERE id = ${account.id}`)
      if (JSON.stringify(custom) !== JSON.stringify(before)) onAuthChanged(tx, account.id)
      return custom
    },
    async remove(tx, id) {
      const account = await findBy(tx, sql`id = ${id}`, 'lock')
      if (!account) return false
      for (const name of ownedTables) await tx.run(sql`DELETE FROM ${usersTable(dialect, name)} WHERE user_id = ${id}`)
      // Tokens may have been mailed to the address before an account had it.
      if (account.email !== null)
        await tx.run(sql`DELETE FROM ${usersTable(dialect, 'one_time_tokens')} WHERE email = ${account.email}`)
      await tx.run(sql`DELETE FROM ${users} WHERE id = ${id}`)
      await lastOwner.checkRemains(tx, account)
      await syncPublicUser(tx, publicUserOf(account), null)
      await recordEvent(tx, 'deleted', account)
      return true
    },
  }
}

/**
 * The account of a caller, locked until the transaction ends. Rejects with 401 if it was deleted since the caller's
 * token was checked.
 */
export async function lockCallerAccount(accounts: Accounts, tx: Transaction, userId: string): Promise<Account> {
  const account = await accounts.find(tx, userId, 'lock')
  if (!account) throw invalidToken()
  return account
}
