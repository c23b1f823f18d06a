/**
 * Passkeys: giving a user one, signing in with one, and taking one away. Owns whose challenge is answered and that each
 * is answered once; the cryptography is `passkeys-ceremony`'s.
 */
import { EngineError } from '../../../engines/sql/error.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { accessDenied, badRequest, conflict, invalidCredentials, notFound } from '../../../errors.ts'
import { passkeyChallengeLifetimeMs, passkeyPublicKeyBytesMax, passkeysPerUserMax } from '../../../limits/users.ts'
import { type Account, lockCallerAccount } from '../accounts/accounts.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import { hasSignInMethod } from '../accounts/sign-in-methods.ts'
import { normalizeEmail } from '../email/normalize.ts'
import type { TokenSubject } from '../email/one-time-tokens.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo, MfaRequired, SignedIn } from '../sessions/complete-sign-in.ts'
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

export interface Passkeys {
  /**
   * Options for `navigator.credentials.create`. Throws 403 for anonymous users and where a recent sign-in is needed
   * (`recent-sign-in`), 409 when the user has too many.
   */
  registerOptions(caller: SessionCaller): Promise<object>
  /** Keeps the key that the browser made. Throws 400 when the answer is not genuine, 409 when the key is known. */
  register(userId: string, response: RegistrationResponse, name: string): Promise<Passkey>
  /** Options for `navigator.credentials.get`; with an e-mail, good for that user's passkeys alone. */
  authOptions(email: string | null): Promise<object>
  /** Signs in, as with two factors. Throws 401 for whatever is wrong with the answer, 403 for a disabled account. */
  authenticate(response: AuthenticationResponse, client: ClientInfo): Promise<SignedIn | MfaRequired>
  list(userId: string): Promise<readonly Passkey[]>
  /**
   * Throws 403 where a recent sign-in is needed, or whoever may not add a passkey would take one away first; 404 when
   * the user has no such passkey, 409 when it is the last way in.
   */
  remove(caller: SessionCaller, id: string): Promise<void>
}

const purpose = 'passkey-challenge'
/** What a challenge was issued for, in its `data`: a signature to sign in with makes no key, nor the reverse. */
const forRegistration = { ceremony: 'registration' } as const
const forAuthentication = { ceremony: 'authentication' } as const

export function createPasskeys(parts: UsersParts): Passkeys {
  const { database, accounts, oneTimeTokens, completeSignIn, mailer, clock, config } = parts
  const credentials = createPasskeyCredentials({ dialect: database.dialect, clock })

  function getRelyingParty(): RelyingParty {
    const party = findRelyingParty(config())
    if (!party) throw notFound('Passkey configuration')
    return party
  }

  /** Whom another passkey would be for, and those there are. */
  async function getRoom(tx: Transaction, userId: string) {
    const account = await lockCallerAccount(accounts, tx, userId)
    if (account.isAnonymous) throw accessDenied()
    const existing = await credentials.list(tx, userId)
    if (existing.length >= passkeysPerUserMax) throw conflict(`A user has at most ${passkeysPerUserMax} passkeys`)
    return { account, existing }
  }

  async function redeemChallenge(
    tx: Transaction,
    challenge: string,
    { ceremony }: typeof forRegistration | typeof forAuthentication,
  ): Promise<TokenSubject | null> {
    const subject = await oneTimeTokens.redeem(tx, purpose, challenge)
    return subject?.data.ceremony === ceremony ? subject : null
  }

  return {
    async registerOptions(caller) {
      const party = getRelyingParty()
      const userId = caller.auth.id
      const input = { purpose, userId, data: forRegistration, lifetimeMs: passkeyChallengeLifetimeMs } as const
      const { account, existing, challenge } = await database.write(async (tx) => {
        const room = await getRoom(tx, userId)
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        return { ...room, challenge: await oneTimeTokens.issue(tx, input) }
      })
      const displayName = account.displayName ?? ''
      const userName = account.email ?? (displayName || userId)
      return createCreationOptions(party, { challenge, userId, userName, displayName, existing })
    },

    async register(userId, response, name) {
      const answer = await verifyCreation(getRelyingParty(), response)
      if (!answer || answer.outcome.publicKey.length > passkeyPublicKeyBytesMax) throw notGenuine()
      try {
        return await database.write(async (tx) => {
          await getRoom(tx, userId)
          const subject = await redeemChallenge(tx, answer.challenge, forRegistration)
          if (subject?.userId !== userId) throw notGenuine()
          return credentials.insert(tx, { userId, name }, answer.outcome)
        })
      } catch (error) {
        if (error instanceof EngineError && error.kind === 'unique') throw conflict('The passkey is registered already')
        throw error
      }
    },

    async authOptions(email) {
      const party = getRelyingParty()
      const about = email === null ? {} : { email: normalizeEmail(email) }
      const input = { purpose, data: forAuthentication, lifetimeMs: passkeyChallengeLifetimeMs, ...about } as const
      return createRequestOptions(party, await database.write((tx) => oneTimeTokens.issue(tx, input)))
    },

    async authenticate(response, client) {
      const party = getRelyingParty()
      const passkey = await credentials.find(database, response.id)
      const answer = passkey && (await verifyRequest(party, response, passkey))
      if (!answer) throw invalidPasskey()
      return database.write(async (tx) => {
        const account = await accounts.find(tx, passkey.userId, 'lock')
        const subject = await redeemChallenge(tx, answer.challenge, forAuthentication)
        if (!account || !subject || (subject.email !== null && subject.email !== account.email)) throw invalidPasskey()
        // Names the user in the authenticator's words; that of another user means a key that was moved.
        if (response.response.userHandle !== handleOf(account)) throw invalidPasskey()
        if (!(await credentials.touch(tx, answer.outcome))) throw invalidPasskey()
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
        if (!(await hasSignInMethod(tx, database.dialect, account, mailer.isConfigured)))
          throw conflict('This is the last way into the account')
      }),
  }
}

const handleOf = ({ id }: Account): string => Buffer.from(id).toString('base64url')

const notGenuine = () => badRequest('The passkey could not be verified')
const invalidPasskey = () => invalidCredentials('Invalid passkey')
