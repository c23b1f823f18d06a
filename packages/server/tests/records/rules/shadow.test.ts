/** Shadow runs: what an edited rule would change for the last records. */
import { beforeAll, expect, test } from 'bun:test'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer } from '../../harness/server.ts'

type Auth = { id: string; custom: Record<string, unknown> } | null
const text = { type: 'string' } as const
const readless = 'explain-only-key-0123'
const config = {
  serviceKeys: [{ name: 'readless', key: readless, scopes: ['dashboard:rules:*:explain'] }],
  databases: {
    shared: {
      tables: {
        members: { schema: { userId: text, teamId: text }, access: {} },
        docs: {
          schema: { ownerId: text, teamId: text, status: text },
          access: { read: (auth: Auth) => auth && { ownerId: auth.id }, delete: true },
        },
      },
    },
  },
} as const

const caller = (id: string, custom: object = {}) => ({ kind: 'claims', auth: { id, custom } })

describeServer('shadow runs', { config }, (server) => {
  const base = '/api/db/shared/tables'
  const shadow = (body: object) =>
    server.service.post('/api/rules/shadow', { namespace: 'shared', table: 'docs', operation: 'read', ...body })

  beforeAll(async () => {
    const docs = [
      { id: 'a', ownerId: 'ada', teamId: 'red', status: 'live' },
      { id: 'b', ownerId: 'ada', teamId: 'red', status: 'draft' },
      { id: 'c', ownerId: 'bob', teamId: 'red', status: 'live' },
      { id: 'd', ownerId: 'bob', status: 'draft' },
    ]
    expect((await server.service.post(`${base}/docs/batch`, { inserts: docs })).status).toBe(200)
    await server.service.post(`${base}/members`, { userId: 'ada', teamId: 'red' })
  })

  test('[RULES-SHADOW-1] rows gained and lost by each caller, the latest first, and nothing is changed', async () => {
    const before = await server.dump(`${base}/docs`)
    const rule = `(auth) => auth
      ? or({ status: 'live' }, exists('members', { userId: auth.id, teamId: field('teamId') }))
      : where('status', '==', 'live')`
    const { status, body } = await shadow({ rule, callers: [{ kind: 'anonymous' }, caller('ada'), caller('bob')] })
    expect(status).toBe(200)
    expect(body.rows).toBe(4)
    const changes = body.callers.map(({ gained, lost }: { gained: object; lost: object }) => [gained, lost])
    expect(changes).toEqual([
      [
        { count: 2, ids: ['c', 'a'] },
        { count: 0, ids: [] },
      ],
      [
        { count: 1, ids: ['c'] },
        { count: 0, ids: [] },
      ],
      [
        { count: 1, ids: ['a'] },
        { count: 1, ids: ['d'] },
      ],
    ])
    expect(body.callers[2]).toMatchObject({ before: 'ownerId == "bob"', error: null })
    expect(await server.dump(`${base}/docs`)).toEqual(before)
  })

  test('[RULES-SHADOW-2] a rule that throws, compares with undefined or names an unknown field denies', async () => {
    const run = async (rule: string) => (await shadow({ rule, callers: [caller('ada')] })).body.callers[0]
    const cases = [
      ["() => { throw new Error('no such thing') }", 'no such thing'],
      ['(auth) => ({ ownerId: auth.custom.none })', 'The rule compares "ownerId" with undefined'],
      ['() => ({ wrong: 1 })', 'Unknown field "wrong"'],
      ['async () => true', 'A rule must not be asynchronous'],
    ] as const
    for (const [rule, error] of cases)
      expect(await run(rule)).toMatchObject({ lost: { count: 2, ids: ['b', 'a'] }, after: 'false', error })
    expect(await run('true')).toMatchObject({ gained: { count: 2 }, after: 'true', error: null })
    expect(await run('(auth) => not(and({ ownerId: auth.id }, { status: null }))')).toMatchObject({
      gained: { count: 2 },
    })
  })

  test('[RULES-SHADOW-3] the rule runs in another process: a text that does not compile or end is 400', async () => {
    const before = process.pid
    for (const rule of ['(auth) =>', '() => { for (;;); }', '() => process.exit(1)', '); process.exit(1); ('])
      expectRefusal(await shadow({ rule, callers: [caller('ada')] }), 400, 'rule')
    expect(process.pid).toBe(before)
    const { body } = await shadow({ rule: '() => ({ status: String(process.pid) })', callers: [caller('ada')] })
    expect(body.callers[0].after).not.toBe(`status == "${process.pid}"`)
  })

  test('[RULES-SHADOW-4] it needs development mode and a key that may read the table', async () => {
    const question = { namespace: 'shared', table: 'docs', operation: 'read', rule: 'true', callers: [caller('ada')] }
    expectRefusal(await server.withKey(readless).post('/api/rules/shadow', question), 403)
    const release = await startServer({ config, mode: 'release' })
    try {
      expectRefusal(await release.service.post('/api/rules/shadow', question), 403, 'development mode')
    } finally {
      await release.close()
    }
  })
})
