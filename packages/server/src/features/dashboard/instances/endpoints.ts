/** The instances of a dynamic namespace, for the page to choose one: a page of ids, and those in use. */

import { callerKey } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { FoundInstance } from '../../../engines/sql/instance-search.ts'
import type { Sql } from '../../../engines/sql/sql.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { limitParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { instanceIdCharsMax } from '../../../limits/api.ts'
import { instancesListedDefault, instancesListedMax } from '../../../limits/dashboard.ts'

export interface InstancesDeps {
  readonly sql: Pick<Sql, 'findInstances'>
  /** The names of the tables of a dynamic namespace; null for any other. */
  readonly instanceTables: (namespace: string) => readonly string[] | null
}

const instance = z.object({ id: z.string(), writtenAt: z.iso.datetime().nullable() })

const shown = ({ id, writtenAtMs }: FoundInstance): z.infer<typeof instance> => ({
  id,
  writtenAt: writtenAtMs === null ? null : formatDatetime(writtenAtMs),
})

/** Ids have no other characters, so that other texts find nothing. */
const text = z
  .string()
  .max(instanceIdCharsMax)
  .regex(/^[A-Za-z0-9_.-]*$/)

export const createInstanceEndpoints = ({ sql, instanceTables }: InstancesDeps): readonly Endpoint[] => [
  endpoint({
    name: 'dashboard.listInstances',
    method: 'GET',
    paths: [`${dashboardPath}/api/instances/:namespace`],
    tag: 'Dashboard',
    summary: 'List the instances of a namespace, by id, and those in use',
    credentials: 'admin',
    rateLimit: 'global',
    isSecret: true,
    scope: () => 'db:table:*:read',
    query: z.object({
      text: text.default(''),
      match: z.enum(['prefix', 'contains']).default('prefix'),
      after: text.default(''),
      limit: limitParam({ max: instancesListedMax, default: instancesListedDefault, description: 'Instances' }),
    }),
    replies: {
      200: {
        description: 'The instances',
        schema: z.object({ instances: z.array(instance), hasMore: z.boolean(), recent: z.array(instance) }),
      },
    },
    errors: [404],
    async handle({ caller, params: { namespace = '' }, query }) {
      const tables = instanceTables(namespace)
      if (tables === null) throw notFound('Namespace')
      const page = await sql.findInstances({ ...query, namespace, tables, caller: callerKey(caller) })
      return json({
        instances: page.instances.map(shown),
        hasMore: page.hasMore,
        recent: page.recent.map(shown),
      })
    },
  }),
]
