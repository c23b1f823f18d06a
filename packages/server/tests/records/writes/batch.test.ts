/** POST {base}/batch: three lists of operations in one transaction. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { codesOf, runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const owned = '/api/db/shared/tables/owned'
const secretive = '/api/db/shared/tables/secretive'

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }

const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            title: { type: 'string', required: true },
            rank: { type: 'number' },
            slug: { type: 'string', unique: true },
            secret: { type: 'string' },
          },
          hidden: ['secret'],
          access: open,
        },
        owned: {
          schema: { title: { type: 'string' }, ownerId: { type: 'string' } },
          access: { read: true, insert: own, update: own, delete: own },
        },
        secretive: {
          schema: { title: { type: 'string' }, ownerId: { type: 'string' } },
          access: { read: own, insert: own, update: own, delete: own },
        },
      },
    },
  },
} as const

describeServer('batch', { config }, (server) => {
  beforeEach(async () => {
    for (const table of [base, owned, secretive]) {
      while ((await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      const inserts = ['a', 'b', 'c'].map((id, i) => ({
        id,
        title: id.toUpperCase(),
        ...(table === base ? { rank: i, slug: `s${id}` } : { ownerId: i === 0 ? 'alice' : 'bob' }),
      }))
      expect((await server.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    }
  })

  const batch = (body: unknown, search = '') => server.anonymous.post(`${base}/batch${search}`, body)

  test('[DB-BATCH-1] a batch executes all three lists and returns results in request order', async () => {
    const { status, body } = await batch({
      inserts: [{ id: 'z', title: 'Z' }, { title: 'generated' }, { id: 'd', title: 'D' }],
      updates: [
        { id: 'c', data: { rank: 30 } },
        { id: 'a', data: { title: 'AA', rank: null } },
      ],
      deletes: ['b'],
    })
    expect(status).toBe(200)
    expect(body.inserted.map(({ id, title }: { id: string; title: string }) => [id, title])).toEqual([
      ['z', 'Z'],
      [expect.any(String), 'generated'],
      ['d', 'D'],
    ])
    expect(body.updated).toMatchObject([
      { id: 'c', rank: 30, title: 'C' },
      { id: 'a', title: 'AA', rank: null },
    ])
    expect(body.deleted).toEqual(['b'])
    expect(Object.keys(body).sort()).toEqual(['deleted', 'inserted', 'updated'])
    const { items } = (await server.anonymous.get(base)).body
    expect(items.map(({ title }: { title: string }) => title).sort()).toEqual(['AA', 'C', 'D', 'Z', 'generated'])
    for (const record of [...body.inserted, ...body.updated]) expect(items).toContainEqual(record)
  })

  test('[DB-BATCH-1] every list may be omitted or empty', async () => {
    const nothing = { inserted: [], updated: [], deleted: [] }
    expect((await batch({})).body).toEqual(nothing)
    expect((await batch({ inserts: [], updates: [], deletes: [] })).body).toEqual(nothing)
    expect((await batch({ deletes: ['a', 'c'] })).body).toEqual({ ...nothing, deleted: ['a', 'c'] })
  })

  test('[DB-BATCH-2] a batch accepts 500 operations and refuses 501', async () => {
    const inserts = Array.from({ length: 499 }, (_, i) => ({ title: `t${i}` }))
    const before = await server.dump(base)
    expectRefusal(await batch({ inserts, deletes: ['a', 'b'] }), 400, '500')
    expectRefusal(await batch({ inserts: [...inserts, { title: 'x' }, { title: 'y' }] }), 400, '500')
    // The number of operations is checked before each operation is.
    for (const list of ['inserts', 'updates', 'deletes'])
      expectRefusal(await batch({ [list]: Array(501).fill(1) }), 400, '500')
    expect(await server.dump(base)).toEqual(before)
    const { status, body } = await batch({ inserts, deletes: ['a'] })
    expect(status).toBe(200)
    expect(body.inserted.length).toBe(499)
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(501)
  })

  test('[DB-BATCH-7] updates accept operators', async () => {
    const { body } = await batch({
      updates: [{ id: 'c', data: { rank: { $op: 'increment', value: 5 }, slug: { $op: 'deleteField' } } }],
    })
    expect(body.updated).toMatchObject([{ id: 'c', rank: 7, slug: null }])
  })

  test('[DB-BATCH-7] two updates of one record are applied in order', async () => {
    const increment = { id: 'a', data: { rank: { $op: 'increment', value: 1 } } }
    const { body } = await batch({ updates: [increment, increment, { id: 'a', data: { title: 'Last' } }] })
    expect(body.updated.at(-1)).toMatchObject({ rank: 2, title: 'Last' })
    expect((await server.anonymous.get(`${base}/a`)).body).toMatchObject({ rank: 2, title: 'Last' })
  })

  test('[DB-BATCH-3] a failed operation rolls back the earlier ones', async () => {
    const before = await server.dump(base)
    const ok = { inserts: [{ id: 'new', title: 'N' }], updates: [{ id: 'a', data: { rank: 100 } }] }
    expectRefusal(await batch({ ...ok, deletes: ['b', 'nope'] }), 404)
    expectRefusal(await batch({ ...ok, inserts: [...ok.inserts, { id: 'a', title: 'dup' }] }), 409)
    expectRefusal(await batch({ ...ok, updates: [...ok.updates, { id: 'b', data: { slug: 'sc' } }] }), 409)
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-BATCH-6] upserts insert and update, and are all listed in inserted', async () => {
    const { status, body } = await batch(
      {
        inserts: [
          { id: 'a', title: 'A2' },
          { id: 'new', title: 'N' },
          { id: 'b', rank: 9 },
        ],
      },
      '?upsert=true',
    )
    expect(status).toBe(200)
    expect(body.inserted).toMatchObject([
      { id: 'a', title: 'A2', rank: 0, slug: 'sa' },
      { id: 'new', title: 'N' },
      { id: 'b', title: 'B', rank: 9 },
    ])
    expect(body.updated).toEqual([])
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(4)
  })

  test('[DB-BATCH-6] conflictTarget applies to a batch of upserts', async () => {
    const { status, body } = await batch(
      {
        inserts: [
          { slug: 'sa', title: 'A2' },
          { slug: 'new', title: 'N' },
        ],
      },
      '?upsert=true&conflictTarget=slug',
    )
    expect([status, body.inserted?.[0]?.id]).toEqual([200, 'a'])
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(4)
  })

  test('[DB-BATCH-6] an existing id is a conflict without upsert', async () => {
    const before = await server.dump(base)
    expectRefusal(
      await batch({
        inserts: [
          { id: 'x', title: 'X' },
          { id: 'a', title: 'A2' },
        ],
      }),
      409,
    )
    expect(await server.dump(base)).toEqual(before)
  })

  const refused = (
    rule: string,
    why: string,
    body: unknown,
    status: number,
    rest: Partial<Scenario> = {},
  ): Scenario => ({
    name: `[${rule}] ${why}`,
    method: 'POST',
    path: `${base}/batch`,
    body,
    status,
    ...rest,
  })
  const fine = { title: 'Fine' }

  describe('refuses the batch', () =>
    runScenarios(
      server,
      [base, owned, secretive],
      [
        refused('DB-BATCH-5', 'a bad field in an insert', { inserts: [fine, fine, { title: 5 }] }, 400, {
          data: { 'inserts[2].title': 'type' },
        }),
        refused('DB-BATCH-5, ERR-4', 'a missing field in an insert', { inserts: [{}] }, 400, {
          data: { 'inserts[0].title': 'required' },
        }),
        refused(
          'DB-BATCH-5',
          'an unknown field in an update',
          {
            inserts: [fine],
            updates: [
              { id: 'a', data: { rank: 1 } },
              { id: 'b', data: { nope: 1 } },
            ],
          },
          400,
          { data: { 'updates[1].nope': 'unknown' } },
        ),
        refused('DB-TABLE-11', 'a hidden field in an insert', { inserts: [{ ...fine, secret: 'x' }] }, 400, {
          data: { 'inserts[0].secret': 'unknown' },
        }),
        refused('DB-TABLE-11', 'a hidden field in an update', { updates: [{ id: 'a', data: { secret: 'x' } }] }, 400, {
          data: { 'updates[0].secret': 'unknown' },
        }),
        refused(
          'DB-BATCH-5',
          'an increment of text',
          { updates: [{ id: 'a', data: { title: { $op: 'increment', value: 1 } } }] },
          400,
          { data: { 'updates[0].title': 'operator' } },
        ),
        refused('DB-BATCH-5', 'an unknown operator', { updates: [{ id: 'a', data: { rank: { $op: 'x' } } }] }, 400, {
          data: { 'updates[0].rank': 'operator' },
        }),
        refused('DB-BATCH-5', 'another id in an update', { updates: [{ id: 'a', data: { id: 'b' } }] }, 400, {
          data: { 'updates[0].id': 'operator' },
        }),
        refused(
          'DB-BATCH-4',
          'an absent id in updates',
          {
            inserts: [fine],
            updates: [
              { id: 'a', data: { rank: 9 } },
              { id: 'nope', data: { rank: 9 } },
            ],
          },
          404,
          { names: 'updates[1]' },
        ),
        refused('DB-BATCH-4', 'an absent id in deletes', { inserts: [fine], deletes: ['a', 'nope', 'b'] }, 404, {
          names: 'deletes[1]',
        }),
        refused('DB-BATCH-4', 'an id deleted twice', { deletes: ['a', 'a'] }, 404, { names: 'deletes[1]' }),
        refused('DB-BATCH-4', 'an id no record can have', { deletes: ['a b'] }, 404, { names: 'deletes[0]' }),
        refused(
          'DB-BATCH-3',
          'one id twice in inserts',
          {
            inserts: [
              { id: 'n', title: 'x' },
              { id: 'n', title: 'y' },
            ],
          },
          409,
        ),
        refused(
          'DB-BATCH-3',
          'one unique value twice in inserts',
          {
            inserts: [
              { slug: 'n', title: 'x' },
              { slug: 'n', title: 'y' },
            ],
          },
          409,
          { names: 'slug' },
        ),
        refused('DB-BATCH-5', 'an upsert without id', { inserts: [fine] }, 400, {
          path: `${base}/batch?upsert=true`,
          data: { 'inserts[0].id': 'required' },
        }),
        ...(['inserts', 'updates', 'deletes'] as const).flatMap((list) => [
          ...[{}, 'x', 5, true].map((value) =>
            refused('DB-BATCH-5', `${list}: ${JSON.stringify(value)}`, { [list]: value }, 400, { names: list }),
          ),
          ...[null, 5, [], true].map((value) =>
            refused('DB-BATCH-5', `${list}: [${JSON.stringify(value)}]`, { inserts: [fine], [list]: [value] }, 400, {
              names: list,
            }),
          ),
        ]),
        refused('DB-BATCH-5', 'an update without data', { updates: [{ id: 'a' }] }, 400, { names: 'updates[0]' }),
        refused('DB-BATCH-5', 'an update without id', { updates: [{ data: { rank: 1 } }] }, 400, {
          names: 'updates[0]',
        }),
        refused('DB-BATCH-5', 'an update whose data is a list', { updates: [{ id: 'a', data: [] }] }, 400, {
          names: 'updates[0]',
        }),
        refused('DB-BATCH-5', 'an update whose id is a number', { updates: [{ id: 5, data: {} }] }, 400, {
          names: 'updates[0]',
        }),
        refused('DB-BATCH-5', 'a delete that is an object', { deletes: [{ id: 'a' }] }, 400, { names: 'deletes[0]' }),

        refused(
          'DB-BATCH-8',
          'one insert the rule denies',
          { inserts: [{ ownerId: 'alice' }, { ownerId: 'bob' }] },
          403,
          { path: `${owned}/batch`, as: { id: 'alice' } },
        ),
        refused(
          'DB-BATCH-8',
          'one update the rule denies',
          {
            inserts: [{ ownerId: 'alice' }],
            updates: [
              { id: 'a', data: { title: 'x' } },
              { id: 'b', data: { title: 'x' } },
            ],
          },
          403,
          { path: `${owned}/batch`, as: { id: 'alice' } },
        ),
        refused(
          'DB-BATCH-8',
          'an update that leaves the rule',
          { updates: [{ id: 'a', data: { ownerId: 'bob' } }] },
          403,
          { path: `${owned}/batch`, as: { id: 'alice' } },
        ),
        refused('DB-BATCH-8', 'one delete the rule denies', { deletes: ['a', 'b'] }, 403, {
          path: `${owned}/batch`,
          as: { id: 'alice' },
        }),
        refused('DB-BATCH-8', 'no credentials where the rules need them', { inserts: [{ ownerId: 'alice' }] }, 401, {
          path: `${owned}/batch`,
        }),
        refused(
          'DB-BATCH-8',
          "an upsert of another's row",
          {
            inserts: [
              { id: 'a', title: 'x' },
              { id: 'b', title: 'x', ownerId: 'alice' },
            ],
          },
          403,
          { path: `${owned}/batch?upsert=true`, as: { id: 'alice' } },
        ),
        refused(
          'DB-BATCH-4',
          'a hidden row in updates',
          {
            updates: [
              { id: 'a', data: { title: 'x' } },
              { id: 'b', data: { title: 'x' } },
            ],
          },
          404,
          { path: `${secretive}/batch`, as: { id: 'alice' }, names: 'updates[1]' },
        ),
        refused('DB-BATCH-4', 'a hidden row in deletes', { deletes: ['a', 'b'] }, 404, {
          path: `${secretive}/batch`,
          as: { id: 'alice' },
          names: 'deletes[1]',
        }),
        refused(
          'DB-UPSERT-8',
          'an upsert of a hidden row',
          {
            inserts: [
              { id: 'a', title: 'x' },
              { id: 'b', ownerId: 'alice' },
            ],
          },
          409,
          { path: `${secretive}/batch?upsert=true`, as: { id: 'alice' } },
        ),
      ],
    ))

  test('[DB-BATCH-8] a batch of the caller’s own rows is accepted', async () => {
    const { status, body } = await server
      .as('alice')
      .post(`${owned}/batch`, { inserts: [{ ownerId: 'alice' }], updates: [{ id: 'a', data: { title: 'mine' } }] })
    expect(status).toBe(200)
    expect(body.updated[0].title).toBe('mine')
  })

  test('[DB-BATCH-4] a hidden row and an absent one get the same error', async () => {
    const hidden = await server.as('alice').post(`${secretive}/batch`, { deletes: ['b'] })
    const absent = await server.as('alice').post(`${secretive}/batch`, { deletes: ['x'] })
    expect(codesOf(hidden.body.data)).toEqual(codesOf(absent.body.data))
    expect(hidden.text.replaceAll('"b"', 'X')).toBe(absent.text.replaceAll('"x"', 'X'))
  })

  test('[RULE-15] the response to a batch contains no hidden field', async () => {
    const { text } = await batch({ inserts: [fine], updates: [{ id: 'a', data: { rank: 1 } }] })
    expect(text).not.toContain('secret')
  })
})
