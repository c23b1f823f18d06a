/** The endpoint of the service keys that the configuration and the environment declare; never the keys themselves. */

import type { ServiceKey } from '../../../access/service-keys.ts'
import type { Clock } from '../../../base/clock.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import type { KeyUses } from './key-uses.ts'

export interface ServiceKeyEndpointDeps {
  /** Those in force, the root key first. */
  readonly serviceKeys: () => readonly ServiceKey[]
  readonly uses: Pick<KeyUses, 'list'>
  readonly clock: Clock
}

const keySchema = z.object({
  name: z.string().meta({ description: 'As the audit log names it' }),
  source: z.enum(['environment', 'configuration']),
  scopes: z.array(z.string()),
  networks: z.array(z.string()).nullable().meta({ description: 'In CIDR notation; null for any' }),
  expiresAt: z.iso.datetime().nullable(),
  isExpired: z.boolean(),
  usedAt: z.iso.datetime().nullable().meta({ description: 'The last use on any node, as of a minute ago' }),
})

const timeOf = (atMs: number | undefined): string | null => (atMs === undefined ? null : formatDatetime(atMs))

export const createServiceKeyEndpoint = ({ serviceKeys, uses, clock }: ServiceKeyEndpointDeps): Endpoint =>
  endpoint({
    name: 'dashboard.listServiceKeys',
    method: 'GET',
    paths: [`${dashboardPath}/api/service-keys`],
    tag: 'Dashboard',
    credentials: 'admin',
    rateLimit: 'global',
    isSecret: true,
    summary: 'List the service keys, without the keys themselves',
    scope: () => 'dashboard:settings:*:read',
    replies: { 200: { description: 'The root key first', schema: z.object({ keys: z.array(keySchema) }) } },
    async handle() {
      const used = await uses.list()
      return json({
        keys: serviceKeys().map(({ name, scopes, expiresAtMs, ipCidr }, at) => ({
          name,
          source: at === 0 ? 'environment' : 'configuration',
          scopes,
          networks: ipCidr ?? null,
          expiresAt: timeOf(expiresAtMs),
          isExpired: expiresAtMs !== undefined && expiresAtMs <= clock.now(),
          usedAt: timeOf(used.get(name)),
        })),
      })
    },
  })
