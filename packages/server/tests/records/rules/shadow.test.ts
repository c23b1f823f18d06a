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
          access: {
            read: (auth: Auth) => auth && { ownerId: auth.id },
            update: {
              before: (auth: Auth) => auth && { ownerId: auth.id },
              after: (auth: Auth) => auth && { ownerId: auth.id, status: 'draft' },
            },
            delete: true,
          },
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
    const idsOf = ({ count, ids }: { count: number; ids: string[] }) => ({ count, ids })
    const changes = body.callers.map((one: { gained: never; lost: never }) => [idsOf(one.gained), idsOf(one.lost)])
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

  test('[RULES-SHADOW-1] the rule for the result of an update is compared apart, with each record as the result', async () => {
    const run = async (operation: string, rule: string) => {
      const { body } = await shadow({ operation, rule, callers: [caller('ada'), caller('bob')] })
      return body.callers.map((one: { gained: { ids: string[] }; lost: { ids: string[] }; before: string }) => [
        one.before,
        one.gained.ids,
        one.lost.ids,
      ])
    }
    const edited = "(auth) => auth && { ownerId: auth.id, status: 'live' }"
    expect(await run('update.after', edited)).toEqual([
      ['ownerId == "ada" and status == "draft"', ['a'], ['b']],
      ['ownerId == "bob" and status == "draft"', ['c'], ['d']],
    ])
    expect(await run('update', edited)).toEqual([
      ['ownerId == "ada"', [], ['b']],
      ['ownerId == "bob"', [], ['d']],
    ])
  })

  test('[RULES-SHADOW-5] each of the first changed records has the clauses of both rules that decide', async () => {
    const rule = `(auth) => or(and({ status: 'live' }, { ownerId: 'bob' }), exists('members', { userId: auth.id, teamId: field('teamId') }))`
    const { body } = await shadow({ rule, callers: [caller('bob'), caller('ada')] })
    const [bob, ada] = body.callers
    expect(bob.lost.rows).toMatchObject([
      {
        id: 'd',
        before: [{ path: 'before', text: 'ownerId == "bob"', result: true, values: { ownerId: 'bob' } }],
        after: [
          { path: 'after.or[0].and[0]', result: false, values: { status: 'draft' } },
          { path: 'after.or[1]', result: null, values: { teamId: null } },
        ],
      },
    ])
    expect(ada.gained.rows).toMatchObject([
      { id: 'c', before: [{ result: false, values: { ownerId: 'bob' } }], after: [{ path: 'after.or[0].and[0]' }, {}] },
    ])
    const many = Array.from({ length: 12 }, (_, at) => ({ id: `m${at}`, ownerId: 'eve' }))
    await server.service.post(`${base}/docs/batch`, { inserts: many })
    const { body: cut } = await shadow({ rule: 'false', callers: [caller('eve')] })
    expect(cut.callers[0].lost).toMatchObject({ count: 12 })
    expect(cut.callers[0].lost.ids).toHaveLength(12)
    expect(cut.callers[0].lost.rows).toHaveLength(10)
    for (const { id } of many) await server.service.delete(`${base}/docs/${id}`)
  })

  test('[RULES-SHADOW-6] errors name their line in the text of the rule', async () => {
    const broken = await shadow({ rule: '(auth) => {\n  return }}\n}', callers: [caller('ada')] })
    expectRefusal(broken, 400, 'rule')
    expect(broken.body.data.rule.message).toStartWith('does not run: line 2: ')
    const rule = '(auth) =>\n  auth.custom.teams.map(String)'
    const { body } = await shadow({ rule, callers: [caller('ada')] })
    expect(body.callers[0].error).toContain('auth.custom.teams')
    expect(body.callers[0].errorAt).toMatchObject({ line: 2 })
    expect((await shadow({ rule: 'true', callers: [caller('ada')] })).body.callers[0].errorAt).toBeNull()
  })

  test('[RULES-SHADOW-7] the text of a rule in force, which a shadow run takes as it is', async () => {
    const source = (query: string, of = server) => of.service.get(`/api/rules/source?${query}`)
    const { body } = await source('namespace=shared&table=docs&operation=read')
    expect(body.rule).toContain('ownerId')
    const { body: same } = await shadow({ rule: body.rule, callers: [caller('ada'), { kind: 'anonymous' }] })
    for (const one of same.callers) expect(one).toMatchObject({ gained: { count: 0 }, lost: { count: 0 }, error: null })
    expect((await source('namespace=shared&table=docs&operation=delete')).body).toEqual({
      rule: 'true',
      path: 'databases.shared.tables.docs.access.delete',
    })
    for (const operation of ['update', 'update.after'])
      expect((await source(`namespace=shared&table=members&operation=${operation}`)).body).toEqual({
        rule: 'false',
        path: 'databases.shared.tables.members.access.update',
      })
    const { body: result } = await source('namespace=shared&table=docs&operation=update.after')
    expect(result.path).toBe('databases.shared.tables.docs.access.update.after')
    expect(result.rule).toContain('draft')
    expectRefusal(await source('namespace=shared&table=none&operation=read'), 404)
    expectRefusal(await source('namespace=shared&table=docs&operation=list'), 400, 'operation')
    const release = await startServer({ config, mode: 'release' })
    try {
      expectRefusal(
        await source('namespace=shared&table=docs&operation=read', release as never),
        403,
        'development mode',
      )
    } finally {
      await release.close()
    }
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
