/**
 * Set-up of the first administrator: while a server has none, it prints a link at start that works once. Owns the token
 * of the link and the account that it creates.
 */

import { callerKey } from '../../../access/caller.ts'
import { ownerRole } from '../../../access/dashboard-roles.ts'
import { z } from '../../../base/schemas/z.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { conflict, invalidToken } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { setupTokenCharsMax, setupTokenLifetimeMs } from '../../../limits/users.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { displayNameField, emailField, passwordField } from '../accounts/fields.ts'
import { emailTaken, mapUniqueToConflict, normalizeEmail } from '../email/normalize.ts'
import { usersTable } from '../migrations.ts'
import type { UsersParts } from '../parts.ts'
import { clientOf, type MfaRequired, signedInSchema } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import { setupPage, setupPageHeaders } from './setup-page.ts'

const adminRole = 'admin'

/** Path of the set-up link; the token is its fragment. */
export const setupPath = '/setup'

/** The same in the dashboard. Browsers keep the fragment when they are redirected. */
const dashboardSetupPath = '/dashboard/setup'

export const setupBody = z.strictObject({
  token: z.string().max(setupTokenCharsMax),
  email: emailField,
  password: passwordField,
  displayName: displayNameField.optional(),
})
export type SetupInput = z.infer<typeof setupBody>

export interface Setup {
  /** A token for a set-up link; null if there is an administrator. */
  issue(): Promise<string | null>
  /** Whether the server has no administrator yet. */
  isNeeded(): Promise<boolean>
  /**
   * Creates the first administrator and signs in. Of any number of concurrent attempts with any number of tokens, one
   * succeeds. Rejects with 401 if the token is invalid or there is an administrator, 400, 409 if the email is taken or
   * the application's hook changes the role, and as the hook does.
   */
  setUp(input: SetupInput, client: ClientInfo): Promise<SignedIn | MfaRequired>
}

type SetupDeps = Pick<
  UsersParts,
  'database' | 'accounts' | 'hooks' | 'passwords' | 'oneTimeTokens' | 'completeSignIn' | 'clock'
>

export function createSetup(deps: SetupDeps): Setup {
  const { database, accounts, hooks, passwords, oneTimeTokens, completeSignIn, clock } = deps
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
      // No password is hashed for an invalid token.
      if (!(await oneTimeTokens.find(database, 'setup', token))) throw invalidToken()
      const administrator = {
        email,
        // Trusted: only the operator of the server has the link.
        emailVerifiedAtMs: clock.now(),
        passwordHash: await passwords.hash(password, callerKey(client.request.caller)),
        isAdminPassword: true,
        displayName,
        role: adminRole,
        dashboardRole: ownerRole,
      }
      return mapUniqueToConflict(() =>
        hooks.write(async (tx) => {
          // Several links may be valid at the same time.
          await tx.lock('users set-up')
          if ((await hasAdmin(tx)) || !(await oneTimeTokens.redeem(tx, 'setup', token))) throw invalidToken()
          if (await accounts.findByEmail(tx, email)) throw emailTaken()
          const account = await accounts.insert(tx, administrator, { provider: null, request: client.request })
          if (account.role !== adminRole) throw conflict('The application gives the administrator another role')
          await tx.run(sql`DELETE FROM ${tokens} WHERE purpose = 'setup'`)
          return completeSignIn(tx, account, client)
        }),
      )
    },
  }
}

export const createSetupEndpoints = (setup: Setup, hasDashboard: () => boolean): readonly Endpoint[] => [
  endpoint({
    name: 'users.setupPage',
    method: 'GET',
    paths: [setupPath],
    tag: 'Users',
    summary: 'Get the set-up page',
    description: 'Redirects to the page of the dashboard, unless that is switched off.',
    allowsUnknownQuery: true,
    credentials: 'public',
    rateLimit: 'auth',
    replies: { 200: { description: 'An HTML page' }, 302: { description: 'To the page of the dashboard' } },
    handle: () =>
      hasDashboard()
        ? { status: 302, text: '', headers: { Location: dashboardSetupPath, 'Referrer-Policy': 'no-referrer' } }
        : { status: 200, text: setupPage, contentType: 'text/html; charset=utf-8', headers: setupPageHeaders },
  }),
  endpoint({
    name: 'users.setUp',
    method: 'POST',
    paths: ['/api/auth/setup'],
    tag: 'Users',
    summary: 'Create the first administrator',
    description:
      'With the token of the set-up link, which a server without a user of the role `admin` prints at start.',
    credentials: 'public',
    rateLimit: 'auth',
    body: setupBody,
    replies: { 201: { description: 'The administrator, signed in', schema: signedInSchema } },
    errors: [401, 409],
    handle: async (call) => json(await setup.setUp(call.body, clientOf(call)), 201),
  }),
]
