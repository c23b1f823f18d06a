/**
 * Schema changes at startup: tables, columns, indexes and searches are created and extended, and no data is dropped
 * without an explicit request.
 */
import { afterEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { batchOperationsMax } from '../../src/limits/api.ts'
import { searchFillRows } from '../../src/limits/sqlite.ts'
import { query } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { forgetVersions, removeVersions } from '../harness/records/earlier-release.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { times } from '../harness/times.ts'

const items = '/api/db/shared/tables/items'
const inSpace = (id: string): string => `/api/db/space/${id}/tables/items`

type Fields = Record<string, Record<string, unknown>>
interface Extra {
  readonly [option: string]: unknown
}

/** A static and a dynamic namespace with the same table. */
const configOf = (schema: Fields | undefined, extra: Extra = {}, more: Record<string, unknown> = {}) => {
  const table = { ...(schema ? { schema } : {}), access: open, ...extra }
  return {
    databases: {
      shared: { tables: { items: table, ...more } },
      space: { instance: true, access: () => true, tables: { items: table } },
    },
  }
}
const first: Fields = { title: { type: 'string' }, rank: { type: 'number' } }

for (const engine of engines) {
  let server: TestServer | null = null
  afterEach(async () => {
    await server?.close()
    server = null
  })

  const start = async (schema: Fields | undefined, extra: Extra = {}): Promise<TestServer> => {
    server = await startServer({ config: configOf(schema, extra) }, engine)
    const inserts = ['alpha', 'beta', 'gamma'].map((title, rank) => ({ id: title[0], title, rank }))
    for (const table of [items, inSpace('x')])
      expect((await server.service.post(`${table}/batch`, { inserts })).status).toBe(200)
    return server
  }

  /** Expects the start to fail with the names, and the data to be unchanged under the old configuration. */
  const expectStartRefused = async (running: TestServer, next: object, ...names: readonly string[]): Promise<void> => {
    const old = { shared: await running.dump(items, inSpace('x')) }
    let message = ''
    try {
      await running.restart(next)
    } catch (error) {
      message = String(error)
    }
    for (const name of names) expect(message).toContain(name)
    expect(message.length).toBeGreaterThan(0)
    expect(message).not.toMatch(/sqlite|SELECT|ALTER TABLE/i)
    await running.restart(configOf(first))
    expect(await running.dump(items, inSpace('x'))).toEqual(old.shared)
  }

  test(`[DB-START-1] a new table or namespace is created at the next start: ${engine.name}`, async () => {
    const running = await start(first)
    await running.restart({
      databases: {
        ...configOf(first, {}, { others: { schema: { n: { type: 'number' } }, access: open } }).databases,
        fresh: { tables: { things: { access: open } } },
      },
    })
    expect((await running.anonymous.post('/api/db/shared/tables/others', { n: 1 })).status).toBe(201)
    expect((await running.anonymous.post('/api/db/fresh/tables/things', { any: 1 })).status).toBe(201)
    expect((await running.anonymous.get(items)).body.total).toBe(3)
  })

  test(`[DB-START-1] an unchanged configuration changes nothing: ${engine.name}`, async () => {
    const running = await start(first)
    const before = await running.dump(items, inSpace('x'))
    for (let n = 0; n < 3; n++) await running.restart()
    expect(await running.dump(items, inSpace('x'))).toEqual(before)
  })

  test(`[DB-START-2] a new field of existing records is null or its default: ${engine.name}`, async () => {
    const running = await start(first)
    await running.restart(
      configOf({
        ...first,
        note: { type: 'text' },
        score: { type: 'number', required: true, default: 5 },
        done: { type: 'boolean', default: false },
        tags: { type: 'json', default: ['new'] },
        due: { type: 'datetime', default: '2026-01-01T00:00:00Z' },
      }),
    )
    for (const table of [items, inSpace('x')]) {
      expect((await running.anonymous.get(`${table}/a`)).body).toMatchObject({
        title: 'alpha',
        rank: 0,
        note: null,
        score: 5,
        done: false,
        tags: ['new'],
        due: '2026-01-01T00:00:00.000Z',
      })
      expect(
        (
          await running.anonymous.get(
            table +
              query({
                filter: [
                  ['score', '==', 5],
                  ['done', '==', false],
                ],
              }),
          )
        ).body.total,
      ).toBe(3)
      expect(
        (await running.anonymous.patch(`${table}/a`, { note: 'x', score: { $op: 'increment', value: 1 } })).body,
      ).toMatchObject({ note: 'x', score: 6 })
    }
  })

  test(`[DB-VER-10] records of a release without versions have version 0 until they change: ${engine.name}`, async () => {
    const running = await start(first)
    const before = await running.dump(items, inSpace('x'))
    await removeVersions(running, ['shared', 'space'], ['items'])
    await running.restart()
    expect(await running.dump(items, inSpace('x'))).toEqual(before)
    for (const table of [items, inSpace('x')]) {
      const tag = (await running.anonymous.get(`${table}/a`)).headers.get('etag') ?? ''
      expect(tag).toMatch(/^"0-/)
      const updated = await running.anonymous.patch(`${table}/a`, { title: 'next' }, { 'if-match': tag })
      expect(updated.headers.get('etag')).toMatch(/^"[1-9]\d{15}-/)
      expectRefusal(await running.anonymous.patch(`${table}/a`, { title: 'stale' }, { 'if-match': tag }), 412)
      expect((await running.anonymous.delete(`${table}/b`, { 'if-match': '"0"' })).status).toBe(200)
      expect((await running.anonymous.post(table, { id: 'b' })).headers.get('etag')).toMatch(/^"[1-9]\d{15}-/)
    }
  })

  test(`[DB-VER-10] an earlier release that ran in between is no obstacle: ${engine.name}`, async () => {
    const running = await start(first)
    const before = await running.dump(items, inSpace('x'))
    await forgetVersions(running, ['shared', 'space'])
    await running.restart()
    expect(await running.dump(items, inSpace('x'))).toEqual(before)
    for (const table of [items, inSpace('x')])
      expect((await running.anonymous.patch(`${table}/a`, { title: 'next' })).status).toBe(200)
  })

  test(`[DB-VER-10] a new default raises the versions of the records that get it: ${engine.name}`, async () => {
    const running = await start(first)
    const tagsOf = () =>
      Promise.all(['a', 'b'].map(async (id) => (await running.anonymous.get(`${items}/${id}`)).headers.get('etag')))
    const [a, b] = await tagsOf()
    await running.restart(configOf({ ...first, score: { type: 'number', default: 5 } }))
    for (const [id, tag] of [
      ['a', a],
      ['b', b],
    ] as const)
      expectRefusal(await running.anonymous.patch(`${items}/${id}`, { rank: 9 }, { 'if-match': tag ?? '' }), 412)
  })

  test(`[DB-START-2] a field can be added between others, and string changed to text and back: ${engine.name}`, async () => {
    const running = await start(first)
    await running.restart(configOf({ before: { type: 'string' }, rank: { type: 'number' }, title: { type: 'text' } }))
    const { body } = await running.anonymous.get(`${items}/b`)
    expect(Object.keys(body)).toEqual(['id', 'before', 'rank', 'title', 'createdAt', 'updatedAt'])
    expect(body).toMatchObject({ before: null, rank: 1, title: 'beta' })
  })

  test(`[DB-START-3] adding and removing indexes does not change responses: ${engine.name}`, async () => {
    const running = await start(first)
    for (const indexes of [
      [{ fields: ['rank'] }],
      [{ fields: ['rank', 'title'] }, { fields: ['createdAt'] }],
      [],
      [{ fields: ['title', 'rank'], unique: true }],
    ]) {
      await running.restart(configOf(first, { indexes }))
      for (const table of [items, inSpace('x')])
        expect(
          (await running.anonymous.get(table + query({ sort: 'rank:desc' }))).body.items.map(
            ({ id }: { id: string }) => id,
          ),
        ).toEqual(['g', 'b', 'a'])
    }
    expectRefusal(await running.anonymous.post(items, { title: 'alpha', rank: 0 }), 409)
    expect((await running.anonymous.post(items, { title: 'alpha', rank: 1 })).status).toBe(201)
  })

  test(`[DB-START-3] uniqueness can be added to and removed from a field: ${engine.name}`, async () => {
    const running = await start(first)
    const unique = configOf({ ...first, title: { type: 'string', unique: true } })
    await running.restart(unique)
    for (const table of [items, inSpace('x')]) {
      expectRefusal(await running.anonymous.post(table, { title: 'alpha' }), 409, 'title')
      expect(
        (await running.anonymous.post(`${table}?upsert=true&conflictTarget=title`, { title: 'alpha', rank: 9 })).body,
      ).toMatchObject({ id: 'a', rank: 9 })
    }
    await running.restart(configOf(first))
    expect((await running.anonymous.post(items, { title: 'alpha' })).status).toBe(201)
  })

  test(`[DB-START-4] a new search covers existing records, and can be removed: ${engine.name}`, async () => {
    const running = await start(first)
    const found = async (table: string, q: string) =>
      (await running.anonymous.get(`${table}/search${query({ q })}`)).body.total
    expectRefusal(await running.anonymous.get(`${items}/search?q=alpha`), 400)
    await running.restart(configOf(first, { search: ['title'] }))
    for (const table of [items, inSpace('x')]) {
      expect(await found(table, 'alpha')).toBe(1)
      expect(await found(table, 'delta')).toBe(0)
      await running.anonymous.post(table, { id: 'd', title: 'delta' })
      expect(await found(table, 'delta')).toBe(1)
    }
    await running.restart(
      configOf({ ...first, note: { type: 'text', default: 'noted' } }, { search: ['title', 'note'] }),
    )
    for (const table of [items, inSpace('x')])
      expect([await found(table, 'alpha'), await found(table, 'noted')]).toEqual([1, 4])
    await running.restart(configOf({ ...first, note: { type: 'text', default: 'noted' } }))
    expect((await running.anonymous.patch(`${items}/d`, { title: 'epsilon' })).status).toBe(200)
    expectRefusal(await running.anonymous.get(`${items}/search?q=alpha`), 400)
  })

  test(`[DB-START-4] a new search covers any number of existing records: ${engine.name}`, async () => {
    const running = await start(first)
    const count = 2 * searchFillRows + 1
    for (const table of [items, inSpace('x'), inSpace('y')])
      for (let from = 0; from < count; from += batchOperationsMax) {
        const length = Math.min(batchOperationsMax, count - from)
        const inserts = Array.from({ length }, (_, at) => ({ id: `n${from + at}`, title: `many n${from + at}` }))
        expect((await running.anonymous.post(`${table}/batch`, { inserts })).status).toBe(200)
      }
    await running.restart(configOf(first, { search: ['title'] }))
    for (const table of [items, inSpace('x'), inSpace('y')]) {
      expect((await running.anonymous.get(`${table}/search?q=many`)).body.total).toBe(count)
      expect((await running.anonymous.get(`${table}/search?q=n${count - 1}`)).body.total).toBe(1)
    }
  })

  test(`[DB-START-5] a removed field refuses the start: ${engine.name}`, async () => {
    await expectStartRefused(
      await start(first),
      configOf({ title: { type: 'string' } }),
      'items',
      'rank',
      'plinth migrate',
    )
  })

  test(`[DB-START-5] a changed type refuses the start: ${engine.name}`, async () => {
    await expectStartRefused(
      await start(first),
      configOf({ ...first, rank: { type: 'string' } }),
      'items',
      'rank',
      'number',
      'string',
    )
  })

  test(`[DB-START-5] a required field without a value for existing records refuses the start: ${engine.name}`, async () => {
    await expectStartRefused(
      await start(first),
      configOf({ ...first, note: { type: 'string', required: true } }),
      'items',
      'note',
      'default',
    )
  })

  test(`[DB-START-5] a unique field with duplicate values refuses the start: ${engine.name}`, async () => {
    const running = await start(first)
    for (const table of [items, inSpace('x')]) await running.anonymous.post(table, { id: 'z', title: 'alpha', rank: 9 })
    const next = configOf({ ...first, title: { type: 'string', unique: true } })
    await expectStartRefused(
      running,
      { databases: { shared: next.databases.shared, space: configOf(first).databases.space } },
      'items',
      'title',
      'unique',
    )
  })

  test(`[DB-START-5, DB-TABLE-17] a text too long for a new index is reported, or indexed: ${engine.name}`, async () => {
    const running = await start(first)
    // Text that does not compress well.
    const title = times(300, (n) => createHash('sha256').update(`${n}`).digest('base64url')).join('')
    expect((await running.anonymous.post(items, { title })).status).toBe(201)
    for (const unique of [false, true]) {
      const next = configOf(first, { indexes: [{ fields: ['title'], unique }] })
      const message = await running.restart(next).then(() => null, String)
      if (message === null) continue
      for (const name of ['databases.shared.tables.items', 'title', 'too long']) expect(message).toContain(name)
      await running.restart(configOf(first))
      expect((await running.anonymous.get(items)).body.total).toBe(4)
    }
  })

  test(`[DB-START-5] a unique field whose default would repeat refuses the start completely: ${engine.name}`, async () => {
    const running = await start(first)
    for (const id of ['y', 'z']) await running.anonymous.post(items, { id, title: id })
    const ranked = { type: 'number', unique: true, required: true, default: 7 }
    const coded = { type: 'string', unique: true, default: 'none' }
    for (const [name, field] of Object.entries({ rank: ranked, code: coded })) {
      const { shared } = configOf({ ...first, [name]: field }).databases
      // The namespace before it could be migrated, but is not.
      const { space } = configOf({ ...first, note: { type: 'string' } }).databases
      await expectStartRefused(running, { databases: { space, shared } }, 'items', name, 'unique', 'default')
    }
  })

  test(`[DB-START-2] a unique field with a default is accepted if at most one record lacks a value: ${engine.name}`, async () => {
    const running = await start(first)
    await running.anonymous.post(items, { id: 'z', title: 'z' })
    await running.restart(configOf({ ...first, rank: { type: 'number', unique: true, required: true, default: 7 } }))
    expect((await running.anonymous.get(`${items}/z`)).body.rank).toBe(7)
  })

  test(`[DB-START-5] adding a schema to a table or removing it refuses the start: ${engine.name}`, async () => {
    const running = await start(first)
    await expectStartRefused(running, configOf(undefined), 'items', 'schema')
  })

  test(`[DB-START-5] all reasons are reported together, and nothing is migrated: ${engine.name}`, async () => {
    const running = await start(first)
    const next = configOf({ title: { type: 'number' } }, { search: [] }, { others: { access: open } })
    await expectStartRefused(
      running,
      next,
      'rank',
      'title',
      'databases.shared.tables.items',
      'databases.space.tables.items',
    )
    expectRefusal(await running.service.get('/api/db/shared/tables/others'), 404)
  })

  test(`[DB-START-6] a removed table is not served but its data is kept: ${engine.name}`, async () => {
    const running = await start(first)
    await running.restart({ databases: { shared: { tables: { others: { access: open } } } } })
    expectRefusal(await running.service.get(items), 404)
    expectRefusal(await running.service.get(inSpace('x')), 404)
    await running.restart(configOf(first))
    expect((await running.anonymous.get(items)).body.total).toBe(3)
    expect((await running.anonymous.get(inSpace('x'))).body.total).toBe(3)
  })

  test(`[DB-START-7] an instance that cannot be migrated is refused alone, others are served: ${engine.name}`, async () => {
    const running = await start(first)
    await running.anonymous.post(inSpace('x'), { id: 'z', title: 'alpha' })
    await running.anonymous.post(inSpace('y'), { id: 'only', title: 'alpha' })
    try {
      await running.restart(configOf({ ...first, title: { type: 'string', unique: true } }))
    } catch (error) {
      // Refusing the start with the reason is also correct.
      expect(String(error)).toContain('title')
      return
    }
    expect((await running.anonymous.get(`${inSpace('y')}/only`)).status).toBe(200)
    const answer = await running.anonymous.get(inSpace('x'))
    expectRefusal(answer, answer.status)
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect(running.logged()).toContain('title')
    await running.restart(configOf(first))
    expect((await running.anonymous.get(inSpace('x'))).body.total).toBe(4)
  })
}
