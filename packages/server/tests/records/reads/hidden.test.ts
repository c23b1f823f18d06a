/**
 * Hidden fields and rows are not observable: a hidden field behaves like an unknown field wherever it can be named, and
 * a hidden row like an absent row, except that its id and unique values are taken.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Client, query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer, startServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/people'
const rowsBase = '/api/db/shared/tables/rows'
const notes = '/api/db/shared/tables/notes'
const guarded = '/api/db/shared/tables/guarded'

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }

const config = {
  databases: {
    shared: {
      tables: {
        people: {
          schema: {
            name: { type: 'string' },
            cipher: { type: 'string' },
            pinno: { type: 'number' },
            crest: { type: 'string', unique: true },
            tenant: { type: 'string', default: 'main' },
          },
          search: ['name'],
          hidden: ['cipher', 'pinno', 'crest', 'tenant'],
          indexes: [{ fields: ['cipher'] }],
          access: open,
        },
        guarded: {
          schema: { name: { type: 'string' }, tenant: { type: 'string', default: 'main' } },
          hidden: ['tenant'],
          access: {
            read: () => ({ tenant: 'main' }),
            insert: () => ({ tenant: 'main' }),
            update: () => ({ tenant: 'main' }),
            delete: () => ({ tenant: 'main' }),
          },
        },
        rows: {
          schema: { title: { type: 'string' }, slug: { type: 'string', unique: true }, ownerId: { type: 'string' } },
          search: ['title'],
          access: { read: own, insert: true, update: true, delete: true },
        },
        notes: { schema: { target: { type: 'string', references: 'rows' } }, access: open },
      },
    },
  },
  api: { schemaEndpoint: true },
} as const

describeServer('hidden fields and rows', { config }, (server) => {
  beforeAll(async () => {
    const inserts = ['ann', 'ben', 'cat'].map((name, i) => ({
      id: name,
      name,
      cipher: `sesame-${name}`,
      pinno: 7001 + i,
      crest: `crest-${name}`,
    }))
    expect((await server.service.post(`${base}/batch`, { inserts })).status).toBe(200)
    const rows = ['a', 'b', 'c', 'd'].map((id, i) => ({
      id,
      title: `title ${id}`,
      slug: `slug-${id}`,
      ownerId: i % 2 === 0 ? 'alice' : 'bob',
    }))
    expect((await server.service.post(`${rowsBase}/batch`, { inserts: rows })).status).toBe(200)
    await server.service.post(`${guarded}/batch`, { inserts: [{ id: 'in' }, { id: 'out', tenant: 'other' }] })
  })

  /** Every request that can name a field; `name` is a hidden field or an unknown one. */
  const requests: Readonly<Record<string, (client: Client, name: string, value: unknown) => Promise<Answer>>> = {
    'filter ==': (client, name, value) => client.get(base + query({ filter: [[name, '==', value]] })),
    'filter !=': (client, name, value) => client.get(base + query({ filter: [[name, '!=', value]] })),
    'filter >': (client, name, value) => client.get(base + query({ filter: [[name, '>', value]] })),
    'filter contains': (client, name, value) => client.get(base + query({ filter: [[name, 'contains', value]] })),
    'filter in': (client, name, value) => client.get(base + query({ filter: [[name, 'in', [value]]] })),
    'filter not in': (client, name, value) => client.get(base + query({ filter: [[name, 'not in', [value]]] })),
    'filter null': (client, name) => client.get(base + query({ filter: [[name, '==', null]] })),
    'filter unknown operator': (client, name) => client.get(base + query({ filter: [[name, '~', 1]] })),
    'filter wrong type': (client, name) => client.get(base + query({ filter: [[name, '==', { a: 1 }]] })),
    orFilter: (client, name, value) =>
      client.get(
        base +
          query({
            orFilter: [
              ['id', '==', 'ann'],
              [name, '==', value],
            ],
          }),
      ),
    sort: (client, name) => client.get(base + query({ sort: `${name}:asc` })),
    'sort second': (client, name) => client.get(base + query({ sort: `id:desc,${name}:desc` })),
    'sort in a cursor walk': (client, name) => client.get(base + query({ sort: `${name}:desc`, after: '' })),
    fields: (client, name) => client.get(base + query({ fields: `id,${name}` })),
    'fields of one': (client, name) => client.get(`${base}/ann${query({ fields: name })}`),
    'fields of a search': (client, name) => client.get(`${base}/search${query({ q: 'ann', fields: name })}`),
    'filter of a count': (client, name, value) =>
      client.get(`${base}/count${query({ filter: [[name, '==', value]] })}`),
    'orFilter of a count': (client, name, value) =>
      client.get(`${base}/count${query({ orFilter: [[name, '==', value]] })}`),
    'filter of a search': (client, name, value) =>
      client.get(`${base}/search${query({ q: 'ann', filter: [[name, '==', value]] })}`),
    insert: (client, name, value) => client.post(base, { name: 'new', [name]: value }),
    'insert null': (client, name) => client.post(base, { name: 'new', [name]: null }),
    update: (client, name, value) => client.patch(`${base}/ann`, { [name]: value }),
    'update operator': (client, name) => client.patch(`${base}/ann`, { [name]: { $op: 'increment', value: 1 } }),
    'update deleteField': (client, name) => client.patch(`${base}/ann`, { [name]: { $op: 'deleteField' } }),
    'update unknown operator': (client, name) => client.patch(`${base}/ann`, { [name]: { $op: 'x' } }),
    upsert: (client, name, value) => client.post(`${base}?upsert=true`, { id: 'ann', [name]: value }),
    conflictTarget: (client, name, value) =>
      client.post(`${base}?upsert=true&conflictTarget=${name}`, { id: 'ann', [name]: value }),
    'conflictTarget without a value': (client, name) =>
      client.post(`${base}?upsert=true&conflictTarget=${name}`, { id: 'ann' }),
    'batch insert': (client, name, value) => client.post(`${base}/batch`, { inserts: [{ [name]: value }] }),
    'batch update': (client, name, value) =>
      client.post(`${base}/batch`, { updates: [{ id: 'ann', data: { [name]: value } }] }),
    'batch upsert': (client, name, value) =>
      client.post(`${base}/batch?upsert=true&conflictTarget=${name}`, { inserts: [{ [name]: value }] }),
    'by filter': (client, name, value) =>
      client.post(`${base}/batch-by-filter`, { action: 'delete', filter: [[name, '==', value]] }),
    'by filter or': (client, name, value) =>
      client.post(`${base}/batch-by-filter`, { action: 'delete', orFilter: [[name, '==', value]] }),
    'by filter data': (client, name, value) =>
      client.post(`${base}/batch-by-filter`, { action: 'update', data: { [name]: value } }),
  }
  const hidden: Readonly<Record<string, unknown>> = { cipher: 'sesame-ann', pinno: 7001, crest: 'crest-ann' }

  for (const [kind, send] of Object.entries(requests))
    test(`[DB-TABLE-11, DB-FILTER-8, DB-LIST-13] ${kind}: a hidden field behaves like an unknown field`, async () => {
      const before = await server.dump(base)
      for (const [name, value] of Object.entries(hidden))
        for (const client of [server.anonymous, server.as('alice')]) {
          const unknown = `${name.slice(0, -1)}z`
          const [known, other] = [await send(client, name, value), await send(client, unknown, value)]
          expectRefusal(known, 400)
          expect(known.text.replaceAll(name, 'X')).toBe(other.text.replaceAll(unknown, 'X'))
        }
      expect(await server.dump(base)).toEqual(before)
    })

  /** The hidden names as members or values, and the hidden values. */
  const traces = ['"cipher"', '"pinno"', '"crest"', '"tenant"', '"main"', 'sesame', ':7001', ':7002', ':7003', 'crest-']

  test('[DB-TABLE-11, RULE-15] no response contains a hidden field', async () => {
    const answers = [
      await server.anonymous.get(base),
      await server.anonymous.get(base + query({ after: '' })),
      await server.anonymous.get(base + query({ before: '', limit: 1 })),
      await server.anonymous.get(`${base}/ann`),
      await server.anonymous.get(`${base}/search${query({ q: 'ann' })}`),
      await server.anonymous.post(base, { id: 'new', name: 'new' }),
      await server.anonymous.patch(`${base}/new`, { name: 'newer' }),
      await server.anonymous.post(`${base}?upsert=true`, { id: 'new', name: 'newest' }),
      await server.anonymous.post(`${base}?upsert=true`, { id: 'new2', name: 'newest' }),
      await server.anonymous.post(`${base}/batch`, {
        inserts: [{ id: 'new3' }],
        updates: [{ id: 'new', data: { name: 'n' } }],
        deletes: ['new2'],
      }),
      await server.anonymous.post(`${base}/batch?upsert=true`, { inserts: [{ id: 'new3', name: 'x' }] }),
      await server.anonymous.post(`${base}/batch-by-filter`, {
        action: 'delete',
        filter: [['id', 'in', ['new', 'new3']]],
      }),
      await server.anonymous.get('/api/schema'),
      await server.as('alice').get('/api/schema'),
      await server.anonymous.get('/openapi.json'),
    ]
    for (const { status, text } of answers) {
      expect(status).toBeLessThan(300)
      for (const trace of traces) expect(text).not.toContain(trace)
    }
  })

  test('[DB-TABLE-11] a decoded cursor contains no hidden value', async () => {
    const { body } = await server.anonymous.get(base + query({ sort: 'name:asc', after: '', limit: 1 }))
    const decoded = Buffer.from(body.cursor.replace(/^\./, ''), 'base64url').toString('latin1')
    for (const trace of ['sesame', '7001', 'crest-ann']) expect(decoded + body.cursor).not.toContain(trace)
  })

  test('[DB-TABLE-11, DB-CURSOR-5] a cursor over a hidden field, created with the service key, is refused for other callers', async () => {
    const { body } = await server.service.get(base + query({ sort: 'cipher:asc', after: '', limit: 1 }))
    for (const sort of ['cipher:asc', undefined, 'name:asc'])
      expectRefusal(await server.anonymous.get(base + query({ sort, after: body.cursor })), 400)
  })

  test('[DB-TABLE-11] a write by another caller keeps the hidden values', async () => {
    await server.anonymous.patch(`${base}/ben`, { name: 'Ben' })
    await server.anonymous.post(`${base}?upsert=true`, { id: 'ben', name: 'Benny' })
    await server.anonymous.post(`${base}/batch`, { updates: [{ id: 'ben', data: { name: 'Benno' } }] })
    await server.anonymous.post(`${base}/batch-by-filter`, {
      action: 'update',
      filter: [['id', '==', 'ben']],
      data: { name: 'ben' },
    })
    expect((await server.service.get(`${base}/ben`)).body).toMatchObject({
      name: 'ben',
      cipher: 'sesame-ben',
      pinno: 7002,
      crest: 'crest-ben',
      tenant: 'main',
    })
  })

  test('[RULE-5, RULE-6] a rule may use a hidden field without exposing it', async () => {
    const { body, text } = await server.anonymous.get(guarded)
    expect(body.total).toBe(1)
    expect(body.items.map(({ id }: { id: string }) => id)).toEqual(['in'])
    expect(text).not.toContain('tenant')
    expectRefusal(await server.anonymous.get(`${guarded}/out`), 404)
    expect((await server.anonymous.post(guarded, { id: 'made' })).status).toBe(201)
    const before = await server.dump(guarded)
    expect(expectRefusal(await server.anonymous.post(guarded, { tenant: 'other' }), 400).message).not.toContain('main')
    expectRefusal(await server.anonymous.patch(`${guarded}/in`, { tenant: 'other' }), 400)
    expect(await server.dump(guarded)).toEqual(before)
  })

  describe('rows', () => {
    test('[RULE-4] a hidden row and an absent row get the same response', async () => {
      const alice = server.as('alice')
      const requests: readonly ((id: string) => Promise<Answer>)[] = [
        (id) => alice.get(`${rowsBase}/${id}`),
        (id) => alice.patch(`${rowsBase}/${id}`, { title: 'x' }),
        (id) => alice.patch(`${rowsBase}/${id}`, { title: 'x' }, { 'if-match': '"x"' }),
        (id) => alice.patch(`${rowsBase}/${id}`, { title: 'x' }, { 'if-match': '*' }),
        (id) => alice.delete(`${rowsBase}/${id}`),
        (id) => alice.delete(`${rowsBase}/${id}`, { 'if-match': '"x"' }),
        (id) => alice.get(rowsBase + query({ after: id })),
        (id) => alice.get(rowsBase + query({ before: id })),
        (id) => alice.get(rowsBase + query({ filter: [['id', '==', id]] })),
        (id) => alice.get(`${rowsBase}/count${query({ filter: [['id', '==', id]] })}`),
        (id) => alice.post(`${rowsBase}/batch`, { updates: [{ id, data: { title: 'x' } }] }),
        (id) => alice.post(`${rowsBase}/batch`, { deletes: ['a', id] }),
        (id) => alice.post(`${rowsBase}/batch-by-filter`, { action: 'delete', filter: [['id', '==', id]] }),
        (id) =>
          alice.post(`${rowsBase}/batch-by-filter`, {
            action: 'update',
            filter: [['id', '==', id]],
            data: { title: 'x' },
          }),
        (id) => alice.post(notes, { target: id }),
      ]
      const before = await server.dump(rowsBase, notes)
      for (const send of requests) {
        const [hiddenRow, absent] = [await send('b'), await send('z')]
        expect(hiddenRow.status).toBe(absent.status)
        expect(hiddenRow.text.replaceAll('"b"', 'X')).toBe(absent.text.replaceAll('"z"', 'X'))
        expect(hiddenRow.text).not.toContain('bob')
      }
      expect(await server.dump(rowsBase, notes)).toEqual(before)
    })

    test('[DB-INSERT-4, DB-UPSERT-8] an insert that conflicts with a hidden row returns 409 without details', async () => {
      const alice = server.as('alice')
      const before = await server.dump(rowsBase)
      const sent = [
        alice.post(rowsBase, { id: 'b' }),
        alice.post(rowsBase, { slug: 'slug-b' }),
        alice.post(`${rowsBase}?upsert=true`, { id: 'b', title: 'x' }),
        alice.post(`${rowsBase}?upsert=true&conflictTarget=slug`, { slug: 'slug-b', title: 'x' }),
        alice.patch(`${rowsBase}/a`, { slug: 'slug-b' }),
        alice.post(`${rowsBase}/batch`, { inserts: [{ id: 'n' }, { id: 'b' }] }),
        server.anonymous.post(rowsBase, { slug: 'slug-b' }),
      ]
      for (const answer of await Promise.all(sent)) {
        expectRefusal(answer, 409)
        for (const trace of ['bob', 'title b', '"b"', 'createdAt']) expect(answer.text).not.toContain(trace)
      }
      expect(await server.dump(rowsBase)).toEqual(before)
    })

    test('[RULE-5, DB-SEARCH-9] a binary search over hidden values finds nothing', async () => {
      const alice = server.as('alice')
      for (const slug of ['slug-a', 'slug-b', 'slug-c', 'slug-d', 'slug-z']) {
        const list = await alice.get(rowsBase + query({ filter: [['slug', '<', slug]] }))
        const expected = ['a', 'c'].filter((id) => `slug-${id}` < slug)
        expect(list.body.items.map(({ id }: { id: string }) => id)).toEqual(expected)
        expect(list.body.total).toBe(expected.length)
      }
      expect((await alice.get(`${rowsBase}/search${query({ q: 'title b' })}`)).body.total).toBe(0)
      expect((await alice.get(`${rowsBase}/search${query({ q: 'title' })}`)).body.total).toBe(2)
    })
  })
})

test('[DB-TABLE-11, DB-SEARCH-9] a search over a hidden field is a configuration error', () => {
  const people = { ...config.databases.shared.tables.people, search: ['name', 'cipher'] }
  return expect(startServer({ config: { databases: { shared: { tables: { people } } } } })).rejects.toThrow('cipher')
})

test('[DB-TABLE-11] a required hidden field is not named to callers who cannot set it', async () => {
  const tables = {
    items: {
      schema: { name: { type: 'string' }, cipher: { type: 'string', required: true } },
      hidden: ['cipher'],
      access: open,
    },
  }
  let server: Awaited<ReturnType<typeof startServer>>
  try {
    server = await startServer({ config: { databases: { shared: { tables } } } })
  } catch (error) {
    // Refusing the configuration is also correct.
    expect(String(error)).toContain('cipher')
    return
  }
  try {
    const answer = await server.anonymous.post('/api/db/shared/tables/items', { name: 'x' })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(answer.text).not.toContain('cipher')
    expect((await server.service.get('/api/db/shared/tables/items/count')).body.total).toBe(0)
  } finally {
    await server.close()
  }
})
