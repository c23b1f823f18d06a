/** `explain=1`: the statements of a read, their plans, and an index that would help. */
import { expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/posts'
const schema = {
  title: { type: 'string' },
  status: { type: 'string' },
  views: { type: 'number' },
  secret: { type: 'string' },
  meta: { type: 'json' },
} as const
const otherKey = 'key-of-another-table-0123456789'
const config = {
  serviceKeys: [{ name: 'other', key: otherKey, scopes: ['db:table:notes:read'] }],
  databases: {
    shared: {
      tables: {
        posts: { schema, indexes: [{ fields: ['status'] }], search: ['title'], hidden: ['secret'], access: open },
        notes: { schema: { text: { type: 'string' } }, access: open },
      },
    },
    space: { instance: true, access: () => true, tables: { notes: { schema, access: open } } },
  },
} as const

describeServer('explain', { config }, (server) => {
  const explain = async (path: string, parameters: Readonly<Record<string, unknown>> = {}) => {
    const { status, body } = await server.service.get(path + query({ ...parameters, explain: 1 }))
    expect(status, path).toBe(200)
    return body
  }

  test('[DB-EXPLAIN-1] a list has its rows as without, and its statement with plan, duration and parameters', async () => {
    const inserts = Array.from({ length: 30 }, (_, n) => ({
      id: `p${n}`,
      title: `word${n}`,
      status: n % 2 === 0 ? 'live' : 'draft',
      views: n,
    }))
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    const filter = [['views', '>=', 20]]
    const plain = await server.service.get(base + query({ filter, sort: 'views:desc' }))
    const { explain: explanation, ...rest } = await explain(base, { filter, sort: 'views:desc' })
    expect(rest).toEqual(plain.body)
    expect(explanation.sql).toContain('SELECT')
    expect(explanation.sql).not.toContain('20')
    expect(explanation.parameters).toContain(20)
    expect(explanation.plan.length).toBeGreaterThan(0)
    expect(explanation.rowsScanned).toBe(30)
    expect(explanation.ms).toBeGreaterThan(0)
  })

  test('[DB-EXPLAIN-1] count, search, aggregate and lists by cursor are explained', async () => {
    const count = await explain(`${base}/count`, { filter: [['views', '>=', 20]] })
    expect(count).toMatchObject({ total: 10, explain: { rowsScanned: 30, suggestion: { fields: ['views'] } } })
    // A cached total is counted again.
    expect((await explain(`${base}/count`, { filter: [['views', '>=', 20]] })).explain.sql).toContain('count(*)')
    const found = await explain(`${base}/search`, { q: 'word7' })
    expect(found).toMatchObject({ total: 1, items: [{ id: 'p7' }] })
    expect(found.explain.plan.length).toBeGreaterThan(0)
    const page = await explain(base, { after: 'p3', limit: 2 })
    expect(page).toMatchObject({ items: [{ id: 'p4' }, { id: 'p5' }], hasMore: true })
    // The statement that finds the record of the cursor precedes the one of the page.
    expect(page.explain.statements).toHaveLength(2)
    expect(page.explain.sql).toBe(page.explain.statements[1].sql)
    const grouped = {
      group: ['status'],
      measures: { n: 'count' },
      filter: [['views', '>=', 20]],
      sort: 'n:desc,status',
    }
    for (let times = 0; times < 2; times++) {
      const { groups, truncated, explain: explanation } = await explain(`${base}/aggregate`, grouped)
      expect([groups, truncated]).toEqual([
        [
          { status: 'draft', n: 5 },
          { status: 'live', n: 5 },
        ],
        false,
      ])
      expect(explanation).toMatchObject({ rowsScanned: 30, suggestion: { fields: ['views'] } })
    }
    const empty = await explain('/api/db/shared/tables/notes/count')
    expect(empty.total).toBe(0)
    expect((await explain('/api/db/space/one/tables/notes', { sort: 'views:asc' })).items).toEqual([])
  })

  test('[DB-EXPLAIN-1] later reads see later writes', async () => {
    await explain(`${base}/count`)
    expect((await server.service.post(base, { id: 'later' })).status).toBe(201)
    expect((await server.service.get(`${base}/later`)).status).toBe(200)
    expect((await server.service.delete(`${base}/later`)).status).toBe(200)
  })

  test('[DB-EXPLAIN-2] an index is suggested for conditions and a sort that none serves', async () => {
    const suggested = async (parameters: Readonly<Record<string, unknown>>) =>
      (await explain(base, parameters)).explain.suggestion?.fields
    expect(await suggested({ filter: [['title', '==', 'word3']] })).toEqual(['title'])
    const both = [
      ['views', '>', 3],
      ['title', '==', 'word3'],
    ]
    expect(await suggested({ filter: both })).toEqual(['title', 'views'])
    expect(await suggested({ filter: both, sort: 'createdAt:desc' })).toEqual(['title', 'createdAt'])
    expect(await suggested({ filter: [['secret', '==', 'x']] })).toEqual(['secret'])
    expect(await suggested({})).toBeUndefined()
    expect(await suggested({ filter: [['status', '==', 'live']] })).toBeUndefined()
    expect(await suggested({ filter: [['meta', 'contains', 'a']] })).toBeUndefined()
    expect(
      await suggested({
        orFilter: [
          ['title', '==', 'a'],
          ['views', '==', 1],
        ],
      }),
    ).toBeUndefined()
  })

  test('[DB-EXPLAIN-3] without a service key it is 403, and an invalid value 400', async () => {
    for (const path of [base, `${base}/count`, `${base}/search`])
      for (const client of [server.anonymous, server.as('u1')]) {
        const { status, body } = await client.get(
          path + query({ explain: 1, ...(path.endsWith('search') && { q: 'word' }) }),
        )
        expect([path, status, body.slug]).toEqual([path, 403, 'access-denied'])
        expect(body).not.toHaveProperty('explain')
      }
    // A key that reads another table gets what it gets without `explain`.
    expect((await server.withKey(otherKey).get(base + query({ explain: 1 }))).status).toBe(401)
    expect((await server.service.get(`${base}?explain=yes`)).status).toBe(400)
    expect((await server.anonymous.get(`${base}?explain=0`)).status).toBe(200)
  })

  test('[DB-EXPLAIN-1] the statement of a list is the one that reads its table, also after writes that its total follows', async () => {
    const parameters = { filter: [['title', '==', 'word3']] }
    for (const id of ['more-1', 'more-2']) {
      const { explain: explanation } = await explain(base, parameters)
      expect(explanation.sql).toContain('"posts"."title"')
      expect(explanation.suggestion).toEqual({ fields: ['title'] })
      expect((await server.service.post(base, { id, title: 'word3' })).status).toBe(201)
    }
  })
})
