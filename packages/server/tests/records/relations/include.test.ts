/** `include` on list, get and search: related records, their options, and the read rules of their tables. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { blogConfig, blogRows, insertRows, listWith, tablePath } from '../../harness/records/relations.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const keys = [{ name: 'posts-only', key: 'key-that-reads-posts-only-0123', scopes: ['db:table:posts:read'] }]
const config = { ...blogConfig, serviceKeys: keys }

const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id)

describeServer('include', { config }, (server) => {
  beforeAll(() => insertRows(server.service, blogRows))

  test('[DB-INC-1] a forward relation is the record, or null where the field is empty', async () => {
    const { status, body } = await listWith(server.anonymous, 'posts', { author: {}, editor: { fields: ['name'] } })
    expect(status).toBe(200)
    expect(body.items).toHaveLength(3)
    const [first, second, third] = body.items
    expect(first.author).toMatchObject({ id: 'ann', name: 'Ann', role: 'editor', private: false })
    expect(first).toMatchObject({ id: 'p1', authorId: 'ann', editor: { name: 'Bob' } })
    expect(Object.keys(first.editor)).toEqual(['name'])
    expect(second.editor).toBeNull()
    expect(third).toMatchObject({ author: null, editor: null })
    expect(body.total).toBe(3)
  })

  test('[DB-INC-1] a backward relation is a list of records, with count: true and their total', async () => {
    const include = { comments: { sort: 'rank:desc', limit: 1, count: true, fields: ['body'] } }
    const { body } = await listWith(server.anonymous, 'posts', include)
    expect(body.items.map(({ comments }: { comments: unknown }) => comments)).toEqual([
      { items: [{ body: 'second' }], total: 2 },
      { items: [{ body: 'fourth' }], total: 1 },
      { items: [], total: 0 },
    ])
    const all = await listWith(server.anonymous, 'posts', { comments: {} })
    expect(all.body.items.map(({ comments }: { comments: object }) => Object.keys(comments))).toEqual(
      [1, 2, 3].map(() => ['items']),
    )
    expect(idsOf(all.body.items[0].comments.items)).toEqual(['c1', 'c2'])
    const counted = await listWith(server.anonymous, 'posts', { comments: { limit: 0, count: true } })
    expect(counted.body.items[0].comments).toEqual({ items: [], total: 2 })
  })

  test('[DB-INC-1] get and search include the same records as a list', async () => {
    const include = { author: ['name'], comments: { include: { author: ['name'] } } }
    const { body } = await listWith(server.anonymous, 'posts', include)
    for (const item of body.items) {
      const got = await server.anonymous.get(`${tablePath('posts')}/${item.id}${query({ include })}`)
      expect(got.body).toEqual(item)
    }
    const found = await server.anonymous.get(`${tablePath('posts')}/search${query({ q: 'fish', include })}`)
    expect(found.body.total).toBe(3)
    for (const { highlights, ...item } of found.body.items) {
      expect(highlights.title).toContain('<mark>fish</mark>')
      expect(item).toEqual(body.items.find(({ id }: { id: string }) => id === item.id))
    }
    for (const parameters of [{ after: '' }, { before: '' }, { after: '', versions: '1' }]) {
      const page = await listWith(server.anonymous, 'posts', include, parameters)
      expect(page.body.items).toEqual(body.items)
    }
    const paged = await listWith(server.anonymous, 'posts', include, { after: '', limit: 1 })
    const next = await listWith(server.anonymous, 'posts', include, { after: paged.body.cursor, limit: 2 })
    expect([...paged.body.items, ...next.body.items]).toEqual(body.items)
  })

  test('[DB-INC-1] fields limit the fields of the records, not their relations', async () => {
    const { body } = await listWith(server.anonymous, 'posts', { author: ['name'] }, { fields: 'title' })
    expect(body.items[0]).toEqual({ title: 'one fish', author: { name: 'Ann' } })
  })

  test('[DB-INC-2, DB-INC-3] each relation has one name', async () => {
    const teams = await listWith(server.anonymous, 'teams', { author: ['name'], authorId: ['name'], notes: {} })
    expect(teams.body.items[0]).toMatchObject({
      author: { name: 'Ann' },
      authorId: { name: 'Bob' },
      notes: { items: [] },
    })
    expect(teams.body.items[1]).toMatchObject({ author: null, authorId: null })
    expect(teams.text.match(/"author":/g)).toHaveLength(2)
    const users = await listWith(server.anonymous, 'users', {
      'posts.authorId': ['title'],
      'posts.editor_id': ['title'],
      comments: ['body'],
    })
    expect(users.body.items[0]).toMatchObject({
      id: 'ann',
      'posts.authorId': { items: [{ title: 'one fish' }] },
      'posts.editor_id': { items: [] },
      comments: { items: [{ body: 'fourth' }, { body: 'fifth' }] },
    })
    const categories = await listWith(server.anonymous, 'categories', { parent: ['name'], categories: ['name'] })
    const { parent, categories: children } = categories.body.items.find(({ id }: { id: string }) => id === 'mid')
    expect([parent, children]).toEqual([{ name: 'Top' }, { items: [{ name: 'Low' }] }])
  })

  test('[DB-INC-2] in a table without a schema a relation takes the place of a field with its name', async () => {
    const { body, text } = await listWith(server.anonymous, 'things', { parts: ['label'] })
    expect(body.items[0]).toMatchObject({ id: 'x', 'a.b': 1, parts: { items: [{ label: 'L' }] } })
    expect(body.items[1].parts).toEqual({ items: [] })
    expect(text.match(/"parts":/g)).toHaveLength(2)
    const forward = await listWith(server.anonymous, 'parts', { thing: {} })
    expect(forward.body.items[0].thing).toMatchObject({ id: 'x', parts: 'a field of its own' })
  })

  test('[DB-INC-4] where, sort and limit apply per record; where also to a single record', async () => {
    const include = {
      author: { where: [['role', '==', 'editor']] },
      editor: { where: [['role', '==', 'editor']] },
      comments: { where: [['rank', '>', 1]], sort: 'rank:asc' },
    }
    const { body } = await listWith(server.as('bob'), 'posts', include)
    const [first] = body.items
    expect([first.author.id, first.editor]).toEqual(['ann', null])
    expect(idsOf(first.comments.items)).toEqual(['c3', 'c2'])
    const through = { comments: { where: [['post.author.name', '==', 'Ann']] } }
    const filtered = await listWith(server.anonymous, 'posts', through)
    expect(
      filtered.body.items.map(({ comments }: { comments: { items: { id: string }[] } }) => idsOf(comments.items)),
    ).toEqual([['c1', 'c2'], [], []])
  })

  test('[DB-INC-4] relations include relations, also back to a table that was passed', async () => {
    const include = {
      comments: { fields: ['id'], include: { post: { fields: ['id'], include: { author: ['name'] } } } },
    }
    const { body } = await listWith(server.anonymous, 'posts', include)
    expect(body.items[0].comments.items[0]).toEqual({ id: 'c1', post: { id: 'p1', author: { name: 'Ann' } } })
  })

  test('[DB-INC-5] related records are those that the read rule of their table allows; others are like missing ones', async () => {
    const include = { author: {}, comments: { count: true, include: { author: ['name'] } } }
    const { body } = await listWith(server.anonymous, 'posts', include)
    expect(body.items[1].author).toBeNull()
    expect(body.items[0].comments.total).toBe(2)
    expect(body.items[0].comments.items[1]).toMatchObject({ id: 'c2', authorId: 'eve', author: null })
    const eve = await listWith(server.as('eve'), 'posts', include)
    expect(eve.body.items[1].author).toMatchObject({ id: 'eve' })
    const bob = await listWith(server.as('bob'), 'posts', { comments: { count: true } })
    expect(bob.body.items[0].comments.total).toBe(3)
    // A draft is not a post for callers.
    const comments = await listWith(server.anonymous, 'comments', { post: {} })
    expect(comments.body.items.at(-1)).toMatchObject({ id: 'c5', postId: 'p4', post: null })
    const notes = await listWith(server.as('ann'), 'teams', { notes: {} })
    expect(notes.body.items.map((team: { notes: { items: { id: string }[] } }) => idsOf(team.notes.items))).toEqual([
      ['n1'],
      [],
    ])
  })

  test('[DB-INC-6] a table that the caller may not read at all is like one without records', async () => {
    const { status, body } = await listWith(server.anonymous, 'posts', { reports: { count: true } })
    expect(status).toBe(200)
    expect(body.items[0].reports).toEqual({ items: [], total: 0 })
    const full = await listWith(server.service, 'posts', { reports: { count: true }, author: {} })
    expect(full.body.items[0].reports.total).toBe(1)
    const key = server.withKey(keys[0]?.key ?? '')
    const limited = await listWith(key, 'posts', { reports: { count: true }, author: {}, comments: {} })
    expect(limited.body.items[0]).toMatchObject({
      author: null,
      comments: { items: [] },
      reports: { items: [], total: 0 },
    })
  })

  test('[DB-INC-9] hidden fields are shown and named by service keys only, and so are their relations', async () => {
    const { text, body } = await listWith(server.anonymous, 'posts', { author: {}, comments: {} })
    expect(text).not.toContain('@x.test')
    expect(body.items[0].comments.items[0]).not.toHaveProperty('note')
    const full = await listWith(server.service, 'posts', { author: {}, comments: {}, reviewer: ['email'] })
    expect(full.body.items[0].author.email).toBe('ann@x.test')
    expect(full.body.items[0].comments.items[0].note).toBe('n1')
    expect(full.body.items[1].reviewer).toEqual({ email: 'bob@x.test' })
    for (const [hidden, unknown] of [
      [{ reviewer: {} }, { unknowns: {} }],
      [{ author: ['email'] }, { author: ['unknowns'] }],
      [{ comments: { sort: 'note' } }, { comments: { sort: 'unknowns' } }],
      [{ comments: { where: [['note', '==', 'n1']] } }, { comments: { where: [['unknowns', '==', 'n1']] } }],
    ]) {
      const refused = [
        await listWith(server.anonymous, 'posts', hidden),
        await listWith(server.anonymous, 'posts', unknown),
      ]
      const [one, other] = refused.map((answer) => {
        expectRefusal(answer, 400)
        return answer.text.replaceAll(/reviewer|email|note|unknowns/g, 'X')
      })
      expect(one).toBe(other as string)
    }
    const users = await listWith(server.anonymous, 'users', { 'posts.reviewerId': {} })
    expectRefusal(users, 400)
  })

  test('[DB-INC-13] each relation is read by one statement, whatever the number of records', async () => {
    const include = { author: {}, comments: { limit: 1, count: true, include: { author: {} } } }
    const statementsOf = async (parameters: Readonly<Record<string, unknown>>): Promise<number> => {
      const { body } = await listWith(server.service, 'posts', include, { ...parameters, after: '', explain: '1' })
      return body.explain.statements.length
    }
    expect(await statementsOf({ filter: [['id', '==', 'p1']] })).toBe(4)
    expect(await statementsOf({ filter: [['comments', 'some', [['author.name', '!=', 'x']]]] })).toBe(4)
    expect(await statementsOf({})).toBe(4)
  })

  test('[DB-INC-12] an ETag covers the related records', async () => {
    const path = `${tablePath('posts')}/p3${query({ include: { comments: {} } })}`
    const before = await server.anonymous.get(path)
    const tag = before.headers.get('etag') ?? ''
    expect((await server.anonymous.get(path, { 'if-none-match': tag })).status).toBe(304)
    const comment = { id: 'late', postId: 'p3', flagged: false }
    expect((await server.service.post(tablePath('comments'), comment)).status).toBe(201)
    const after = await server.anonymous.get(path, { 'if-none-match': tag })
    expect(after.body.comments.items).toHaveLength(1)
    expect(after.headers.get('etag')).not.toBe(tag)
    expect((await server.service.delete(`${tablePath('comments')}/late`)).status).toBe(200)
  })

  describe('refused', () => {
    test.each([
      ['no JSON', '{', 'include'],
      ['a list', '["author"]', 'include'],
      ['null', 'null', 'include'],
      ['an unknown relation', '{"writer":{}}', 'include'],
      ['the field instead of the relation', '{"authorId":{}}', 'include'],
      ['a prototype', '{"__proto__":{}}', 'include'],
      ['a constructor', '{"constructor":{}}', 'include'],
      ['an unknown option', '{"author":{"filter":[]}}', 'include.author'],
      ['options that are no object', '{"author":true}', 'include.author'],
      ['no fields', '{"author":[]}', 'include.author.fields'],
      ['fields as text', '{"author":{"fields":"name"}}', 'include.author.fields'],
      ['an unknown field', '{"author":["nam"]}', 'include.author.fields'],
      ['an unknown field of a condition', '{"comments":{"where":[["nam","==",1]]}}', 'include.comments.where[0]'],
      ['a condition that is no tuple', '{"comments":{"where":[["rank",1]]}}', 'include.comments.where[0]'],
      ['conditions that are no list', '{"comments":{"where":{}}}', 'include.comments.where'],
      ['a sort that is no text', '{"comments":{"sort":["rank"]}}', 'include.comments.sort'],
      ['an unknown direction', '{"comments":{"sort":"rank:up"}}', 'include.comments.sort'],
      ['a negative limit', '{"comments":{"limit":-1}}', 'include.comments.limit'],
      ['a limit that is no integer', '{"comments":{"limit":1.5}}', 'include.comments.limit'],
      ['a limit that is text', '{"comments":{"limit":"3"}}', 'include.comments.limit'],
      ['a limit above 1,000', '{"comments":{"limit":1001}}', 'include.comments.limit'],
      ['a count that is no boolean', '{"comments":{"count":1}}', 'include.comments.count'],
      ['a limit of a single record', '{"author":{"limit":1}}', 'include.author.limit'],
      ['a sort of a single record', '{"author":{"sort":"name"}}', 'include.author.sort'],
      ['a count of a single record', '{"author":{"count":true}}', 'include.author.count'],
      ['a nested unknown relation', '{"comments":{"include":{"x":{}}}}', 'include.comments.include'],
      ['an ambiguous relation', '{"author":{"include":{"posts":{}}}}', 'include.author.include'],
    ])('[DB-INC-10] %s is 400 that names the place', async (_, include, place) => {
      for (const path of ['', '/p1', '/search?q=fish']) {
        const separator = path.includes('?') ? '&' : '?'
        const url = `${tablePath('posts')}${path}${separator}include=${encodeURIComponent(include)}`
        const { data } = expectRefusal(await server.anonymous.get(url), 400)
        expect(Object.keys(data ?? {})).toEqual([place])
      }
    })

    test('[DB-INC-10] include on another endpoint, or with a check of a list, is 400', async () => {
      for (const path of ['/count', '?check=1'])
        expectRefusal(
          await server.anonymous.get(`${tablePath('posts')}${path}${path === '/count' ? '?' : '&'}include={}`),
          400,
        )
    })
  })
})
