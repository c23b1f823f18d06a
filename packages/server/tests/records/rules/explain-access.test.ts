/** Explanations of access beyond the verdict: callers, pasted records, hidden values, plans and invalid questions. */
import { beforeAll, expect, test } from 'bun:test'
import { exists, field, not } from '../../../src/access/filter.ts'
import { createClient } from '../../harness/client.ts'
import { brokenLater } from '../../harness/config.ts'
import { openAdministrator } from '../../harness/dashboard/administrators.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { signUp } from '../../harness/users/test-user.ts'

type Auth = { id: string; role: string; email: string | null; custom: Record<string, unknown> } | null

const text = { type: 'string' } as const
const [explainer, reader, other] = ['explain-key-0123456789', 'explain-read-key-01234', 'other-key-0123456789ab']

const config = {
  serviceKeys: [
    { name: 'explainer', key: explainer, scopes: ['dashboard:rules:*:explain'] },
    { name: 'reader', key: reader, scopes: ['dashboard:rules:*:explain', 'db:table:*:read'] },
    { name: 'other', key: other, scopes: ['db:table:*:read'] },
  ],
  databases: {
    shared: {
      tables: {
        members: { schema: { teamId: text, userId: text }, access: {} },
        docs: {
          schema: { title: text, teamId: text, secret: text, length: { type: 'number' } },
          hidden: ['secret'],
          access: {
            read: (auth: Auth) => auth && { secret: String(auth.custom.word), title: 'Plan' },
            insert: (auth: Auth) => auth && not(exists('members', { teamId: field('teamId') })),
            update: brokenLater(() => {
              throw new Error('no such thing')
            }),
            delete: (auth: Auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }),
          },
        },
        needs: {
          schema: { title: text, key: { type: 'string', required: true } },
          hidden: ['key'],
          access: { insert: true },
        },
        roles: { access: { read: (auth: Auth) => auth?.role === 'editor' && auth.email === 'ed@example.org' } },
        parents: { access: { read: true, delete: true } },
        children: { schema: { parentId: { type: 'string', references: 'parents' } }, access: {} },
      },
    },
  },
} as const

interface Clause {
  readonly path: string
  readonly text: string
  readonly result: boolean | null
  readonly values: Record<string, unknown>
}

describeServer('explanations of access', { config }, (server) => {
  const base = '/api/db/shared/tables'
  const withKey = (key: string) => (body: object) =>
    server.withKey(key).post('/api/rules/explain', { namespace: 'shared', table: 'docs', ...body })
  const explain = (body: object) =>
    server.service.post('/api/rules/explain', { namespace: 'shared', table: 'docs', ...body })
  const claims = (custom: object, id = 'ada') => ({ kind: 'claims', auth: { id, custom } })
  const clauseAt = (answer: { body: { clauses: readonly Clause[] } }, path: string) =>
    answer.body.clauses.find((one) => one.path === path)

  beforeAll(async () => {
    const docs = [
      { id: 'plan', title: 'Plan', teamId: 'red', secret: 'word', length: 3 },
      { id: 'other', title: 'Other', teamId: 'red', secret: 'word' },
    ]
    expect((await server.service.post(`${base}/docs/batch`, { inserts: docs })).status).toBe(200)
    await server.service.post(`${base}/members`, { teamId: 'red', userId: 'ada' })
    await server.service.post(`${base}/parents`, { id: 'p' })
    await server.service.post(`${base}/children`, { parentId: 'p' })
  })

  test('[RULES-EXPLAIN-3] a user by id is explained as stored: role, verified email, and 401 once disabled', async () => {
    const person = await signUp(server)
    const caller = { kind: 'user', id: person.id }
    const first = await explain({ table: 'roles', operation: 'list', caller })
    expect([first.body.verdict, first.body.auth]).toEqual([
      403,
      expect.objectContaining({ id: person.id, role: 'user', email: null, emailVerified: false }),
    ])
    const path = `/api/auth/admin/users/${person.id}`
    const changed = { role: 'editor', email: 'ed@example.org', emailVerified: true }
    expect((await server.service.patch(path, changed)).status).toBe(200)
    const second = await explain({ table: 'roles', operation: 'list', caller })
    expect([second.body.verdict, second.body.auth.email]).toEqual([200, 'ed@example.org'])
    expect((await server.service.patch(path, { disabled: true })).status).toBe(200)
    const third = await explain({ table: 'roles', operation: 'list', caller })
    expect(third.body).toMatchObject({ allowed: false, verdict: 401, reason: 'Invalid token', clauses: [] })
    const client = createClient(() => server.url, { authorization: `Bearer ${person.token}` })
    expectRefusal(await client.get(`${base}/roles`), 401, 'invalid-token')
    const unknown = await explain({ operation: 'list', caller: { kind: 'user', id: 'missing' } })
    expectRefusal(unknown, 400, 'invalid-input')
    expect(unknown.body.data).toEqual({ 'caller.id': { code: 'unknown', message: 'no such user' } })
  })

  test('[RULES-EXPLAIN-3] rules see pasted claims as those of a token', async () => {
    const unverified = await explain({
      table: 'roles',
      operation: 'list',
      caller: { kind: 'claims', auth: { id: 'ed', role: 'editor', email: 'ed@example.org', emailVerified: false } },
    })
    expect([unverified.body.verdict, unverified.body.auth.email]).toEqual([403, null])
    const verified = await explain({
      table: 'roles',
      operation: 'list',
      caller: { kind: 'claims', auth: { id: 'ed', role: 'editor', email: 'ed@example.org' } },
    })
    expect(verified.body.verdict).toBe(200)
  })

  test('[RULES-EXPLAIN-4] without the scope to read the table, no value of a stored record is shown', async () => {
    const question = { operation: 'get', id: 'plan', caller: claims({ word: 'word' }) }
    const all = await withKey(reader)(question)
    expect(clauseAt(all, 'read.and[0]')).toEqual({
      path: 'read.and[0]',
      text: 'secret == "word"',
      result: true,
      values: { secret: 'word' },
    })
    expect(all.body.parameters).toContain('plan')
    const some = await withKey(explainer)(question)
    expect(some.body.verdict).toBe(200)
    expect(clauseAt(some, 'read.and[0]')).toMatchObject({ result: null, values: { secret: '[hidden]' } })
    expect(clauseAt(some, 'read.and[1]')).toMatchObject({ result: true, values: { title: '[hidden]' } })
    expect([some.body.parameters, some.body.plan]).toEqual([[], []])
    const list = await withKey(explainer)({ ...question, operation: 'list' })
    expect(clauseAt(list, 'read.and[0]')).toMatchObject({ result: null, values: { secret: '[hidden]' } })
    expectRefusal(await withKey(other)(question), 401, 'invalid-service-key')
  })

  test('[RULES-EXPLAIN-5] a pasted record stands for a stored one, with every field that it lacks empty', async () => {
    const row = { title: 'Plan', secret: 'mine' }
    const pasted = await withKey(explainer)({ operation: 'get', row, caller: claims({ word: 'mine' }) })
    expect(pasted.body.verdict).toBe(200)
    expect(clauseAt(pasted, 'read.and[0]')).toMatchObject({ result: true, values: { secret: 'mine' } })
    const partial = await explain({ operation: 'read', row: { title: 'Plan' }, caller: claims({ word: 'mine' }) })
    expect(partial.body.verdict).toBe(404)
    expect(clauseAt(partial, 'read.and[0]')).toMatchObject({ result: null, values: { secret: null } })
    const removed = await explain({
      operation: 'delete',
      row: { ...row, teamId: 'red' },
      caller: claims({ word: 'mine' }),
    })
    expect(removed.body.verdict).toBe(200)
    const listed = await explain({
      operation: 'list',
      row,
      filter: [['length', '==', null]],
      caller: claims({ word: 'mine' }),
    })
    expect([listed.body.listed, clauseAt(listed, 'filter')?.result]).toEqual([true, true])
  })

  test('[RULES-EXPLAIN-6] what is no matter of rules: an invalid body is 400, a reference is the reason', async () => {
    const invalid = await explain({ operation: 'create', row: { length: 'x' }, caller: claims({}) })
    expectRefusal(invalid, 400, 'invalid-input')
    expect(Object.keys(invalid.body.data)).toEqual(['row.length'])
    const pasted = await explain({ operation: 'get', row: { length: 'x' }, caller: claims({}) })
    expect(Object.keys(pasted.body.data)).toEqual(['row.length'])
    const hidden = await explain({
      table: 'needs',
      operation: 'create',
      row: { title: 'x' },
      caller: { kind: 'anonymous' },
    })
    expect(hidden.body).toMatchObject({ verdict: 403, reason: 'Access denied' })
    expect((await server.anonymous.post(`${base}/needs`, { title: 'x' })).status).toBe(403)
    const referred = await explain({ table: 'parents', operation: 'delete', id: 'p', caller: { kind: 'anonymous' } })
    expect(referred.body).toMatchObject({ allowed: true, reason: 'Another record refers to this one' })
    expectRefusal(await server.anonymous.delete(`${base}/parents/p`), 409, 'conflict')
  })

  test('[RULES-EXPLAIN-2] a rule that throws is named with its error', async () => {
    const failed = await explain({ operation: 'update', id: 'plan', row: {}, caller: claims({ word: 'word' }) })
    expect(failed.body.verdict).toBe(403)
    expect(clauseAt(failed, 'update.before')).toEqual({
      path: 'update.before',
      text: 'The rule failed: no such thing',
      result: false,
      values: {},
    })
  })

  test('[RULES-EXPLAIN-7] the statement is shown with its plan and indexes that would help', async () => {
    const list = await explain({ operation: 'list', caller: claims({ word: 'word' }), sort: 'length' })
    expect(list.body.sql).toContain('"secret" =')
    expect(list.body.parameters).toContain('word')
    expect(list.body.plan.length).toBeGreaterThan(0)
    expect(list.body.suggestions).toEqual([{ table: 'docs', fields: ['secret', 'title', 'length'] }])
    const removed = await explain({ operation: 'delete', id: 'plan', caller: claims({ word: 'word' }) })
    expect(removed.body.verdict).toBe(200)
    expect(removed.body.suggestions).toEqual([{ table: 'members', fields: ['userId', 'teamId'] }])
    const denied = await explain({ operation: 'list', caller: { kind: 'anonymous' } })
    expect(denied.body).toMatchObject({ verdict: 401, sql: null, plan: [] })
  })

  test('[RULES-EXPLAIN-1] administrators with the scope reach it through the dashboard', async () => {
    const question = { namespace: 'shared', table: 'docs', operation: 'list', caller: { kind: 'anonymous' } }
    for (const role of ['owner', 'editor', 'support']) {
      const { client } = await openAdministrator(server, role)
      const { status, body } = await client.post('/api/rules/explain', question)
      expect([status, body.verdict]).toEqual([200, 401])
      expect((await client.get('/api/rules/matrix')).status).toBe(200)
    }
    const viewer = await openAdministrator(server, 'viewer')
    expectRefusal(await viewer.client.post('/api/rules/explain', question), 403)
  })

  const invalid = [
    ['an unknown table', { table: 'none', operation: 'list', caller: { kind: 'anonymous' } }, 404],
    ['an unknown namespace', { namespace: 'none', operation: 'list', caller: { kind: 'anonymous' } }, 404],
    ['an instance of a static namespace', { instanceId: 'x', operation: 'list', caller: { kind: 'anonymous' } }, 404],
    ['no record', { operation: 'get', caller: { kind: 'anonymous' } }, 400],
    ['an unknown operation', { operation: 'drop', caller: { kind: 'anonymous' } }, 400],
    ['an unknown kind of caller', { operation: 'list', caller: { kind: 'service' } }, 400],
    ['no caller', { operation: 'list' }, 400],
    ['an unknown member', { operation: 'list', caller: { kind: 'anonymous' }, limit: 1 }, 400],
    ['an invalid filter', { operation: 'list', caller: claims({}), filter: [['none', '==', 1]] }, 400],
  ] as const
  for (const [what, body, status] of invalid)
    test(`[RULES-EXPLAIN-6] a question with ${what} is ${status}`, async () => {
      expect((await explain(body)).status).toBe(status)
    })
})
