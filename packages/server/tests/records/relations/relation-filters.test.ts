/** Conditions that go through relations: wherever conditions apply, under the read rule of the related table. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Client, query } from '../../harness/client.ts'
import { watch } from '../../harness/records/live.ts'
import { blogConfig, blogRows, insertRows, tablePath } from '../../harness/records/relations.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const posts = tablePath('posts')
const keys = [
  { name: 'posts', key: 'key-that-reads-posts-only-0123', scopes: ['db:table:posts:read', 'db:table:posts:write'] },
  { name: 'writer', key: 'key-that-only-writes-posts-0123', scopes: ['db:table:posts:write'] },
  { name: 'both', key: 'key-that-also-reads-users-0123', scopes: ['db:table:posts:write', 'db:table:users:read'] },
]
const config = { ...blogConfig, serviceKeys: keys }

describeServer('conditions through relations', { config }, (server) => {
  beforeAll(() => insertRows(server.service, blogRows))

  async function idsOf(client: Client, filter: unknown, table = posts): Promise<string[]> {
    const { status, body, text } = await client.get(table + query({ filter }))
    if (status !== 200) throw new Error(text)
    expect(body.total).toBe(body.items.length)
    const count = await client.get(`${table}/count${query({ filter })}`)
    expect(count.body.total).toBe(body.total)
    return body.items.map(({ id }: { id: string }) => id)
  }

  test('[DB-REL-1] a path of relations leads to a field, up to three relations long', async () => {
    expect(await idsOf(server.anonymous, [['author.role', '==', 'editor']])).toEqual(['p1'])
    expect(await idsOf(server.anonymous, [['author.name', 'contains', 'n']])).toEqual(['p1'])
    expect(await idsOf(server.anonymous, [['editor.name', 'in', ['Bob', 'Eve']]])).toEqual(['p1'])
    const comments = tablePath('comments')
    expect(await idsOf(server.anonymous, [['post.author.name', '==', 'Ann']], comments)).toEqual(['c1', 'c2'])
    const categories = tablePath('categories')
    await insertRows(server.service, { categories: [{ id: 'lowest', parentId: 'low' }] })
    expect(await idsOf(server.anonymous, [['parent.parent.parent.name', '==', 'Top']], categories)).toEqual(['lowest'])
    expect(await idsOf(server.anonymous, [['thing.a.b', '==', 1]], tablePath('parts'))).toEqual(['q'])
  })

  test('[DB-REL-2] a record without a related record does not match, whatever the operator', async () => {
    for (const condition of [
      ['author.role', '!=', 'nobody'],
      ['author.role', 'not in', ['nobody']],
      ['author.role', 'not in', []],
      ['author.email', '==', null],
    ])
      expect(await idsOf(server.service, [condition])).toEqual(
        condition[0] === 'author.email' ? [] : ['p1', 'p2', 'p4'],
      )
    expect(await idsOf(server.service, [['editor.private', '==', null]])).toEqual([])
    expect(await idsOf(server.anonymous, [['author.name', '!=', 'nobody']])).toEqual(['p1'])
    expect(await idsOf(server.anonymous, [['author.role', 'not in', []]])).toEqual(['p1'])
    expect(await idsOf(server.as('eve'), [['author.name', '!=', 'nobody']])).toEqual(['p1', 'p2'])
  })

  test('[DB-REL-3] some and none are about the related records that the caller may read', async () => {
    expect(await idsOf(server.anonymous, [['comments', 'some', [['rank', '>=', 3]]]])).toEqual(['p1', 'p2'])
    expect(await idsOf(server.anonymous, [['comments', 'some', []]])).toEqual(['p1', 'p2'])
    expect(await idsOf(server.anonymous, [['comments', 'none', []]])).toEqual(['p3'])
    // Its comment of rank 2 is flagged.
    expect(await idsOf(server.anonymous, [['comments', 'some', [['rank', '==', 2]]]])).toEqual([])
    expect(await idsOf(server.as('bob'), [['comments', 'some', [['rank', '==', 2]]]])).toEqual(['p1'])
    expect(await idsOf(server.anonymous, [['comments', 'none', [['rank', '==', 2]]]])).toEqual(['p1', 'p2', 'p3'])
    const users = tablePath('users')
    expect(await idsOf(server.anonymous, [['posts.authorId', 'some', [['views', '>', 5]]]], users)).toEqual(['ann'])
    const nested = [['posts.authorId', 'some', [['comments', 'some', [['author.name', '==', 'Bob']]]]]]
    expect(await idsOf(server.anonymous, nested, users)).toEqual(['ann'])
    const throughOne = [['author.comments', 'some', [['rank', '==', 4]]]]
    expect(await idsOf(server.anonymous, throughOne)).toEqual(['p1'])
    expect(await idsOf(server.anonymous, [['author.comments', 'none', [['rank', '==', 9]]]])).toEqual(['p1'])
    expect(await idsOf(server.as('ann'), [['notes', 'some', []]], tablePath('teams'))).toEqual(['t1'])
    expect(await idsOf(server.anonymous, [['parts', 'some', []]], tablePath('things'))).toEqual(['x'])
  })

  test('[DB-REL-4] a table that the caller may not read at all is like one without records', async () => {
    for (const client of [server.anonymous, server.as('ann'), server.withKey(keys[0]?.key ?? '')]) {
      const all = await idsOf(client, [])
      expect(await idsOf(client, [['reports', 'some', []]])).toEqual([])
      expect(await idsOf(client, [['reports', 'none', [['reason', '==', 'spam']]]])).toEqual(all)
    }
    expect(await idsOf(server.service, [['reports', 'some', [['reason', '==', 'spam']]]])).toEqual(['p1'])
    expect(await idsOf(server.withKey(keys[0]?.key ?? ''), [['author.name', '!=', 'x']])).toEqual([])
  })

  test('[DB-REL-5] conditions through relations apply in both groups, in search and in batch by filter', async () => {
    const either = await server.anonymous.get(
      posts +
        query({
          orFilter: [
            ['author.name', '==', 'Ann'],
            ['comments', 'some', [['rank', '==', 4]]],
          ],
        }),
    )
    expect(either.body.items.map(({ id }: { id: string }) => id)).toEqual(['p1', 'p2'])
    const found = await server.anonymous.get(
      `${posts}/search${query({ q: 'fish', filter: [['author.role', '==', 'editor']] })}`,
    )
    expect(found.body).toMatchObject({ total: 1, items: [{ id: 'p1' }] })
    const filter = [['comments', 'some', [['author.name', '==', 'Bob']]]]
    const update = { action: 'update', data: { views: { $op: 'increment', value: 1 } }, filter }
    const changed = await server.as('ann').post(`${posts}/batch-by-filter`, update)
    expect(changed.body).toEqual({ processed: 1, succeeded: 1 })
    expect((await server.service.get(`${posts}/p1`)).body.views).toBe(11)
    // A draft is a record that its author may change and not read.
    const draft = { action: 'update', data: { views: 0 }, filter: [['comments', 'some', [['rank', '==', 5]]]] }
    expect((await server.as('ann').post(`${posts}/batch-by-filter`, draft)).body).toEqual({
      processed: 0,
      succeeded: 0,
    })
    expect((await server.service.get(`${posts}/p4`)).body.views).toBe(40)
    const removed = { action: 'delete', filter: [['reports', 'some', []]] }
    expect((await server.as('ann').post(`${posts}/batch-by-filter`, removed)).body).toEqual({
      processed: 0,
      succeeded: 0,
    })
  })

  test('[DB-REL-5] a key that cannot read a table cannot filter it by what its records refer to', async () => {
    const update = (filter: unknown) => ({ action: 'update', data: { views: 1 }, filter })
    const [, writer, both] = keys.map(({ key }) => server.withKey(key)) as [Client, Client, Client]
    const byAuthor = update([['author.role', '==', 'editor']])
    expectRefusal(await both.post(`${posts}/batch-by-filter`, byAuthor), 403)
    for (const [client, body] of [
      [writer, byAuthor],
      [writer, update([['comments', 'some', []]])],
      [both, update([['comments', 'some', []]])],
    ] as const)
      expect((await client.post(`${posts}/batch-by-filter`, body)).body).toEqual({ processed: 0, succeeded: 0 })
    expect((await server.service.get(`${posts}/p2`)).body.views).toBe(20)
  })

  describe('refused', () => {
    const through = (count: number, value: unknown): unknown => Array.from({ length: count }, () => value)
    test.each([
      ['an unknown relation', [['writer.role', '==', 'x']], 'unknown'],
      ['an unknown field', [['author.rol', '==', 'x']], 'unknown'],
      ['an unknown relation with some', [['remarks', 'some', []]], 'unknown'],
      ['a field with some', [['title', 'some', []]], 'unknown'],
      ['an unknown field within some', [['comments', 'some', [['nam', '==', 1]]]], 'unknown'],
      ['a relation without a field', [['author', '==', 'ann']], 'operator'],
      ['a forward relation with some', [['author', 'some', []]], 'operator'],
      ['a backward relation with a field', [['comments.rank', '==', 1]], 'operator'],
      ['a value of the wrong type', [['author.name', '==', 1]], 'type'],
      ['an unknown operator', [['author.name', 'like', 'x']], 'operator'],
      ['some with no list', [['comments', 'some', { rank: 1 }]], 'type'],
      ['some with a tuple', [['comments', 'some', ['rank', '==', 1]]], 'type'],
      [
        'four relations',
        [['author.posts.authorId', 'some', [['comments', 'some', [['post.title', '==', 'x']]]]]],
        'max',
      ],
      ['eleven relations', through(11, ['author.name', '==', 'x']), 'max'],
      [
        'a hundred conditions and one within',
        [
          ...(through(99, ['views', '>', 1]) as unknown[]),
          [
            'comments',
            'some',
            [
              ['rank', '>', 1],
              ['rank', '>', 2],
            ],
          ],
        ],
        'max',
      ],
      ['a prototype', [['__proto__.role', '==', 'x']], 'unknown'],
    ])('[DB-REL-6] %s is 400 that names the condition', async (_, filter, code) => {
      const before = await server.dump(posts)
      for (const path of ['', '/count', '/search']) {
        const { data } = expectRefusal(
          await server.anonymous.get(`${posts}${path}${query({ q: path === '/search' ? 'fish' : undefined, filter })}`),
          400,
        )
        const [[place, problem]] = Object.entries(data ?? {}) as [[string, { code: string }]]
        expect(place).toMatch(/^filter\[\d+\]/)
        expect(problem.code).toBe(code)
      }
      expectRefusal(await server.as('ann').post(`${posts}/batch-by-filter`, { action: 'delete', filter }), 400)
      expect(await server.dump(posts)).toEqual(before)
    })

    test('[DB-REL-6] ten relations are allowed', async () => {
      expect(await idsOf(server.anonymous, through(10, ['author.name', '==', 'Ann']))).toEqual(['p1'])
    })

    test('[DB-REL-7] subscriptions refuse conditions through relations, and say so', async () => {
      for (const filter of [[['author.role', '==', 'editor']], [['comments', 'some', []]]]) {
        const socket = await watch(server.url, { channel: 'dblive:shared:posts', subscribe: null })
        socket.send({ type: 'subscribe', channel: 'dblive:shared:posts', filter })
        const error = await socket.expect('error')
        expect(error.code).toBe('INVALID_FILTERS')
        expect(error.message).toContain('relations')
        socket.close()
      }
    })
  })

  test('[DB-REL-8] totals with such conditions follow changes of the related tables', async () => {
    const filter = [['author.role', '==', 'chief']]
    expect(await idsOf(server.service, filter)).toEqual([])
    expect((await server.service.patch(`${tablePath('users')}/ann`, { role: 'chief' })).status).toBe(200)
    expect(await idsOf(server.service, filter)).toEqual(['p1', 'p4'])
    expect((await server.service.patch(`${tablePath('users')}/ann`, { role: 'editor' })).status).toBe(200)
    expect(await idsOf(server.service, filter)).toEqual([])
  })

  test('[DB-REL-9] a check of a list with such a condition fails after a change of a related record', async () => {
    const filter = [['author.role', '==', 'editor']]
    const read = async () => (await server.service.get(posts + query({ filter, check: '1' }))).body.check
    const send = (check: unknown) =>
      server.service.post('/api/db/shared/transaction', { operations: [{ table: 'posts', check }] })
    const check = await read()
    expect((await send(check)).status).toBe(200)
    expect((await server.service.patch(`${tablePath('users')}/ann`, { role: 'chief' })).status).toBe(200)
    expect((await send(check)).status).toBe(409)
    expect((await server.service.patch(`${tablePath('users')}/ann`, { role: 'editor' })).status).toBe(200)
  })
})
