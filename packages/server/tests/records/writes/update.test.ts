/** PATCH {base}/{id}: fields, operators, immutable fields, and If-Match. */
import { beforeEach, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { codesOf, runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const authors = '/api/db/shared/tables/authors'
const loose = '/api/db/shared/tables/loose'

const config = {
  databases: {
    shared: {
      tables: {
        authors: { schema: { name: { type: 'string' } }, access: open },
        items: {
          schema: {
            title: { type: 'string', required: true, max: 10 },
            rank: { type: 'number' },
            stock: { type: 'number', min: 0, max: 10 },
            done: { type: 'boolean' },
            due: { type: 'datetime' },
            tags: { type: 'json' },
            slug: { type: 'string', unique: true },
            kind: { type: 'string', enum: ['x', 'y'] },
            level: { type: 'number', enum: [1, 2, 3] },
            authorId: { type: 'string', references: 'authors' },
            points: { type: 'number', required: true, default: 1 },
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

const start = {
  id: 'a',
  title: 'A',
  rank: 5,
  stock: 5,
  done: true,
  due: '2026-01-01T00:00:00.000Z',
  tags: { a: 1 },
  slug: 'sa',
  kind: 'x',
  level: 2,
  authorId: 'ann',
  points: 3,
  secret: 'sesame',
  createdAt: '2020-01-01T00:00:00.000Z',
  updatedAt: '2020-01-01T00:00:00.000Z',
} as const
const path = `${base}/a`
const add = (value: unknown) => ({ $op: 'increment', value })
const remove = { $op: 'deleteField' }

describeServer('update', { config }, (server) => {
  beforeEach(async () => {
    await server.service.post(`${authors}?upsert=true`, { id: 'ann' })
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
    expect(
      (await server.service.post(`${base}/batch`, { inserts: [start, { id: 'b', title: 'B', slug: 'sb' }] })).status,
    ).toBe(200)
    await server.service.post(`${loose}?upsert=true`, { id: 'l', n: 1, text: 'x', deep: { n: 1 } })
  })

  const patch = (body: unknown) => server.anonymous.patch(path, body)

  test('[DB-UPDATE-1] an update changes only the given fields', async () => {
    const { status, body } = await patch({ title: 'B', done: false, tags: [1] })
    const { secret: _, ...visible } = start
    expect(status).toBe(200)
    expect(body).toEqual({ ...visible, title: 'B', done: false, tags: [1], updatedAt: expect.any(String) })
    expect(body.updatedAt > start.updatedAt).toBe(true)
    expect((await server.anonymous.get(path)).body).toEqual(body)
    expect((await server.service.get(path)).body.secret).toBe('sesame')
  })

  test('[DB-UPDATE-1] updatedAt advances with each update, even when no value changes', async () => {
    const seen: string[] = []
    for (let i = 0; i < 10; i++) seen.push((await patch({ title: 'A' })).body.updatedAt)
    expect(seen).toEqual([...seen].sort())
    expect(new Set(seen).size).toBe(10)
  })

  test('[DB-UPDATE-1] an empty body changes no field', async () => {
    const { status, body } = await patch({})
    expect(status).toBe(200)
    expect(body.title).toBe('A')
  })

  test('[DB-UPDATE-1] null sets a field to null', async () => {
    const { status, body } = await patch({ rank: null, tags: null, slug: null })
    expect(status).toBe(200)
    expect(body.rank).toBeNull()
    expect(body.tags).toBeNull()
    expect(body.slug).toBeNull()
  })

  test('[DB-UPDATE-2] increment adds negative and fractional numbers', async () => {
    expect((await patch({ rank: add(2) })).body.rank).toBe(7)
    expect((await patch({ rank: add(-10) })).body.rank).toBe(-3)
    expect((await patch({ rank: add(0.5), points: add(1) })).body).toMatchObject({ rank: -2.5, points: 4 })
    expect((await patch({ rank: add(0) })).body.rank).toBe(-2.5)
    expect((await server.anonymous.get(path)).body.rank).toBe(-2.5)
  })

  test('[DB-UPDATE-2] a hundred concurrent increments are all applied', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => patch({ rank: add(i) })))
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200))
    expect((await server.anonymous.get(path)).body.rank).toBe(5 + 4950)
    expect(new Set(answers.map(({ body }) => body.rank)).size).toBeGreaterThanOrEqual(99)
  })

  test('[DB-UPDATE-3] increment treats null as 0', async () => {
    expect((await server.anonymous.patch(`${base}/b`, { rank: add(4) })).body.rank).toBe(4)
  })

  test('[DB-UPDATE-5] deleteField sets the field to null', async () => {
    const { status, body } = await patch({ rank: remove, tags: remove, authorId: remove })
    expect(status).toBe(200)
    expect(body.rank).toBeNull()
    expect(body.tags).toBeNull()
    expect(body.authorId).toBeNull()
  })

  test('[DB-UPDATE-7] operators nested in JSON are stored as data', async () => {
    const tags = { inner: add(1), list: [remove] }
    expect((await patch({ tags })).body.tags).toEqual(tags)
  })

  test('[DB-UPDATE-8] the current id and createdAt are accepted', async () => {
    const { status, body } = await patch({ id: 'a', createdAt: '2020-01-01T01:00:00+01:00', title: 'Same' })
    expect(status).toBe(200)
    expect(body.id).toBe('a')
    expect(body.createdAt).toEqual(start.createdAt)
    expect(body.title).toBe('Same')
  })

  test('[DB-TABLE-8] a record may keep its own unique value', async () => {
    expect((await patch({ slug: 'sa', title: 'X' })).status).toBe(200)
  })

  test('[DB-UPDATE-2, DB-UPDATE-3, DB-TABLE-14] operators work on a table without a schema', async () => {
    expect((await server.anonymous.patch(`${loose}/l`, { n: add(2), fresh: add(3) })).body).toMatchObject({
      n: 3,
      fresh: 3,
    })
    const gone = await server.anonymous.patch(`${loose}/l`, { text: remove, never: remove })
    expect(gone.status).toBe(200)
    expect(gone.body.text ?? null).toBe(null)
    expect(gone.body.never ?? null).toBe(null)
    const before = await server.dump(loose)
    expectRefusal(await server.anonymous.patch(`${loose}/l`, { deep: add(1) }), 400, 'deep')
    expect(await server.dump(loose)).toEqual(before)
  })

  const refused = (
    rule: string,
    why: string,
    body: unknown,
    data: Record<string, string>,
    rest: Partial<Scenario> = {},
  ): Scenario => ({
    name: `[${rule}] ${why}`,
    method: 'PATCH',
    path,
    body,
    status: 400,
    data,
    ...rest,
  })

  runScenarios(
    server,
    [base, loose],
    [
      {
        name: '[DB-UPDATE-1] an absent record',
        method: 'PATCH',
        path: `${base}/nope`,
        body: { title: 'x' },
        status: 404,
      },
      {
        name: '[DB-UPDATE-1] an id no record can have',
        method: 'PATCH',
        path: `${base}/a%20b`,
        body: { title: 'x' },
        status: 404,
      },
      {
        name: '[DB-UPDATE-1] nothing is created by an update',
        method: 'PATCH',
        path: `${base}/c`,
        body: { id: 'c', title: 'x' },
        status: 404,
      },
      refused('DB-UPDATE-4', 'increment of text', { title: add(1) }, { title: 'operator' }),
      refused('DB-UPDATE-4', 'increment of a boolean', { done: add(1) }, { done: 'operator' }),
      refused('DB-UPDATE-4', 'increment of a datetime', { due: add(1) }, { due: 'operator' }),
      refused('DB-UPDATE-4', 'increment of JSON', { tags: add(1) }, { tags: 'operator' }),
      ...[undefined, null, '1', true, [1], {}].map((value) =>
        refused('DB-UPDATE-4', `increment by ${JSON.stringify(value)}`, { rank: add(value) }, { rank: 'operator' }),
      ),
      refused('DB-UPDATE-9', 'increment over the declared maximum', { stock: add(6) }, { stock: 'max' }),
      refused('DB-UPDATE-9', 'increment under the declared minimum', { stock: add(-6) }, { stock: 'min' }),
      refused('DB-UPDATE-9', 'increment to a number outside the enum', { level: add(2) }, { level: 'enum' }),
      refused('DB-UPDATE-5', 'deleteField of a required field', { title: remove }, { title: 'operator' }),
      refused(
        'DB-UPDATE-5',
        'deleteField of a required field with a default',
        { points: remove },
        { points: 'operator' },
      ),
      refused('DB-UPDATE-5', 'deleteField of a built-in field', { createdAt: remove }, { createdAt: 'operator' }),
      refused('DB-UPDATE-6', 'an unknown operator', { rank: { $op: 'multiply', value: 2 } }, { rank: 'operator' }),
      refused(
        'DB-UPDATE-6',
        'an operator of another case',
        { rank: { $op: 'Increment', value: 2 } },
        { rank: 'operator' },
      ),
      refused(
        'DB-UPDATE-6',
        'an operator that is no text',
        { rank: { $op: ['increment'], value: 2 } },
        { rank: 'operator' },
      ),
      refused('DB-UPDATE-6', 'an operator that is null, on JSON', { tags: { $op: null } }, { tags: 'operator' }),
      refused(
        'DB-UPDATE-6',
        'an operator called like a member of every object',
        { rank: { $op: 'constructor', value: 2 } },
        { rank: 'operator' },
      ),
      refused('DB-UPDATE-8', 'another id', { id: 'z', title: 'x' }, { id: 'operator' }),
      refused('DB-UPDATE-8', 'another createdAt', { createdAt: '2021-01-01T00:00:00Z' }, { createdAt: 'operator' }),
      refused('DB-UPDATE-8', 'an operator on id', { id: add(1) }, { id: 'operator' }),
      refused('DB-UPDATE-8', 'an operator on updatedAt', { updatedAt: remove }, { updatedAt: 'operator' }),
      refused('DB-UPDATE-9', 'a required field set to null', { title: null }, { title: 'required' }),
      refused('DB-UPDATE-9', 'text too long', { title: 'x'.repeat(11) }, { title: 'max' }),
      refused('DB-UPDATE-9', 'a wrong type', { rank: 'x' }, { rank: 'type' }),
      refused('DB-UPDATE-9', 'not one of the enum', { kind: 'z' }, { kind: 'enum' }),
      refused('DB-UPDATE-9', 'a reference to nothing', { authorId: 'nobody' }, { authorId: 'reference' }),
      refused('DB-UPDATE-9', 'an unknown field', { nope: 1 }, { nope: 'unknown' }),
      refused('DB-TABLE-11', 'a hidden field', { secret: 'x' }, { secret: 'unknown' }),
      refused('DB-TABLE-11', 'an operator on a hidden field', { secret: remove }, { secret: 'unknown' }),
      refused('DB-TABLE-12', 'NUL in text', { title: 'a\0' }, { title: 'type' }),
      refused(
        'ERR-4',
        'good and bad fields together',
        { title: 'Good', rank: 'x', nope: 1 },
        { rank: 'type', nope: 'unknown' },
      ),
      {
        name: '[DB-TABLE-8] a unique value of another row',
        method: 'PATCH',
        path,
        body: { slug: 'sb', title: 'x' },
        status: 409,
        data: { slug: 'unique' },
      },
      {
        name: '[DB-TABLE-13] a reserved name in a table without a schema',
        method: 'PATCH',
        path: `${loose}/l`,
        body: { constructor: 1 },
        status: 400,
      },
    ],
  )

  test('[DB-UPDATE-4] an increment beyond the range of a double is refused', async () => {
    await patch({ rank: 1.7e308 })
    const before = await server.dump(base)
    const { data } = expectRefusal(await patch({ rank: add(1.7e308), title: 'x' }), 400)
    expect(codesOf(data)).toEqual({ rank: 'operator' })
    expect(await server.dump(base)).toEqual(before)
    expectRefusal(
      await server.anonymous.request('PATCH', path, {
        raw: '{"rank":{"$op":"increment","value":1e999}}',
        headers: { 'content-type': 'application/json' },
      }),
      400,
      'rank',
    )
  })

  test('[DB-ETAG-3] a stale If-Match returns 412 and changes nothing', async () => {
    const tag = (await server.anonymous.get(path)).headers.get('etag') ?? ''
    expect((await patch({ title: 'Newer' })).status).toBe(200)
    const before = await server.dump(base)
    expect(expectRefusal(await server.anonymous.patch(path, { title: 'Stale' }, { 'if-match': tag }), 412).slug).toBe(
      'precondition-failed',
    )
    expectRefusal(await server.anonymous.patch(path, { title: 'Stale' }, { 'if-match': '"other"' }), 412)
    expectRefusal(await server.anonymous.delete(path, { 'if-match': tag }), 412)
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-ETAG-4] a current If-Match and * are accepted', async () => {
    const tag = (await server.anonymous.get(path)).headers.get('etag') ?? ''
    const updated = await server.anonymous.patch(path, { title: 'Next' }, { 'if-match': `"x", ${tag}` })
    expect(updated.status).toBe(200)
    expect(updated.body.title).toBe('Next')
    expect((await server.anonymous.patch(path, { title: 'Any' }, { 'if-match': '*' })).status).toBe(200)
    expectRefusal(await server.anonymous.patch(`${base}/nope`, { title: 'Any' }, { 'if-match': '*' }), 404)
    const latest = (await server.anonymous.get(path)).headers.get('etag') ?? ''
    expect((await server.anonymous.delete(path, { 'if-match': latest })).status).toBe(200)
  })

  test('[DB-ETAG-4] exactly one of twenty concurrent updates with the same ETag succeeds', async () => {
    const tag = (await server.anonymous.get(path)).headers.get('etag') ?? ''
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => server.anonymous.patch(path, { rank: 100 + i }, { 'if-match': tag })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(412)])
    const winner = answers.find(({ status }) => status === 200)
    expect((await server.anonymous.get(path)).body.rank).toBe(winner?.body.rank)
  })

  test('[DB-ETAG-1] the response to an update carries the new ETag', async () => {
    const { headers } = await patch({ title: 'Tagged' })
    expect(headers.get('etag')).toBe((await server.anonymous.get(path)).headers.get('etag'))
  })
})
