/** POST {base}/batch-by-filter: which rows are changed, and when all are refused. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const table = (name: string): string => `/api/db/shared/tables/${name}`
const base = table('items')
const path = `${base}/batch-by-filter`

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }
const schema = {
  title: { type: 'string', required: true, max: 20 },
  rank: { type: 'number', max: 1000 },
  slug: { type: 'string', unique: true },
  ownerId: { type: 'string' },
  secret: { type: 'string' },
} as const

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['secret'], access: open },
        owned: { schema, access: { read: true, update: own, delete: own } },
        secretive: { schema, access: { read: own, update: true, delete: true } },
        readOnly: { schema, access: { read: true } },
        blind: { schema, access: { update: true, delete: true } },
        leaving: { schema, access: { read: true, update: { before: true, after: () => ({ title: 'fine' }) } } },
      },
    },
  },
} as const
const tables = Object.keys(config.databases.shared.tables)

describeServer('batch by filter', { config }, (server) => {
  beforeEach(async () => {
    for (const name of tables) {
      while ((await server.service.post(`${table(name)}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      const inserts = Array.from({ length: 6 }, (_, i) => ({
        id: `r${i}`,
        title: 'start',
        rank: i,
        slug: `s${i}`,
        ownerId: i % 2 === 0 ? 'alice' : 'bob',
        secret: `x${i}`,
      }))
      expect((await server.service.post(`${table(name)}/batch`, { inserts })).status).toBe(200)
    }
  })

  const ranks = async (name: string): Promise<unknown[]> =>
    ((await server.dump(table(name)))[table(name)]?.items ?? []).map(({ rank }) => rank)

  test('[DB-BYFILTER-1] updates matching rows', async () => {
    const { status, body } = await server.anonymous.post(path, {
      action: 'update',
      filter: [['rank', '>=', 3]],
      data: { title: 'changed', rank: 50 },
    })
    expect(status).toBe(200)
    expect(body).toEqual({ processed: 3, succeeded: 3 })
    expect(await ranks('items')).toEqual([0, 1, 2, 50, 50, 50])
    const { items } = (await server.dump(base))[base] ?? { items: [] }
    for (const item of items)
      if (item.rank === 50) expect((item.updatedAt as string) > (item.createdAt as string)).toBe(true)
  })

  test('[DB-BYFILTER-1] deletes matching rows', async () => {
    const { status, body } = await server.anonymous.post(path, {
      action: 'delete',
      filter: [['rank', 'in', [1, 2, 99]]],
    })
    expect(status).toBe(200)
    expect(body).toEqual({ processed: 2, succeeded: 2 })
    expect(await ranks('items')).toEqual([0, 3, 4, 5])
  })

  test('[DB-BYFILTER-1] a filter without matches succeeds', async () => {
    for (const action of ['update', 'delete'])
      expect(
        (await server.anonymous.post(path, { action, filter: [['rank', '==', 99]], data: { rank: 1 } })).body,
      ).toEqual({ processed: 0, succeeded: 0 })
  })

  test('[DB-BYFILTER-1] a request without a filter applies to every row', async () => {
    expect((await server.anonymous.post(path, { action: 'update', data: { rank: 9 } })).body).toEqual({
      processed: 6,
      succeeded: 6,
    })
    expect((await server.anonymous.post(path, { action: 'delete', filter: [] })).body).toEqual({
      processed: 6,
      succeeded: 6,
    })
  })

  test('[DB-FILTER-13] rows must match both filter and orFilter', async () => {
    const { body } = await server.anonymous.post(path, {
      action: 'delete',
      filter: [['rank', '>', 0]],
      orFilter: [
        ['rank', '<', 2],
        ['rank', '==', 5],
      ],
    })
    expect(body).toEqual({ processed: 2, succeeded: 2 })
    expect(await ranks('items')).toEqual([0, 2, 3, 4])
  })

  test('[DB-BYFILTER-5] operators are applied to each row', async () => {
    const { body } = await server.anonymous.post(path, {
      action: 'update',
      filter: [['rank', '<', 3]],
      data: { rank: { $op: 'increment', value: 10 }, slug: { $op: 'deleteField' } },
    })
    expect(body).toEqual({ processed: 3, succeeded: 3 })
    expect(await ranks('items')).toEqual([10, 11, 12, 3, 4, 5])
    expect((await server.anonymous.get(`${base}/r0`)).body.slug).toBe(null)
  })

  test('[DB-BYFILTER-3] limit applies in id order', async () => {
    await server.service.post(`${base}/batch`, { inserts: ['t2', 't1', 't3'].map((id) => ({ id, title: 'few' })) })
    const filter = [['title', '==', 'few']]
    const { body } = await server.anonymous.post(path, { action: 'delete', filter, limit: 2 })
    expect(body).toEqual({ processed: 2, succeeded: 2 })
    const left = await server.anonymous.get(`${base}?filter=${encodeURIComponent(JSON.stringify(filter))}`)
    expect(left.body.items.map(({ id }: { id: string }) => id)).toEqual(['t3'])
    for (const limit of [0, 501, 1.5, '2', null])
      expectRefusal(await server.anonymous.post(path, { action: 'delete', filter, limit }), 400, 'limit')
    expect((await server.anonymous.get(`${base}/t3`)).status).toBe(200)
  })

  test('[DB-BYFILTER-3] at most 500 rows are changed, in id order', async () => {
    for (let part = 0; part < 2; part++) {
      const inserts = Array.from({ length: 300 }, (_, i) => ({
        id: `t${String(part * 300 + i).padStart(3, '0')}`,
        title: 'many',
      }))
      await server.service.post(`${base}/batch`, { inserts: inserts.reverse() })
    }
    const filter = [['title', '==', 'many']]
    const first = await server.anonymous.post(path, { action: 'update', filter, data: { title: 'done' } })
    expect(first.body).toEqual({ processed: 500, succeeded: 500 })
    const left = await server.anonymous.get(`${base}?limit=1000&filter=${encodeURIComponent(JSON.stringify(filter))}`)
    expect(left.body.items.map(({ id }: { id: string }) => id)).toEqual(
      Array.from({ length: 100 }, (_, i) => `t${500 + i}`),
    )
    const second = await server.anonymous.post(path, { action: 'delete', filter: [['title', 'in', ['many', 'done']]] })
    expect(second.body).toEqual({ processed: 500, succeeded: 500 })
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(106)
  })

  test('[DB-BYFILTER-2] only rows that the caller may change are changed and counted', async () => {
    const alice = server.as('alice')
    const updated = await alice.post(`${table('owned')}/batch-by-filter`, { action: 'update', data: { rank: 77 } })
    expect(updated.body).toEqual({ processed: 3, succeeded: 3 })
    expect(await ranks('owned')).toEqual([77, 1, 77, 3, 77, 5])
    const deleted = await alice.post(`${table('owned')}/batch-by-filter`, {
      action: 'delete',
      filter: [['rank', '>', 2]],
    })
    expect(deleted.body).toEqual({ processed: 3, succeeded: 3 })
    expect(await ranks('owned')).toEqual([1, 3, 5])
  })

  test('[DB-BYFILTER-2] rows that the caller may change but not read are not changed', async () => {
    const bob = server.as('bob')
    const updated = await bob.post(`${table('secretive')}/batch-by-filter`, {
      action: 'update',
      filter: [['rank', '<', 4]],
      data: { rank: 77 },
    })
    expect(updated.body).toEqual({ processed: 2, succeeded: 2 })
    expect(await ranks('secretive')).toEqual([0, 77, 2, 77, 4, 5])
    expect(
      (
        await bob.post(`${table('secretive')}/batch-by-filter`, {
          action: 'delete',
          filter: [['ownerId', '==', 'alice']],
        })
      ).body,
    ).toEqual({ processed: 0, succeeded: 0 })
    expect((await ranks('secretive')).length).toBe(6)
  })

  test('[DB-BYFILTER-7] a duplicate unique value refuses the request', async () => {
    const before = await server.dump(base)
    expectRefusal(await server.anonymous.post(path, { action: 'update', data: { slug: 'same', rank: 1 } }), 409)
    expectRefusal(
      await server.anonymous.post(path, { action: 'update', filter: [['id', '==', 'r1']], data: { slug: 's2' } }),
      409,
    )
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-BYFILTER-6] a row that would violate the rule afterwards refuses the request', async () => {
    const name = 'leaving'
    const before = await server.dump(table(name))
    expectRefusal(
      await server.as('alice').post(`${table(name)}/batch-by-filter`, { action: 'update', data: { title: 'other' } }),
      403,
    )
    expect(await server.dump(table(name))).toEqual(before)
    const fine = await server
      .as('alice')
      .post(`${table(name)}/batch-by-filter`, { action: 'update', data: { title: 'fine' } })
    expect(fine.body).toEqual({ processed: 6, succeeded: 6 })
  })

  test('[DB-BYFILTER-6] a change of ownership that the rule denies refuses the request', async () => {
    const before = await server.dump(table('owned'))
    expectRefusal(
      await server
        .as('alice')
        .post(`${table('owned')}/batch-by-filter`, { action: 'update', data: { ownerId: 'bob' } }),
      403,
    )
    expect(await server.dump(table('owned'))).toEqual(before)
  })

  test('[DB-UPDATE-9] one row over a declared limit refuses the request', async () => {
    const before = await server.dump(base)
    expectRefusal(
      await server.anonymous.post(path, { action: 'update', data: { rank: { $op: 'increment', value: 998 } } }),
      400,
      'rank',
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
    path,
    body,
    status,
    ...rest,
  })
  describe('refuses', () =>
    runScenarios(server, tables.map(table), [
      refused('DB-BYFILTER-4', 'no action', { filter: [] }, 400, { names: 'action' }),
      ...['insert', 'Delete', '', 5, null, ['delete'], '__proto__'].map((action) =>
        refused('DB-BYFILTER-4', `action ${JSON.stringify(action)}`, { action, data: { rank: 1 } }, 400, {
          names: 'action',
        }),
      ),
      refused('DB-BYFILTER-4', 'update without data', { action: 'update', filter: [] }, 400, { names: 'data' }),
      ...[null, 5, 'x', [], [{ rank: 1 }]].map((data) =>
        refused('DB-BYFILTER-4', `data ${JSON.stringify(data)}`, { action: 'update', data }, 400, { names: 'data' }),
      ),
      refused('DB-BYFILTER-4', 'a filter that is an object', { action: 'delete', filter: { rank: 1 } }, 400, {
        names: 'filter',
      }),
      refused('DB-BYFILTER-4', 'a filter that is text', { action: 'delete', filter: '[["rank","==",1]]' }, 400, {
        names: 'filter',
      }),
      refused(
        'DB-BYFILTER-4',
        'an unknown field in the filter',
        { action: 'delete', filter: [['nope', '==', 1]] },
        400,
        { names: 'filter[0]' },
      ),
      refused(
        'DB-FILTER-11',
        'six conditions in orFilter',
        { action: 'delete', orFilter: Array(6).fill(['rank', '==', 1]) },
        400,
        { names: 'orFilter' },
      ),
      refused(
        'DB-TABLE-11',
        'a hidden field in the filter',
        { action: 'delete', filter: [['secret', '==', 'x1']] },
        400,
        { names: 'filter[0]' },
      ),
      refused('DB-TABLE-11', 'a hidden field in data', { action: 'update', data: { secret: 'x' } }, 400, {
        names: 'secret',
      }),
      refused('DB-TABLE-10', 'an unknown field in data', { action: 'update', data: { nope: 'x' } }, 400, {
        names: 'nope',
      }),
      refused('DB-TABLE-4', 'a wrong type in data', { action: 'update', data: { rank: 'x' } }, 400, { names: 'rank' }),
      refused(
        'DB-TABLE-4',
        'a wrong type in data when nothing matches',
        { action: 'update', filter: [['rank', '==', 99]], data: { rank: 'x' } },
        400,
        { names: 'rank' },
      ),
      refused('DB-UPDATE-8', 'an id in data', { action: 'update', data: { id: 'same' } }, 400, { names: 'id' }),
      refused(
        'DB-UPDATE-5',
        'deleteField of a required field',
        { action: 'update', data: { title: { $op: 'deleteField' } } },
        400,
        { names: 'title' },
      ),
      refused('DB-UPDATE-6', 'an unknown operator', { action: 'update', data: { rank: { $op: 'x' } } }, 400, {
        names: 'rank',
      }),
      ...(['update', 'delete'] as const).flatMap((action) => [
        refused('RULE-2, RULE-3', `${action} without the rule, no credentials`, { action, data: { rank: 1 } }, 401, {
          path: `${table('readOnly')}/batch-by-filter`,
        }),
        refused('RULE-2, RULE-3', `${action} without the rule`, { action, data: { rank: 1 } }, 403, {
          path: `${table('readOnly')}/batch-by-filter`,
          as: { id: 'alice' },
        }),
        refused('DB-BYFILTER-2', `${action} without the read rule`, { action, data: { rank: 1 } }, 403, {
          path: `${table('blind')}/batch-by-filter`,
          as: { id: 'alice' },
        }),
        refused('DB-BYFILTER-2', `${action} of own rows, no credentials`, { action, data: { rank: 1 } }, 401, {
          path: `${table('owned')}/batch-by-filter`,
        }),
      ]),
    ]))
})
