/** Records: queries, single records, errors and retries of the client against a server. */
import { describe, expect, test } from 'bun:test'
import { describeServer, rootKey } from '../../server/tests/harness/server.ts'
import {
  bucket,
  count,
  createClient,
  day,
  deleteField,
  increment,
  isPlinthError,
  max,
  records,
  sum,
  versionOf,
} from '../src/index.ts'

const open = { read: true, insert: true, update: true, delete: true } as const
const config = {
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true, max: 50 },
            views: { type: 'number', default: 0 },
            slug: { type: 'string', unique: true },
            note: { type: 'string' },
          },
          search: ['title'],
          access: open,
        },
        mine: { schema: { text: { type: 'string' } }, access: { ...open, read: (auth: unknown) => auth !== null } },
      },
    },
    space: {
      instance: true,
      access: () => true,
      tables: { notes: { schema: { text: { type: 'string' } }, access: open } },
    },
  },
} as const

describeServer('records of the client', { config }, (server) => {
  const connect = (options = {}) => createClient<typeof config>(server.url, [records], options)
  const fill = async (prefix: string, count: number) => {
    const { posts } = connect().db()
    for (let n = 0; n < count; n++) await posts.insert({ id: `${prefix}-${n}`, title: `${prefix} ${n}`, views: n })
    return posts.where('title', '>=', `${prefix} `).where('title', '<', `${prefix} :`)
  }

  test('a record is inserted, read, updated and deleted', async () => {
    const { posts } = connect().db()
    const post = await posts.insert({ title: 'first' })
    expect(post).toMatchObject({ title: 'first', views: 0, note: null })
    expect(await posts.get(post.id)).toEqual(post)
    const updated = await posts.update(post.id, { views: increment(5), note: 'x' })
    expect(updated).toMatchObject({ views: 5, note: 'x' })
    expect(await posts.update(post.id, { note: deleteField() })).toMatchObject({ views: 5, note: null })
    await posts.delete(post.id)
    expect(await posts.find(post.id)).toBeNull()
    const error = await posts.get(post.id).catch((thrown) => thrown)
    expect(isPlinthError(error, 'not-found')).toBe(true)
    expect(error).toMatchObject({ status: 404, retryable: false, requestId: expect.any(String) })
  })

  test('a query groups its rows and measures them', async () => {
    const query = await fill('group', 5)
    const groups = await query
      .groupBy(bucket('views', 2, 'from'), day('createdAt', 'Europe/Berlin', 'day'))
      .sort('n', 'desc')
      .limit(2)
      .aggregate({ n: count(), total: sum('views'), last: max('title') }, { having: [['n', '>', 0]] })
    expect([...groups]).toEqual([
      { from: 0, day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), n: 2, total: 1, last: 'group 1' },
      { from: 2, day: groups[0]?.day ?? null, n: 2, total: 5, last: 'group 3' },
    ])
    expect(groups.truncated).toBe(true)
    expect([...(await query.aggregate({ n: 'count' }, { search: 'group' }))]).toEqual([{ n: 5 }])
    expect(
      await query
        .groupBy('note')
        .aggregate({ n: 'count' })
        .then(([one]) => one),
    ).toEqual({ note: null, n: 5 })
    expect(await query.aggregate({ n: sum('title') }).catch((error) => error.slug)).toBe('invalid-input')
  })

  test('a query filters, sorts, selects, counts and pages', async () => {
    const query = await fill('page', 25)
    expect(await query.count()).toBe(25)
    const page = await query.sort('views', 'desc').select('id', 'views').limit(10).list({ page: 2 })
    expect(page).toMatchObject({ total: 25, page: 2, perPage: 10 })
    expect(page.items.map(({ views }) => views)).toEqual([14, 13, 12, 11, 10, 9, 8, 7, 6, 5])
    expect(page.items[0]).toEqual({ id: 'page-14', views: 14 })
    const first = await query.sort('views').limit(20).page()
    const second = await query.sort('views').limit(20).page({ after: first.cursor })
    expect([first.hasMore, second.hasMore]).toEqual([true, false])
    expect([...first.items, ...second.items].map(({ views }) => views)).toEqual(Array.from({ length: 25 }, (_, n) => n))
    expect(await query.or(['views', '==', 3], ['views', '==', 4]).count()).toBe(2)
    expect((await query.sort('views', 'desc').first())?.views).toBe(24)
    expect(await query.where('views', '>', 100).first()).toBeNull()
  })

  test('an iteration yields every row once, and at most the limit', async () => {
    const query = await fill('each', 130)
    const all: string[] = []
    for await (const { id } of query.select('id')) all.push(id)
    expect(new Set(all).size).toBe(130)
    const some: string[] = []
    for await (const { id } of query.limit(7)) some.push(id)
    expect(some).toHaveLength(7)
  })

  test('search returns highlights', async () => {
    const { posts } = connect().db()
    await posts.insert({ title: 'A lighthouse at sea' })
    const { items, total } = await posts.search('light', { highlight: ['[', ']'] })
    expect(total).toBe(1)
    expect(items[0]?.highlights).toEqual({ title: 'A [lighthouse] at sea' })
  })

  test('a query is counted, searched and aggregated by those of its parts that concern the method', async () => {
    const { posts } = connect().db()
    for (const slug of ['b', 'a']) await posts.insert({ slug: `part-${slug}`, title: 'harbour', views: 2 })
    const query = posts.where('title', '==', 'harbour').sort('slug').select('id', 'slug').limit(1)
    expect((await query.first())?.slug).toBe('part-a')
    expect(await query.count()).toBe(2)
    const { items, total } = await query.search('harbour')
    expect([items.length, total]).toEqual([1, 2])
    expect([
      ...(await posts
        .where('title', '==', 'harbour')
        .select('id')
        .aggregate({ n: sum('views') })),
    ]).toEqual([{ n: 4 }])
  })

  test('an upsert states what it did', async () => {
    const { posts } = connect().db()
    const one = await posts.upsert({ slug: 's', title: 'one' }, { on: 'slug' })
    const two = await posts.upsert({ slug: 's', title: 'two' }, { on: 'slug' })
    expect([one.action, two.action, two.id, two.title]).toEqual(['inserted', 'updated', one.id, 'two'])
  })

  test('a write by filter needs a condition', async () => {
    const query = await fill('bulk', 5)
    const { posts } = connect().db()
    await expect(posts.delete()).rejects.toMatchObject({ slug: 'invalid-input', status: 0 })
    await expect(posts.update({ views: 1 })).rejects.toMatchObject({ slug: 'invalid-input' })
    expect(await query.count()).toBe(5)
    expect(await query.where('views', '>', 1).update({ note: 'seen' })).toEqual({ processed: 3, succeeded: 3 })
    expect(await query.delete()).toEqual({ processed: 5, succeeded: 5 })
  })

  test('a stale ifMatch is refused, the version that was received is accepted', async () => {
    const { posts } = connect().db()
    const post = await posts.insert({ title: 'versions' })
    const next = await posts.update(post.id, { note: 'a' }, { ifMatch: versionOf(post) })
    await expect(posts.update(post.id, { note: 'b' }, { ifMatch: versionOf(post) })).rejects.toMatchObject({
      status: 412,
      slug: 'precondition-failed',
    })
    const listed = (await posts.where('id', '==', post.id).list()).items[0] as object
    await posts.delete(post.id, { ifMatch: versionOf(listed) })
    expect(await posts.find(next.id)).toBeNull()
    expect(() => versionOf({ ...post })).toThrow(TypeError)
  })

  test('an instance has tables of its own', async () => {
    const client = connect()
    await client.db('space', 'a').notes.insert({ text: 'in a' })
    expect((await client.db('space', 'a').notes.list()).total).toBe(1)
    expect((await client.db('space', 'b').notes.list()).total).toBe(0)
  })

  test('errors name the invalid fields', async () => {
    const { posts } = connect().db()
    // @ts-expect-error a number is no title
    const error = await posts.insert({ title: 7, views: 'x' }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ slug: 'invalid-input', data: { title: { code: 'type' }, views: { code: 'type' } } })
  })

  test('a service key reads what no rule allows, and no anonymous caller does', async () => {
    await expect(connect().db().mine.list()).rejects.toMatchObject({ status: 401, slug: 'authentication-required' })
    expect((await connect({ serviceKey: rootKey }).db().mine.list()).items).toEqual([])
    const token = await server.token('ann')
    expect(
      (
        await connect({ getToken: () => token })
          .db()
          .mine.list()
      ).items,
    ).toEqual([])
  })

  test('a feature that was not passed is named', async () => {
    const client = connect()
    expect(() => client.auth).toThrow('No feature auth')
    expect(() => client.db().posts.live()).toThrow('No feature live')
  })

  describe('requests', () => {
    /** A client whose requests fail as `answers` say, in order, before they reach the server. */
    const failing = (answers: (Response | Error)[], options = {}) => {
      const sent: Request[] = []
      const fetchOrFail = async (input: string | URL | Request, init?: RequestInit) => {
        sent.push(new Request(input, init))
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer ?? fetch(input, init)
      }
      return { sent, client: connect({ fetch: fetchOrFail, ...options }) }
    }
    const unavailable = () =>
      Response.json({ code: 503, slug: 'unavailable', message: '' }, { status: 503, headers: { 'retry-after': '0' } })

    test('reads are repeated after network errors and 502 to 504', async () => {
      const { client, sent } = failing([new TypeError('gone'), new Response('<html>', { status: 502 })])
      await client.db().posts.list()
      expect(sent).toHaveLength(3)
    })

    test('an insert is repeated under its idempotency key, an update is not repeated', async () => {
      const { client, sent } = failing([unavailable(), new TypeError('gone')])
      const { id } = await client.db().posts.insert({ title: 'once' })
      expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1)
      const second = failing([new TypeError('gone')])
      await expect(second.client.db().posts.update(id, { note: 'x' })).rejects.toMatchObject({
        slug: 'network',
        retryable: true,
      })
      expect(second.sent).toHaveLength(1)
    })

    test('the page of a proxy is an invalid answer', async () => {
      const html = () => new Response('<html>', { headers: { 'content-type': 'text/html' } })
      const { client } = failing([html()])
      await expect(client.db().posts.list()).rejects.toMatchObject({ slug: 'invalid-answer', status: 200 })
    })

    test('a request that takes too long fails with timeout, an aborted one with aborted', async () => {
      const never = () => new Promise<Response>(() => undefined)
      const client = connect({
        fetch: (_: unknown, { signal }: RequestInit) =>
          Promise.race([
            never(),
            new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted')))),
          ]),
      })
      await expect(client.db().posts.list({ timeout: 5 })).rejects.toMatchObject({ slug: 'timeout', retryable: true })
      const abort = new AbortController()
      const listing = client.db().posts.list({ signal: abort.signal })
      abort.abort()
      await expect(listing).rejects.toMatchObject({ slug: 'aborted', retryable: false })
      const closed = client.db().posts.list()
      client.close()
      await expect(closed).rejects.toMatchObject({ slug: 'aborted' })
      await expect(client.db().posts.list()).rejects.toMatchObject({ slug: 'aborted' })
    })

    test('credentials are not sent to another origin', async () => {
      const { client, sent } = failing([], { serviceKey: rootKey })
      for (const path of ['//evil.example/x', 'https://evil.example', '/\\evil.example', 'evil', ''])
        await expect(client.request('GET', path)).rejects.toMatchObject({ slug: 'invalid-input' })
      expect(sent).toHaveLength(0)
      expect(await client.request('GET', '/api/health')).toMatchObject({ status: 'ok' })
    })
  })
})
