/** How many devices a message would reach: what the dashboard shows before it is sent. */
import { z } from '../../base/schemas/z.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { badRequest } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { dashboardPath } from '../../http/security/dashboard-access.ts'
import { pushAudienceCountedMax } from '../../limits/push.ts'
import { topicOfAll } from './devices/devices.ts'
import type { PushTables } from './migrations.ts'
import type { Providers } from './providers/providers.ts'
import { userIdSchema } from './schemas.ts'
import { parseTopic } from './topics/topics.ts'

export interface AudienceDeps {
  readonly tables: PushTables
  readonly providers: () => Providers
}

const schema = z.object({
  devices: z.int().meta({ description: `Counted up to ${pushAudienceCountedMax}` }),
  isMore: z.boolean().meta({ description: 'Whether there are more devices than were counted' }),
  platforms: z.record(z.string(), z.int()),
  providers: z.object({ fcm: z.boolean(), web: z.boolean() }),
})

export const createAudienceEndpoint = ({ tables, providers }: AudienceDeps): Endpoint => {
  const { database, devices, topics } = tables

  /** Devices of the recipients, at most one more than are counted. */
  const reached = (userId: string | null, topic: string) =>
    userId === null
      ? sql`SELECT d.platform FROM ${topics} AS t JOIN ${devices} AS d
          ON d.user_id = t.user_id AND d.device_id = t.device_id
          WHERE t.topic = ${topic} LIMIT ${pushAudienceCountedMax + 1}`
      : sql`SELECT d.platform FROM ${devices} AS d WHERE d.user_id = ${userId} LIMIT ${pushAudienceCountedMax + 1}`

  return endpoint({
    name: 'dashboard.pushAudience',
    method: 'GET',
    paths: [`${dashboardPath}/api/push-audience`],
    tag: 'Dashboard',
    summary: 'Count the devices that a message to a user, a topic or everyone would reach',
    credentials: 'admin',
    rateLimit: 'push',
    isSecret: true,
    scope: () => 'push:token:*:read',
    query: z.object({ userId: userIdSchema.optional(), topic: z.string().min(1).optional() }),
    replies: { 200: { description: 'The devices by platform', schema } },
    async handle({ query: { userId, topic } }) {
      if (userId !== undefined && topic !== undefined) throw badRequest('userId and topic exclude each other')
      const rows = await database.all<{ platform: string; n: unknown }>(sql`SELECT platform, count(*) AS n
        FROM (${reached(userId ?? null, topic === undefined ? topicOfAll : parseTopic(topic))}) AS reached
        GROUP BY platform ORDER BY platform`)
      const platforms = Object.fromEntries(rows.map(({ platform, n }) => [platform, Number(n)]))
      const count = Object.values(platforms).reduce((sum, n) => sum + n, 0)
      const { fcm, web } = providers()
      return json({
        devices: Math.min(count, pushAudienceCountedMax),
        isMore: count > pushAudienceCountedMax,
        platforms,
        providers: { fcm: fcm !== null, web: web !== null },
      })
    },
  })
}
