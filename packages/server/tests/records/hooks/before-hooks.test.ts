/** Hooks that run before a write: on every write path of the records API. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { engines } from '../../harness/engines.ts'
import {
  type Hook,
  type HookedRecords,
  openHookedRecords,
  type Row,
  service,
} from '../../harness/records/hooked-records.ts'
import { addSlug, paths, refuse, slugify, tables } from './write-paths.ts'

describe.each(engines.map((engine) => [engine.name, engine] as const))('hooks before writes on %s', (_, engine) => {
  let records: HookedRecords
  beforeAll(async () => {
    records = await openHookedRecords(engine, tables)
  })
  afterAll(() => records.close())

  const set = (hook: Hook, ...names: readonly string[]): void => {
    records.hooks.clear()
    for (const name of names) records.hooks.set(name, hook)
    records.events.length = 0
  }
  const setAll = (hook: Hook): void => set(hook, 'posts.insert', 'posts.update', 'posts.delete')
  const list = async (table: string): Promise<Row[]> =>
    (await records.request('records.list', { table, query: { limit: '1000' } })).body.items

  beforeEach(async () => {
    set(refuse)
    await records.request('records.batchByFilter', { table: 'notes', body: { action: 'delete' } })
    await records.request('records.batchByFilter', { table: 'posts', body: { action: 'delete' } })
    const body = {
      inserts: [
        { id: 'p1', title: 'One', secret: 's' },
        { id: 'p2', title: 'Two' },
      ],
    }
    expect((await records.request('records.batch', { table: 'posts', body })).status).toBe(200)
  })

  describe.each(paths)('%s', (_, name, request, operations, at) => {
    test('[FN-BEFORE-1] runs each hook once and stores what it returns', async () => {
      setAll(addSlug)
      expect((await records.request(name, request)).body.code).toBeUndefined()
      expect(records.events.map(({ operation }): string => operation).sort()).toEqual([...operations].sort())
      const stored = (await list('posts')).filter(({ title }) => String(title).startsWith('New'))
      expect(stored).toHaveLength(operations.filter((operation) => operation !== 'delete').length)
      for (const { title, slug } of stored) expect(slug).toBe(slugify(title))
      for (const { operation, previous, row } of records.events) {
        if (operation === 'insert') expect(previous).toBeNull()
        else expect(previous).toMatchObject({ id: row.id, slug: null })
        if (row.id === 'p1') expect(row.secret).toBe('s')
      }
    })

    test('[FN-BEFORE-2] a refusal is the response, and nothing is stored', async () => {
      setAll(refuse)
      const before = await records.dump()
      const headers = { 'Idempotency-Key': crypto.randomUUID() }
      const { status, body } = await records.request(name, { ...request, headers })
      expect({ status, slug: body.slug, message: body.message }).toEqual({
        status: 422,
        slug: 'no-title',
        message: 'There is no title',
      })
      if (at !== '' && operations[0] === 'insert') expect(Object.keys(body.data)).toEqual([at])
      expect(await records.dump()).toEqual(before)
      set(refuse)
      expect((await records.request(name, { ...request, headers })).body.code).toBeUndefined()
    })

    test('[FN-BEFORE-3] a repeated request does not run hooks again', async () => {
      setAll(addSlug)
      const headers = { 'Idempotency-Key': crypto.randomUUID() }
      const first = await records.request(name, { ...request, headers })
      const after = await records.dump()
      expect(records.events).toHaveLength(operations.length)
      const second = await records.request(name, { ...request, headers })
      expect(second.body).toEqual(first.body)
      expect(second.headers['Idempotency-Replayed']).toBe('true')
      expect(records.events).toHaveLength(operations.length)
      expect(await records.dump()).toEqual(after)
    })
  })

  test('[DB-IMPORT-4] an administrator of the dashboard cannot leave out hooks', async () => {
    setAll(addSlug)
    const admin = { userId: 'u', email: null, role: 'owner', sessionId: 's', signedInAtMs: 0 }
    const caller = { ...service, keyName: 'admin:u', admin }
    const inserts = [{ id: 'p9', title: 'New One' }]
    const before = await records.dump()
    const refused = await records.request('records.import', { table: 'posts', body: { inserts, hooks: false }, caller })
    expect([refused.status, await records.dump()]).toEqual([403, before])
    expect((await records.request('records.import', { table: 'posts', body: { inserts }, caller })).status).toBe(200)
    expect(records.events).toHaveLength(1)
  })
})
