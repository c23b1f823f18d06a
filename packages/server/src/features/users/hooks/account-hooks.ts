/**
 * The hooks of the application that run before an account is created and before a token is issued. Transactions need
 * their answers at some points: the first run of a transaction ends there and is rolled back, the hook runs
 * outside of it, and the next run finds the answer, unless the account has changed meanwhile. So no path that creates
 * an account or issues a token passes a hook by, and no transaction waits for one.
 */
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { unavailable } from '../../../errors.ts'
import { hookAnswersMax } from '../../../limits/users.ts'
import type { AuthHooks } from '../../auth-hooks.ts'
import type { Account } from '../accounts/account.ts'
import { adminView } from '../accounts/admin-view.ts'
import { AnswerNeeded, answerOf, type HookedRequest } from './hooked-request.ts'
import { parseSignUpData, type SignUpChanges, signUpDataOf } from './sign-up-data.ts'
import { combineClaims, parseTokenClaims, type TokenClaims } from './token-claims.ts'

/** Where an account comes from. */
export interface SignUpOrigin {
  /** See `SignUpEvent`. */
  readonly provider: string | null
  readonly request: HookedRequest
}

export interface AccountHooks {
  /**
   * The account as the application lets it be created, or an anonymous one upgraded. Throws `AnswerNeeded`.
   */
  admit(account: Account, origin: SignUpOrigin): Account
  /** Whether the application computes claims. */
  hasClaims(): boolean
  /**
   * The claims that the application computes for an account; null if it computes none. Throws `AnswerNeeded`.
   */
  claimsOf(account: Account, request: HookedRequest): TokenClaims | null
  /** The custom claims of an account as its next token has them, if nothing changes: those of both origins. */
  customOf(account: Pick<Account, 'customClaims' | 'hookClaims'>): TokenClaims
  /**
   * Runs a transaction whose work may need answers, and repeats it with each. Rejects as the hooks do, and with 503
   * where the account keeps changing.
   */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>
}

export interface AccountHooksDeps {
  readonly hooks: () => AuthHooks
  readonly database: Database
}

export function createAccountHooks({ hooks, database }: AccountHooksDeps): AccountHooks {
  return {
    admit(account, { provider, request }) {
      const runHook = hooks().beforeSignUp
      if (!runHook) return account
      const event = { email: account.email, provider, data: signUpDataOf(account) }
      const changes = answerOf<SignUpChanges>(request, `sign-up ${JSON.stringify(event)}`, async () =>
        parseSignUpData(await runHook(event, request)),
      )
      return { ...account, ...changes }
    },
    hasClaims: () => hooks().claims !== null,
    claimsOf(account, request) {
      const runHook = hooks().claims
      if (!runHook) return null
      const user = adminView(account)
      // The time of the last change is no reason to run it again.
      const question = `claims ${JSON.stringify({ ...user, updatedAt: null })}`
      return answerOf<TokenClaims>(request, question, async () =>
        parseTokenClaims(await runHook(user, request), account.customClaims),
      )
    },
    customOf: ({ customClaims, hookClaims }) => combineClaims(customClaims, hooks().claims ? hookClaims : null),
    async write(work) {
      for (let answers = 0; ; answers++) {
        try {
          return await database.write(work)
        } catch (error) {
          if (!(error instanceof AnswerNeeded)) throw error
          if (answers === hookAnswersMax) throw unavailable(1, 'The account keeps changing')
          await error.resolve()
        }
      }
    },
  }
}
