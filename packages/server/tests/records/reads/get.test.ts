/** GET {base}/{id}: the record, selected fields, and its ETag. */
import { beforeAll, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { runScenarios } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'

const config = {
  databases: {
    shared: {
      tables: {
        items: {
          schema: {
            title: { type: 'string' },
            rank: { type: 'number' },
            done: { type: 'boolean' },
            due: { type: 'datetime' },
            tags: { type: 'json' },
            secret: { type: 'string' },
          },
          hidden: ['secret'],
          access: open,
        },
      },
    },
  },
} as const

describeServer('get', { config }, (server) => {
  beforeAll(async () => {
    const inserts = [
      {
        id: 'full',
        title: 'T',
        rank: 1.5,
        done: false,
        due: '2026-01-31T12:00:00Z',
        tags: ['a', { b: null }],
        secret: 'sesame',
        createdAt: '2026-01-01T00:00:00Z',
        updatedAt: '2026-01-02T00:00:00Z',
      },
      { id: 'bare' },
      { id: 'count-1' },
    ]
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
  })

  runScenarios(
    server,
    [base],
    [
      {
        name: '[DB-GET-1, DB-TABLE-2, DB-TABLE-11] get returns the record without its hidden field',
        path: `${base}/full`,
        status: 200,
        json: {
          id: 'full',
          title: 'T',
          rank: 1.5,
          done: false,
          due: '2026-01-31T12:00:00.000Z',
          tags: ['a', { b: null }],
          createdAt: '2026-01-01T00:00:00.000Z',
          updatedAt: '2026-01-02T00:00:00.000Z',
        },
        lacks: ['secret', 'sesame'],
      },
      {
        name: '[KEY-13] the service key can read the hidden field',
        as: 'service',
        path: `${base}/full`,
        status: 200,
        json: { secret: 'sesame' },
      },
      {
        name: '[DB-TABLE-2] unset fields are null',
        path: `${base}/bare`,
        status: 200,
        json: { id: 'bare', title: null, rank: null, done: null, due: null, tags: null },
      },
      {
        name: '[DB-GET-1] an absent record returns 404',
        path: `${base}/nope`,
        status: 404,
        json: { message: 'Record not found', slug: 'not-found' },
      },
      { name: '[DB-GET-1] ids are case-sensitive', path: `${base}/FULL`, status: 404 },
      { name: '[DB-GET-1] an invalid id returns 404', path: `${base}/${encodeURIComponent('a b/"c')}`, status: 404 },
      { name: '[DB-GET-1] an id of 5,000 characters returns 404', path: `${base}/${'x'.repeat(5000)}`, status: 404 },
      {
        name: '[DB-GET-1] an escaped letter is equivalent to the letter',
        path: `${base}/%66ull`,
        status: 200,
        json: { id: 'full' },
      },
      {
        name: '[DB-GET-2] fields limits the returned fields',
        path: `${base}/full`,
        query: { fields: 'title,rank' },
        status: 200,
        lacks: ['"id"', 'done', 'createdAt'],
        json: { title: 'T', rank: 1.5 },
      },
      {
        name: '[DB-GET-2] an unknown field is refused',
        path: `${base}/full`,
        query: { fields: 'nope' },
        status: 400,
        names: 'nope',
      },
      {
        name: '[DB-GET-2] a hidden field is refused',
        path: `${base}/full`,
        query: { fields: 'secret' },
        status: 400,
        names: 'secret',
        lacks: ['sesame'],
      },
      {
        name: '[DB-GET-2] the service key can request a hidden field',
        as: 'service',
        path: `${base}/full`,
        query: { fields: 'secret' },
        status: 200,
        json: { secret: 'sesame' },
      },
      {
        name: '[DB-GET-2] empty fields are refused',
        path: `${base}/full`,
        query: { fields: '' },
        status: 400,
        names: 'fields',
      },
      { name: '[DB-GET-3] count is an endpoint', path: `${base}/count`, status: 200, json: { total: 3 } },
      { name: '[DB-GET-3] search is an endpoint', path: `${base}/search`, query: { q: 'x' }, status: 400 },
      {
        name: '[DB-GET-3] an id that only starts like an endpoint',
        path: `${base}/count-1`,
        status: 200,
        json: { id: 'count-1' },
      },
    ],
  )

  test('[DB-GET-3] count, search and batch are reserved and cannot be ids', async () => {
    for (const [path, allow] of [
      ['count', 'GET'],
      ['search', 'GET'],
      ['batch', 'POST'],
      ['batch-by-filter', 'POST'],
    ] as const) {
      const answer = await server.service.delete(`${base}/${path}`)
      expectRefusal(answer, 405)
      expect(answer.headers.get('allow')).toContain(allow)
    }
  })

  test('[DB-ETAG-1] the ETag changes only when the record does', async () => {
    const first = await server.anonymous.get(`${base}/full`)
    const tag = first.headers.get('etag') ?? ''
    expect(tag).toMatch(/^(W\/)?"[^"]+"$/)
    expect((await server.anonymous.get(`${base}/full`)).headers.get('etag')).toBe(tag)
    expect((await server.anonymous.get(`${base}/bare`)).headers.get('etag')).not.toBe(tag)
    await server.anonymous.post(base, { id: 'other' })
    expect((await server.anonymous.get(`${base}/full`)).headers.get('etag')).toBe(tag)
    await server.anonymous.patch(`${base}/full`, { rank: 2 })
    expect((await server.anonymous.get(`${base}/full`)).headers.get('etag')).not.toBe(tag)
  })

  test('[DB-ETAG-2] If-None-Match returns 304 for the current ETag', async () => {
    const tag = (await server.anonymous.get(`${base}/bare`)).headers.get('etag') ?? ''
    const strong = tag.replace(/^W\//, '')
    for (const value of [tag, strong, `W/${strong}`, `"x", ${tag}`, `${tag} , "y"`, '*']) {
      const answer = await server.anonymous.get(`${base}/bare`, { 'if-none-match': value })
      expect([value, answer.status, answer.text]).toEqual([value, 304, ''])
      expect(answer.headers.get('etag')).toBe(tag)
    }
    for (const value of ['"x"', 'W/"x"', '""', 'x', strong.slice(0, -2)])
      expect((await server.anonymous.get(`${base}/bare`, { 'if-none-match': value })).status).toBe(200)
    expectRefusal(await server.anonymous.get(`${base}/nope`, { 'if-none-match': '*' }), 404)
  })
})
