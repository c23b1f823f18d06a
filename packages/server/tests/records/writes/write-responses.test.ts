/** Responses of writes contain only what the caller may read, for every caller and kind of write. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { exists, field } from '../../../src/config/define.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const posts = '/api/db/shared/tables/posts'
const inbox = '/api/db/shared/tables/inbox'
const teams = '/api/db/shared/tables/teams'
const schema = {
  title: { type: 'string' },
  secret: { type: 'string', unique: true },
  slug: { type: 'string', unique: true },
  views: { type: 'number', default: 7 },
  score: { type: 'number', default: 5, max: 10 },
  level: { type: 'number', default: 1, enum: [1, 2, 3] },
  kind: { type: 'string', default: 'draft' },
} as const

const key = (name: string): string => `key-of-${name}-0123456789`
const config = {
  databases: {
    shared: {
      tables: {
        posts: { schema, hidden: ['secret'], access: open },
        // Every user may insert, but can read and change only public records.
        inbox: {
          schema,
          hidden: ['secret'],
          access: { read: () => ({ kind: 'public' }), insert: true, update: true, delete: true },
        },
        members: { schema: { team: { type: 'string' }, user: { type: 'string' } } },
        teams: {
          schema: { team: { type: 'string' }, note: { type: 'string', default: 'by default' } },
          access: {
            read: (auth: { id: string } | null) => auth && exists('members', { user: auth.id, team: field('team') }),
            insert: true,
          },
        },
      },
    },
  },
  serviceKeys: [
    { name: 'writer', key: key('writer'), scopes: ['db:table:*:write'] },
    { name: 'both', key: key('both'), scopes: ['db:table:*:write', 'db:table:*:read'] },
  ],
}

describeServer('responses of writes', { config }, (server) => {
  const writer = server.withKey(key('writer'))
  const both = server.withKey(key('both'))
  const names = (record: object): string[] => Object.keys(record).sort()
  const builtIn = ['createdAt', 'id', 'updatedAt']

  beforeEach(async () => {
    for (const table of [posts, inbox]) await server.service.post(`${table}/batch-by-filter`, { action: 'delete' })
    const record = { id: 'a', title: 'A', secret: 's1', slug: 'slug-a', views: 41 }
    expect((await server.service.post(posts, record)).status).toBe(201)
  })

  describe('a key without the read scope', () => {
    test('[KEY-14] an insert returns only the built-in and sent fields', async () => {
      const answer = await writer.post(posts, { title: 'B', secret: 's2' })
      expect(answer.status).toBe(201)
      expect(names(answer.body)).toEqual([...builtIn, 'secret', 'title'].sort())
      expect(answer.headers.get('etag')).toBeNull()
      expect(names((await both.post(posts, { title: 'C' })).body)).toEqual(
        [...builtIn, 'kind', 'level', 'score', 'secret', 'slug', 'title', 'views'].sort(),
      )
    })

    test('[KEY-14] an update returns only the built-in and sent fields, with and without operators', async () => {
      const answer = await writer.patch(`${posts}/a`, { title: 'A2', views: { $op: 'increment', value: 0 } })
      expect(answer.status).toBe(200)
      expect(answer.headers.get('etag')).toBeNull()
      expect(answer.body).toEqual({
        id: 'a',
        title: 'A2',
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      })
      const empty = await writer.patch(`${posts}/a`, {})
      expect(names(empty.body)).toEqual(builtIn)
      expect(names((await writer.patch(`${posts}/a`, { slug: { $op: 'deleteField' } })).body)).toEqual(
        [...builtIn, 'slug'].sort(),
      )
    })

    test('[KEY-14] upserts and batches return only the built-in and sent fields', async () => {
      const upserted = await writer.post(`${posts}?upsert=true`, { id: 'a', title: 'A3' })
      expect(upserted.status).toBe(200)
      expect(names(upserted.body)).toEqual(['action', ...builtIn, 'title'].sort())
      const bySlug = await writer.post(`${posts}?upsert=true&conflictTarget=slug`, { slug: 'slug-a' })
      expect(bySlug.status).toBe(200)
      expect(names(bySlug.body)).toEqual(['action', ...builtIn, 'slug'].sort())
      const { body } = await writer.post(`${posts}/batch`, {
        inserts: [{ title: 'D' }],
        updates: [{ id: 'a', data: { views: { $op: 'increment', value: 1 } } }],
      })
      expect(names(body.inserted[0])).toEqual([...builtIn, 'title'].sort())
      expect(names(body.updated[0])).toEqual(builtIn)
      const together = await writer.post(`${posts}/batch?upsert=true`, { inserts: [{ id: 'a', title: 'A4' }] })
      expect(names(together.body.inserted[0])).toEqual([...builtIn, 'title'].sort())
    })

    test('[KEY-15] the filter of a write may name only built-in fields', async () => {
      const byFilter = (filter: unknown, orFilter?: unknown) =>
        writer.post(`${posts}/batch-by-filter`, { action: 'update', filter, orFilter, data: { title: 'found' } })
      for (const name of ['secret', 'title', 'views'])
        for (const refused of [await byFilter([[name, '==', null]]), await byFilter([], [[name, '!=', null]])])
          expect(expectRefusal(refused, 403).message).toContain('db:table:posts:read')
      expect((await byFilter([['id', '==', 'a']])).body).toEqual({ processed: 1, succeeded: 1 })
      const named = await both.post(`${posts}/batch-by-filter`, { action: 'delete', filter: [['secret', '==', 's1']] })
      expect(named.body).toEqual({ processed: 1, succeeded: 1 })
    })

    test('[KEY-15] a conflict target must not be hidden, and If-Match with an ETag never matches', async () => {
      expectRefusal(await writer.post(`${posts}?upsert=true&conflictTarget=secret`, { secret: 's1' }), 400)
      const { headers } = await server.service.get(`${posts}/a`)
      const tag = { 'if-match': headers.get('etag') ?? '' }
      expectRefusal(await writer.patch(`${posts}/a`, { title: 'x' }, tag), 412)
      expectRefusal(await writer.delete(`${posts}/a`, tag), 412)
      expect((await both.patch(`${posts}/a`, { title: 'x' }, tag)).status).toBe(200)
      expect((await writer.delete(`${posts}/a`, { 'if-match': '*' })).status).toBe(200)
    })

    test('[KEY-16] an increment is refused where its validity depends on the stored value', async () => {
      const increment = (client: typeof writer, name: string, value: number) =>
        client.patch(`${posts}/a`, { [name]: { $op: 'increment', value } })
      for (const name of ['score', 'level'])
        for (const value of [0, 1, 5, 6, -100])
          expect(expectRefusal(await increment(writer, name, value), 403).message).toContain('db:table:posts:read')
      for (const value of [1e308, -1e308, Number.MAX_SAFE_INTEGER + 1])
        expectRefusal(await increment(writer, 'views', value), 403)
      for (const value of [1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER])
        expect((await increment(writer, 'views', value)).status).toBe(200)
      await server.service.patch(`${posts}/a`, { views: Number.MAX_VALUE })
      expect((await increment(writer, 'views', Number.MAX_SAFE_INTEGER)).status).toBe(200)
      const data = { score: { $op: 'increment', value: 1 } }
      expectRefusal(await writer.post(`${posts}/batch`, { updates: [{ id: 'a', data }] }), 403)
      const byFilter = { action: 'update', filter: [['id', '==', 'a']], data }
      expectRefusal(await writer.post(`${posts}/batch-by-filter`, byFilter), 403)
      expect((await increment(both, 'score', 5)).status).toBe(200)
      expectRefusal(await increment(both, 'score', 1), 400)
    })

    test('[KEY-14] a conflict does not name hidden fields, and a replay returns no more than the first response', async () => {
      const taken = expectRefusal(await writer.post(posts, { secret: 's1' }), 409)
      expect(JSON.stringify(taken)).not.toContain('secret')
      const headers = { 'idempotency-key': 'replayed' }
      const first = await writer.post(posts, { title: 'once' }, headers)
      expect((await writer.post(posts, { title: 'once' }, headers)).text).toBe(first.text)
    })
  })

  describe('a user whose read rule does not allow the record', () => {
    test('[RULE-17] an insert and an upsert return only the sent fields', async () => {
      const alice = server.as('alice')
      const answer = await alice.post(inbox, { id: 'x', title: 'private' })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('etag')).toBeNull()
      expect(names(answer.body)).toEqual([...builtIn, 'title'].sort())
      const readable = await alice.post(inbox, { id: 'y', kind: 'public' })
      expect(names(readable.body)).toEqual([...builtIn, 'kind', 'level', 'score', 'slug', 'title', 'views'].sort())
      expect(readable.headers.get('etag')).toBe((await alice.get(`${inbox}/y`)).headers.get('etag'))
      const { body } = await alice.post(`${inbox}/batch`, { inserts: [{ title: 'p' }, { kind: 'public' }] })
      expect(body.inserted.map(names)).toEqual([
        [...builtIn, 'title'].sort(),
        [...builtIn, 'kind', 'level', 'score', 'slug', 'title', 'views'].sort(),
      ])
    })

    test('[RULE-17] an update that makes the record unreadable returns only the sent fields', async () => {
      await server.service.post(inbox, { id: 'z', kind: 'public', title: 'T' })
      const answer = await server.as('alice').patch(`${inbox}/z`, { kind: 'private' })
      expect(answer.status).toBe(200)
      expect(names(answer.body)).toEqual([...builtIn, 'kind'].sort())
      expectRefusal(await server.as('alice').patch(`${inbox}/z`, { title: 'again' }), 404)
    })

    test('[RULE-17] a read rule on another table applies to the response', async () => {
      await server.service.post('/api/db/shared/tables/members', { team: 'red', user: 'alice' })
      const batch = { inserts: [{ team: 'red' }, { team: 'blue' }, { team: 'red' }] }
      const { body } = await server.as('alice').post(`${teams}/batch`, batch)
      expect(body.inserted.map(({ team, note }: Record<string, unknown>) => [team, note])).toEqual([
        ['red', 'by default'],
        ['blue', undefined],
        ['red', 'by default'],
      ])
      expect((await server.as('alice').post(teams, { team: 'blue' })).body.note).toBeUndefined()
      expect((await server.as('alice').post(teams, { team: 'red' })).body.note).toBe('by default')
    })
  })
})
