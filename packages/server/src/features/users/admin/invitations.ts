/** Invitations: an account without a password, and a mail with a link to choose one. */
import { z } from '../../../base/schemas/z.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { accountDisabled, conflict } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { invitationLifetimeMs } from '../../../limits/users.ts'
import type { Account, NewAccount } from '../accounts/account.ts'
import { type AdminView, adminView } from '../accounts/admin-view.ts'
import { displayNameField, emailField, roleField } from '../accounts/fields.ts'
import type { MailLinkTo } from '../email/links.ts'
import { mapUniqueToConflict, normalizeEmail } from '../email/normalize.ts'
import { composeMail, lifetimeValues } from '../email/requests.ts'
import { type HookedRequest, hookedRequest } from '../hooks/hooked-request.ts'
import type { UsersParts } from '../parts.ts'

const inviteBody = z.strictObject({
  email: emailField,
  displayName: displayNameField.optional(),
  role: roleField.optional(),
})
type InviteInput = z.infer<typeof inviteBody>

export interface InvitationsDeps
  extends Pick<UsersParts, 'database' | 'accounts' | 'hooks' | 'oneTimeTokens' | 'mailer'> {
  readonly linkTo: MailLinkTo
  readonly userSchema: z.ZodType
}

/**
 * Creates the account unless it exists, and mails the link. An account that can be used already is 409: its
 * user resets the password. Rejects with 403 for a disabled account, and as the hook of sign-ups does.
 */
async function invite(deps: InvitationsDeps, input: InviteInput, request: HookedRequest): Promise<AdminView> {
  const { accounts, hooks, oneTimeTokens, mailer, linkTo } = deps
  if (mailer.route === 'none') throw conflict('No mail server is configured')
  const email = normalizeEmail(input.email)
  const { displayName = null, role = 'user' } = input

  async function findInvited(tx: Transaction): Promise<Account | null> {
    const known = await accounts.findByEmail(tx, email, 'lock')
    if (!known) return null
    if (known.disabledAtMs !== null) throw accountDisabled()
    if (known.passwordHash !== null || known.emailVerifiedAtMs !== null)
      throw conflict('The user has an account already')
    return known
  }
  const newAccount: NewAccount = { email, displayName, role }
  const { account, token } = await mapUniqueToConflict(() =>
    hooks.write(async (tx) => {
      const account = (await findInvited(tx)) ?? (await accounts.insert(tx, newAccount, { provider: null, request }))
      const token = await oneTimeTokens.issue(tx, {
        purpose: 'password-reset',
        userId: account.id,
        email,
        lifetimeMs: invitationLifetimeMs,
      })
      return { account, token }
    }),
  )
  const values = { link: linkTo('passwordReset', token), ...lifetimeValues(invitationLifetimeMs) }
  mailer.send({ ...composeMail(email, account, values), template: 'invitation' })
  return adminView(account)
}

export const createInvitationEndpoints = (deps: InvitationsDeps): readonly Endpoint[] => [
  endpoint({
    name: 'admin.inviteUser',
    method: 'POST',
    paths: ['/api/auth/admin/invitations'],
    tag: 'Admin users',
    summary: 'Invite a user by mail',
    description:
      'Creates an account without a password and mails a link to choose one, to the page that resets passwords. Repeated for an account that has not been used, it mails another link.',
    credentials: 'service',
    rateLimit: 'auth',
    scope: () => 'auth:admin:*:write',
    body: inviteBody,
    replies: { 201: { description: 'The user', schema: z.object({ user: deps.userSchema }) } },
    errors: [409],
    handle: async (call) => json({ user: await invite(deps, call.body, hookedRequest(call)) }, 201),
  }),
]
