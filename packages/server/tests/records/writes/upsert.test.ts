/** POST {base}?upsert=true: conflictTarget, preserved fields, and the insert and update rules. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { codesOf, runScenarios, type Scenario } from '../../harness/records/scenarios.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const table = (name: string): string => `/api/db/shared/tables/${name}`

const schema = {
  title: { type: 'string', required: true },
  rank: { type: 'number', default: 7 },
  slug: { type: 'string', unique: true },
  key: { type: 'number', unique: true },
  ownerId: { type: 'string' },
  secretCode: { type: 'string', unique: true },
} as const

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }

/** One table for each tested combination of an insert and an update rule. */
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, hidden: ['secretCode'], access: open },
        both: { schema, access: { read: true, insert: own, update: own } },
        insertOnly: { schema, access: { read: true, insert: true } },
        updateOnly: { schema, access: { read: true, update: true } },
        neither: { schema, access: { read: true } },
        // Every caller may insert rows, but can read and change only their own.
        secretive: { schema, access: { read: own, insert: true, update: own } },
        unreadable: { schema, access: { insert: own, update: own } },
      },
    },
  },
} as const

const tables = Object.keys(config.databases.shared.tables)

describeServer('upsert', { config }, (server) => {
  beforeEach(async () => {
    for (const name of tables) {
      const current = await server.dump(table(name))
      const deletes = current[table(name)]?.items.map(({ id }) => id) ?? []
      const inserts = [
        {
          id: 'a',
          title: 'A',
          rank: 1,
          slug: 'sa',
          key: 1,
          ownerId: 'alice',
          createdAt: '2020-01-01T00:00:00.000Z',
          updatedAt: '2020-01-01T00:00:00.000Z',
        },
        {
          id: 'b',
          title: 'B',
          rank: 2,
          slug: 'sb',
          key: 2,
          ownerId: 'bob',
          createdAt: '2020-01-01T00:00:00.000Z',
          updatedAt: '2020-01-01T00:00:00.000Z',
        },
      ]
      if (deletes.length > 0) expect((await server.service.post(`${table(name)}/batch`, { deletes })).status).toBe(200)
      expect((await server.service.post(`${table(name)}/batch`, { inserts })).status).toBe(200)
    }
  })

  test('[DB-UPSERT-1] a new id is inserted', async () => {
    const { status, body } = await server.anonymous.post(`${base}?upsert=true`, { id: 'c', title: 'C' })
    expect(status).toBe(201)
    expect(body).toMatchObject({ id: 'c', title: 'C', rank: 7, slug: null, action: 'inserted' })
    const stored = (await server.anonymous.get(`${base}/c`)).body
    expect({ ...stored, action: 'inserted' }).toEqual(body)
  })

  test('[DB-UPSERT-1, DB-UPSERT-5] an existing id is updated, and omitted fields keep their values', async () => {
    const { status, body } = await server.anonymous.post(`${base}?upsert=true`, { id: 'a', title: 'A2' })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: 'a',
      title: 'A2',
      rank: 1,
      slug: 'sa',
      key: 1,
      ownerId: 'alice',
      createdAt: '2020-01-01T00:00:00.000Z',
      action: 'updated',
    })
    expect(body.updatedAt > '2020-01-01T00:00:00.000Z').toBe(true)
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(2)
  })

  test('[DB-UPSERT-5] a required field may be omitted when the row exists', async () => {
    const { status, body } = await server.anonymous.post(`${base}?upsert=true`, { id: 'a', rank: 5 })
    expect(status).toBe(200)
    expect(body).toMatchObject({ title: 'A', rank: 5 })
  })

  test('[DB-UPSERT-5] a default does not replace an existing value', async () => {
    const { body } = await server.anonymous.post(`${base}?upsert=true`, { id: 'b', title: 'B2' })
    expect(body.rank).toBe(2)
  })

  test('[DB-UPSERT-5] a field given as null is set to null', async () => {
    const { body } = await server.anonymous.post(`${base}?upsert=true`, { id: 'a', title: 'A', slug: null })
    expect(body.slug).toBeNull()
    expect(body.key).toBe(1)
  })

  test('[DB-UPSERT-3, DB-UPSERT-4] an upsert by a unique field keeps the id of the existing row', async () => {
    const { status, body } = await server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, {
      slug: 'sb',
      title: 'B2',
      rank: 9,
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: 'b', slug: 'sb', title: 'B2', rank: 9, key: 2, action: 'updated' })
    const number = await server.anonymous.post(`${base}?upsert=true&conflictTarget=key`, { key: 1, title: 'A2' })
    expect(number.status).toBe(200)
    expect(number.body).toMatchObject({ id: 'a', title: 'A2', slug: 'sa' })
  })

  test('[DB-UPSERT-4] a given id does not replace the id of the existing row', async () => {
    const { status, body } = await server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, {
      id: 'other',
      slug: 'sb',
      title: 'B2',
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: 'b', title: 'B2' })
    expectRefusal(await server.anonymous.get(`${base}/other`), 404)
  })

  test('[DB-UPSERT-3] an upsert of a new unique value inserts a row with a generated or given id', async () => {
    const generated = await server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, { slug: 'sc', title: 'C' })
    expect(generated.status).toBe(201)
    expect(generated.body.action).toBe('inserted')
    expect(generated.body.id).toMatch(/^[0-9a-f-]{36}$/)
    const given = await server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, {
      id: 'mine',
      slug: 'sd',
      title: 'D',
    })
    expect(given.status).toBe(201)
    expect(given.body.id).toBe('mine')
  })

  test('[DB-UPSERT-1] an existing id is a conflict without upsert=true', async () => {
    for (const text of ['', '?upsert=false', '?conflictTarget=id'])
      expectRefusal(await server.anonymous.post(base + text, { id: 'a', title: 'A2' }), 409)
  })

  test('[DB-UPSERT-8] a conflict on another unique field is refused', async () => {
    const before = await server.dump(base)
    const update = expectRefusal(
      await server.anonymous.post(`${base}?upsert=true`, { id: 'a', title: 'A', slug: 'sb' }),
      409,
    )
    expect(codesOf(update.data)).toEqual({ slug: 'unique' })
    expectRefusal(await server.anonymous.post(`${base}?upsert=true`, { id: 'new', title: 'N', slug: 'sb' }), 409)
    expectRefusal(
      await server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, { id: 'a', title: 'N', slug: 'new' }),
      409,
    )
    expect(await server.dump(base)).toEqual(before)
  })

  test('[DB-UPSERT-9] concurrent upserts of one value leave one row', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        server.anonymous.post(`${base}?upsert=true&conflictTarget=slug`, { slug: 'race', title: `T${i}` }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(29).fill(200), 201])
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    expect((await server.anonymous.get(`${base}/count`)).body.total).toBe(3)
  })

  describe('invalid upserts', () => {
    const upsert = (
      rule: string,
      why: string,
      search: string,
      body: unknown,
      rest: Partial<Scenario> = {},
    ): Scenario => ({
      name: `[${rule}] ${why}`,
      method: 'POST',
      path: `${base}?upsert=true${search}`,
      body,
      status: 400,
      ...rest,
    })
    runScenarios(
      server,
      [base],
      [
        upsert('DB-UPSERT-2', 'no id', '', { title: 'x' }, { data: { id: 'required' } }),
        upsert(
          'DB-UPSERT-2',
          'no id with conflictTarget=id',
          '&conflictTarget=id',
          { title: 'x' },
          { data: { id: 'required' } },
        ),
        upsert('DB-UPSERT-2', 'a malformed id', '', { id: 'a b', title: 'x' }, { data: { id: 'pattern' } }),
        upsert('DB-UPSERT-2', 'an id that is a number', '', { id: 5, title: 'x' }, { data: { id: 'type' } }),
        upsert(
          'DB-UPSERT-3',
          'no value for the target',
          '&conflictTarget=slug',
          { title: 'x' },
          { data: { slug: 'required' } },
        ),
        upsert(
          'DB-UPSERT-3',
          'a null value for the target',
          '&conflictTarget=slug',
          { title: 'x', slug: null },
          { data: { slug: 'required' } },
        ),
        upsert(
          'DB-UPSERT-3',
          'a target that is not unique',
          '&conflictTarget=title',
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-3',
          'an unknown target',
          '&conflictTarget=nope',
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-3',
          'a target of another case',
          '&conflictTarget=Slug',
          { slug: 'sa', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-3',
          'an empty target',
          '&conflictTarget=',
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-3',
          'SQL as target',
          `&conflictTarget=${encodeURIComponent('slug) DO NOTHING;--')}`,
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-3',
          'a member of every object as target',
          '&conflictTarget=__proto__',
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-TABLE-11',
          'a hidden unique field as target',
          '&conflictTarget=secretCode',
          { id: 'a', title: 'x' },
          { names: 'conflictTarget' },
        ),
        upsert(
          'DB-UPSERT-1',
          'upsert that is neither true nor false',
          '',
          { id: 'a', title: 'x' },
          { path: `${base}?upsert=maybe`, names: 'upsert' },
        ),
        upsert('DB-TABLE-6', 'a required field missing on insert', '', { id: 'new' }, { data: { title: 'required' } }),
        upsert(
          'DB-TABLE-4',
          'a wrong type on update',
          '',
          { id: 'a', title: 'A', rank: 'x' },
          { data: { rank: 'type' } },
        ),
        upsert('DB-TABLE-10', 'an unknown field', '', { id: 'a', title: 'A', nope: 1 }, { data: { nope: 'unknown' } }),
        upsert(
          'DB-TABLE-11',
          'a hidden field',
          '',
          { id: 'a', title: 'A', secretCode: 'x' },
          { data: { secretCode: 'unknown' } },
        ),
      ],
    )
  })

  describe('rules', () => {
    const alice = { id: 'alice' }
    const upsert = (
      rule: string,
      why: string,
      name: string,
      body: unknown,
      status: number,
      rest: Partial<Scenario> = {},
    ): Scenario => ({
      name: `[${rule}] ${why}`,
      as: alice,
      method: 'POST',
      path: `${table(name)}?upsert=true`,
      body,
      status,
      ...rest,
    })
    runScenarios(server, tables.map(table), [
      upsert('DB-UPSERT-6', 'neither rule allows: a new row', 'neither', { id: 'n', title: 'N' }, 403),
      upsert('DB-UPSERT-6', 'neither rule allows: a row there', 'neither', { id: 'a', title: 'N' }, 403),
      upsert('DB-UPSERT-6', 'neither rule allows, no credentials', 'neither', { id: 'a', title: 'N' }, 401, {
        as: undefined,
      }),
      upsert('DB-UPSERT-7', 'insert allowed: a new row', 'insertOnly', { id: 'n', title: 'N' }, 201),
      upsert('DB-UPSERT-7', 'insert allowed, update not: a row there', 'insertOnly', { id: 'a', title: 'N' }, 403),
      upsert('DB-UPSERT-7', 'update allowed: a row there', 'updateOnly', { id: 'a', title: 'N' }, 200),
      upsert('DB-UPSERT-7', 'update allowed, insert not: a new row', 'updateOnly', { id: 'n', title: 'N' }, 403),
      upsert('DB-UPSERT-7', "a new row of one's own", 'both', { id: 'n', title: 'N', ownerId: 'alice' }, 201),
      upsert('DB-UPSERT-7', 'a new row of another', 'both', { id: 'n', title: 'N', ownerId: 'bob' }, 403),
      upsert('DB-UPSERT-7', 'a new row without an owner', 'both', { id: 'n', title: 'N' }, 403),
      upsert('DB-UPSERT-7', "one's own row", 'both', { id: 'a', title: 'N' }, 200),
      upsert('DB-UPSERT-7', "another's row", 'both', { id: 'b', title: 'N' }, 403),
      upsert('DB-UPSERT-7', "another's row, claimed", 'both', { id: 'b', title: 'N', ownerId: 'alice' }, 403),
      upsert('DB-UPSERT-7', "one's own row, given away", 'both', { id: 'a', title: 'N', ownerId: 'bob' }, 403),
      upsert(
        'DB-UPSERT-7',
        "another's row by its unique value, claimed",
        'both',
        { slug: 'sb', title: 'N', ownerId: 'alice' },
        403,
        { path: `${table('both')}?upsert=true&conflictTarget=slug` },
      ),
      upsert('DB-UPSERT-7', 'no credentials where both rules need them', 'both', { id: 'a', title: 'N' }, 401, {
        as: undefined,
      }),
      upsert(
        'DB-UPSERT-8',
        'a row the caller may not see',
        'secretive',
        { id: 'b', title: 'N', ownerId: 'alice' },
        409,
        { lacks: ['bob', 'sb', '"B"'] },
      ),
      upsert(
        'DB-UPSERT-8',
        'a row the caller may not see, by its unique value',
        'secretive',
        { slug: 'sb', title: 'N', ownerId: 'alice' },
        409,
        { path: `${table('secretive')}?upsert=true&conflictTarget=slug`, lacks: ['bob', '"b"', '"B"'] },
      ),
      upsert(
        'DB-UPSERT-8',
        'a row the caller may not see, other unique value',
        'secretive',
        { id: 'n', slug: 'sb', title: 'N', ownerId: 'alice' },
        409,
        { lacks: ['bob', '"b"', '"B"'] },
      ),
      upsert('DB-UPSERT-7', "one's own row where others are hidden", 'secretive', { id: 'a', title: 'N' }, 200),
      upsert(
        'DB-UPSERT-7',
        'a new row where others are hidden',
        'secretive',
        { id: 'n', title: 'N', ownerId: 'alice' },
        201,
      ),
      upsert('DB-UPSERT-8', 'no credentials, an unreadable row', 'secretive', { id: 'a', title: 'N' }, 409, {
        as: undefined,
      }),
      upsert('DB-UPSERT-8', 'an existing row of an unreadable table', 'unreadable', { id: 'a', title: 'N' }, 409),
    ])
  })

  test('[DB-UPSERT-7, RULE-13] a denied upsert changes no row', async () => {
    const before = await server.dump(table('both'))
    expectRefusal(
      await server.as('alice').post(`${table('both')}?upsert=true`, { id: 'b', title: 'taken', ownerId: 'alice' }),
      403,
    )
    expect(await server.dump(table('both'))).toEqual(before)
  })
})
