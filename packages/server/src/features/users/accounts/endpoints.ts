/** Endpoints for sign-up, sign-in by password, and the profile of the signed-in user. */

import { type Caller, requireUser, type UserCaller } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import type { AuthConfig } from '../../../config/sections/auth/auth.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { isExempt } from '../../../http/security/rate-limit.ts'
import { parseLinkTarget } from '../email/links.ts'
import { clientOf, signedInSchema, signInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import {
  avatarUrlField,
  deviceTokenField,
  displayNameField,
  emailField,
  emailVisibilityField,
  linkTargetFields,
  localeField,
  metadataField,
  passwordField,
} from './fields.ts'
import type { PasswordAccounts, ProfileChanges } from './password-accounts.ts'
import { userView, userViewSchema } from './user-view.ts'

const tag = 'Users'

const signUpBody = z.strictObject({
  email: emailField,
  password: passwordField,
  data: z.strictObject({ displayName: displayNameField.optional(), avatarUrl: avatarUrlField.optional() }).optional(),
  locale: localeField.optional(),
  ...linkTargetFields,
})
const signInBody = z.strictObject({
  email: emailField,
  password: passwordField,
  deviceToken: deviceTokenField.optional(),
})
const changePasswordBody = z.strictObject({ currentPassword: passwordField, newPassword: passwordField })
const profileBody = z.strictObject({
  displayName: displayNameField.optional(),
  avatarUrl: avatarUrlField.optional(),
  emailVisibility: emailVisibilityField.optional(),
  locale: localeField.optional(),
  metadata: metadataField.optional(),
})

const userReply = { 200: { description: 'The user', schema: z.object({ user: userViewSchema }) } }

/** The caller, if anonymous: signing up then upgrades that account. */
const anonymousUser = (caller: Caller): UserCaller | null =>
  caller.kind === 'user' && caller.auth.isAnonymous ? caller : null

/** The fields that were sent. */
const given = (body: z.output<typeof profileBody>): ProfileChanges =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

export function createAccountEndpoints(accounts: PasswordAccounts, config: () => AuthConfig): readonly Endpoint[] {
  return [
    endpoint({
      name: 'users.signUp',
      method: 'POST',
      paths: ['/api/auth/signup'],
      tag,
      summary: 'Sign up with email and password',
      description:
        'With the access token of an anonymous user, upgrades that account: it gets the email and the password and keeps its id.',
      credentials: 'public',
      rateLimit: 'signup',
      body: signUpBody,
      replies: { 201: { description: 'The new account, signed in', schema: signedInSchema } },
      errors: [403, 409],
      async handle(call) {
        const { email, password, data = {}, locale = null } = call.body
        const { displayName = null, avatarUrl = null } = data
        const target = parseLinkTarget(config(), call.body)
        const input = { email, password, displayName, avatarUrl, locale, target }
        return json(await accounts.signUp(input, clientOf(call), anonymousUser(call.caller)), 201)
      },
    }),
    endpoint({
      name: 'users.signIn',
      method: 'POST',
      paths: ['/api/auth/signin'],
      tag,
      summary: 'Sign in with email and password',
      description:
        'If the user has a second factor, returns a ticket for `POST /api/auth/mfa/verify` instead of tokens.',
      credentials: 'public',
      rateLimit: 'auth',
      body: signInBody,
      replies: { 200: { description: 'Signed in, or a ticket for the second factor', schema: signInSchema } },
      errors: [401, 403],
      async handle(call) {
        const { email, password, deviceToken } = call.body
        const exempt = isExempt(call.caller, 'signin')
        return json(await accounts.signIn(email, password, clientOf(call, deviceToken), exempt))
      },
    }),
    endpoint({
      name: 'users.signInAnonymously',
      method: 'POST',
      paths: ['/api/auth/signin/anonymous'],
      tag,
      summary: 'Sign up anonymously',
      credentials: 'public',
      rateLimit: 'signup',
      replies: { 201: { description: 'The new account, signed in', schema: signedInSchema } },
      errors: [403],
      handle: async (call) => json(await accounts.signUpAnonymously(clientOf(call)), 201),
    }),
    endpoint({
      name: 'users.changePassword',
      method: 'POST',
      paths: ['/api/auth/change-password'],
      tag,
      summary: 'Change the password',
      description:
        'Ends every session of the user and returns a new one, which keeps the start time of the current one.',
      credentials: 'user',
      rateLimit: 'auth',
      body: changePasswordBody,
      replies: { 200: { description: 'The new session', schema: signedInSchema } },
      errors: [404],
      async handle(call) {
        const { currentPassword, newPassword } = call.body
        const caller = requireUser(call.caller)
        return json(await accounts.changePassword(caller, currentPassword, newPassword, clientOf(call)))
      },
    }),
    endpoint({
      name: 'users.me',
      method: 'GET',
      paths: ['/api/auth/me'],
      tag,
      summary: 'Get the signed-in user',
      credentials: 'user',
      rateLimit: 'auth',
      replies: userReply,
      errors: [404],
      handle: async ({ caller }) => json({ user: userView(await accounts.get(userIdOf(caller))) }),
    }),
    endpoint({
      name: 'users.changeProfile',
      method: 'PATCH',
      paths: ['/api/auth/profile'],
      tag,
      summary: 'Update the profile',
      description: 'Omitted fields keep their values. `metadata` is replaced, not merged.',
      credentials: 'user',
      rateLimit: 'auth',
      body: profileBody,
      replies: userReply,
      errors: [404],
      handle: async ({ caller, body }) =>
        json({ user: userView(await accounts.changeProfile(userIdOf(caller), given(body))) }),
    }),
  ]
}
