/** The bounds of `include`: depth, relations, records, and the size of the response. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { blogConfig, insertRows, listWith, tablePath } from '../../harness/records/relations.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const numbered = (count: number): number[] => Array.from({ length: count }, (_, at) => at)
const idOf = (prefix: string, at: number): string => `${prefix}${String(at).padStart(4, '0')}`

/** `include` of a relation within itself, `depth` levels deep. */
const nested = (depth: number): object => ({ parent: depth === 1 ? {} : { include: nested(depth - 1) } })

describeServer('bounds of include', { config: blogConfig }, (server) => {
  beforeAll(async () => {
    const posts = numbered(3).map((at) => ({ id: `p${at}`, title: 'x', status: 'live', authorId: 'ann' }))
    await insertRows(server.service, { users: [{ id: 'ann', name: 'Ann', private: false }], posts })
    for (const part of [0, 500]) {
      const inserts = numbered(500).map((at) => ({ id: idOf('c', part + at), postId: 'p0', rank: at, flagged: false }))
      await insertRows(server.service, { comments: inserts })
    }
    await insertRows(server.service, { comments: [{ id: 'hidden', postId: 'p0', flagged: true }] })
  })

  test('[DB-INC-7] relations are included to a depth of 3', async () => {
    expect((await listWith(server.anonymous, 'categories', nested(3))).status).toBe(200)
    const { data } = expectRefusal(await listWith(server.anonymous, 'categories', nested(4)), 400)
    expect(Object.keys(data ?? {})).toEqual(['include.parent.include.parent.include.parent.include'])
  })

  test('[DB-INC-7] 10 relations are included, in all levels together', async () => {
    const some = { author: {}, editor: {}, comments: { limit: 1 } }
    const nine = {
      'posts.authorId': { limit: 1, include: some },
      'posts.editor_id': { limit: 1, include: some },
      comments: {},
    }
    const ten = { ...nine, comments: { include: { post: {} } } }
    expect((await listWith(server.anonymous, 'users', ten)).status).toBe(200)
    expectRefusal(
      await listWith(server.anonymous, 'users', { ...ten, comments: { include: { post: {}, author: {} } } }),
      400,
    )
  })

  test('[DB-INC-8] 1,000 backward records are included; one more is 400, and nothing is cut', async () => {
    const { body } = await listWith(server.anonymous, 'posts', { comments: { fields: ['id'] }, author: {} })
    expect(body.items[0].comments.items).toHaveLength(1000)
    // The author of each, in each: forward records do not count.
    const within = { comments: { fields: ['id'], include: { post: ['id'] } }, author: {} }
    expect((await listWith(server.anonymous, 'posts', within)).body.items[0].comments.items).toHaveLength(1000)
    expect(
      (await server.service.post(tablePath('comments'), { id: 'more', postId: 'p2', flagged: false })).status,
    ).toBe(201)
    for (const path of ['', '/search?q=x'])
      expectRefusal(
        await server.anonymous.get(
          `${tablePath('posts')}${path}${path === '' ? '?' : '&'}${query({ include: within }).slice(1)}`,
        ),
        400,
        'limit',
      )
    const one = await server.anonymous.get(`${tablePath('posts')}/p0${query({ include: within })}`)
    expect(one.body.comments.items).toHaveLength(1000)
    const limited = await listWith(server.anonymous, 'posts', { comments: { limit: 999, count: true } })
    expect(limited.body.items[0].comments).toMatchObject({ total: 1000 })
    expect(limited.body.items[0].comments.items).toHaveLength(999)
    expect(limited.body.items[2].comments.total).toBe(1)
    const twice = {
      comments: { limit: 500 },
      author: { include: { 'posts.authorId': { include: { comments: { limit: 500 } } } } },
    }
    expectRefusal(await listWith(server.anonymous, 'posts', twice), 400)
    expect((await server.service.delete(`${tablePath('comments')}/more`)).status).toBe(200)
  })

  test('[DB-INC-8] records that the caller may not read do not count', async () => {
    expect((await listWith(server.anonymous, 'posts', { comments: {} })).status).toBe(200)
    expectRefusal(await listWith(server.service, 'posts', { comments: {} }), 400)
  })
})

const bytesMax = 64 * 1024

describeServer(
  'size of responses with include',
  { config: { ...blogConfig, limits: { responseBytes: bytesMax } } },
  (server) => {
    const long = (bytes: number, letter: string): string => letter.repeat(bytes)

    beforeAll(async () => {
      const posts = numbered(20).map((at) => ({ id: idOf('p', at), title: 'x', status: 'live', authorId: 'ann' }))
      await insertRows(server.service, { users: [{ id: 'ann', name: long(4000, 'a'), private: false }], posts })
      for (const post of posts.slice(0, 18))
        await insertRows(server.service, {
          comments: numbered(10).map((at) => ({
            id: `${post.id}-${at}`,
            postId: post.id,
            authorId: 'ann',
            body: long(900, 'b'),
            flagged: false,
          })),
        })
      // More than a response may have, beside and within each other.
      for (const at of numbered(10))
        await insertRows(server.service, {
          comments: [{ id: `p0018-${at}`, postId: 'p0018', body: long(7000, 'c'), flagged: false }],
        })
      await insertRows(server.service, {
        comments: numbered(40).map((at) => ({
          id: `p0019-${at}`,
          postId: 'p0019',
          authorId: 'ann',
          body: 'd',
          flagged: false,
        })),
      })
    })

    describe.each([
      ['backward', { comments: {} }, 18, 10],
      ['nested', { comments: { include: { author: {} }, limit: 3 } }, 18, 3],
      ['forward', { author: {} }, 20, 0],
    ] as const)('%s records', (_, include, count, each) => {
      test('[DB-INC-11] a page that would be too large ends early, with complete records, and continues', async () => {
        const items: { id: string; comments?: { items: unknown[] } }[] = []
        let parameters: object = { sort: 'id:asc', limit: 100, filter: [['id', '<', idOf('p', count)]] }
        let pages = 0
        for (let isMore = true; isMore; pages++) {
          const { status, body, text } = await listWith(
            server.anonymous,
            'posts',
            include,
            parameters as Record<string, unknown>,
          )
          expect(status).toBe(200)
          expect(text.length).toBeLessThanOrEqual(bytesMax)
          items.push(...body.items)
          isMore = body.truncated === true || body.hasMore === true
          if (pages === 0) expect(body.truncated).toBe(true)
          parameters = { ...parameters, after: body.cursor }
        }
        expect(pages).toBeGreaterThan(1)
        expect(items.map(({ id }) => id)).toEqual(numbered(count).map((at) => idOf('p', at)))
        for (const { comments } of items) expect(comments?.items.length ?? 0).toBe(each)
      })
    })

    test('[DB-INC-11] a page is read backward and searched in the same way', async () => {
      const back = await listWith(
        server.anonymous,
        'posts',
        { comments: {} },
        { before: '', filter: [['id', '<', 'p0018']] },
      )
      expect(back.body).toMatchObject({ truncated: true, hasMore: true })
      expect(back.body.items.at(-1).id).toBe('p0017')
      expect(back.body.items.length).toBeGreaterThan(1)
      const searched = await server.anonymous.get(
        `${tablePath('posts')}/search${query({ q: 'x', filter: [['id', '<', 'p0018']], include: { comments: {} } })}`,
      )
      expect(searched.body.truncated).toBe(true)
      expect(searched.body.total).toBe(18)
      expect(searched.body.cursor).not.toBeNull()
    })

    test.each([
      ['p0018', { comments: {} }],
      ['p0019', { comments: { include: { author: {} } } }],
    ] as const)(
      '[DB-INC-11] a single record that is too large with its related records is 413: %s',
      async (id, include) => {
        expectRefusal(await server.anonymous.get(`${tablePath('posts')}/${id}${query({ include })}`), 413)
        expectRefusal(await listWith(server.anonymous, 'posts', include, { filter: [['id', '==', id]] }), 413)
        const fewer = { comments: { ...include.comments, limit: 2 } }
        expect((await server.anonymous.get(`${tablePath('posts')}/${id}${query({ include: fewer })}`)).status).toBe(200)
      },
    )
  },
)
