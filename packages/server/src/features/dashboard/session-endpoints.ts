/** Endpoints of dashboard sessions: sign-in, the current session, sign-out. `sign-in` decides who may enter. */

import type { ViewedUser } from '../../access/caller.ts'
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Mode } from '../../config/config.ts'
import type { DashboardConfig } from '../../config/sections/dashboard/dashboard.ts'
import { authenticationRequired, invalidField } from '../../errors.ts'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { formatCookie } from '../../http/security/cookies.ts'
import { type DashboardAccess, dashboardPath, sessionTokenOf, siteOf } from '../../http/security/dashboard-access.ts'
import { passwordCharsMax } from '../../limits/api.ts'
import { dashboardSessionMs } from '../../limits/dashboard.ts'
import { emailCharsMax, mfaTextCharsMax, passkeyBodyBytesMax } from '../../limits/users.ts'
import type { DashboardAudit } from './audit/audit.ts'
import type { DashboardSessions } from './sessions.ts'
import { type AdministratorAccount, findRole, type SignedInAdministrator } from './sign-in.ts'
import type { ViewAs } from './view-as/view-as.ts'

type SignInCall = Pick<Call, 'headers' | 'address' | 'caller' | 'requestId' | 'signal'>

interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly id: string; readonly type: 'totp' }[]
}

type Outcome = SignedInAdministrator | MfaRequired

/** The ways to sign in, which the users feature provides. */
export interface SignInMethods<Passkey> {
  byPassword(email: string, password: string, call: SignInCall): Promise<Outcome>
  byFactor(ticket: string, proof: { code: string } | { recoveryCode: string }, call: SignInCall): Promise<Outcome>
  enroll(ticket: string): Promise<{ secret: string; qrCodeUri: string; recoveryCodes: readonly string[] }>
  passkeyOptions(): Promise<object>
  byPasskey(response: Passkey, call: SignInCall): Promise<Outcome>
  readonly passkeyResponse: z.ZodType<Passkey>
}

export interface SessionEndpointsDeps<Passkey> {
  readonly access: DashboardAccess
  readonly sessions: DashboardSessions
  readonly audit: Pick<DashboardAudit, 'recordSignIn'>
  readonly signIn: SignInMethods<Passkey>
  readonly viewAs: Pick<ViewAs, 'endWithSession'>
  readonly findActive: (userId: string) => Promise<AdministratorAccount | null>
  readonly config: () => DashboardConfig | null
  readonly mode: () => Mode
  readonly version: string
}

const text = z.string().min(1).max(mfaTextCharsMax)
const passwordBody = z.strictObject({
  email: z
    .string()
    .min(1)
    .max(2 * emailCharsMax),
  password: z.string().min(1).max(passwordCharsMax),
})
const mfaBody = z.strictObject({ ticket: text, code: text.optional(), recoveryCode: text.optional() })
const ticketBody = z.strictObject({ ticket: text })

const sessionSchema = z.object({
  user: z.object({
    id: z.string(),
    email: z.string().nullable(),
    displayName: z.string().nullable(),
    avatarUrl: z.string().nullable(),
  }),
  role: z.string(),
  scopes: z.array(z.string()),
  isReadOnly: z.boolean(),
  signedInAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  mode: z.enum(['development', 'release']),
  version: z.string(),
  viewing: z
    .object({
      id: z.string(),
      email: z.string().nullable(),
      displayName: z.string().nullable(),
      endsAt: z.iso.datetime(),
    })
    .nullable()
    .meta({ description: 'The user as whom the session views data' }),
})
const factorSchema = z.object({ id: z.string(), type: z.literal('totp') })
const mfaRequiredSchema = z.object({
  mfaRequired: z.literal(true),
  ticket: z.string(),
  factors: z.array(factorSchema),
  enrollmentRequired: z.boolean(),
})
const enrollmentSchema = z.object({ secret: z.string(), qrCodeUri: z.string(), recoveryCodes: z.array(z.string()) })

const path = `${dashboardPath}/api/session`
const signedIn = { 200: { description: 'Signed in, with the cookie', schema: sessionSchema } }
const signsIn = { method: 'POST', tag: 'Dashboard', credentials: 'page', rateLimit: 'auth', isSecret: true } as const

export function createSessionEndpoints<Passkey>(deps: SessionEndpointsDeps<Passkey>): readonly Endpoint[] {
  const { signIn } = deps
  return [
    endpoint({
      ...signsIn,
      name: 'dashboard.signIn',
      paths: [path],
      summary: 'Sign in to the dashboard with email and password',
      body: passwordBody,
      replies: {
        200: {
          description: 'Signed in, or a ticket for the second factor',
          schema: z.union([sessionSchema, mfaRequiredSchema]),
        },
      },
      errors: [401, 403],
      handle: async (call) => replyTo(deps, call, await signIn.byPassword(call.body.email, call.body.password, call)),
    }),
    endpoint({
      ...signsIn,
      name: 'dashboard.enroll',
      paths: [`${path}/enroll`],
      summary: 'Enroll an authenticator app, where signing in requires one',
      description: 'Its first code completes the sign-in. The recovery codes are returned only here.',
      body: ticketBody,
      replies: { 200: { description: 'The secret and the recovery codes', schema: enrollmentSchema } },
      errors: [401, 409],
      async handle({ body: { ticket } }) {
        const { secret, qrCodeUri, recoveryCodes } = await signIn.enroll(ticket)
        return json({ secret, qrCodeUri, recoveryCodes })
      },
    }),
    endpoint({
      ...signsIn,
      name: 'dashboard.verifyFactor',
      paths: [`${path}/mfa`],
      summary: 'Complete a sign-in with a code or a recovery code',
      body: mfaBody,
      replies: signedIn,
      errors: [401, 403],
      handle: async (call) => replyTo(deps, call, await signIn.byFactor(call.body.ticket, proofOf(call.body), call)),
    }),
    endpoint({
      ...signsIn,
      name: 'dashboard.passkeyOptions',
      paths: [`${path}/passkey-options`],
      summary: 'Get options to sign in with a passkey',
      body: z.strictObject({}),
      isBodyOptional: true,
      replies: {
        200: {
          description: 'Options for the browser',
          schema: z.object({ options: z.record(z.string(), z.unknown()) }),
        },
      },
      errors: [404],
      handle: async () => json({ options: await signIn.passkeyOptions() }),
    }),
    endpoint({
      ...signsIn,
      name: 'dashboard.signInWithPasskey',
      paths: [`${path}/passkey`],
      summary: 'Sign in with a passkey',
      body: z.strictObject({ response: signIn.passkeyResponse }),
      bodyBytesMax: passkeyBodyBytesMax,
      replies: signedIn,
      errors: [401, 403, 404],
      handle: async (call) => replyTo(deps, call, await signIn.byPasskey(call.body.response, call)),
    }),
    ...currentEndpoints(deps),
  ]
}

/** The endpoints of the session of the cookie. */
function currentEndpoints<Passkey>(deps: SessionEndpointsDeps<Passkey>): readonly Endpoint[] {
  const { access, sessions, findActive, viewAs } = deps
  const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'auth', isSecret: true } as const
  return [
    endpoint({
      ...common,
      name: 'dashboard.getSession',
      method: 'GET',
      paths: [path],
      summary: 'Get the session',
      replies: signedIn,
      async handle({ caller }) {
        const admin = caller.kind === 'service' ? caller.admin : undefined
        const account = admin && (await findActive(admin.userId))
        if (!account) throw authenticationRequired()
        return json(sessionView(deps, account, admin.signedInAtMs, await viewingOf(deps, admin.viewedAs)))
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.signOut',
      method: 'DELETE',
      paths: [path],
      summary: 'Sign out',
      isForReaders: true,
      replies: { 200: { description: 'Signed out', schema: z.object({ ok: z.literal(true) }) } },
      async handle(call) {
        const { headers, caller } = call
        if (caller.kind === 'service' && caller.admin) await viewAs.endWithSession(caller.admin.sessionId, call)
        const token = sessionTokenOf(headers)
        if (token !== null) await sessions.end(token)
        const { cookie, isSecure } = siteOf(headers, access)
        return { ...json({ ok: true }), cookies: [formatCookie(cookie, '', { isSecure, maxAgeSeconds: 0 })] }
      },
    }),
  ]
}

/** The session with its cookie, or the ticket for the second factor. A session that the browser had before ends. */
async function replyTo<Passkey>(deps: SessionEndpointsDeps<Passkey>, call: Call, outcome: Outcome): Promise<Reply> {
  if ('mfaRequired' in outcome) {
    const { mfaTicket: ticket, factors } = outcome
    return json({ mfaRequired: true, ticket, factors, enrollmentRequired: factors.length === 0 })
  }
  const { account, session } = outcome
  const { headers } = call
  const previous = sessionTokenOf(headers)
  if (previous !== null) await deps.sessions.end(previous)
  await deps.audit.recordSignIn(account, call)
  const { cookie, isSecure } = siteOf(headers, deps.access)
  const maxAgeSeconds = dashboardSessionMs / 1000
  return {
    ...json(sessionView(deps, account, session.createdAtMs)),
    cookies: [formatCookie(cookie, session.token, { isSecure, maxAgeSeconds })],
  }
}

type Viewing = z.infer<typeof sessionSchema>['viewing']

async function viewingOf<Passkey>(
  { findActive }: Pick<SessionEndpointsDeps<Passkey>, 'findActive'>,
  viewed: ViewedUser | undefined,
): Promise<Viewing> {
  if (!viewed) return null
  const account = await findActive(viewed.userId)
  const { email = null, displayName = null } = account ?? {}
  return { id: viewed.userId, email, displayName, endsAt: formatDatetime(viewed.endsAtMs) }
}

function sessionView<Passkey>(
  { config, mode, version }: SessionEndpointsDeps<Passkey>,
  account: AdministratorAccount,
  signedInAtMs: number,
  viewing: Viewing = null,
): z.infer<typeof sessionSchema> {
  const { id, email, displayName, avatarUrl, dashboardRole } = account
  const role = findRole(config(), account)
  return {
    user: { id, email, displayName, avatarUrl },
    role: dashboardRole ?? '',
    scopes: [...(role?.scopes ?? [])],
    isReadOnly: viewing !== null || (role?.isReadOnly ?? true),
    signedInAt: formatDatetime(signedInAtMs),
    expiresAt: formatDatetime(signedInAtMs + dashboardSessionMs),
    mode: mode(),
    version,
    viewing,
  }
}

/** Throws 400 unless exactly one of the two is present. */
function proofOf({ code, recoveryCode }: z.output<typeof mfaBody>): { code: string } | { recoveryCode: string } {
  if (code !== undefined && recoveryCode === undefined) return { code }
  if (recoveryCode !== undefined && code === undefined) return { recoveryCode }
  throw invalidField('code', 'required', 'or recoveryCode is required; send exactly one of the two')
}
