/** Endpoints of the identities of the signed-in user: list, link, unlink. */

import { requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { userView, userViewSchema } from '../accounts/user-view.ts'
import { hookedRequest } from '../hooks/hooked-request.ts'
import type { UsersParts } from '../parts.ts'
import { userIdOf } from '../sessions/complete-sign-in.ts'
import type { OAuthFlows } from './flow.ts'
import { type Identities, type Identity, retryOnUniqueConflict } from './identities.ts'

type Deps = Pick<UsersParts, 'hooks'> & { readonly identities: Identities; readonly flows: OAuthFlows }

const identitySchema = z.object({
  id: z.string(),
  provider: z.string(),
  email: z.string().nullable(),
  createdAt: z.iso.datetime(),
})

/** Omits the subject, which is internal. */
const viewOf = ({ id, provider, email, createdAtMs }: Identity): z.output<typeof identitySchema> => ({
  id,
  provider,
  email,
  createdAt: formatDatetime(createdAtMs),
})

const common = { tag: 'Sign-in through providers', rateLimit: 'auth' } as const
const linkBody = z.strictObject({ linkTicket: z.string().max(100) })

export function createIdentitiesEndpoints({ hooks, identities, flows }: Deps): readonly Endpoint[] {
  return [
    endpoint({
      name: 'identities.list',
      method: 'GET',
      paths: ['/api/auth/identities'],
      ...common,
      summary: 'List the linked providers of the signed-in user',
      credentials: 'user',
      replies: {
        200: { description: 'Oldest first', schema: z.object({ identities: z.array(identitySchema) }) },
      },
      errors: [403],
      handle: async (call) => json({ identities: (await identities.list(userIdOf(call.caller))).map(viewOf) }),
    }),
    endpoint({
      name: 'identities.link',
      method: 'POST',
      paths: ['/api/auth/identities'],
      ...common,
      summary: 'Link a provider to the signed-in user',
      description:
        'With the `linkTicket` of a flow started by `POST /api/auth/oauth/{provider}/link`. Upgrades an anonymous user, ' +
        'who keeps the id; the next access token reflects it.',
      credentials: 'user',
      body: linkBody,
      replies: {
        201: {
          description: 'The identity and the updated user',
          schema: z.object({ identity: identitySchema, user: userViewSchema }),
        },
      },
      errors: [403, 409],
      async handle(call) {
        const userId = userIdOf(call.caller)
        const request = hookedRequest(call)
        const [identity, account] = await retryOnUniqueConflict(() =>
          hooks.write(async (tx) => {
            const { provider, profile } = await flows.redeemLinkTicket(tx, userId, call.body.linkTicket)
            return identities.link(tx, { userId, provider, profile, request })
          }),
        )
        return json({ identity: viewOf(identity), user: userView(account) }, 201)
      },
    }),
    endpoint({
      name: 'identities.unlink',
      method: 'DELETE',
      paths: ['/api/auth/identities/:id'],
      ...common,
      summary: 'Unlink a provider from the signed-in user',
      description:
        'Requires a sign-in in the last ten minutes. The last sign-in method of an account cannot be unlinked.',
      credentials: 'user',
      replies: { 200: { description: 'Unlinked', schema: z.object({ ok: z.literal(true) }) } },
      errors: [403, 404, 409],
      async handle(call) {
        await identities.remove(requireUser(call.caller), call.params.id ?? '')
        return json({ ok: true })
      },
    }),
  ]
}
