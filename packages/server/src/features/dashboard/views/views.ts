/** Saved views of each administrator: the state of a screen under a name, such as columns and filters. */

import type { Caller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { jsonBytes } from '../../../base/text/json.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied, conflict, invalidField, notFound, payloadTooLarge } from '../../../errors.ts'
import { type Endpoint, endpoint, type Params } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { viewAreaCharsMax, viewBytesMax, viewNameCharsMax, viewsPerUserMax } from '../../../limits/dashboard.ts'
import { dashboardTable } from '../migrations.ts'

export interface ViewsDeps {
  readonly database: Database
  readonly clock: Clock
}

interface Row {
  readonly name: string
  readonly content: string
  readonly updated_at: unknown
}

const charsMax = { area: viewAreaCharsMax, name: viewNameCharsMax }
const charPattern = /^[^/\p{Cc}\p{Cs}]+$/u

/** The user and the names in the path. Throws 400 for a name that cannot be stored. */
function keyOf(caller: Caller, params: Params): { userId: string; area: string; name: string } {
  const { area = '', name = '' } = params
  for (const field of ['area', 'name'] as const) {
    const { [field]: text } = params
    if (text === undefined && field === 'name') continue
    if (!charPattern.test(text ?? '') || [...(text ?? '')].length > charsMax[field])
      throw invalidField(field, 'pattern', `must be 1 to ${charsMax[field]} characters without "/"`)
  }
  const userId = caller.kind === 'service' ? caller.admin?.userId : undefined
  if (userId === undefined) throw accessDenied()
  return { userId, area, name }
}

const view = z.object({ name: z.string(), content: z.record(z.string(), z.unknown()), updatedAt: z.iso.datetime() })
const viewOf = ({ name, content, updated_at }: Row): z.infer<typeof view> => ({
  name,
  content: JSON.parse(content),
  updatedAt: formatDatetime(Number(updated_at)),
})

const path = `${dashboardPath}/api/views/:area`
const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'global', isSecret: true } as const
const readScope = (): string => 'dashboard:views:*:read'
const writeScope = (): string => 'dashboard:views:*:write'
/** Views are settings of the administrator, not changes of the application. */
const changing = { ...common, scope: writeScope, changes: false } as const

export function createViewEndpoints({ database, clock }: ViewsDeps): readonly Endpoint[] {
  const views = dashboardTable(database.dialect, 'views')
  return [
    endpoint({
      ...common,
      name: 'dashboard.listViews',
      method: 'GET',
      paths: [path],
      summary: 'List the saved views of an area, by name',
      scope: readScope,
      replies: { 200: { description: 'The views', schema: z.object({ views: z.array(view) }) } },
      async handle({ caller, params }) {
        const { userId, area } = keyOf(caller, params)
        const rows = await database.all<Row>(sql`SELECT name, content, updated_at FROM ${views}
          WHERE user_id = ${userId} AND area = ${area} ORDER BY name LIMIT ${viewsPerUserMax}`)
        return json({ views: rows.map(viewOf) })
      },
    }),
    endpoint({
      ...changing,
      name: 'dashboard.saveView',
      method: 'PUT',
      paths: [`${path}/:name`],
      summary: 'Save a view',
      body: z.record(z.string(), z.unknown()),
      replies: { 200: { description: 'The view', schema: view } },
      errors: [409, 413],
      async handle({ caller, params, body }) {
        const { userId, area, name } = keyOf(caller, params)
        if (jsonBytes(body) > viewBytesMax) throw payloadTooLarge(viewBytesMax, 'view')
        const updatedAtMs = clock.now()
        const content = JSON.stringify(body)
        await database.write(async (tx) => {
          await tx.lock(`dashboard views ${userId}`)
          const [count] = await tx.all<{ n: unknown }>(sql`SELECT count(*) AS n FROM ${views}
            WHERE user_id = ${userId} AND NOT (area = ${area} AND name = ${name})`)
          if (Number(count?.n) >= viewsPerUserMax) throw conflict(`There are already ${viewsPerUserMax} views`)
          await tx.run(sql`INSERT INTO ${views} (user_id, area, name, content, updated_at)
            VALUES (${userId}, ${area}, ${name}, ${content}, ${updatedAtMs})
            ON CONFLICT (user_id, area, name) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at`)
        })
        return json({ name, content: body, updatedAt: formatDatetime(updatedAtMs) })
      },
    }),
    endpoint({
      ...changing,
      name: 'dashboard.deleteView',
      method: 'DELETE',
      paths: [`${path}/:name`],
      summary: 'Delete a view',
      replies: { 200: { description: 'Deleted', schema: z.object({ ok: z.literal(true) }) } },
      errors: [404],
      async handle({ caller, params }) {
        const { userId, area, name } = keyOf(caller, params)
        const removed = await database.write((tx) =>
          tx.run(sql`DELETE FROM ${views} WHERE user_id = ${userId} AND area = ${area} AND name = ${name}`),
        )
        if (removed === 0) throw notFound('View')
        return json({ ok: true })
      },
    }),
  ]
}
