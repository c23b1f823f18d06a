/** Endpoints that list and rotate the token signing keys, and their implementation. */
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { msOf, msOrNullOf, usersTable } from '../migrations.ts'
import type { StoredSigningKeys } from '../sessions/signing-keys.ts'

/** Public view of a signing key. */
export interface KeyView {
  /** The `kid` in token headers. */
  readonly kid: string
  /** Null for the first key of a server. */
  readonly createdAt: string | null
  /** When it stopped signing; its tokens stay valid until they expire. Null for the signing key. */
  readonly retiredAt: string | null
}

export interface KeyAdmin {
  /** Newest first, without keys whose tokens have all expired. */
  list(): Promise<readonly KeyView[]>
  /** Starts signing with a new key. Rejects with 409 if too many keys are still valid. */
  rotate(): Promise<KeyView>
}

interface Row {
  readonly id: string
  readonly created_at: unknown
  readonly retired_at: unknown
}

const viewOf = (kid: string, row: Row): KeyView => {
  const createdAtMs = msOf(row.created_at)
  const retiredAtMs = msOrNullOf(row.retired_at)
  return {
    kid,
    createdAt: createdAtMs === 0 ? null : formatDatetime(createdAtMs),
    retiredAt: retiredAtMs === null ? null : formatDatetime(retiredAtMs),
  }
}

export function createKeyAdmin({ database, keys }: { database: Database; keys: StoredSigningKeys }): KeyAdmin {
  const table = usersTable(database.dialect, 'signing_keys')

  async function list(): Promise<readonly KeyView[]> {
    await keys.reload()
    const rows = await database.all<Row>(sql`SELECT id, created_at, retired_at FROM ${table}
      ORDER BY created_at DESC, id DESC`)
    return rows.flatMap((row) => {
      const key = keys.find(row.id)
      return key ? [viewOf(key.kid, row)] : []
    })
  }

  return {
    list,
    async rotate() {
      const { kid } = await keys.rotate()
      const view = (await list()).find((key) => key.kid === kid)
      if (!view) throw new Error('The new key is missing from the list of keys')
      return view
    },
  }
}

const keyView = z.object({
  kid: z.string(),
  createdAt: z.iso.datetime().nullable(),
  retiredAt: z.iso.datetime().nullable(),
})

const readScope = (): string => 'auth:admin:*:read'

const common = {
  tag: 'Admin users',
  credentials: 'service',
  rateLimit: 'auth',
  scope: () => 'auth:admin:*:write',
} as const

export const createKeyEndpoints = (keys: KeyAdmin): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'admin.listKeys',
    method: 'GET',
    scope: readScope,
    paths: ['/api/auth/admin/keys'],
    summary: 'List the signing keys',
    replies: { 200: { description: 'Newest first', schema: z.object({ keys: z.array(keyView) }) } },
    handle: async () => json({ keys: await keys.list() }),
  }),
  endpoint({
    ...common,
    name: 'admin.rotateKeys',
    method: 'POST',
    requiresRecentSignIn: true,
    paths: ['/api/auth/admin/keys/rotate'],
    summary: 'Rotate the signing key',
    description: 'New tokens are signed with a new key. Tokens signed with older keys stay valid until they expire.',
    replies: { 200: { description: 'The new key', schema: z.object({ key: keyView }) } },
    errors: [409],
    async handle({ audit }) {
      const key = await keys.rotate()
      audit?.({ before: null, after: key })
      return json({ key })
    },
  }),
]
