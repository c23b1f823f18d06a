/** Endpoints that start and end viewing as a user. */

import { impersonationScope } from '../../../access/dashboard-roles.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { accessDenied } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import type { ViewAs } from './view-as.ts'

const path = `${dashboardPath}/api/view-as`
const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'auth', isSecret: true } as const

const adminOf = ({ caller }: Pick<Call, 'caller'>) => {
  if (caller.kind !== 'service' || !caller.admin) throw accessDenied()
  return caller.admin
}

export const createViewAsEndpoints = (viewAs: ViewAs): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'dashboard.startViewAs',
    method: 'POST',
    paths: [`${path}/:userId`],
    summary: 'View data and files as a user sees them, for half an hour',
    description: 'Until it ends, the session only reads, and records and files are those that the rules give the user.',
    scope: () => impersonationScope,
    requiresRecentSignIn: true,
    replies: {
      200: { description: 'Started', schema: z.object({ userId: z.string(), endsAt: z.iso.datetime() }) },
    },
    errors: [404, 409],
    async handle(call) {
      const userId = call.params.userId ?? ''
      const { endsAtMs } = await viewAs.start(adminOf(call), userId, call)
      const endsAt = formatDatetime(endsAtMs)
      call.audit?.({ before: null, after: { userId, endsAt } })
      return json({ userId, endsAt })
    },
  }),
  endpoint({
    ...common,
    name: 'dashboard.endViewAs',
    method: 'DELETE',
    paths: [path],
    summary: 'Stop viewing as a user',
    isForReaders: true,
    replies: { 200: { description: 'Ended', schema: z.object({ ok: z.literal(true) }) } },
    async handle(call) {
      const userId = await viewAs.end(adminOf(call).sessionId)
      call.audit?.({ before: userId === null ? null : { userId }, after: { reason: 'stopped' } })
      return json({ ok: true })
    },
  }),
]
