/** Endpoints for sessions, token refresh and the public signing keys. */
import { z } from '../../../base/schemas/z.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint, type Reply } from '../../../http/endpoint.ts'
import { json, jsonText } from '../../../http/replies/reply.ts'
import { accessTokenCharsMax } from '../../../limits/api.ts'
import { clientOf, signedInSchema, userIdOf } from './complete-sign-in.ts'
import type { Sessions } from './sessions.ts'
import type { JsonWebKeySet, SigningKeys } from './signing-keys.ts'

const tag = 'Users'

/** Long enough to save other services a request per token, short enough to distribute a new key quickly. */
const jwksCacheSeconds = 300

const refreshBody = z.strictObject({ refreshToken: z.string().min(1).max(accessTokenCharsMax) })
const done = { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } }

const sessionSchema = z.object({
  id: z.string(),
  isCurrent: z.boolean(),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  userAgent: z.string().nullable(),
  address: z.string().nullable(),
})

interface Deps {
  readonly database: Database
  readonly sessions: Sessions
  readonly keys: Pick<SigningKeys, 'jwks'>
}

export function createSessionEndpoints({ database, sessions, keys }: Deps): readonly Endpoint[] {
  return [
    endpoint({
      name: 'users.refresh',
      method: 'POST',
      paths: ['/api/auth/refresh'],
      tag,
      summary: 'Refresh tokens',
      description:
        'Rotates the refresh token. The old one returns the same new one for 30 seconds, in case the response was lost. Later use counts as theft and ends the session.',
      credentials: 'public',
      rateLimit: 'auth',
      body: refreshBody,
      replies: { 200: { description: 'New tokens', schema: signedInSchema } },
      errors: [401],
      handle: async (call) => json(await sessions.refresh(call.body.refreshToken, clientOf(call))),
    }),
    endpoint({
      name: 'users.signOut',
      method: 'POST',
      paths: ['/api/auth/signout'],
      tag,
      summary: 'Sign out',
      description: 'Ends the session of the refresh token. Succeeds if the session has ended already.',
      credentials: 'public',
      rateLimit: 'auth',
      body: refreshBody,
      replies: done,
      errors: [401],
      async handle({ body }) {
        const { userId, sessionId } = await sessions.findByToken(body.refreshToken)
        await database.write((tx) => sessions.end(tx, userId, sessionId))
        return json({ ok: true })
      },
    }),
    endpoint({
      name: 'users.listSessions',
      method: 'GET',
      paths: ['/api/auth/sessions'],
      tag,
      summary: 'List the sessions of the signed-in user',
      credentials: 'user',
      rateLimit: 'auth',
      replies: { 200: { description: 'Newest first', schema: z.object({ sessions: z.array(sessionSchema) }) } },
      async handle({ caller }) {
        const current = caller.kind === 'user' ? caller.sessionId : null
        const found = await sessions.list(userIdOf(caller))
        return json({ sessions: found.map((session) => ({ ...session, isCurrent: session.id === current })) })
      },
    }),
    endpoint({
      name: 'users.endSession',
      method: 'DELETE',
      paths: ['/api/auth/sessions/:id'],
      tag,
      summary: 'End a session of the signed-in user',
      credentials: 'user',
      rateLimit: 'auth',
      replies: done,
      errors: [404],
      async handle({ caller, params }) {
        const userId = userIdOf(caller)
        const isEnded = await database.write((tx) => sessions.end(tx, userId, params.id ?? ''))
        if (!isEnded) throw notFound('Session')
        return json({ ok: true })
      },
    }),
    endpoint({
      name: 'users.jwks',
      method: 'GET',
      paths: ['/api/auth/jwks.json'],
      tag,
      summary: 'Get the public signing keys',
      description: 'A JSON Web Key Set (RFC 7517). Any JWT library can verify access tokens with it.',
      credentials: 'public',
      rateLimit: null,
      replies: {
        200: {
          description: 'The key set',
          schema: z.object({ keys: z.array(z.record(z.string(), z.string())) }),
        },
      },
      handle: () => jwksReply(keys.jwks()),
    }),
  ]
}

const jwksReply = (keySet: JsonWebKeySet): Reply =>
  jsonText(JSON.stringify(keySet), 200, { 'Cache-Control': `public, max-age=${jwksCacheSeconds}` })
