/**
 * Malformed requests never cause a 5xx; a refusal has the common error format and changes nothing. A valid request with
 * one invalid part returns 400 and names that part.
 */
import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Answer } from '../../harness/client.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { sendRawPath } from '../../harness/raw-http.ts'
import { body, search, segment, tuple } from '../../harness/records/malformed.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, rootKey } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const loose = '/api/db/shared/tables/loose'
const instance = '/api/db/space/one/tables/items'

const schema = {
  title: { type: 'string', max: 50 },
  rank: { type: 'number' },
  done: { type: 'boolean' },
  due: { type: 'datetime' },
  tags: { type: 'json' },
  slug: { type: 'string', unique: true },
  secret: { type: 'string' },
} as const
const items = { schema, hidden: ['secret'], search: ['title'], access: open } as const
const config = {
  databases: {
    shared: { tables: { items, loose: { access: open } } },
    space: { instance: true, access: () => true, tables: { items } },
  },
} as const

describeServer('malformed requests', { config }, (server) => {
  const tables = [base, loose, instance]
  beforeAll(async () => {
    const inserts = [
      { id: 'a', title: 'one', rank: 1, slug: 'a', secret: 's' },
      { id: 'b', title: 'two', tags: { x: 1 }, slug: 'b' },
      { id: 'c' },
    ]
    for (const table of [base, instance])
      expect((await server.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    expect((await server.service.post(`${loose}/batch`, { inserts: [{ id: 'a', any: [1] }] })).status).toBe(200)
  })

  /** A refused request must change nothing. A successful write is not undone: each check dumps the tables first. */
  const expectAcceptedOrRefused = async (send: () => Promise<Answer>): Promise<void> => {
    const before = await server.dump(...tables)
    const answer = await send()
    if (answer.status >= 500)
      throw new Error(
        `${answer.status}: ${answer.text}\n${server
          .logged()
          .split('\n')
          .filter((line) => line.includes('"error"'))
          .at(-1)}`,
      )
    if (answer.status < 400) return
    expectRefusal(answer, answer.status)
    expect(await server.dump(...tables)).toEqual(before)
  }

  test('[ERR-1, ERR-5, ERR-7] a read with an arbitrary query is served or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...tables),
        fc.constantFrom('', '/count', '/search', '/a'),
        search,
        async (table, path, params) => {
          const answer = await server.anonymous.get(table + path + params)
          if (answer.status >= 500) throw new Error(`${table}${path}${params} returned ${answer.status}`)
          if (answer.status >= 400) expectRefusal(answer, answer.status)
        },
      ),
      { numRuns: 500 },
    ))

  test('[ERR-7, RULE-13, DB-BATCH-3] a write with an arbitrary body is accepted or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...tables),
        fc.constantFrom(
          ['POST', ''],
          ['POST', '?upsert=true'],
          ['POST', '?upsert=true&conflictTarget=slug'],
          ['POST', '/batch'],
          ['POST', '/batch?upsert=true'],
          ['POST', '/batch-by-filter'],
          ['PATCH', '/a'],
          ['PATCH', '/b'],
        ),
        body,
        async (table, [method = '', path = ''], content) => {
          // Deleting all rows would leave no rows for later requests to change.
          if (path === '/batch-by-filter' && (content as { action?: unknown } | null)?.action === 'delete') return
          await expectAcceptedOrRefused(() =>
            server.anonymous.request(method, table + path, {
              raw: JSON.stringify(content) ?? '',
              headers: { 'content-type': 'application/json' },
            }),
          )
        },
      ),
      { numRuns: 500 },
    ))

  test('[ERR-7, DB-FILTER-10, DB-FILTER-12] an arbitrary filter is accepted or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(base, loose),
        fc.array(tuple, { maxLength: 4 }),
        fc.constantFrom('filter', 'orFilter'),
        async (table, filter, group) => {
          const answer = await server.anonymous.get(table + query({ [group]: JSON.stringify(filter) }))
          if (answer.status !== 200) expectRefusal(answer, 400, group)
        },
      ),
      { numRuns: 300 },
    ))

  test('[ERR-7, HTTP-13] an arbitrary path is served or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'PATCH', 'DELETE', 'POST'),
        fc.array(segment, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('/api/db/shared/tables/', '/api/db/space/', '/api/db/', '/api/', '/'),
        async (method, segments, start) => {
          await expectAcceptedOrRefused(() =>
            server.service.request(
              method,
              start + segments.join('/'),
              method === 'GET' || method === 'DELETE' ? {} : { body: {} },
            ),
          )
        },
      ),
      { numRuns: 200 },
    ))

  test('[ERR-7, HTTP-13] an arbitrary unescaped path is served or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.string({
          unit: fc.constantFrom('/', '.', '%', '0', 'a', '2', 'e', 'f', '?', '#', ';', ':', '@', '\\', '"', '&', '='),
          maxLength: 25,
        }),
        async (path) => {
          const { status } = await sendRawPath(server.url, 'GET', `/api/db/shared/tables/items/${path}`, [
            `X-Platform-Service-Key: ${rootKey}`,
          ])
          expect(status >= 200 && status < 500).toBe(true)
        },
      ),
      { numRuns: 150 },
    ))

  test('[ERR-7] arbitrary headers are accepted or refused', () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          'authorization',
          'x-platform-service-key',
          'if-match',
          'if-none-match',
          'idempotency-key',
          'content-type',
          'origin',
          'x-forwarded-for',
          'accept',
          'x-request-id',
          'range',
        ),
        fc.oneof(
          fc.constantFrom(
            'Bearer ',
            'Bearer a.b.c',
            '"',
            '"x',
            'W/',
            '*,*',
            ',,,',
            'application/json;',
            'application/json; charset',
            '=',
            '::1',
            '1.2.3.4, ::',
          ),
          fc.string({ maxLength: 40 }),
        ),
        async (header, content) => {
          const clean = content.replaceAll(/[^\x20-\x7e]/g, '')
          await expectAcceptedOrRefused(() =>
            server.anonymous.request('PATCH', `${base}/c`, {
              raw: '{"rank":null}',
              headers: { 'content-type': 'application/json', [header]: clean },
            }),
          )
        },
      ),
      { numRuns: 200 },
    ))

  /** An invalid parameter, and the name that its error must contain. */
  const invalid: fc.Arbitrary<readonly [params: Record<string, unknown>, names: string]> = fc.oneof(
    fc
      .tuple(fc.constantFrom('limit', 'perPage', 'page'), fc.constantFrom('0', '-3', '2.5', 'x', '', '1e2', ' 1'))
      .map(([one, bad]) => [{ [one]: bad }, one] as const),
    fc.constantFrom('-1', 'x', '', '0.1').map((bad) => [{ offset: bad }, 'offset'] as const),
    fc
      .constantFrom(
        'nope:asc',
        'rank:up',
        'secret:asc',
        'tags:asc',
        '',
        'rank:asc,',
        'rank:asc,nope:desc',
        'id:asc,nope:desc',
        'id:asc,rank:up',
      )
      .map((bad) => [{ sort: bad }, 'sort'] as const),
    fc.constantFrom('nope', 'secret', 'id,nope', '').map((bad) => [{ fields: bad }, 'fields'] as const),
    fc
      .tuple(
        fc.array(fc.constant(['rank', '>', 0]), { maxLength: 4 }),
        fc.constantFrom<unknown>(
          ['nope', '==', 1],
          ['secret', '==', 'x'],
          ['rank', '~', 1],
          ['rank', '==', 'x'],
          ['title', '>', null],
          ['title', 'in', 'x'],
          ['rank', 'in', [null]],
          ['rank'],
          null,
          5,
          {},
        ),
      )
      .map(([good, bad]) => [{ filter: [...good, bad] }, `filter[${good.length}]`] as const),
    fc.constantFrom('x', '{', '{}', '5').map((bad) => [{ filter: bad }, 'filter'] as const),
    fc.constantFrom('.x', 'no such id!', 'absent', '.e30.e30').map((bad) => [{ after: bad }, 'after'] as const),
    fc.constant([{ after: '', before: '' }, 'before'] as const),
  )
  const good = fc.record(
    {
      sort: fc.constantFrom('rank:asc', 'id:desc', 'title:desc,rank:asc'),
      filter: fc.constantFrom([['rank', '>', 0]], [['title', '!=', null]], []),
      limit: fc.integer({ min: 1, max: 5 }),
      fields: fc.constantFrom('id', 'id,rank'),
    },
    { requiredKeys: [] },
  )

  test('[ERR-1, ERR-3, DB-LIST-9, DB-LIST-13, DB-LIST-14, DB-FILTER-9] one invalid parameter among valid ones is named', () =>
    fc.assert(
      fc.asyncProperty(good, invalid, async (params, [change, names]) => {
        expect((await server.anonymous.get(base + query(params))).status).toBe(200)
        expectRefusal(await server.anonymous.get(base + query({ ...params, ...change })), 400, names)
      }),
      { numRuns: 300 },
    ))

  const badFields: readonly [field: string, value: unknown, code: string][] = [
    ['title', 5, 'type'],
    ['title', 'x'.repeat(51), 'max'],
    ['title', 'a\0b', 'type'],
    ['rank', 'x', 'type'],
    ['rank', [], 'type'],
    ['done', 0, 'type'],
    ['due', 'soon', 'type'],
    ['nope', 1, 'unknown'],
    ['secret', 'x', 'unknown'],
    ['constructor', 1, 'unknown'],
    ['createdAt', 5, 'type'],
  ]
  const goodFields = fc.record(
    {
      title: fc.string({ maxLength: 20, unit: 'grapheme-ascii' }),
      rank: fc.integer(),
      done: fc.boolean(),
      tags: fc.constant([1, { x: null }]),
    },
    { requiredKeys: [] },
  )

  test('[ERR-3, ERR-4, DB-BATCH-5, DB-UPDATE-9] every invalid field among valid ones is named, with its position', () =>
    fc.assert(
      fc.asyncProperty(
        goodFields,
        fc.uniqueArray(fc.constantFrom(...badFields), { minLength: 1, maxLength: 4, selector: ([field]) => field }),
        fc.constantFrom('insert', 'update', 'upsert', 'batch insert', 'batch update'),
        fc.nat({ max: 3 }),
        async (fields, mistaken, way, at) => {
          const content = { ...fields, ...Object.fromEntries(mistaken.map(([field, bad]) => [field, bad])) }
          const fill = Array.from({ length: at }, () => fields)
          const sends: Readonly<Record<string, () => Promise<Answer>>> = {
            insert: () => server.anonymous.post(base, content),
            update: () => server.anonymous.patch(`${base}/a`, content),
            upsert: () => server.anonymous.post(`${base}?upsert=true`, { id: 'a', ...content }),
            'batch insert': () => server.anonymous.post(`${base}/batch`, { inserts: [...fill, content] }),
            'batch update': () =>
              server.anonymous.post(`${base}/batch`, { inserts: fill, updates: [{ id: 'a', data: content }] }),
          }
          const prefix = way === 'batch insert' ? `inserts[${at}].` : way === 'batch update' ? 'updates[0].' : ''
          const before = await server.dump(...tables)
          const { data } = expectRefusal(await (sends[way] as () => Promise<Answer>)(), 400)
          expect(
            Object.fromEntries(
              Object.entries(data as Record<string, { code: string }>).map(([field, { code }]) => [field, code]),
            ),
          ).toEqual(Object.fromEntries(mistaken.map(([field, , code]) => [prefix + field, code])))
          expect(await server.dump(...tables)).toEqual(before)
        },
      ),
      { numRuns: 200 },
    ))
})
