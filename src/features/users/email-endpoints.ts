/**
 * The HTTP surface of everything that happens by mail, as a table. What the endpoints do is in the noun files beside
 * it.
 */
import { z } from 'zod'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/reply.ts'
import { oneTimeTokenCharsMax } from '../../limits-users.ts'
import { normaliseEmail } from './email.ts'
import type { EmailAddress } from './email-address.ts'
import type { EmailOwnership } from './email-ownership.ts'
import { createPasswordReset } from './email-password-reset.ts'
import type { EmailRequest } from './email-requests.ts'
import { createEmailSignIn } from './email-sign-in.ts'
import { emailField, localeField, passwordField } from './fields.ts'
import type { MailLinkTo } from './mail-links.ts'
import type { UsersParts } from './parts.ts'
import { clientOf, signInSchema, userIdOf, userOf } from './sign-in.ts'

const requestBody = z.strictObject({ email: emailField, locale: localeField.optional() })
const token = z.string().min(1).max(oneTimeTokenCharsMax)
const tokenBody = z.strictObject({ token })
const codeBody = z.strictObject({
  email: emailField,
  // People copy codes together with the space around them.
  code: z
    .string()
    .trim()
    .regex(/^[0-9]{6}$/, 'must be six digits'),
})
const resetBody = z.strictObject({ token, newPassword: passwordField })
const changeBody = z.strictObject({ newEmail: emailField, password: passwordField.optional() })

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

const parseRequest = ({ email, locale = null }: z.output<typeof requestBody>): EmailRequest => ({
  email: normaliseEmail(email),
  locale,
})

export function createEmailEndpoints(parts: EmailParts): readonly Endpoint[] {
  const { linkTo, ownership, address } = parts
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
      async handle({ body }) {
        await signIn.requestLink(parseRequest(body))
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
      body: requestBody,
      replies: asked,
      async handle({ body }) {
        await signIn.requestCode(parseRequest(body))
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
        const { email, code } = call.body
        return json(await signIn.redeemCode(normaliseEmail(email), code, clientOf(call)))
      },
    }),
    endpoint({
      ...anyone,
      name: 'users.requestPasswordReset',
      paths: ['/api/auth/request-password-reset'],
      summary: 'Ask for a link to set a new password with',
      body: requestBody,
      replies: asked,
      async handle({ body }) {
        await passwordReset.request(parseRequest(body))
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
      replies: asked,
      async handle({ caller }) {
        await address.requestVerification(userIdOf(caller))
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
        'A link goes to the new address, a notice to the old one. Who has a password must give it. With a second factor or a passkey and no password, only in the ten minutes after a sign-in.',
      body: changeBody,
      replies: asked,
      async handle({ caller, body }) {
        await address.requestChange(userOf(caller), normaliseEmail(body.newEmail, 'newEmail'), body.password)
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
