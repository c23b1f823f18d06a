/** Endpoints of second factors. `mfa` implements them. */

import { requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { invalidField } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { mfaTextCharsMax } from '../../../limits/users.ts'
import { passwordField } from '../accounts/fields.ts'
import { clientOf, signedInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import type { Mfa, MfaState, RemovalProof } from './mfa.ts'

const text = z.string().min(1).max(mfaTextCharsMax)
const confirmBody = z.strictObject({ factorId: text, code: text })
const verifyBody = z.strictObject({ mfaTicket: text, code: text })
const recoveryBody = z.strictObject({ mfaTicket: text, recoveryCode: text })
const removeBody = z.strictObject({
  code: text.optional(),
  recoveryCode: text.optional(),
  password: passwordField.optional(),
})

const enrollment = z.object({
  factorId: z.string(),
  secret: z.string().meta({ description: 'Base32, for manual entry' }),
  qrCodeUri: z.string().meta({ description: '`otpauth:` URI to display as a QR code' }),
  recoveryCodes: z.array(z.string()),
})
const factorList = z.object({
  factors: z.array(
    z.object({ id: z.string(), type: z.literal('totp'), verified: z.boolean(), createdAt: z.iso.datetime() }),
  ),
  recoveryCodesLeft: z.number(),
})
const done = { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } }
const signedIn = { 200: { description: 'Signed in', schema: signedInSchema } }
const ok = json({ ok: true })

const common = { tag: 'Second factors', rateLimit: 'auth' } as const

export function createMfaEndpoints(mfa: Mfa): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      name: 'mfa.enrollTotp',
      method: 'POST',
      paths: ['/api/auth/mfa/totp/enroll'],
      credentials: 'user',
      summary: 'Enroll an authenticator app',
      description:
        'Sign-ins require a code after the first one was verified. The recovery codes are returned only here. Requires a sign-in in the last ten minutes.',
      replies: { 200: { description: 'The secret and the recovery codes', schema: enrollment } },
      errors: [403, 409],
      handle: async ({ caller }) => json(await mfa.enroll(requireUser(caller))),
    }),
    endpoint({
      ...common,
      name: 'mfa.verifyTotp',
      method: 'POST',
      paths: ['/api/auth/mfa/totp/verify'],
      credentials: 'user',
      summary: 'Activate an enrolled authenticator app',
      description: 'The code is used by this request; the next sign-in needs the next one.',
      body: confirmBody,
      replies: done,
      errors: [404, 409],
      async handle({ caller, body: { factorId, code } }) {
        await mfa.confirm(userIdOf(caller), factorId, code)
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'mfa.removeTotp',
      method: 'DELETE',
      paths: ['/api/auth/mfa/totp'],
      credentials: 'user',
      summary: 'Remove the authenticator app',
      description:
        'Requires a code of the app, a recovery code or the password. An administrator can remove the factor of a user who has none of them.',
      body: removeBody,
      replies: done,
      errors: [404],
      async handle({ caller, body }) {
        await mfa.remove(requireUser(caller), parseProof(body))
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'mfa.listFactors',
      method: 'GET',
      paths: ['/api/auth/mfa/factors'],
      credentials: 'user',
      summary: 'List second factors',
      replies: { 200: { description: 'The factors and the number of unused recovery codes', schema: factorList } },
      handle: async ({ caller }) => json(factorsView(await mfa.state(userIdOf(caller)))),
    }),
    endpoint({
      ...common,
      name: 'mfa.verify',
      method: 'POST',
      paths: ['/api/auth/mfa/verify'],
      credentials: 'public',
      summary: 'Complete a sign-in with a code',
      description: 'With the ticket that the first step of the sign-in returned.',
      body: verifyBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => {
        const { mfaTicket, code } = call.body
        return json(await mfa.verify(mfaTicket, { code }, clientOf(call)))
      },
    }),
    endpoint({
      ...common,
      name: 'mfa.recover',
      method: 'POST',
      paths: ['/api/auth/mfa/recovery'],
      credentials: 'public',
      summary: 'Complete a sign-in with a recovery code',
      description: 'Each recovery code works once.',
      body: recoveryBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => {
        const { mfaTicket, recoveryCode } = call.body
        return json(await mfa.verify(mfaTicket, { recoveryCode }, clientOf(call)))
      },
    }),
  ]
}

/** Throws 400 unless exactly one of the three is present. */
function parseProof({ code, recoveryCode, password }: z.output<typeof removeBody>): RemovalProof {
  const given = [
    ...(code === undefined ? [] : [{ code }]),
    ...(recoveryCode === undefined ? [] : [{ recoveryCode }]),
    ...(password === undefined ? [] : [{ password }]),
  ]
  const [proof] = given
  if (proof && given.length === 1) return proof
  throw invalidField('code', 'required', 'or recoveryCode or password is required; send exactly one of the three')
}

const factorsView = ({ factor, recoveryCodesLeft }: MfaState) => ({
  factors: factor
    ? [
        {
          id: factor.id,
          type: 'totp',
          verified: factor.confirmedAtMs !== null,
          createdAt: formatDatetime(factor.createdAtMs),
        },
      ]
    : [],
  recoveryCodesLeft,
})
