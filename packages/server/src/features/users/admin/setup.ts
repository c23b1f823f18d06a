/**
 * The first administrator of a new server: a link that the server prints at its start while there is none, good once.
 * Owns what the link holds and what it makes; where it is printed is the command line's matter.
 */
import { z } from 'zod'
import type { Reader } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { setupTokenCharsMax, setupTokenLifetimeMs } from '../../../limits/users.ts'
import { displayNameField, emailField, passwordField } from '../accounts/fields.ts'
import { emailTaken, mapUniqueToConflict, normalizeEmail } from '../email/normalize.ts'
import type { UsersParts } from '../parts.ts'
import {
  type ClientInfo,
  clientOf,
  type MfaRequired,
  type SignedIn,
  signedInSchema,
} from '../sessions/complete-sign-in.ts'
import { usersTable } from '../tables.ts'
import { setupPage, setupPageHeaders } from './setup-page.ts'

const adminRole = 'admin'

/** Where a set-up link leads; the token stands behind a `#`. */
export const setupPath = '/setup'

export const setupBody = z.strictObject({
  token: z.string().max(setupTokenCharsMax),
  email: emailField,
  password: passwordField,
  displayName: displayNameField.optional(),
})
export type SetupInput = z.infer<typeof setupBody>

export interface Setup {
  /** A token for a set-up link; null once there is an administrator. */
  issue(): Promise<string | null>
  /** Whether there is no administrator yet. */
  isNeeded(): Promise<boolean>
  /**
   * Makes the first administrator and signs in; of any number of tries with any number of tokens, one does. Throws 401
   * for a token that is not good or not needed any more, 400, and 409 when the e-mail is taken.
   */
  setUp(input: SetupInput, client: ClientInfo): Promise<SignedIn | MfaRequired>
}

type SetupDeps = Pick<UsersParts, 'database' | 'accounts' | 'passwords' | 'oneTimeTokens' | 'completeSignIn' | 'clock'>

export function createSetup({ database, accounts, passwords, oneTimeTokens, completeSignIn, clock }: SetupDeps): Setup {
  const { dialect } = database
  const users = usersTable(dialect, 'users')
  const tokens = usersTable(dialect, 'one_time_tokens')

  async function hasAdmin(on: Reader): Promise<boolean> {
    return (await on.all(sql`SELECT 1 FROM ${users} WHERE role = ${adminRole} LIMIT 1`)).length > 0
  }

  return {
    isNeeded: async () => !(await hasAdmin(database)),

    async issue() {
      if (await hasAdmin(database)) return null
      return database.write((tx) => oneTimeTokens.issue(tx, { purpose: 'setup', lifetimeMs: setupTokenLifetimeMs }))
    },

    async setUp({ token, email: written, password, displayName = null }, client) {
      const email = normalizeEmail(written)
      passwords.check(password)
      // Nobody has the server hash without a token.
      if (!(await oneTimeTokens.find(database, 'setup', token))) throw invalidToken()
      const administrator = {
        email,
        // The operator of the server vouches for it: only they have the link.
        emailVerifiedAtMs: clock.now(),
        passwordHash: await passwords.hash(password),
        isAdminPassword: true,
        displayName,
        role: adminRole,
      }
      return mapUniqueToConflict(() =>
        database.write(async (tx) => {
          // Two links may be in use at the same time.
          await tx.lock('users set-up')
          if ((await hasAdmin(tx)) || !(await oneTimeTokens.redeem(tx, 'setup', token))) throw invalidToken()
          if (await accounts.findByEmail(tx, email)) throw emailTaken()
          const account = await accounts.insert(tx, administrator)
          await tx.run(sql`DELETE FROM ${tokens} WHERE purpose = 'setup'`)
          return completeSignIn(tx, account, client)
        }),
      )
    },
  }
}

export const createSetupEndpoints = (setup: Setup): readonly Endpoint[] => [
  endpoint({
    name: 'users.setupPage',
    method: 'GET',
    paths: [setupPath],
    tag: 'Users',
    summary: 'The page that a set-up link opens',
    allowsUnknownQuery: true,
    credentials: 'public',
    rateLimit: 'auth',
    replies: { 200: { description: 'An HTML page' } },
    handle: () => ({
      status: 200,
      text: setupPage,
      contentType: 'text/html; charset=utf-8',
      headers: setupPageHeaders,
    }),
  }),
  endpoint({
    name: 'users.setUp',
    method: 'POST',
    paths: ['/api/auth/setup'],
    tag: 'Users',
    summary: 'Create the first administrator',
    description: 'With the token of the link that a server prints while it has no user with the role `admin`.',
    credentials: 'public',
    rateLimit: 'auth',
    body: setupBody,
    replies: { 201: { description: 'The administrator, signed in', schema: signedInSchema } },
    errors: [401, 409],
    handle: async (call) => json(await setup.setUp(call.body, clientOf(call)), 201),
  }),
]
