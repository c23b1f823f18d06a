/** What hooks before a write decide: races, wrong results, access rules, and several writes of one row. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { userCaller } from '../../../src/access/callers.test.ts'
import { ApiError } from '../../../src/errors.ts'
import { hookAttemptsMax } from '../../../src/limits/writes.ts'
import { engines } from '../../harness/engines.ts'
import {
  anonymous,
  type Hook,
  type HookedRecords,
  openHookedRecords,
  type Row,
} from '../../harness/records/hooked-records.ts'
import { paths, refuse, slugify, tables } from './write-paths.ts'

describe.each(engines.map((engine) => [engine.name, engine] as const))('decisions of hooks on %s', (_, engine) => {
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
  const read = async (table: string, id: string): Promise<Row> =>
    (await records.request('records.get', { table, id })).body
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

  test('[FN-BEFORE-4] a row that changes while its hooks run is decided again', async () => {
    let isFirst = true
    set(async ({ previous, row }) => {
      if (isFirst) {
        isFirst = false
        const { hooks } = records
        const saved = [...hooks]
        hooks.clear()
        await records.request('records.update', { table: 'posts', id: 'p1', body: { n: 5 } })
        for (const [name, hook] of saved) hooks.set(name, hook)
      }
      return { ...row, slug: `n-${previous?.n}` }
    }, 'posts.update')
    const { status, body } = await records.request('records.update', { table: 'posts', id: 'p1', body: { title: 'X' } })
    expect({ status, n: body.n, slug: body.slug }).toEqual({ status: 200, n: 5, slug: 'n-5' })
    expect(records.events).toHaveLength(2)
  })

  test('[FN-BEFORE-4] a row that changes each time is 409', async () => {
    let n = 0
    set(async ({ row }) => {
      const saved = [...records.hooks]
      records.hooks.clear()
      await records.request('records.update', { table: 'posts', id: 'p1', body: { n: ++n } })
      for (const [name, hook] of saved) records.hooks.set(name, hook)
      return { ...row, slug: 'never' }
    }, 'posts.update')
    const { status, body } = await records.request('records.update', { table: 'posts', id: 'p1', body: { title: 'X' } })
    expect({ status, slug: body.slug }).toEqual({ status: 409, slug: 'conflict' })
    expect(records.events).toHaveLength(hookAttemptsMax)
    expect(await read('posts', 'p1')).toMatchObject({ title: 'One', slug: null, n: hookAttemptsMax })
  })

  test.each<[string, Hook, RegExp]>([
    ['a text', () => 'text', /object/],
    ['a list', () => [], /object/],
    ['part of a row', () => ({ title: 'x' }), /id/],
    ['another id', ({ row }) => ({ ...row, id: 'other' }), /id/],
    ['another createdAt', ({ row }) => ({ ...row, createdAt: '2020-01-01T00:00:00.000Z' }), /createdAt/],
    ['an unknown field', ({ row }) => ({ ...row, unknown: 1 }), /unknown: unknown field/],
    ['a wrong type', ({ row }) => ({ ...row, n: 'five' }), /n: must be a finite number/],
    ['a value out of range', ({ row }) => ({ ...row, n: 1001 }), /n: must be at most 1000/],
    ['a value not in the enumeration', ({ row }) => ({ ...row, kind: 'c' }), /kind: must be one of a, b/],
    ['an operator', ({ row }) => ({ ...row, data: { $op: 'increment', value: 1 } }), /data/],
    ['a reference to nothing', ({ row }) => ({ ...row, parent: 'nobody' }), /parent: no such record/],
  ])('[FN-BEFORE-5] a hook that returns %s fails and nothing is stored', async (_, hook, problem) => {
    set(hook, 'posts.insert', 'posts.update')
    const before = await records.dump()
    for (const [name, request] of paths.map(([, name, request]) => [name, request] as const)) {
      if (name === 'records.delete' || (request.body as { action?: string }).action === 'delete') continue
      const { status, body } = await records.request(name, request)
      expect({ status, slug: body.slug }).toEqual({ status: 500, slug: 'hook-failed' })
      expect(body.message).toMatch(problem)
    }
    expect(await records.dump()).toEqual(before)
  })

  test('[FN-BEFORE-5] a hook may set hidden fields, which stay hidden, and the time of the write stays', async () => {
    set(({ row }) => ({ ...row, secret: 'by hook', updatedAt: '2020-01-01T00:00:00.000Z' }), 'posts.insert')
    const { body } = await records.request('records.insert', {
      table: 'posts',
      body: { title: 'T' },
      caller: anonymous,
    })
    expect(body).not.toHaveProperty('secret')
    expect(body.updatedAt).toBe(body.createdAt)
    expect(await read('posts', body.id)).toMatchObject({ secret: 'by hook' })
  })

  test('[FN-BEFORE-5] fields of a schemaless table can be added, changed and removed', async () => {
    set(({ row: { old: _, ...row } }) => ({ ...row, fresh: [1], n: 2 }), 'loose.insert', 'loose.update')
    const { body } = await records.request('records.insert', { table: 'loose', body: { id: 'l1', old: 1, n: 1 } })
    expect(Object.keys(body)).toEqual(['id', 'n', 'fresh', 'createdAt', 'updatedAt'])
    expect(body).toMatchObject({ fresh: [1], n: 2 })
    const updated = await records.request('records.update', { table: 'loose', id: 'l1', body: { old: 1, n: 9 } })
    expect(updated.body).toEqual({ ...body, updatedAt: updated.body.updatedAt })
    expect(await read('loose', 'l1')).toEqual(updated.body)
  })

  test('[FN-BEFORE-6] rules decide about the row that is stored', async () => {
    const insert = (owner: string) =>
      records.request('records.insert', { table: 'owned', body: { owner, text: 't' }, caller: anonymous })
    set(({ row }) => ({ ...row, owner: row.text === 't' ? 'anyone' : row.owner }), 'owned.insert')
    expect((await insert('nobody')).status).toBe(201)
    set(({ row }) => ({ ...row, owner: 'nobody' }), 'owned.insert', 'owned.update')
    const before = await records.dump()
    expect((await insert('anyone')).status).toBe(401)
    expect(await records.dump()).toEqual(before)
  })

  test('[FN-BEFORE-6] a caller whom the rules deny never reaches a hook', async () => {
    const hook: Hook = ({ row }) => ({ ...row, owner: 'anyone' })
    set(hook, 'owned.update', 'owned.delete', 'closed.insert', 'closed.update', 'closed.delete')
    const inserts = [{ id: 'o1', owner: 'nobody' }]
    await records.request('records.batch', { table: 'owned', query: { upsert: 'true' }, body: { inserts } })
    await records.request('records.batch', {
      table: 'closed',
      query: { upsert: 'true' },
      body: { inserts: [{ id: 'c1' }] },
    })
    records.events.length = 0
    const before = await records.dump()
    for (const table of ['owned', 'closed']) {
      const id = table === 'owned' ? 'o1' : 'c1'
      const caller = anonymous
      const request = { table, id, caller, body: { text: 'x' } }
      expect((await records.request('records.update', request)).status).toBeOneOf([401, 404])
      expect((await records.request('records.delete', { table, id, caller })).status).toBe(401)
      const upsert = { table, caller, query: { upsert: 'true' }, body: { id, text: 'x' } }
      if (table === 'closed') expect((await records.request('records.insert', upsert)).status).toBe(401)
    }
    expect(records.events).toEqual([])
    expect(await records.dump()).toEqual(before)
  })

  test('[FN-BEFORE-6] a caller who may not read learns nothing of what a hook made of its fields', async () => {
    set(({ row }) => ({ ...row, owner: 'anyone', text: 'secret' }), 'owned.insert')
    const body = { owner: 'anyone', text: 't' }
    const { body: shown } = await records.request('records.insert', { table: 'owned', body, caller: anonymous })
    expect(Object.keys(shown).sort()).toEqual(['createdAt', 'id', 'owner', 'updatedAt'])
  })

  test('[FN-BEFORE-6] a reference that a caller sets is checked for the caller', async () => {
    set(({ row }) => ({ ...row, text: 'by hook' }), 'notes.insert')
    const request = { table: 'notes', body: { post: 'nobody' }, caller: anonymous }
    const { status, body } = await records.request('records.insert', request)
    expect({ status, data: body.data }).toMatchObject({ status: 400, data: { post: { code: 'reference' } } })
  })

  test('[FN-BEFORE-7] operations of one request on one row see what the hooks made of it', async () => {
    set(({ row, previous }) => ({ ...row, n: Number(previous?.n ?? 0) + 1, title: `${row.title}!` }), 'posts.update')
    const update = (title: string) => ({ table: 'posts', update: { id: 'p1', data: { title } } })
    const operations = ['a', 'b', 'c'].map(update)
    const { body } = await records.request('records.transaction', { body: { operations } })
    expect(body.results.map(({ n, title }: Row) => [n, title])).toEqual([
      [1, 'a!'],
      [2, 'b!'],
      [3, 'c!'],
    ])
  })

  test('[FN-BEFORE-7] a record that hooks change each time can be written a bounded number of times', async () => {
    set(({ row, previous }) => ({ ...row, n: Number(previous?.n ?? 0) + 1 }), 'posts.update')
    const operations = Array.from({ length: 100 }, (_, at) => ({
      table: 'posts',
      update: { id: 'p1', data: { title: `t${at}` } },
    }))
    const before = await records.dump()
    const { status, body } = await records.request('records.transaction', { body: { operations } })
    expect({ status, slug: body.slug }).toEqual({ status: 400, slug: 'bad-request' })
    expect(await records.dump()).toEqual(before)
  })

  test('[FN-BEFORE-7] the events of a request are one call, and unchanged rows need no more passes', async () => {
    set(() => undefined, 'posts.insert', 'posts.update')
    const before = records.calls()
    const inserts = Array.from({ length: 200 }, (_, at) => ({ title: `t${at}` }))
    const updates = Array.from({ length: 50 }, (_, at) => ({ id: 'p1', data: { n: at } }))
    const { status } = await records.request('records.batch', { table: 'posts', body: { inserts, updates } })
    expect(status).toBe(200)
    expect(records.calls() - before).toBe(1)
    expect(records.events).toHaveLength(250)
    expect(await read('posts', 'p1')).toMatchObject({ n: 49 })
  })

  test('[FN-BEFORE-7] upserts of one batch find a record by the value that a hook gave it', async () => {
    set(({ row }) => ({ ...row, slug: slugify(row.slug) }), 'posts.insert', 'posts.update')
    const inserts = [
      { slug: 'A', title: 'first' },
      { slug: 'a', title: 'second' },
    ]
    const query = { upsert: 'true', conflictTarget: 'slug' }
    const { status } = await records.request('records.batch', { table: 'posts', query, body: { inserts } })
    expect(status).toBe(200)
    expect((await list('posts')).filter(({ slug }) => slug === 'a')).toMatchObject([{ title: 'second' }])
  })

  test('[FN-BEFORE-2] an operation in a batch is named where a hook refuses it', async () => {
    set(({ row }) => {
      if (row.title === 'bad')
        throw new ApiError(400, 'bad-title', 'Bad', { title: { code: 'pattern', message: 'bad' } })
    }, 'posts.insert')
    const body = { inserts: [{ title: 'good' }, { title: 'bad' }] }
    const { body: refused } = await records.request('records.batch', { table: 'posts', body })
    expect(refused).toMatchObject({ code: 400, slug: 'bad-title', data: { 'inserts[1].title': { message: 'bad' } } })
  })

  test('[FN-BEFORE-8] a deletion that another record prevents never reaches a hook', async () => {
    set(refuse, 'posts.delete')
    await records.request('records.insert', { table: 'notes', body: { post: 'p1' } })
    expect((await records.request('records.delete', { table: 'posts', id: 'p1' })).status).toBe(409)
    expect((await records.request('records.delete', { table: 'posts', id: 'nobody' })).status).toBe(404)
    const headers = { 'If-Match': '"1"' }
    expect((await records.request('records.delete', { table: 'posts', id: 'p2', headers })).status).toBe(412)
    expect(records.events).toEqual([])
  })

  test('[FN-BEFORE-8] what a hook returns for a deletion is ignored', async () => {
    set(({ row }) => ({ ...row, id: 'other', unknown: 1 }), 'posts.delete')
    expect((await records.request('records.delete', { table: 'posts', id: 'p1' })).status).toBe(200)
    expect((await list('posts')).map(({ id }) => id)).toEqual(['p2'])
  })

  test('[FN-BEFORE-1] a user is the caller of its hooks', async () => {
    const caller = userCaller('u1')
    set(() => undefined, 'posts.insert')
    expect((await records.request('records.insert', { table: 'posts', body: {}, caller })).status).toBe(201)
    expect(records.events).toHaveLength(1)
  })
})
