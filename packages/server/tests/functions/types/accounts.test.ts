/**
 * What the types of `auth` accept and refuse. The compiler is the test: `tsc` fails on valid code that they refuse, and
 * on an `@ts-expect-error` that is not followed by an error.
 */
import { expect, test } from 'bun:test'
import { defineConfig } from '../../../src/config/define.ts'
import { functionsFor, HttpError } from '../../../src/config/sections/functions/define-functions.ts'

const text = { type: 'string' } as const
const config = defineConfig({
  kv: { gone: {} },
  databases: {
    shared: {
      tables: {
        invitations: { schema: { email: text, role: text, team: text } },
        members: { schema: { team: text, plan: text } },
      },
    },
  },
})
const { auth } = functionsFor<typeof config>()

const valid = [
  auth.beforeSignUp(async ({ email, provider }, ctx) => {
    if (provider === null) return
    const invitation = await ctx.service.db('shared').invitations.where('email', '==', email).first()
    if (!invitation) throw new HttpError(403, 'not-invited', 'Ask for an invitation')
    return { role: invitation.role ?? 'user', metadata: { team: invitation.team } }
  }),
  auth.beforeSignUp(({ email }) => {
    if (email?.endsWith('@example.org') !== true) throw new HttpError(403, 'closed')
  }),
  auth.beforeSignUp(({ data }, ctx) => ({ ...data, displayName: ctx.auth?.displayName ?? data.displayName })),
  auth.claims(async (user, ctx) => {
    const membership = await ctx.service.db('shared').members.find(user.id)
    return membership ? { team: membership.team, plan: membership.plan } : {}
  }),
  auth.claims(({ customClaims }) => ({ seat: customClaims.seat })),
  auth.onUser(['deleted', 'disabled'], async ({ event, user, change, attempt }, ctx) => {
    const kind: 'deleted' | 'disabled' = event
    await ctx.kv('gone').set(user.id, [kind, change.id, change.at, attempt, user.email])
  }),
]

const refused = [
  // @ts-expect-error the address cannot be changed
  auth.beforeSignUp(() => ({ email: 'other@example.org' })),
  // @ts-expect-error a role is text
  auth.beforeSignUp(() => ({ role: null })),
  // @ts-expect-error claims are an object
  auth.claims(() => 'team'),
  // @ts-expect-error nothing is no object
  auth.claims(() => undefined),
  // @ts-expect-error there is no caller
  auth.claims(async (user, ctx) => ctx.db('shared').members.get(user.id)),
  // @ts-expect-error no such event
  auth.onUser(['enabled'], () => undefined),
  // @ts-expect-error not for this event
  auth.onUser(['deleted'], ({ event }) => event === 'created'),
  // @ts-expect-error secrets are not there
  auth.onUser(['deleted'], ({ user }) => user.passwordHash),
]

test('[FN-AUTH-1, FN-AUTH-7, FN-AUTH-12] functions of accounts are declared with their kinds', () => {
  const kinds = [...valid, ...refused].map((declared) => (declared as { kind: string }).kind)
  expect(new Set(kinds)).toEqual(new Set(['beforeSignUp', 'claims', 'onUser']))
})
