/** Sign-in by password, to the API or to the dashboard. */
import { callerKey } from '../../../access/caller.ts'
import { invalidCredentials } from '../../../errors.ts'
import { normalizeEmail } from '../email/normalize.ts'
import type { UsersParts } from '../parts.ts'
import type { CompleteSignIn, MfaRequired } from '../sessions/complete-sign-in.ts'
import type { ClientInfo } from './client-info.ts'

/**
 * Rejects with 401 for an unknown address and for a wrong password alike, after the same time; 403 `Account is
 * disabled`; and 429 per address unless `isExempt`.
 */
export type PasswordSignIn<Result> = (
  email: string,
  password: string,
  client: ClientInfo,
  isExempt: boolean,
) => Promise<Result | MfaRequired>

type Deps<Result> = Pick<UsersParts, 'database' | 'accounts' | 'hooks' | 'passwords' | 'attempts'> & {
  readonly completeSignIn: CompleteSignIn<Result>
}

export function createPasswordSignIn<Result>(deps: Deps<Result>): PasswordSignIn<Result> {
  const { database, accounts, hooks, passwords, attempts, completeSignIn } = deps
  return async (email, password, client, isExempt) => {
    const address = normalizeEmail(email)
    if (!isExempt) await attempts.countSignIn(address, client)
    const found = await accounts.findByEmail(database, address)
    const known = found?.passwordHash ?? null
    const caller = callerKey(client.request.caller)
    if (!(await passwords.verify(password, known, caller)) || !found || known === null) throw invalidCredentials()
    const passwordHash = passwords.needsRehash(known) ? await passwords.hash(password, caller) : known
    return hooks.write(async (tx) => {
      const account = await accounts.find(tx, found.id, 'lock')
      // The account may have changed while the password was being checked.
      if (account?.passwordHash !== known || account.email !== address) throw invalidCredentials()
      const isSame = passwordHash === known || account.disabledAtMs !== null
      return completeSignIn(tx, isSame ? account : await accounts.update(tx, account, { passwordHash }), client)
    })
  }
}
