/** The ways in of one user, as administrators see them: sessions, identities, passkeys and the second factor. */
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { identitiesPerUserMax, passkeysPerUserMax } from '../../../limits/users.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { msOf, msOrNullOf, usersTable } from '../migrations.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { isUserId } from './input.ts'

const schema = z.object({
  hasPassword: z.boolean(),
  sessions: z
    .array(
      z.object({
        id: z.string(),
        createdAt: z.iso.datetime(),
        lastUsedAt: z.iso.datetime(),
        expiresAt: z.iso.datetime(),
        userAgent: z.string().nullable(),
        address: z.string().nullable(),
      }),
    )
    .meta({ description: 'Newest first' }),
  identities: z.array(
    z.object({
      id: z.string(),
      provider: z.string(),
      email: z.string().nullable(),
      createdAt: z.iso.datetime(),
    }),
  ),
  passkeys: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      createdAt: z.iso.datetime(),
      lastUsedAt: z.iso.datetime().nullable(),
    }),
  ),
  factor: z.object({ createdAt: z.iso.datetime() }).nullable().meta({ description: 'Null before its first code' }),
  recoveryCodesLeft: z.int(),
})

export interface CredentialsDeps {
  readonly database: Database
  readonly accounts: Accounts
  readonly sessions: Sessions
}

export type CredentialsView = z.infer<typeof schema>

/** No secret is among them. Rejects with 404 for an unknown user. */
async function findCredentials(
  { database, accounts, sessions }: CredentialsDeps,
  userId: string,
): Promise<CredentialsView> {
  const account = isUserId(userId) ? await accounts.find(database, userId) : null
  if (!account) throw notFound('User')
  const { dialect } = database
  const [open, identities, passkeys, [factor], [codes]] = await Promise.all([
    sessions.list(userId),
    database.all(sql`SELECT id, provider, email, created_at FROM ${usersTable(dialect, 'identities')}
      WHERE user_id = ${userId} ORDER BY created_at, id LIMIT ${identitiesPerUserMax}`),
    database.all(sql`SELECT id, name, created_at, used_at FROM ${usersTable(dialect, 'passkeys')}
      WHERE user_id = ${userId} ORDER BY created_at, id LIMIT ${passkeysPerUserMax}`),
    database.all(sql`SELECT created_at FROM ${usersTable(dialect, 'factors')}
      WHERE user_id = ${userId} AND confirmed_at IS NOT NULL LIMIT 1`),
    database.all(sql`SELECT count(*) AS n FROM ${usersTable(dialect, 'recovery_codes')} WHERE user_id = ${userId}`),
  ])
  return {
    hasPassword: account.passwordHash !== null,
    sessions: open,
    identities: identities.map((row) => ({
      id: String(row.id),
      provider: String(row.provider),
      email: row.email as string | null,
      createdAt: formatDatetime(msOf(row.created_at)),
    })),
    passkeys: passkeys.map((row) => {
      const usedAtMs = msOrNullOf(row.used_at)
      return {
        id: String(row.id),
        name: String(row.name),
        createdAt: formatDatetime(msOf(row.created_at)),
        lastUsedAt: usedAtMs === null ? null : formatDatetime(usedAtMs),
      }
    }),
    factor: factor ? { createdAt: formatDatetime(msOf(factor.created_at)) } : null,
    recoveryCodesLeft: Number(codes?.n),
  }
}

const user = '/api/auth/admin/users/:id'
const common = { tag: 'Admin users', credentials: 'service', rateLimit: 'auth' } as const

export const createCredentialsEndpoints = (deps: CredentialsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'admin.getCredentials',
    method: 'GET',
    paths: [`${user}/credentials`],
    summary: "Get a user's sessions, identities, passkeys and second factor",
    scope: () => 'auth:admin:*:read',
    replies: { 200: { description: 'Without secrets', schema } },
    errors: [404],
    handle: async ({ params }) => json(await findCredentials(deps, params.id ?? '')),
  }),
  endpoint({
    ...common,
    name: 'admin.endSession',
    method: 'DELETE',
    paths: [`${user}/sessions/:sessionId`],
    summary: 'End one session of a user',
    description: 'Its access tokens stop working at once.',
    scope: () => 'auth:admin:*:write',
    replies: { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } },
    errors: [404],
    async handle({ params: { id = '', sessionId = '' } }) {
      const isEnded = isUserId(id) && (await deps.database.write((tx) => deps.sessions.end(tx, id, sessionId)))
      if (!isEnded) throw notFound('Session')
      return json({ ok: true })
    },
  }),
]
