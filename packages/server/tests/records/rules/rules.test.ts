/**
 * Access rules beyond the matrix: memberships, conditions before and after a write, claims and operators.
 */
import { beforeAll, expect, test } from 'bun:test'
import { and, exists, field, not, or, where } from '../../../src/access/filter.ts'
import type { Answer, Client } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const table = (name: string): string => `/api/db/shared/tables/${name}`

type Auth = { id: string; role: string; custom: Record<string, unknown> } | null

/** Tables with rules that the matrix does not cover. */
const config = {
  databases: {
    shared: {
      tables: {
        members: {
          schema: { userId: { type: 'string' }, teamId: { type: 'string' }, role: { type: 'string' } },
          access: {},
        },
        docs: {
          schema: { title: { type: 'string' }, teamId: { type: 'string' } },
          search: ['title'],
          access: {
            read: (auth: Auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }),
            insert: (auth: Auth) =>
              auth && exists('members', { userId: auth.id, teamId: field('teamId'), role: 'editor' }),
            update: (auth: Auth) =>
              auth && exists('members', { userId: auth.id, teamId: field('teamId'), role: 'editor' }),
            delete: (auth: Auth) =>
              auth && not(exists('members', { userId: auth.id, teamId: field('teamId'), role: 'reader' })),
          },
        },
        flow: {
          schema: { status: { type: 'string', default: 'draft' }, ownerId: { type: 'string' }, n: { type: 'number' } },
          access: {
            read: true,
            insert: (auth: Auth) => auth && { status: 'draft', ownerId: auth.id },
            update: {
              before: (auth: Auth) => auth && { ownerId: auth.id, status: 'draft' },
              after: () => where('status', 'in', ['draft', 'review']),
            },
          },
        },
        dated: {
          schema: { n: { type: 'number' } },
          access: { read: true, insert: () => where('createdAt', '>', '2025-01-01T00:00:00.000Z') },
        },
        claims: {
          schema: { tenant: { type: 'string' }, level: { type: 'number' } },
          access: {
            read: (auth: Auth) => auth && (auth.role === 'admin' || { tenant: auth.custom.tenant as string }),
            insert: (auth: Auth) => auth?.custom.canInsert === true,
          },
        },
        meddling: {
          schema: { n: { type: 'number' } },
          access: {
            read: (auth: Auth) => {
              if (auth) (auth as { role: string }).role = 'admin'
              return auth?.role === 'admin'
            },
          },
        },
        writeOnly: { schema: { n: { type: 'number' } }, access: { insert: true } },
        operators: {
          schema: { n: { type: 'number' }, text: { type: 'string' }, due: { type: 'datetime' } },
          access: {
            ...open,
            read: (auth: Auth) => {
              if (!auth) return false
              if (auth.id === 'greater') return where('n', '>', 2)
              if (auth.id === 'contains') return where('text', 'contains', 'A_%')
              if (auth.id === 'notIn') return where('n', 'not in', [1, 2])
              if (auth.id === 'null') return { n: null }
              if (auth.id === 'notNull') return where('n', '!=', null)
              if (auth.id === 'due') return where('due', '<', '2026-01-01T00:00:00Z')
              if (auth.id === 'nested') return and(or({ n: 1 }, { n: 3 }), not(or({ text: 'x' }, { n: 3 })))
              return false
            },
          },
        },
      },
    },
  },
} as const

describeServer('rules', { config }, (server) => {
  beforeAll(async () => {
    const members = [
      ['alice', 'red', 'editor'],
      ['alice', 'blue', 'reader'],
      ['bob', 'blue', 'editor'],
    ].map(([userId, teamId, role]) => ({ userId, teamId, role }))
    await server.service.post(`${table('members')}/batch`, { inserts: members })
    const docs = ['red', 'blue', 'green'].flatMap((teamId) =>
      [1, 2].map((n) => ({ id: `${teamId}${n}`, title: `doc ${n}`, teamId })),
    )
    await server.service.post(`${table('docs')}/batch`, { inserts: [...docs, { id: 'loose', title: 'doc 3' }] })
    await server.service.post(`${table('claims')}/batch`, {
      inserts: ['t1', 't2'].map((tenant) => ({ id: tenant, tenant })),
    })
    await server.service.post(`${table('meddling')}`, { id: 'm', n: 1 })
    const values = [
      { n: 1, text: 'xA_%' },
      { n: 2, text: 'AB%' },
      { n: 3, text: 'a_%' },
      { text: 'x', due: '2025-06-01T00:00:00Z' },
    ].map((row, i) => ({ id: `v${i + 1}`, ...row }))
    expect((await server.service.post(`${table('operators')}/batch`, { inserts: values })).status).toBe(200)
  })

  const idsOf = (answer: Answer): string => answer.body.items.map(({ id }: { id: string }) => id).join()

  test('[RULE-10, RULE-5] exists: the members of a team can read its rows with every kind of read', async () => {
    const docs = table('docs')
    const [alice, bob, carol] = ['alice', 'bob', 'carol'].map((user) => server.as(user)) as [Client, Client, Client]
    expect(idsOf(await alice.get(docs))).toBe('blue1,blue2,red1,red2')
    expect(idsOf(await bob.get(docs))).toBe('blue1,blue2')
    expect(idsOf(await carol.get(docs))).toBe('')
    expect((await alice.get(`${docs}/count`)).body.total).toBe(4)
    expect((await bob.get(`${docs}/search?q=doc`)).body.total).toBe(2)
    expectRefusal(await bob.get(`${docs}/red1`), 404)
    expect((await alice.get(`${docs}/red1`)).status).toBe(200)
    expectRefusal(await alice.get(`${docs}/loose`), 404)
  })

  test('[RULE-10, RULE-6, RULE-7] exists: editors may write, readers may not, and a row cannot be moved to a team without edit access', async () => {
    const docs = table('docs')
    const alice = server.as('alice')
    const before = await server.dump(docs)
    expectRefusal(await alice.post(docs, { teamId: 'blue' }), 403)
    expectRefusal(await alice.post(docs, {}), 403)
    expectRefusal(await alice.patch(`${docs}/blue1`, { title: 'x' }), 403)
    expectRefusal(await alice.patch(`${docs}/red1`, { teamId: 'blue' }), 403)
    expectRefusal(await alice.patch(`${docs}/green1`, { title: 'x' }), 404)
    expectRefusal(await alice.delete(`${docs}/blue1`), 403)
    expectRefusal(await alice.delete(`${docs}/green1`), 404)
    expectRefusal(
      await alice.post(`${docs}/batch`, {
        updates: [
          { id: 'red1', data: { title: 'y' } },
          { id: 'blue1', data: { title: 'y' } },
        ],
      }),
      403,
    )
    expect(await server.dump(docs)).toEqual(before)
    expect((await alice.post(`${docs}/batch-by-filter`, { action: 'update', data: { title: 'mine' } })).body).toEqual({
      processed: 2,
      succeeded: 2,
    })
    const made = await alice.post(docs, { teamId: 'red', title: 'new' })
    expect(made.status).toBe(201)
    expect((await alice.delete(`${docs}/${made.body.id}`)).status).toBe(200)
  })

  test('[RULE-10, DB-LIST-15] exists: a membership change applies from the next request, including totals', async () => {
    const docs = table('docs')
    const carol = server.as('carol')
    expect((await carol.get(docs)).body.total).toBe(0)
    const { body } = await server.service.post(table('members'), { userId: 'carol', teamId: 'green', role: 'reader' })
    expect((await carol.get(docs)).body).toMatchObject({ total: 2, items: [{ id: 'green1' }, { id: 'green2' }] })
    expect((await carol.get(`${docs}/count`)).body.total).toBe(2)
    await server.service.delete(`${table('members')}/${body.id}`)
    expect((await carol.get(docs)).body.total).toBe(0)
    expect((await carol.get(`${docs}/count`)).body.total).toBe(0)
  })

  test('[RULE-6] insert is checked with defaults and generated values', async () => {
    const alice = server.as('alice')
    expect((await alice.post(table('flow'), { ownerId: 'alice' })).body).toMatchObject({ status: 'draft' })
    expectRefusal(await alice.post(table('flow'), { ownerId: 'alice', status: 'done' }), 403)
    expectRefusal(await alice.post(table('flow'), { ownerId: 'bob' }), 403)
    expect((await server.anonymous.post(table('dated'), { n: 1 })).status).toBe(201)
    expectRefusal(await server.anonymous.post(table('dated'), { n: 1, createdAt: '2020-01-01T00:00:00Z' }), 401)
  })

  test('[RULE-9, RULE-7] separate rules for before and after a write', async () => {
    const flow = table('flow')
    const alice = server.as('alice')
    const { id } = (await alice.post(flow, { ownerId: 'alice' })).body
    const before = await server.dump(flow)
    expectRefusal(await alice.patch(`${flow}/${id}`, { status: 'done' }), 403)
    expectRefusal(await alice.patch(`${flow}/${id}`, { status: null }), 403)
    expectRefusal(await server.as('bob').patch(`${flow}/${id}`, { n: 1 }), 403)
    expectRefusal(await server.anonymous.patch(`${flow}/${id}`, { n: 1 }), 401)
    expect(await server.dump(flow)).toEqual(before)
    expect((await alice.patch(`${flow}/${id}`, { status: 'review', ownerId: 'bob' })).status).toBe(200)
    expectRefusal(await alice.patch(`${flow}/${id}`, { n: 1 }), 403)
    expectRefusal(await server.as('bob').patch(`${flow}/${id}`, { status: 'draft' }), 403)
  })

  test('[RULE-14, TOKEN-11] rules read role and custom claims', async () => {
    const claims = table('claims')
    expect(idsOf(await server.as({ id: 'u', custom: { tenant: 't1' } }).get(claims))).toBe('t1')
    expect(idsOf(await server.as({ id: 'u', custom: { tenant: 't2' } }).get(claims))).toBe('t2')
    expect(idsOf(await server.as({ id: 'u', role: 'admin' }).get(claims))).toBe('t1,t2')
    expectRefusal(await server.as('u').get(claims), 403)
    expectRefusal(await server.as({ id: 'u', custom: { tenant: { $gt: '' } } }).get(claims), 403)
    expectRefusal(await server.as({ id: 'u', custom: { tenant: ['t1'] } }).get(claims), 403)
    expect(idsOf(await server.as({ id: 'u', custom: { tenant: "t1' OR '1'='1" } }).get(claims))).toBe('')
    expect((await server.as({ id: 'u', custom: { canInsert: true } }).post(claims, {})).status).toBe(201)
    expectRefusal(await server.as({ id: 'u', custom: { canInsert: 'true' } }).post(claims, {}), 403)
  })

  test('[TOKEN-11] a rule cannot modify the caller', async () => {
    for (let i = 0; i < 2; i++) expectRefusal(await server.as('eve').get(table('meddling')), 403)
  })

  test('[RULE-1, RULE-6] a table can be insert-only', async () => {
    const path = table('writeOnly')
    const made = await server.anonymous.post(path, { n: 1 })
    expect(made.status).toBe(201)
    for (const part of ['', `/${made.body.id}`, '/count']) expectRefusal(await server.anonymous.get(path + part), 401)
    for (const part of ['', `/${made.body.id}`, '/count']) expectRefusal(await server.as('alice').get(path + part), 403)
    expectRefusal(await server.as('alice').patch(`${path}/${made.body.id}`, { n: 2 }), 403)
    expectRefusal(await server.as('alice').delete(`${path}/${made.body.id}`), 403)
    expectRefusal(await server.anonymous.post(path, { id: made.body.id }), 409)
  })

  test('[RULE-5] every operator works in a rule', async () => {
    const expected = {
      greater: 'v3',
      contains: 'v1',
      notIn: 'v3',
      null: 'v4',
      notNull: 'v1,v2,v3',
      due: 'v4',
      nested: 'v1',
    }
    for (const [user, ids] of Object.entries(expected)) {
      const answer = await server.as(user).get(table('operators'))
      expect([user, idsOf(answer), answer.body.total]).toEqual([user, ids, ids.split(',').length])
    }
  })

  test('[RULE-11] an invalid rule is logged, and not described in the response', async () => {
    expectRefusal(await server.as({ id: 'u', custom: { tenant: [] } }).get(table('claims')), 403)
    expect(server.logged()).toContain('shared.claims')
  })

  test('[AUTH-2] anonymous callers, users and service keys see different rows of one table', async () => {
    expectRefusal(await server.anonymous.get(table('docs')), 401)
    expect((await server.as('bob').get(table('docs'))).body.total).toBe(2)
    expect((await server.service.get(table('docs'))).body.total).toBe(7)
  })
})
