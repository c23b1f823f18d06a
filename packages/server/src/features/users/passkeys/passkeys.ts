/**
 * Passkeys: registration, sign-in and removal. Owns the binding of challenges to users and their single use; `ceremony`
 * verifies the responses.
 */
import { EngineError } from '../../../engines/sql/error.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { accessDenied, badRequest, conflict, invalidCredentials, notFound } from '../../../errors.ts'
import { passkeyChallengeLifetimeMs, passkeyPublicKeyBytesMax, passkeysPerUserMax } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import { lockCallerAccount } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import { hasSignInMethod } from '../accounts/sign-in-methods.ts'
import { normalizeEmail } from '../email/normalize.ts'
import type { TokenSubject } from '../email/one-time-tokens.ts'
import type { UsersParts } from '../parts.ts'
import type { CompleteSignIn, MfaRequired } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import {
  type AuthenticationResponse,
  createCreationOptions,
  createRequestOptions,
  findRelyingParty,
  type RegistrationResponse,
  type RelyingParty,
  verifyCreation,
  verifyRequest,
} from './ceremony.ts'
import { createPasskeyCredentials, type Passkey } from './credentials.ts'

export interface Passkeys<Result = SignedIn> {
  /**
   * * Options for `navigator.credentials.create`. Rejects with 403 for anonymous users and if a recent sign-in is
   * required (`recent-sign-in`), 409 at `passkeysPerUserMax`.
   */
  registerOptions(caller: SessionCaller): Promise<object>
  /** Stores the new passkey. Rejects with 400 if the response is invalid, 409 if the passkey is registered already. */
  register(userId: string, response: RegistrationResponse, name: string): Promise<Passkey>
  /** Options for `navigator.credentials.get`; an email restricts them to the passkeys of that user. */
  authOptions(email: string | null): Promise<object>
  /**
   * Signs in with the strength of two factors. Rejects with 401 for an invalid response, 403 for a disabled account.
   */
  authenticate(response: AuthenticationResponse, client: ClientInfo): Promise<Result | MfaRequired>
  list(userId: string): Promise<readonly Passkey[]>
  /**
   * Rejects with 403 if a recent sign-in is required, like registration; 404 if the user has no such passkey; 409 if it
   * is the last sign-in method, or the last one of the last owner to the dashboard.
   */
  remove(caller: SessionCaller, id: string): Promise<void>
}

const purpose = 'passkey-challenge'
/** Stored in the `data` of a challenge, so that a challenge for one ceremony is invalid for another. */
interface ChallengeData {
  readonly ceremony: string
}
const forRegistration: ChallengeData = { ceremony: 'registration' }

/** Each target has challenges of its own; see `SignInTarget`. */
const forSignIn = (target: string): ChallengeData => ({
  ceremony: target === 'api' ? 'authentication' : `authentication ${target}`,
})

export interface PasskeysParts<Result> extends Omit<UsersParts, 'completeSignIn'> {
  readonly completeSignIn: CompleteSignIn<Result>
  readonly target: string
}

export function createPasskeys<Result>(parts: PasskeysParts<Result>): Passkeys<Result> {
  const forAuthentication = forSignIn(parts.target)
  const { database, accounts, lastOwner, hooks, oneTimeTokens, completeSignIn, mailer, clock, config } = parts
  const credentials = createPasskeyCredentials({ dialect: database.dialect, clock })

  function getRelyingParty(): RelyingParty {
    const party = findRelyingParty(config())
    if (!party) throw notFound('Passkey configuration')
    return party
  }

  /** The account and its passkeys. Rejects if the user may not register another. */
  async function requireCapacity(tx: Transaction, userId: string) {
    const account = await lockCallerAccount(accounts, tx, userId)
    if (account.isAnonymous) throw accessDenied()
    const existing = await credentials.list(tx, userId)
    if (existing.length >= passkeysPerUserMax) throw conflict(`A user has at most ${passkeysPerUserMax} passkeys`)
    return { account, existing }
  }

  async function redeemChallenge(
    tx: Transaction,
    challenge: string,
    { ceremony }: ChallengeData,
  ): Promise<TokenSubject | null> {
    const subject = await oneTimeTokens.redeem(tx, purpose, challenge)
    return subject?.data.ceremony === ceremony ? subject : null
  }

  return {
    async registerOptions(caller) {
      const party = getRelyingParty()
      const userId = caller.auth.id
      const input = { purpose, userId, data: { ...forRegistration }, lifetimeMs: passkeyChallengeLifetimeMs } as const
      const { account, existing, challenge } = await database.write(async (tx) => {
        const found = await requireCapacity(tx, userId)
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        return { ...found, challenge: await oneTimeTokens.issue(tx, input) }
      })
      const displayName = account.displayName ?? ''
      const userName = account.email ?? (displayName || userId)
      return createCreationOptions(party, { challenge, userId, userName, displayName, existing })
    },

    async register(userId, response, name) {
      const verified = await verifyCreation(getRelyingParty(), response)
      if (!verified || verified.outcome.publicKey.length > passkeyPublicKeyBytesMax) throw verificationFailed()
      try {
        return await database.write(async (tx) => {
          await requireCapacity(tx, userId)
          const subject = await redeemChallenge(tx, verified.challenge, forRegistration)
          if (subject?.userId !== userId) throw verificationFailed()
          return credentials.insert(tx, { userId, name }, verified.outcome)
        })
      } catch (error) {
        if (error instanceof EngineError && error.kind === 'unique') throw conflict('The passkey is registered already')
        throw error
      }
    },

    async authOptions(email) {
      const party = getRelyingParty()
      const about = email === null ? {} : { email: normalizeEmail(email) }
      const input = {
        purpose,
        data: { ...forAuthentication },
        lifetimeMs: passkeyChallengeLifetimeMs,
        ...about,
      } as const
      return createRequestOptions(party, await database.write((tx) => oneTimeTokens.issue(tx, input)))
    },

    async authenticate(response, client) {
      const party = getRelyingParty()
      const passkey = await credentials.find(database, response.id)
      const verified = passkey && (await verifyRequest(party, response, passkey))
      if (!verified) throw invalidPasskey()
      return hooks.write(async (tx) => {
        const account = await accounts.find(tx, passkey.userId, 'lock')
        const subject = await redeemChallenge(tx, verified.challenge, forAuthentication)
        if (!account || !subject || (subject.email !== null && subject.email !== account.email)) throw invalidPasskey()
        // The user handle stored by the authenticator must name the owner of the passkey.
        if (response.response.userHandle !== handleOf(account)) throw invalidPasskey()
        if (!(await credentials.recordUse(tx, verified.outcome))) throw invalidPasskey()
        return completeSignIn(tx, account, client, { isStrong: true })
      })
    },

    list: (userId) => credentials.list(database, userId),

    remove: (caller, id) =>
      database.write(async (tx) => {
        const userId = caller.auth.id
        const account = await lockCallerAccount(accounts, tx, userId)
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        if (!(await credentials.remove(tx, userId, id))) throw notFound('Passkey')
        if (!(await hasSignInMethod(tx, database.dialect, account, mailer.route === 'smtp')))
          throw conflict('This is the last sign-in method of the account; add another one first')
        await lastOwner.checkRemains(tx, account)
      }),
  }
}

const handleOf = ({ id }: Account): string => Buffer.from(id).toString('base64url')

const verificationFailed = () => badRequest('The passkey could not be verified')
const invalidPasskey = () => invalidCredentials('Invalid passkey')
