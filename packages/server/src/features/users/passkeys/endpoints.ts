/** The HTTP surface of passkeys, as a table. What the endpoints do is `passkeys`'. */

import { z } from 'zod'
import { requireUser } from '../../../access/caller.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { emailCharsMax, passkeyBodyBytesMax, passkeyNameCharsMax } from '../../../limits/users.ts'
import { clientOf, signedInSchema, userIdOf } from '../sessions/complete-sign-in.ts'
import { authenticationResponse, registrationResponse } from './ceremony.ts'
import type { Passkey } from './credentials.ts'
import type { Passkeys } from './passkeys.ts'

const mistake = (code: 'min' | 'max' | 'pattern', message: string) => ({ params: { code }, message })

const name = z
  .string()
  .trim()
  .refine((text) => text !== '', mistake('min', 'must not be empty'))
  .refine(
    (text) => codePointLength(text) <= passkeyNameCharsMax,
    mistake('max', `must have at most ${passkeyNameCharsMax} characters`),
  )
  .refine((text) => isStorableText(text) && !/\p{Cc}/u.test(text), mistake('pattern', 'must be one line of text'))

const registerBody = z.strictObject({ response: registrationResponse, name: name.default('Passkey') })
const authOptionsBody = z.strictObject({
  email: z
    .string()
    .max(2 * emailCharsMax)
    .optional()
    .meta({ description: 'Whose passkeys are good; anybody’s if not said' }),
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
      summary: 'Begin to register a passkey',
      description:
        'The options are for `PublicKeyCredential.parseCreationOptionsFromJSON`. Only in the ten minutes after a sign-in.',
      replies: { 200: { description: 'What the browser is to be asked', schema: options } },
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
      description: '`response` is the browser’s answer as JSON.',
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
      summary: 'Begin to sign in with a passkey',
      description: 'The options are for `PublicKeyCredential.parseRequestOptionsFromJSON`.',
      body: authOptionsBody,
      replies: { 200: { description: 'What the browser is to be asked', schema: options } },
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
      description: '`response` is the browser’s answer as JSON. No second factor is asked for: a passkey is two.',
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
      description: 'Only in the ten minutes after a sign-in. The last way into the account cannot be deleted.',
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
