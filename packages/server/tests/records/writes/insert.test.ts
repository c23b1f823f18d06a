/** POST {base}: stored and generated values, and every invalid field. */
import { expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { codesOf, runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/articles'
const authors = '/api/db/shared/tables/authors'
const loose = '/api/db/shared/tables/loose'

const config = {
  databases: {
    shared: {
      tables: {
        authors: { schema: { name: { type: 'string' } }, access: open },
        articles: {
          schema: {
            title: { type: 'string', required: true, min: 2, max: 10 },
            body: { type: 'text' },
            views: { type: 'number', default: 0, min: 0, max: 1000 },
            ratio: { type: 'number' },
            published: { type: 'boolean', default: false },
            publishAt: { type: 'datetime' },
            tags: { type: 'json' },
            slug: { type: 'string', unique: true, pattern: '^[a-z0-9-]+$' },
            kind: { type: 'string', enum: ['news', 'opinion'], default: 'news' },
            level: { type: 'number', enum: [1, 2, 3] },
            authorId: { type: 'string', references: 'authors' },
            secret: { type: 'string' },
          },
          hidden: ['secret'],
          access: open,
        },
        loose: { access: open },
      },
    },
  },
} as const

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

describeServer('insert', { config }, (server) => {
  const insert = (body: unknown) => server.anonymous.post(base, body)

  test('[DB-INSERT-1, DB-TABLE-2, DB-TABLE-3, DB-TABLE-7, HTTP-11] an insert returns generated fields, defaults and nulls', async () => {
    const { status, body } = await insert({ title: 'First' })
    expect(status).toBe(201)
    expect(body.id).toMatch(uuid7)
    expect(body.createdAt).toMatch(timestamp)
    expect(body.updatedAt).toBe(body.createdAt)
    const { id, createdAt, updatedAt, ...rest } = body
    expect(rest).toEqual({
      title: 'First',
      body: null,
      views: 0,
      ratio: null,
      published: false,
      publishAt: null,
      tags: null,
      slug: null,
      kind: 'news',
      level: null,
      authorId: null,
    })
    expect((await server.anonymous.get(`${base}/${id}`)).body).toEqual({ id, createdAt, updatedAt, ...rest })
  })

  test('[DB-TABLE-3] generated ids are in order of creation', async () => {
    const made: string[] = []
    for (let i = 0; i < 30; i++) made.push((await server.anonymous.post(loose, { i })).body.id)
    const { body } = await server.anonymous.post(`${loose}/batch`, {
      inserts: Array.from({ length: 200 }, (_, i) => ({ i: 30 + i })),
    })
    made.push(...body.inserted.map(({ id }: { id: string }) => id))
    expect(made).toEqual([...made].sort())
    expect(new Set(made).size).toBe(230)
    const list = await server.anonymous.get(loose + query({ limit: 1000 }))
    expect(list.body.items.map(({ i }: { i: number }) => i)).toEqual(Array.from({ length: 230 }, (_, i) => i))
  })

  test('[DB-INSERT-3, DB-TABLE-5] createdAt and updatedAt may be supplied, with any offset', async () => {
    const { status, body } = await insert({
      title: 'Old',
      createdAt: '2001-02-03T04:05:06+01:00',
      updatedAt: '2002-02-03T04:05:06.789Z',
    })
    expect(status).toBe(201)
    expect(body.createdAt).toBe('2001-02-03T03:05:06.000Z')
    expect(body.updatedAt).toBe('2002-02-03T04:05:06.789Z')
  })

  test('[DB-TABLE-4, DB-TABLE-5] every type is stored and returned', async () => {
    const record = {
      title: 'Types',
      body: '',
      views: 12,
      ratio: -0.1,
      published: true,
      tags: { deep: [1, 'x', null, { y: false }] },
      level: 2,
    }
    const { status, body } = await insert({ ...record, publishAt: '2026-06-30T23:59:59.5-05:30' })
    expect(status).toBe(201)
    expect(body).toMatchObject({ ...record, publishAt: '2026-07-01T05:29:59.500Z' })
  })

  test('[DB-TABLE-15] text and numbers are returned unchanged', async () => {
    const texts = [
      '',
      ' ',
      'ä\u0308',
      '\u{1F468}\u200D\u{1F469}',
      '\uFFFF\uFEFF',
      'line\r\n\ttab',
      '"\\/\'`',
      '\u0001\u007F',
      'null',
      'x'.repeat(200_000),
      '\u2028',
    ]
    for (const text of texts) {
      const { body } = await insert({ title: 'Text', body: text, tags: { [text.slice(0, 50)]: text.slice(0, 50) } })
      const got = (await server.anonymous.get(`${base}/${body.id}`)).body
      expect(got.body).toBe(text)
      expect(got.tags).toEqual({ [text.slice(0, 50)]: text.slice(0, 50) })
    }
    for (const number of [
      0.1,
      1e-320,
      5e-324,
      1.7976931348623157e308,
      -1e21,
      2 ** 53 - 1,
      2 ** 53 + 2,
      123456789.12345679,
      2 ** 63,
      -(2 ** 63),
    ]) {
      const { body } = await insert({ title: 'Number', ratio: number, tags: [number] })
      const got = (await server.anonymous.get(`${base}/${body.id}`)).body
      expect(got.ratio).toEqual(number)
      expect(got.tags).toEqual([number])
    }
    // Written as text: JSON.stringify drops the sign of -0.
    const zero = await server.anonymous.request('POST', base, {
      raw: '{"title":"Zero","ratio":-0}',
      headers: { 'content-type': 'application/json' },
    })
    expect(Object.is((await server.anonymous.get(`${base}/${zero.body.id}`)).body.ratio, 0)).toBe(true)
  })

  test('[DB-TABLE-15] JSON values of every shape are returned unchanged', async () => {
    for (const tags of [
      [],
      {},
      'text',
      '5',
      5,
      0,
      false,
      true,
      [null],
      { a: { $op: 'increment', value: 1 } },
      [[[[]]]],
      '',
    ])
      expect([tags, (await insert({ title: 'Json', tags })).body.tags]).toEqual([tags, tags])
  })

  test('[DB-INSERT-2] ids may contain every allowed character', async () => {
    for (const id of ['a', '0', '-', '_', 'Az09_-', 'x'.repeat(64), '--', 'null', 'constructor', '__proto__']) {
      const answer = await server.anonymous.post(loose, { id, marker: id })
      expect(answer.status).toBe(201)
      expect(answer.body.id).toEqual(id)
      expect((await server.anonymous.get(`${loose}/${id}`)).body.marker).toBe(id)
    }
  })

  test('[DB-TABLE-8] a duplicate unique value returns 409, nulls do not conflict', async () => {
    expect((await insert({ title: 'One', slug: 'taken' })).status).toBe(201)
    expect((await insert({ title: 'No slug' })).status).toBe(201)
    expect((await insert({ title: 'No slug', slug: null })).status).toBe(201)
    const before = await server.dump(base)
    const { data } = expectRefusal(await insert({ title: 'Two', slug: 'taken' }), 409)
    expect(codesOf(data)).toEqual({ slug: 'unique' })
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-INSERT-4] a duplicate id returns 409 and leaves the first record', async () => {
    expect((await insert({ id: 'twice', title: 'First' })).status).toBe(201)
    const before = await server.dump(base)
    const body = expectRefusal(await insert({ id: 'twice', title: 'Second' }), 409)
    expect(body.slug).toBe('conflict')
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-TABLE-9] a reference must point to an existing record', async () => {
    expect((await server.anonymous.post(authors, { id: 'ann' })).status).toBe(201)
    expect((await insert({ title: 'By Ann', authorId: 'ann' })).status).toBe(201)
    expect((await insert({ title: 'By none', authorId: null })).status).toBe(201)
    const before = await server.dump(base)
    const { data } = expectRefusal(await insert({ title: 'By whom', authorId: 'bob' }), 400)
    expect(codesOf(data)).toEqual({ authorId: 'reference' })
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-TABLE-6] lengths are counted in code points', async () => {
    expect((await insert({ title: '\u{1F600}\u{1F600}' })).status).toBe(201)
    expect((await insert({ title: '\u{1F600}'.repeat(10) })).status).toBe(201)
    expectRefusal(await insert({ title: '\u{1F600}' }), 400)
    expectRefusal(await insert({ title: '\u{1F600}'.repeat(11) }), 400)
  })

  test('[HTTP-12] members named like object properties are ordinary fields', async () => {
    for (const path of [base, loose])
      for (const text of [
        '{"title":"Proto","__proto__":{"polluted":true}}',
        '{"title":"Proto","constructor":{"prototype":{"polluted":true}}}',
      ]) {
        const answer = await server.anonymous.request('POST', path, {
          raw: text,
          headers: { 'content-type': 'application/json' },
        })
        expectRefusal(answer, 400)
        expect(({} as Record<string, unknown>).polluted).toBeUndefined()
      }
  })

  test('[ERR-4] the size of an error is limited, however many fields are invalid', async () => {
    const body = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`unknown${i}`, 1]))
    const rows = Array.from({ length: 500 }, () => ({ title: 1, views: 'x' }))
    const before = await server.dump(base)
    for (const answer of [
      await insert(body),
      await server.anonymous.post(`${base}?upsert=true`, { ...body, id: 'many' }),
      await server.anonymous.patch(`${base}/many`, body),
      await server.anonymous.post(`${base}/batch-by-filter`, { action: 'update', data: body }),
      await server.anonymous.post(`${base}/batch`, { inserts: [body, body] }),
      await server.anonymous.post(`${base}/batch`, { inserts: rows }),
    ]) {
      const { data } = expectRefusal(answer, 400)
      expect(Object.keys(data ?? {})).toHaveLength(100)
    }
    expect(await server.dump(base)).toEqual(before)
  })

  const wrong = (
    rule: string,
    why: string,
    fields: Record<string, unknown>,
    data: Record<string, string>,
  ): Scenario => ({
    name: `[${rule}] ${why}`,
    method: 'POST',
    path: base,
    body: { title: 'Fine', ...fields },
    status: 400,
    data,
  })

  runScenarios(
    server,
    [base, loose],
    [
      {
        name: '[DB-TABLE-6] a required field left out',
        method: 'POST',
        path: base,
        body: {},
        status: 400,
        data: { title: 'required' },
      },
      wrong('DB-TABLE-6', 'a required field that is null', { title: null }, { title: 'required' }),
      wrong('DB-TABLE-6', 'text too short', { title: 'x' }, { title: 'min' }),
      wrong('DB-TABLE-6', 'empty text where two characters are needed', { title: '' }, { title: 'min' }),
      wrong('DB-TABLE-6', 'text too long', { title: 'x'.repeat(11) }, { title: 'max' }),
      wrong('DB-TABLE-6', 'a number too small', { views: -1 }, { views: 'min' }),
      wrong('DB-TABLE-6', 'a number too large', { views: 1000.5 }, { views: 'max' }),
      wrong('DB-TABLE-6', 'text that does not match', { slug: 'No Spaces' }, { slug: 'pattern' }),
      wrong('DB-TABLE-6', 'a line break after the match', { slug: 'fine\n' }, { slug: 'pattern' }),
      wrong('DB-TABLE-6', 'not one of the enum', { kind: 'rumour' }, { kind: 'enum' }),
      wrong('DB-TABLE-6', 'another case of the enum', { kind: 'News' }, { kind: 'enum' }),
      wrong('DB-TABLE-6', 'not one of the numbers', { level: 4 }, { level: 'enum' }),
      ...(
        [
          ['title', 5],
          ['title', true],
          ['title', ['x']],
          ['title', { a: 1 }],
          ['body', 1],
          ['views', '1'],
          ['views', true],
          ['views', [1]],
          ['views', {}],
          ['published', 1],
          ['published', 'true'],
          ['published', 'yes'],
          ['publishAt', 1767225600000],
          ['publishAt', 'tomorrow'],
          ['publishAt', ''],
          ['publishAt', '2026-02-30'],
          ['publishAt', '2026-01-01T25:00:00Z'],
          ['publishAt', '99999-01-01T00:00:00Z'],
          ['publishAt', { $date: 1 }],
          ['authorId', 7],
          ['slug', false],
          ['id', 7],
          ['id', {}],
          ['createdAt', 'now'],
          ['updatedAt', 5],
        ] as const
      ).map(([field, value]) =>
        wrong('DB-TABLE-4', `${field}: ${JSON.stringify(value)}`, { [field]: value }, { [field]: 'type' }),
      ),
      ...['', 'a b', 'a/b', 'ä', 'a.b', 'x'.repeat(65), 'a\n', '../x', 'a"b', "a'b", '%00'].map((id) => ({
        ...wrong('DB-INSERT-2', `id ${JSON.stringify(id).slice(0, 20)}`, { id }, { id: 'pattern' }),
      })),
      { ...wrong('DB-INSERT-2', 'an id of null', { id: null }, {}), data: { id: 'required' } },
      wrong('DB-TABLE-10', 'an unknown field', { nope: 1 }, { nope: 'unknown' }),
      wrong('DB-TABLE-10', 'a field of another case', { Body: 'x' }, { Body: 'unknown' }),
      wrong('DB-TABLE-10', 'an unknown field that is null', { nope: null }, { nope: 'unknown' }),
      wrong('DB-TABLE-11', 'a hidden field', { secret: 'x' }, { secret: 'unknown' }),
      wrong('DB-TABLE-12', 'NUL in text', { body: 'a\0b' }, { body: 'type' }),
      wrong('DB-TABLE-12', 'NUL deep in JSON', { tags: [{ x: ['a\0b'] }] }, { tags: 'type' }),
      wrong('DB-TABLE-12', 'NUL in a key of JSON', { tags: { 'a\0b': 1 } }, { tags: 'type' }),
      wrong(
        'DB-UPDATE-6',
        'an operator in an insert',
        { views: { $op: 'increment', value: 1 } },
        { views: 'operator' },
      ),
      wrong(
        'ERR-4',
        'several invalid fields are all named',
        { title: 'x', views: 'x', kind: 'x', nope: 1, secret: 's' },
        { title: 'min', views: 'type', kind: 'enum', nope: 'unknown', secret: 'unknown' },
      ),
      {
        name: '[ERR-4] a missing field beside a wrong one',
        method: 'POST',
        path: base,
        body: { views: 'x' },
        status: 400,
        data: { title: 'required', views: 'type' },
      },
      ...['', 'x\ny', '\u0000', '\u200B', 'x'.repeat(129), '__proto__x\u0007'].map(
        (field): Scenario => ({
          name: `[DB-TABLE-13] the field name ${JSON.stringify(field).slice(0, 20)} in a table without a schema`,
          method: 'POST',
          path: loose,
          body: { [field]: 1 },
          status: 400,
        }),
      ),
      {
        name: '[DB-TABLE-1] into an undeclared table',
        method: 'POST',
        path: '/api/db/shared/tables/nope',
        body: {},
        status: 404,
      },
    ],
  )

  test('[DB-TABLE-11] only the service key can set and read a hidden field', async () => {
    const made = await server.service.post(base, { id: 'shh', title: 'Hidden', secret: 'sesame' })
    expect(made.status).toBe(201)
    expect(made.body.secret).toBe('sesame')
    expect((await server.anonymous.get(`${base}/shh`)).text).not.toContain('sesame')
  })

  test('[RULE-15] the response to an insert contains no hidden field', async () => {
    const { status, text } = await insert({ title: 'Hidden' })
    expect(status).toBe(201)
    expect(text).not.toContain('secret')
  })

  test('[DB-TABLE-13] a table without a schema stores any JSON under any printable name', async () => {
    const record = {
      'with space': 1,
      ünï: 'x',
      '"quoted"': [1],
      "it's": null,
      'a.b.c': { d: 1 },
      $op: 'plain',
      emoji: '\u{1F600}',
      ['x'.repeat(128)]: true,
    }
    const { status, body } = await server.anonymous.post(loose, record)
    expect(status).toBe(201)
    const { id, createdAt, updatedAt, ...rest } = body
    expect(rest).toEqual(record)
    expect((await server.anonymous.get(`${loose}/${id}`)).body).toEqual(body)
  })
})
