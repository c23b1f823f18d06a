/**
 * The HTTP surface of everything that happens by mail, as a table. What the endpoints do is in the noun files beside
 * it.
 */

import { z } from 'zod'
import { requireUser } from '../../../access/caller.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { oneTimeTokenCharsMax } from '../../../limits/users.ts'
import { deviceTokenField, emailField, linkTargetFields, localeField, passwordField } from '../accounts/fields.ts'
import type { UsersParts } from '../parts.ts'
import { clientOf, signInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import type { EmailAddress } from './address.ts'
import { type MailLinkTo, parseLinkTarget } from './links.ts'
import { normalizeEmail } from './normalize.ts'
import type { EmailOwnership } from './ownership.ts'
import { createPasswordReset } from './password-reset.ts'
import type { EmailRequest } from './requests.ts'
import { createEmailSignIn } from './sign-in.ts'

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
  // People copy codes together with the space around them.
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
const asked = done('Said whether or not there is such an account, and whether or not a mail is sent')
const signedIn = { 200: { description: 'Signed in, or the ticket for the second factor', schema: signInSchema } }

/** What the feature's parts lack. */
export interface EmailParts extends UsersParts {
  readonly linkTo: MailLinkTo
  readonly ownership: EmailOwnership
  readonly address: EmailAddress
}

const common = { method: 'POST', tag: 'Users', rateLimit: 'auth' } as const
const anyone = { ...common, credentials: 'public' } as const
const user = { ...common, credentials: 'user' } as const

/** A request for a mail about an address. */
type RequestCall = Pick<Call, 'headers' | 'address'> & { readonly body: z.output<typeof requestBody> }

export function createEmailEndpoints(parts: EmailParts): readonly Endpoint[] {
  const { linkTo, ownership, address, config } = parts
  /** Throws 400. */
  const parseRequest = (call: RequestCall): EmailRequest => ({
    email: normalizeEmail(call.body.email),
    locale: call.body.locale ?? null,
    client: clientOf(call, call.body.deviceToken),
    target: parseLinkTarget(config(), call.body),
  })
  const signIn = createEmailSignIn({ ...parts, linkTo, ownership })
  const passwordReset = createPasswordReset({ ...parts, linkTo, ownership })
  return [
    endpoint({
      ...anyone,
      name: 'users.requestMagicLink',
      paths: ['/api/auth/signin/magic-link'],
      summary: 'Ask for a link to sign in with',
      description: 'Whoever has no account yet gets one by following the link, where people may sign up.',
      body: requestBody,
      replies: asked,
      async handle(call) {
        await signIn.requestLink(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.verifyMagicLink',
      paths: ['/api/auth/verify-magic-link'],
      summary: 'Sign in with the token of a link',
      body: tokenBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => json(await signIn.redeemLink(call.body.token, clientOf(call))),
    }),
    endpoint({
      ...anyone,
      name: 'users.requestEmailCode',
      paths: ['/api/auth/signin/email-otp'],
      summary: 'Ask for a code to sign in with',
      description: 'Whoever has no account yet gets one by typing the code, where people may sign up.',
      body: codeRequestBody,
      replies: asked,
      async handle(call) {
        await signIn.requestCode(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.verifyEmailCode',
      paths: ['/api/auth/verify-email-otp'],
      summary: 'Sign in with a code',
      description: 'After five wrong codes there must be a new one.',
      body: codeBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => {
        const { email, code, deviceToken } = call.body
        return json(await signIn.redeemCode(normalizeEmail(email), code, clientOf(call, deviceToken)))
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.requestPasswordReset',
      paths: ['/api/auth/request-password-reset'],
      summary: 'Ask for a link to set a new password with',
      body: requestBody,
      replies: asked,
      async handle(call) {
        await passwordReset.request(parseRequest(call))
        return ok
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.resetPassword',
      paths: ['/api/auth/reset-password'],
      summary: 'Set a new password with the token of a link',
      description: 'Ends every session of the user; signing in is another request.',
      body: resetBody,
      replies: done('The password is set'),
      errors: [401, 403],
      async handle({ body }) {
        await passwordReset.reset(body.token, body.newPassword)
        return ok
      },
    }),
    endpoint({
      ...user,
      name: 'users.requestEmailVerification',
      paths: ['/api/auth/request-email-verification'],
      summary: 'Ask for a link that verifies one’s own address',
      body: verificationBody,
      isBodyOptional: true,
      replies: asked,
      async handle(call) {
        const { body } = call
        const target = parseLinkTarget(config(), body)
        await address.requestVerification(userIdOf(call.caller), clientOf(call, body.deviceToken), target)
        return ok
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.verifyEmail',
      paths: ['/api/auth/verify-email'],
      summary: 'Verify an address with the token of a link',
      description:
        'Send it with the access token of the account where the user is signed in. Without, the first proof of an address ends every session and removes the password and every other way to sign in that was set up before: the owner of the mailbox then signs in by mail.',
      body: tokenBody,
      replies: done('The address is verified'),
      errors: [401],
      async handle({ body, caller }) {
        await address.verify(body.token, caller)
        return ok
      },
    }),
    endpoint({
      ...user,
      name: 'users.changeEmail',
      paths: ['/api/auth/change-email'],
      summary: 'Ask for another address',
      description:
        'A link goes to the new address, a notice to the old one. Who has a password must give it. Without a password, only in the ten minutes after a sign-in.',
      body: changeBody,
      replies: asked,
      async handle(call) {
        const { newEmail, password, deviceToken } = call.body
        const target = parseLinkTarget(config(), call.body)
        const change = { newEmail: normalizeEmail(newEmail, 'newEmail'), password, target }
        await address.requestChange(requireUser(call.caller), change, clientOf(call, deviceToken))
        return ok
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.verifyEmailChange',
      paths: ['/api/auth/verify-email-change'],
      summary: 'Change the address with the token of a link',
      description:
        'With a token of the account, ends its other sessions. Without, ends every session and removes the password and every other way to sign in, as for `verify-email`.',
      body: tokenBody,
      replies: done('The address is changed'),
      errors: [401, 403, 409],
      async handle({ body, caller }) {
        await address.verifyChange(body.token, caller)
        return ok
      },
    }),
  ]
}
