/** GET {base}: paging by page and offset, sort, fields and totals. Cursors and filters have their own files. */
import { beforeAll, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const many = '/api/db/shared/tables/many'
const notes = '/api/db/shared/tables/notes'
const empty = '/api/db/shared/tables/empty'

const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { title: { type: 'string' }, rank: { type: 'number' } }, access: open },
        many: { schema: { n: { type: 'number' } }, access: open },
        empty: { schema: { n: { type: 'number' } }, access: open },
        notes: {
          schema: { title: { type: 'string' }, ownerId: { type: 'string' } },
          access: { read: (auth: { id: string } | null) => auth !== null && { ownerId: auth.id } },
        },
      },
    },
  },
} as const

const idOf = (n: number): string => `i${String(n).padStart(2, '0')}`
const ids = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, i) => idOf(from + i))

describeServer('list', { config }, (server) => {
  beforeAll(async () => {
    const inserts = Array.from({ length: 45 }, (_, i) => ({
      id: idOf(i + 1),
      title: `Title ${i + 1}`,
      rank: (i * 7) % 45,
    }))
    // Stored in another order than their ids, so that the list must sort them.
    expect((await server.service.post(`${base}/batch`, { inserts: inserts.toReversed() })).status).toBe(200)
    for (let part = 0; part < 3; part++) {
      const rows = Array.from({ length: 350 }, (_, i) => ({ id: `m${String(part * 350 + i).padStart(4, '0')}`, n: i }))
      expect((await server.service.post(`${many}/batch`, { inserts: rows })).status).toBe(200)
    }
    const owned = ids(1, 9).map((id, i) => ({ id, title: id, ownerId: i % 3 === 0 ? 'alice' : 'bob' }))
    expect((await server.service.post(`${notes}/batch`, { inserts: owned })).status).toBe(200)
  })

  const list = (name: string, params: Record<string, unknown>, expected: Partial<Scenario>): Scenario => ({
    name,
    path: base,
    query: params,
    status: 200,
    ...expected,
  })
  const refused = (name: string, params: Record<string, unknown>, names: string): Scenario => ({
    name,
    path: base,
    query: params,
    status: 400,
    names,
  })
  const offsetMode = { hasMore: null, cursor: null }
  const cursorMode = { total: null, page: null, perPage: null }

  runScenarios(
    server,
    [base],
    [
      list(
        '[DB-LIST-1, DB-LIST-2, DB-LIST-4, DB-LIST-10] without parameters returns page 1 ordered by id, with 100 per page',
        {},
        {
          ids: ids(1, 45),
          json: { total: 45, page: 1, perPage: 100, ...offsetMode },
        },
      ),
      list(
        '[DB-LIST-2] the default is 100 records',
        {},
        {
          path: many,
          json: { total: 1050, page: 1, perPage: 100, ...offsetMode },
          ids: Array.from({ length: 100 }, (_, i) => `m${String(i).padStart(4, '0')}`),
        },
      ),
      list(
        '[DB-LIST-6] offset 20 with limit 10 is page 3 of 10',
        { offset: 20, limit: 10 },
        {
          ids: ids(21, 30),
          json: { total: 45, page: 3, perPage: 10, ...offsetMode },
        },
      ),
      list(
        '[DB-LIST-4] limit alone selects offset mode',
        { limit: 2 },
        { ids: ids(1, 2), json: { total: 45, page: 1, perPage: 2, ...offsetMode } },
      ),
      list(
        '[DB-LIST-4] offset 0 is the first page',
        { offset: 0, limit: 3 },
        { ids: ids(1, 3), json: { page: 1, perPage: 3 } },
      ),
      list(
        '[DB-LIST-7] page and perPage select a page',
        { page: 2, perPage: 20 },
        {
          ids: ids(21, 40),
          json: { total: 45, page: 2, perPage: 20, ...offsetMode },
        },
      ),
      list(
        '[DB-LIST-7] the last page contains the rest',
        { page: 3, perPage: 20 },
        { ids: ids(41, 45), json: { total: 45, page: 3 } },
      ),
      list(
        '[DB-LIST-7] page can be combined with limit',
        { page: 2, limit: 20 },
        { ids: ids(21, 40), json: { page: 2, perPage: 20 } },
      ),
      list(
        '[DB-LIST-7] a page past the end is empty with the true total',
        { page: 9, perPage: 20 },
        {
          ids: [],
          json: { total: 45, page: 9, perPage: 20, ...offsetMode },
        },
      ),
      list(
        '[DB-LIST-7] an offset past the end is empty with the true total',
        { offset: 1000 },
        { ids: [], json: { total: 45 } },
      ),
      list(
        '[DB-LIST-7] a page far past the end is empty',
        { page: 900719925474, perPage: 1000 },
        { ids: [], json: { total: 45 } },
      ),
      list(
        '[DB-LIST-1] an empty table returns an empty list',
        {},
        { path: empty, json: { items: [], total: 0, page: 1, perPage: 100, ...offsetMode } },
      ),
      list(
        '[DB-LIST-3] perPage over 1000 is clamped',
        { perPage: 5000 },
        { path: many, json: { total: 1050, perPage: 1000 } },
      ),
      list(
        '[DB-LIST-3] limit over 1000 is clamped',
        { limit: 1001 },
        { path: many, json: { total: 1050, perPage: 1000 } },
      ),
      list(
        '[DB-LIST-3] page counts in clamped pages',
        { page: 2, perPage: 4000 },
        {
          path: many,
          ids: Array.from({ length: 50 }, (_, i) => `m${1000 + i}`),
          json: { total: 1050, page: 2, perPage: 1000 },
        },
      ),
      list(
        '[DB-LIST-5] after selects cursor mode',
        { after: '', limit: 10 },
        { ids: ids(1, 10), json: { hasMore: true, cursor: expect.any(String), ...cursorMode } },
      ),
      list(
        '[DB-LIST-5] the last cursor page has no more',
        { after: '', limit: 45 },
        { ids: ids(1, 45), json: { hasMore: false, ...cursorMode } },
      ),
      list(
        '[DB-LIST-5] before selects cursor mode',
        { before: '', limit: 10 },
        { ids: ids(36, 45), json: { hasMore: true, cursor: expect.any(String), ...cursorMode } },
      ),
      list(
        '[DB-LIST-5] cursor mode returns 100 by default',
        { after: '' },
        { path: many, json: { hasMore: true, ...cursorMode } },
      ),
      list(
        '[DB-LIST-5] cursor mode over an empty table',
        { after: '' },
        { path: empty, json: { items: [], hasMore: false, ...cursorMode } },
      ),
      list(
        '[DB-LIST-3] a cursor page over 1000 is clamped',
        { after: '', limit: 3000 },
        {
          path: many,
          ids: Array.from({ length: 1000 }, (_, i) => `m${String(i).padStart(4, '0')}`),
          json: { hasMore: true },
        },
      ),

      refused('[DB-LIST-8] page with after is refused', { page: 1, after: '' }, 'after'),
      refused('[DB-LIST-8] offset with after is refused', { offset: 0, after: '' }, 'after'),
      refused('[DB-LIST-8] page with before is refused', { page: 1, before: '' }, 'before'),
      refused('[DB-LIST-8] offset with before is refused', { offset: 5, before: 'i01' }, 'before'),
      refused('[DB-LIST-8] after with before is refused', { after: '', before: '' }, 'after'),
      ...['0', '-1', '1.5', 'ten', '', ' ', '1e3', '0x10', 'NaN', 'Infinity', '1,2', '９'].flatMap((value) =>
        ['limit', 'perPage', 'page'].map((name) =>
          refused(`[DB-LIST-9] ${name}=${JSON.stringify(value)}`, { [name]: value }, name),
        ),
      ),
      ...['-1', '0.5', 'x', '', '1e3', 'null'].map((value) =>
        refused(`[DB-LIST-9] offset=${JSON.stringify(value)}`, { offset: value }, 'offset'),
      ),
      refused('[DB-LIST-9] an invalid limit in cursor mode is refused', { after: '', limit: '0' }, 'limit'),

      list(
        '[DB-LIST-14] fields limits the returned fields',
        { fields: 'title', limit: 2 },
        {
          json: { items: [{ title: 'Title 1' }, { title: 'Title 2' }], total: 45 },
          lacks: ['createdAt', 'rank', '"id"'],
        },
      ),
      list(
        '[DB-LIST-14] fields works in cursor mode',
        { fields: 'id,rank', after: '', limit: 1 },
        { json: { items: [{ id: 'i01', rank: 0 }] }, lacks: ['title', 'createdAt'] },
      ),
      list(
        '[DB-LIST-14] fields may contain spaces and duplicates',
        { fields: ' id , id ', limit: 1 },
        { ids: ['i01'], lacks: ['title'] },
      ),
      list(
        '[DB-LIST-14] fields may be a JSON array',
        { fields: ['id', 'rank'], limit: 1 },
        { json: { items: [{ id: 'i01', rank: 0 }] }, lacks: ['title', 'createdAt'] },
      ),
      refused('[DB-LIST-14] an unknown field in an array is refused', { fields: ['title', 'nope'] }, 'nope'),
      refused('[DB-LIST-14] an unknown field is refused', { fields: 'title,nope' }, 'nope'),
      refused('[DB-LIST-14] field names are case-sensitive', { fields: 'Title' }, 'Title'),
      refused('[DB-LIST-14] an empty field name is refused', { fields: 'title,' }, 'fields'),
      refused('[DB-LIST-14] the field __proto__ is refused', { fields: '__proto__' }, '__proto__'),
      refused('[DB-LIST-14] SQL in a field name is refused', { fields: 'title" FROM items --' }, 'fields'),

      {
        name: '[DB-LIST-15, RULE-5] total counts the rows that the caller may read',
        path: notes,
        as: { id: 'alice' },
        status: 200,
        ids: ['i01', 'i04', 'i07'],
        json: { total: 3 },
      },
      {
        name: '[DB-LIST-15] the total of a filter counts the rows that the caller may read',
        path: notes,
        as: { id: 'bob' },
        query: { filter: [['id', '>', 'i05']], limit: 1 },
        status: 200,
        ids: ['i06'],
        json: { total: 3 },
      },
      {
        name: '[DB-LIST-7, RULE-5] pages contain exactly the rows that the caller may read',
        path: notes,
        as: { id: 'bob' },
        query: { page: 2, perPage: 4 },
        status: 200,
        ids: ['i08', 'i09'],
        json: { total: 6 },
      },
      { name: '[DB-TABLE-1] an undeclared table returns 404', path: '/api/db/shared/tables/nope', status: 404 },
      { name: '[DB-TABLE-1] an undeclared namespace returns 404', path: '/api/db/other/tables/items', status: 404 },
      {
        name: '[DB-TABLE-1] an undeclared table returns 404 for the service key',
        as: 'service',
        path: '/api/db/shared/tables/_changes',
        status: 404,
      },
      {
        name: '[DB-TABLE-1] a table named like an object property returns 404',
        as: 'service',
        path: '/api/db/shared/tables/__proto__',
        status: 404,
      },
      {
        name: '[DB-TABLE-1] a namespace named like an object property returns 404',
        as: 'service',
        path: '/api/db/constructor/tables/items',
        status: 404,
      },
      {
        name: '[HTTP-12, HTTP-19] unknown parameters are refused',
        path: base,
        query: { nope: '1', __proto__: '2', limit: 1 },
        status: 400,
      },
    ],
  )

  test('[DB-LIST-16] a repeated parameter is refused', async () => {
    const twice = [
      'limit=1&limit=2',
      'filter=[]&filter=[]',
      'sort=id:asc&sort=id:desc',
      'after=&after=',
      'page=1&page=1',
      'fields=id&fields=title',
    ]
    for (const text of twice)
      expectRefusal(await server.anonymous.get(`${base}?${text}`), 400, text.slice(0, text.indexOf('=')))
  })

  test('[DB-LIST-7] all pages together form the complete list', async () => {
    const seen: string[] = []
    for (let page = 1; page <= 7; page++) {
      const { body } = await server.anonymous.get(base + query({ page, perPage: 7, sort: 'rank:desc' }))
      seen.push(...body.items.map((item: { id: string }) => item.id))
    }
    const { body } = await server.anonymous.get(base + query({ sort: 'rank:desc' }))
    expect(seen).toEqual(body.items.map((item: { id: string }) => item.id))
    expect(new Set(seen).size).toBe(45)
  })

  test('[DB-ETAG-1, DB-ETAG-2] the ETag of a list changes with its content', async () => {
    const first = await server.anonymous.get(`${notes}?limit=2`, {
      'x-platform-service-key': 'root-key-for-tests-0123456789',
    })
    const again = await server.service.get(`${notes}?limit=2`)
    const tag = first.headers.get('etag') ?? ''
    expect(tag).toMatch(/^(W\/)?"[^"]+"$/)
    expect(again.headers.get('etag')).toBe(tag)
    const unchanged = await server.service.get(`${notes}?limit=2`, { 'if-none-match': tag })
    expect(unchanged.status).toBe(304)
    expect(unchanged.text).toBe('')
    expect(unchanged.headers.get('etag')).toBe(tag)
    expect((await server.as('alice').get(`${notes}?limit=2`, { 'if-none-match': tag })).status).toBe(200)
    await server.service.patch(`${notes}/i01`, { title: 'changed' })
    const changed = await server.service.get(`${notes}?limit=2`, { 'if-none-match': tag })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(tag)
  })
})
