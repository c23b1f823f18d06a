/** Endpoints of user administration. `admin` and `import` implement them. */
import { z } from '../../../base/schemas/z.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { cursorParam, limitParam, textParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import {
  customClaimsBytesMax,
  importAnswerSeconds,
  importBodyBytesMax,
  importUsersMax,
  userListLimitDefault,
  userListLimitMax,
  userSearchCharsMax,
} from '../../../limits/users.ts'
import { hookedRequest } from '../hooks/hooked-request.ts'
import type { UserAdmin } from './admin.ts'
import type { ImportUsers } from './import.ts'
import { claimsBody, createBody, updateBody } from './input.ts'

const users = '/api/auth/admin/users'

const readScope = (): string => 'auth:admin:*:read'

const common = {
  tag: 'Admin users',
  credentials: 'service',
  rateLimit: 'auth',
  scope: () => 'auth:admin:*:write',
} as const

const listQuery = z.object({
  limit: limitParam({ default: userListLimitDefault, max: userListLimitMax }),
  cursor: cursorParam('`cursor` of the previous page; 0 for the first page'),
  email: textParam('Only the user with this email'),
  search: textParam(
    'Only users with this id, or whose email or display name begins with this text; without a next page',
  ).pipe(z.string().min(1).max(userSearchCharsMax).optional()),
})

const importBody = z.strictObject({ users: z.array(z.unknown()).max(importUsersMax) })

const listedUser = z.object({
  id: z.string(),
  email: z.string().nullable(),
  name: z.string().nullable(),
  displayName: z.string().nullable(),
  avatarUrl: z.string().nullable(),
  role: z.string(),
  emailVerified: z.boolean(),
  verified: z.boolean(),
  emailVisibility: z.enum(['public', 'private']),
  locale: z.string().nullable(),
  disabled: z.boolean(),
  isAnonymous: z.boolean(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
})
const anyObject = z.record(z.string(), z.unknown())
export const userSchema = listedUser.extend({ metadata: anyObject, appMetadata: anyObject, customClaims: anyObject })
const userPage = z.object({
  users: z.array(listedUser),
  cursor: z.string().nullable(),
  truncated: z.literal(true).optional(),
})
const importReport = z.object({
  imported: z.number(),
  skipped: z.number(),
  errors: z.number(),
  results: z.array(
    z.object({
      id: z.string().nullable(),
      email: z.string().nullable(),
      status: z.enum(['created', 'skipped', 'error']),
      error: z.string().optional().meta({ description: 'Why the entry was rejected; names every invalid field' }),
      message: z.string().optional(),
      data: z.record(z.string(), z.object({ code: z.string(), message: z.string() })).optional(),
    }),
  ),
})

const done = { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } }
const ok = json({ ok: true })

export function createAdminEndpoints(deps: {
  readonly admin: UserAdmin
  readonly importUsers: ImportUsers
}): readonly Endpoint[] {
  const { admin, importUsers } = deps
  /** Adds the user before and after `work` to the audit log. */
  async function audited<T>(call: Call<unknown, unknown>, work: () => Promise<T>): Promise<T> {
    const { audit } = call
    if (!audit) return work()
    const find = (): Promise<object | null> => admin.get(idOf(call)).catch(() => null)
    const before = await find()
    const result = await work()
    const after = await find()
    // The view has no password; the log shows, masked, that there is a new one.
    const isSet = typeof call.body === 'object' && call.body !== null && 'password' in call.body
    audit({ before, after: after && isSet ? { ...after, password: true } : after })
    return result
  }
  const idOf = ({ params }: { readonly params: Readonly<Record<string, string>> }): string => params.id ?? ''

  return [
    endpoint({
      ...common,
      name: 'admin.listUsers',
      method: 'GET',
      scope: readScope,
      paths: [users],
      summary: 'List users',
      description: 'Newest first. `cursor` is null on the last page.',
      query: listQuery,
      replies: { 200: { description: 'A page of users', schema: userPage } },
      handle: async ({ query: { limit, cursor = null, email = null, search = null } }) =>
        json(await admin.list({ limit, cursor, email, search })),
    }),
    endpoint({
      ...common,
      name: 'admin.getUser',
      method: 'GET',
      scope: readScope,
      paths: [`${users}/:id`],
      summary: 'Get a user',
      replies: { 200: { description: 'The user', schema: userSchema } },
      errors: [404],
      handle: async (call) => json(await admin.get(idOf(call))),
    }),
    endpoint({
      ...common,
      name: 'admin.createUser',
      method: 'POST',
      paths: [users],
      summary: 'Create a user',
      description: 'Returns no tokens. The address counts as verified unless `emailVerified` is false.',
      body: createBody,
      replies: { 201: { description: 'The user', schema: z.object({ user: userSchema }) } },
      errors: [409],
      async handle(call) {
        const created = await admin.create(call.body, hookedRequest(call))
        call.audit?.({ before: null, after: created })
        return json({ user: created }, 201)
      },
    }),
    endpoint({
      ...common,
      name: 'admin.updateUser',
      method: 'PATCH',
      paths: [`${users}/:id`],
      summary: 'Update a user',
      description:
        'Replaces the given fields. `disabled: true` and a new `password` end every session at once. A new `email` counts as verified unless `emailVerified` is false.',
      body: updateBody,
      replies: { 200: { description: 'The user', schema: userSchema } },
      errors: [404, 409],
      handle: async (call) => json(await audited(call, () => admin.update(idOf(call), call.body, hookedRequest(call)))),
    }),
    endpoint({
      ...common,
      name: 'admin.deleteUser',
      method: 'DELETE',
      paths: [`${users}/:id`],
      summary: 'Delete a user',
      description: 'With sessions, identities, factors, passkeys and the public record.',
      replies: done,
      errors: [404],
      handle: async (call) => {
        await audited(call, () => admin.remove(idOf(call), call.caller))
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'admin.setClaims',
      method: 'PUT',
      paths: [`${users}/:id/claims`],
      summary: "Replace a user's custom claims",
      description: `A JSON object of at most ${customClaimsBytesMax} bytes, included in the next access token as \`custom\`.`,
      body: claimsBody,
      replies: done,
      errors: [404],
      handle: async (call) => {
        await audited(call, () => admin.setClaims(idOf(call), call.body, call.caller))
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'admin.revokeSessions',
      method: 'POST',
      paths: [`${users}/:id/revoke`],
      summary: 'End all sessions of a user',
      replies: done,
      errors: [404],
      handle: async (call) => {
        await admin.revoke(idOf(call), call.caller)
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'admin.removeFactors',
      method: 'DELETE',
      paths: [`${users}/:id/mfa`],
      summary: "Remove a user's second factors and recovery codes",
      replies: done,
      errors: [404],
      handle: async (call) => {
        await admin.removeFactors(idOf(call), call.caller)
        return ok
      },
    }),
    endpoint({
      ...common,
      name: 'admin.importUsers',
      method: 'POST',
      paths: [`${users}/import`],
      summary: 'Import users',
      description:
        'Imports each entry independently: an invalid one is reported as `error` and does not affect the others. Existing users are `skipped`, so a batch can be repeated.',
      body: importBody,
      bodyBytesMax: importBodyBytesMax,
      answerSeconds: importAnswerSeconds,
      replies: { 200: { description: 'The result of each entry', schema: importReport } },
      async handle(call) {
        const report = await importUsers(call.body.users, call)
        const { imported, skipped, errors } = report
        call.audit?.({ before: null, after: { imported, skipped, errors } })
        return json(report)
      },
    }),
  ]
}
