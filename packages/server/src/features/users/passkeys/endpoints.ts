/** Endpoints of passkeys. `passkeys` implements them. */

import { requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { emailCharsMax, passkeyBodyBytesMax, passkeyNameCharsMax } from '../../../limits/users.ts'
import { clientOf, signedInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import { authenticationResponse, registrationResponse } from './ceremony.ts'
import type { Passkey } from './credentials.ts'
import type { Passkeys } from './passkeys.ts'

const issue = (code: 'min' | 'max' | 'pattern', message: string) => ({ params: { code }, message })

const name = z
  .string()
  .trim()
  .refine((text) => text !== '', issue('min', 'must not be empty'))
  .refine(
    (text) => codePointLength(text) <= passkeyNameCharsMax,
    issue('max', `must have at most ${passkeyNameCharsMax} characters`),
  )
  .refine((text) => isStorableText(text) && !/\p{Cc}/u.test(text), issue('pattern', 'must be one line of text'))

const registerBody = z.strictObject({ response: registrationResponse, name: name.default('Passkey') })
const authOptionsBody = z.strictObject({
  email: z
    .string()
    .max(2 * emailCharsMax)
    .optional()
    .meta({ description: 'Restricts the sign-in to passkeys of this user' }),
})
const authenticateBody = z.strictObject({ response: authenticationResponse })

const passkeyView = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime().nullable(),
  transports: z.array(z.string()),
  backedUp: z.boolean(),
})
const options = z.object({ options: z.record(z.string(), z.unknown()) })

const common = { tag: 'Passkeys', rateLimit: 'auth' } as const

export function createPasskeyEndpoints(passkeys: Passkeys): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      name: 'passkeys.registerOptions',
      method: 'POST',
      paths: ['/api/auth/passkeys/register-options'],
      credentials: 'user',
      summary: 'Get options to register a passkey',
      description:
        'Pass the options to `PublicKeyCredential.parseCreationOptionsFromJSON`. Requires a sign-in in the last ten minutes.',
      replies: { 200: { description: 'Options for the browser', schema: options } },
      errors: [403, 404, 409],
      handle: async ({ caller }) => json({ options: await passkeys.registerOptions(requireUser(caller)) }),
    }),
    endpoint({
      ...common,
      name: 'passkeys.register',
      method: 'POST',
      paths: ['/api/auth/passkeys/register'],
      credentials: 'user',
      summary: 'Register a passkey',
      description: '`response` is the credential of the browser as JSON.',
      body: registerBody,
      bodyBytesMax: passkeyBodyBytesMax,
      replies: { 201: { description: 'The passkey', schema: z.object({ passkey: passkeyView }) } },
      errors: [403, 404, 409],
      async handle({ caller, body: { response, name } }) {
        return json({ passkey: viewOf(await passkeys.register(userIdOf(caller), response, name)) }, 201)
      },
    }),
    endpoint({
      ...common,
      name: 'passkeys.authOptions',
      method: 'POST',
      paths: ['/api/auth/passkeys/auth-options'],
      credentials: 'public',
      summary: 'Get options to sign in with a passkey',
      description: 'Pass the options to `PublicKeyCredential.parseRequestOptionsFromJSON`.',
      body: authOptionsBody,
      replies: { 200: { description: 'Options for the browser', schema: options } },
      errors: [404],
      handle: async ({ body: { email = null } }) => json({ options: await passkeys.authOptions(email) }),
    }),
    endpoint({
      ...common,
      name: 'passkeys.authenticate',
      method: 'POST',
      paths: ['/api/auth/passkeys/authenticate'],
      credentials: 'public',
      summary: 'Sign in with a passkey',
      description:
        '`response` is the credential of the browser as JSON. No second factor is required: a passkey counts as two.',
      body: authenticateBody,
      bodyBytesMax: passkeyBodyBytesMax,
      replies: { 200: { description: 'Signed in', schema: signedInSchema } },
      errors: [401, 403, 404],
      handle: async (call) => json(await passkeys.authenticate(call.body.response, clientOf(call))),
    }),
    endpoint({
      ...common,
      name: 'passkeys.list',
      method: 'GET',
      paths: ['/api/auth/passkeys'],
      credentials: 'user',
      summary: 'List passkeys',
      replies: { 200: { description: 'Oldest first', schema: z.object({ passkeys: z.array(passkeyView) }) } },
      handle: async ({ caller }) => json({ passkeys: (await passkeys.list(userIdOf(caller))).map(viewOf) }),
    }),
    endpoint({
      ...common,
      name: 'passkeys.delete',
      method: 'DELETE',
      paths: ['/api/auth/passkeys/:id'],
      credentials: 'user',
      summary: 'Delete a passkey',
      description:
        'Requires a sign-in in the last ten minutes. The last sign-in method of an account cannot be deleted.',
      replies: { 200: { description: 'Deleted', schema: z.object({ ok: z.literal(true) }) } },
      errors: [403, 404, 409],
      async handle({ caller, params }) {
        await passkeys.remove(requireUser(caller), params.id ?? '')
        return json({ ok: true })
      },
    }),
  ]
}

const viewOf = ({ id, name, createdAtMs, usedAtMs, transports, isBackedUp }: Passkey) => ({
  id,
  name,
  createdAt: formatDatetime(createdAtMs),
  lastUsedAt: usedAtMs === null ? null : formatDatetime(usedAtMs),
  transports,
  backedUp: isBackedUp,
})
