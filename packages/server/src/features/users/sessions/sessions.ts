/** Sessions: one per sign-in, kept alive by a chain of rotating refresh tokens. */
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken } from '../../../errors.ts'
import { refreshTokenLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Attempts } from '../accounts/attempts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import type { AccountHooks } from '../hooks/account-hooks.ts'
import { usersTable } from '../migrations.ts'
import type { Revocation } from './revocation.ts'
import { createRotation } from './rotation.ts'
import { createSessionRows, type SessionRows, userAgentOf } from './session-rows.ts'
import { type SignedIn, signedIn } from './signed-in.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'

export interface Sessions extends Pick<SessionRows, 'end' | 'endAll' | 'list' | 'sweep'> {
  /**
   * Opens a session. At the limit per user, it ends the least recently used one. `open` and `replaceAll` are to be
   * called in `hooks.write`, with an account that was read with a lock in this transaction or created in it.
   */
  open(tx: Transaction, account: Account, client: ClientInfo): Promise<SignedIn>
  /**
   * Ends every session of the account and opens a new one for the caller, with the start time of the caller's session:
   * this is not a sign-in (`recent-sign-in`). Null if that session has ended. With a `sessionId` of null, the new
   * session starts now.
   */
  replaceAll(tx: Transaction, account: Account, sessionId: string | null, client: ClientInfo): Promise<SignedIn | null>
  /**
   * Rotates a refresh token. The previous token returns the newest one for another `refreshGraceMs`. Any older token
   * means that two parties use the chain, and ends the session. Rejects with 401 if there is nothing to refresh.
   */
  refresh(refreshToken: string, client: ClientInfo): Promise<SignedIn>
  /** The session of a refresh token, current or rotated. Rejects with 401 for an invalid token. */
  findByToken(refreshToken: string): Promise<{ readonly sessionId: string; readonly userId: string }>
  /** Whether the session exists; locks it until the transaction ends. */
  lock(tx: Transaction, userId: string, sessionId: string): Promise<boolean>
}

export interface SessionsDeps {
  readonly database: Database
  readonly accounts: Accounts
  readonly hooks: Pick<AccountHooks, 'write' | 'hasClaims'>
  readonly tokens: Tokens
  readonly keys: SigningKeys
  readonly revocation: Revocation
  readonly issueDeviceToken: Attempts['issueDeviceToken']
  /** Maximum sessions per user; a function because a reload may change it. */
  readonly sessionsMax: () => number
  readonly clock: Clock
}

export function createSessions(deps: SessionsDeps): Sessions {
  const { database, accounts, hooks, tokens, keys, issueDeviceToken, clock } = deps
  const sessions = usersTable(database.dialect, 'sessions')
  const rows = createSessionRows(deps)
  const rotateToken = createRotation({ ...deps, rows })
  const newId = createUuid7(clock)

  async function begin(
    tx: Transaction,
    account: Account,
    client: ClientInfo,
    { sinceMs, custom }: { readonly sinceMs: number; readonly custom: JsonObject },
  ): Promise<SignedIn> {
    const sessionId = newId()
    const issuedAtMs = clock.now()
    const content = { userId: account.id, sessionId, generation: 0, issuedAtMs, key: keys.current() }
    const token = tokens.signRefresh(content)
    await tx.run(sql`INSERT INTO ${sessions} (id, user_id, generation, refresh_hash, previous_hash, key_id,
      rotated_at, created_at, used_at, expires_at, user_agent, address)
      VALUES (${sessionId}, ${account.id}, 0, ${sha256(token)}, NULL, ${content.key.id}, ${issuedAtMs}, ${sinceMs},
      ${issuedAtMs}, ${issuedAtMs + refreshTokenLifetimeMs},
      ${userAgentOf(client)}, ${client.address})`)
    const deviceToken = issueDeviceToken(account)
    return {
      ...signedIn(tokens, account, { custom, sessionId, refreshToken: token }),
      ...(deviceToken === null ? {} : { deviceToken }),
    }
  }

  return {
    end: rows.end,
    endAll: rows.endAll,
    list: rows.list,
    sweep: rows.sweep,
    async open(tx, account, client) {
      const custom = await accounts.claimsForToken(tx, account, client.request)
      await rows.endSurplus(tx, account.id)
      return begin(tx, account, client, { sinceMs: clock.now(), custom })
    },
    async replaceAll(tx, account, sessionId, client) {
      const sinceMs = sessionId === null ? clock.now() : await rows.findStart(tx, account.id, sessionId)
      if (sinceMs === null) return null
      const custom = await accounts.claimsForToken(tx, account, client.request)
      await rows.endAll(tx, account.id)
      return begin(tx, account, client, { sinceMs, custom })
    },
    async refresh(refreshToken, client) {
      const session = await tokens.verifyRefresh(refreshToken)
      const hash = sha256(refreshToken)
      const result = await hooks.write((tx) => rotateToken(tx, session, hash, client))
      if (!result) throw invalidToken()
      return result
    },
    findByToken: (refreshToken) => tokens.verifyRefresh(refreshToken),
    lock: async (tx, userId, sessionId) => (await rows.findStart(tx, userId, sessionId)) !== null,
  }
}
