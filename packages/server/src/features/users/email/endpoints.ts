/** Endpoints of every flow that sends mail or redeems a token from one. */

import { callerKey, requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { oneTimeTokenCharsMax } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import { deviceTokenField, emailField, linkTargetFields, localeField, passwordField } from '../accounts/fields.ts'
import { userView, userViewSchema } from '../accounts/user-view.ts'
import { hookedRequest } from '../hooks/hooked-request.ts'
import type { UsersParts } from '../parts.ts'
import { clientOf, signInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import { createEmailChange } from './change.ts'
import { type MailLinkTo, parseLinkTarget } from './links.ts'
import { normalizeEmail } from './normalize.ts'
import type { EmailOwnership } from './ownership.ts'
import { createPasswordReset } from './password-reset.ts'
import type { EmailRequest } from './requests.ts'
import { createEmailSignIn } from './sign-in.ts'
import type { EmailVerification } from './verification.ts'

const device = { deviceToken: deviceTokenField.optional() }
const requestBody = z.strictObject({
  email: emailField,
  locale: localeField.optional(),
  ...device,
  ...linkTargetFields,
})
const codeRequestBody = z.strictObject({ email: emailField, locale: localeField.optional(), ...device })
const verificationBody = z.strictObject({ ...device, ...linkTargetFields })
const token = z.string().min(1).max(oneTimeTokenCharsMax)
const tokenBody = z.strictObject({ token })
const codeBody = z.strictObject({
  email: emailField,
  // Codes are often pasted with surrounding spaces.
  code: z
    .string()
    .trim()
    .regex(/^[0-9]{6}$/, 'must be six digits'),
  ...device,
})
const resetBody = z.strictObject({ token, newPassword: passwordField })
const changeBody = z.strictObject({
  newEmail: emailField,
  password: passwordField.optional(),
  ...device,
  ...linkTargetFields,
})

const ok = json({ ok: true })
const done = (description: string) => ({ 200: { description, schema: z.object({ ok: z.literal(true) }) } })
const verified = (description: string) => {
  const user = userViewSchema.optional().meta({ description: 'Where the access token is that of the account' })
  return { 200: { description, schema: z.object({ ok: z.literal(true), user }) } }
}
const confirm = (account: Account | null) => (account ? json({ ok: true, user: userView(account) }) : ok)
const accepted = done('Accepted. The response does not reveal whether an account exists or a mail is sent')
const signedIn = { 200: { description: 'Signed in, or a ticket for the second factor', schema: signInSchema } }

/** The shared services and those of the email area. */
export interface EmailParts extends UsersParts {
  readonly linkTo: MailLinkTo
  readonly ownership: EmailOwnership
  readonly verification: EmailVerification
}

const common = { method: 'POST', tag: 'Users', rateLimit: 'auth' } as const
const unauthenticated = { ...common, credentials: 'public' } as const
const user = { ...common, credentials: 'user' } as const

/** The parts of a call that a mail request is parsed from. */
type RequestCall = Call<unknown, z.output<typeof requestBody>>

export function createEmailEndpoints(parts: EmailParts): readonly Endpoint[] {
  const { linkTo, ownership, verification, config } = parts
  /** Throws 400. */
  const parseRequest = (call: RequestCall): EmailRequest => ({
    email: normalizeEmail(call.body.email),
    locale: call.body.locale ?? null,
    client: clientOf(call, call.body.deviceToken),
    target: parseLinkTarget(config(), call.body),
  })
  const signIn = createEmailSignIn({ ...parts, linkTo, ownership })
  const passwordReset = createPasswordReset({ ...parts, linkTo, ownership })
  const change = createEmailChange({ ...parts, linkTo, ownership })
  return [
    endpoint({
      ...unauthenticated,
      name: 'users.requestMagicLink',
      paths: ['/api/auth/signin/magic-link'],
      summary: 'Request a sign-in link',
      description: 'If sign-up is open, the link also creates an account for a new address.',
      body: requestBody,
      replies: accepted,
      async handle(call) {
        await signIn.requestLink(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.verifyMagicLink',
      paths: ['/api/auth/verify-magic-link'],
      summary: 'Sign in with the token of a sign-in link',
      body: tokenBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => json(await signIn.redeemLink(call.body.token, clientOf(call))),
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.requestEmailCode',
      paths: ['/api/auth/signin/email-otp'],
      summary: 'Request a sign-in code',
      description: 'If sign-up is open, the code also creates an account for a new address.',
      body: codeRequestBody,
      replies: accepted,
      async handle(call) {
        await signIn.requestCode(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.verifyEmailCode',
      paths: ['/api/auth/verify-email-otp'],
      summary: 'Sign in with a code',
      description: 'Five wrong codes invalidate the code; request a new one.',
      body: codeBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => {
        const { email, code, deviceToken } = call.body
        return json(await signIn.redeemCode(normalizeEmail(email), code, clientOf(call, deviceToken)))
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.requestPasswordReset',
      paths: ['/api/auth/request-password-reset'],
      summary: 'Request a password reset link',
      body: requestBody,
      replies: accepted,
      async handle(call) {
        await passwordReset.request(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.resetPassword',
      paths: ['/api/auth/reset-password'],
      summary: 'Reset the password with the token of a link',
      description: 'Ends every session of the user. Does not sign in.',
      body: resetBody,
      replies: done('The password is set'),
      errors: [401, 403],
      async handle({ body, caller }) {
        await passwordReset.reset(body.token, body.newPassword, callerKey(caller))
        return ok
      },
    }),
    endpoint({
      ...user,
      name: 'users.requestEmailVerification',
      paths: ['/api/auth/request-email-verification'],
      summary: 'Request a verification link for the own address',
      body: verificationBody,
      isBodyOptional: true,
      replies: accepted,
      async handle(call) {
        const { body } = call
        const target = parseLinkTarget(config(), body)
        await verification.request(userIdOf(call.caller), clientOf(call, body.deviceToken), target)
        return ok
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.verifyEmail',
      paths: ['/api/auth/verify-email'],
      summary: 'Verify an address with the token of a link',
      description:
        'Send the access token of the account if the user is signed in. Without it, the first verification of an address ends every session and removes the password and every other sign-in method set up before; the owner of the mailbox then signs in by mail.',
      body: tokenBody,
      replies: verified('The address is verified'),
      errors: [401],
      handle: async ({ body, caller }) => confirm(await verification.verify(body.token, caller)),
    }),
    endpoint({
      ...user,
      name: 'users.changeEmail',
      paths: ['/api/auth/change-email'],
      summary: 'Request a change of address',
      description:
        'Sends a link to the new address and a notice to the old one. Requires the password, or for accounts without one a sign-in in the last ten minutes.',
      body: changeBody,
      replies: accepted,
      async handle(call) {
        const { newEmail, password, deviceToken } = call.body
        const target = parseLinkTarget(config(), call.body)
        const input = { newEmail: normalizeEmail(newEmail, 'newEmail'), password, target }
        await change.request(requireUser(call.caller), input, clientOf(call, deviceToken))
        return ok
      },
    }),
    endpoint({
      ...unauthenticated,
      name: 'users.verifyEmailChange',
      paths: ['/api/auth/verify-email-change'],
      summary: 'Change the address with the token of a link',
      description:
        'With an access token of the account, ends its other sessions. Without one, ends every session and removes the password and every other sign-in method, as `verify-email` does.',
      body: tokenBody,
      replies: verified('The address is changed'),
      errors: [401, 403, 409],
      handle: async (call) => confirm(await change.verify(call.body.token, hookedRequest(call))),
    }),
  ]
}
