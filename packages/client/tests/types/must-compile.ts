/** Uses of the client that must compile, each with the type that it must have. */

import { avg, bucket, count, day, max, min, month, sum } from '../../src/records/aggregates.ts'
import type { Client } from '../../src/types/client.ts'
import type {
  BroadcastName,
  BucketName,
  KvName,
  NamespaceName,
  RoomNamespace,
  SqlName,
  TableName,
  VectorName,
} from '../../src/types/config-shape.ts'
import type { LiveList, LiveRecord } from '../../src/types/live.ts'
import type { BatchBuilder, BatchResult, Database, Query, Table } from '../../src/types/records.ts'
import type { Insert, Patch, Row } from '../../src/types/rows.ts'
import type { Config, Functions } from './blog-config.ts'

declare const client: Client<Config, Functions>
declare const untyped: Client
declare const increment: (by: number) => { readonly $op: 'increment'; readonly value: number }
declare const deleteField: () => { readonly $op: 'deleteField' }

/** Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** What a call resolves with. */
type Result<F extends (...args: never) => unknown> = Awaited<ReturnType<F>>

type PostTable = Config['databases']['shared']['tables']['posts']
type Post = Row<PostTable>
type Status = 'draft' | 'live' | 'archived'

const { posts, comments, people, loose } = client.db()
const tasks = client.db('workspace', 'w1').tasks
const game = client.room('game', 'g1')

// Rows: required fields and those with a default have a value, others may be null; hidden ones are absent.
export const rows = [
  true satisfies Same<Post['title'], string>,
  true satisfies Same<Post['body'], string | null>,
  true satisfies Same<Post['views'], number>,
  true satisfies Same<Post['rating'], number | null>,
  true satisfies Same<Post['pinned'], boolean>,
  true satisfies Same<Post['status'], Status>,
  true satisfies Same<Post['rank'], 1 | 2 | 3 | null>,
  true satisfies Same<Post['publishAt'], string | null>,
  true satisfies Same<Post['tags'], unknown>,
  true satisfies Same<Post['id'], string>,
  true satisfies Same<Post['createdAt'], string>,
  true satisfies Same<Extract<keyof Post, 'moderatorNote'>, never>,
  true satisfies Same<Row<Config['databases']['shared']['tables']['loose']>['anything'], unknown>,
]

// Names
export const names = [
  true satisfies Same<NamespaceName<Config>, 'shared' | 'workspace'>,
  true satisfies Same<TableName<Config>, 'posts' | 'comments' | 'people' | 'loose'>,
  true satisfies Same<TableName<Config, 'workspace'>, 'tasks'>,
  true satisfies Same<BucketName<Config>, 'avatars' | 'documents'>,
  true satisfies Same<RoomNamespace<Config>, 'game' | 'lobby'>,
  true satisfies Same<KvName<Config>, 'cache' | 'sessions'>,
  true satisfies Same<VectorName<Config>, 'docs'>,
  true satisfies Same<SqlName<Config>, 'reports'>,
  true satisfies Same<BroadcastName<Config>, `typing:${string}` | 'news'>,
]

// Places
const neighbors = people.where('home', 'near', [13.4, 52.5, '5km']).sort('home.distance').limit(5)
export const locations = [
  people.where('home', 'within', [
    [13, 52],
    [14, 53],
  ]),
  people.where('home', '!=', null),
  people.or(['home', 'near', [13.4, 52.5, '300m']], ['home', '==', null]),
  people.insert({ name: 'x', home: [13.4, 52.5] }),
  people.update('p1', { home: deleteField() }),
  true satisfies Same<Result<typeof neighbors.list>['items'][number]['distances'], { home: number }>,
  true satisfies Same<
    Result<typeof neighbors.list>['items'][number]['home'],
    [longitude: number, latitude: number] | null
  >,
  true satisfies 'distances' extends keyof Result<typeof people.list>['items'][number] ? false : true,
]

// Inserts and patches
export const inserts: Insert<PostTable>[] = [
  { title: 'x', authorId: 'a' },
  { id: 'p1', title: 'x', authorId: 'a', createdAt: '2026-01-01T00:00:00.000Z' },
  { title: 'x', authorId: 'a', body: null, views: 3, status: 'live', rank: 2, tags: ['a', { b: 1 }] },
]
export const patches: Patch<PostTable>[] = [
  {},
  { views: increment(1) },
  { rating: increment(0.5) },
  { body: deleteField() },
  { rating: deleteField() },
  { body: null, status: 'archived', rank: 3 },
  { tags: { any: ['json'] } },
]

// Queries
export const queries: Query<Post>[] = [
  posts,
  posts.where('status', '==', 'live'),
  posts.where('status', 'in', ['live', 'archived']),
  posts.where('status', '!=', 'draft').where('views', '>=', 10),
  posts.where('views', 'not in', [1, 2]),
  posts.where('title', 'contains', 'x'),
  posts.where('title', '>', 'a').where('title', '<', 'b'),
  posts.where('pinned', '==', true),
  posts.where('body', '==', null),
  posts.where('rank', '!=', null),
  posts.where('rank', '==', 2),
  posts.where('tags', 'contains', 'news'),
  posts.where('tags', '!=', null),
  posts.where('publishAt', '<', '2026-01-01T00:00:00.000Z'),
  posts.where('createdAt', '>=', '2026-01-01T00:00:00.000Z'),
  posts.where('id', 'in', ['a', 'b']),
  posts.or(['views', '>', 10], ['authorId', '==', 'me'], ['body', '==', null]),
  posts.or(['status', 'in', ['live']], ['tags', 'contains', 1]),
  posts.sort('createdAt', 'desc').sort('title'),
  posts.limit(20),
]
export const selected: Query<{ id: string; title: string }> = posts.select('id', 'title')
export const firstTitle = async (): Promise<string | undefined> => (await posts.select('title').first())?.title
export const listed: Promise<{ items: { views: number }[]; total: number }> = posts.select('views').list()
export const paged: Promise<{ items: Post[]; cursor: string }> = posts.page({ after: '' })
export const counted: Promise<number> = posts.where('views', '>', 1).count()
export const found: Promise<{ items: (Post & { highlights?: { [field: string]: string } })[] }> = posts.search('x')
export const grouped = posts.groupBy('status', { day: 'createdAt', tz: 'Europe/Berlin', as: 'day' }).aggregate({
  n: 'count',
  total: { sum: 'views' },
  authors: { countDistinct: 'authorId' },
})
export const groupedRows: Promise<
  { status: 'draft' | 'live' | 'archived'; day: string | null; n: number; total: number; authors: number }[]
> = grouped
export const truncated: Promise<boolean> = grouped.then((groups) => groups.truncated)
export const byHelpers: Promise<
  {
    status: 'draft' | 'live' | 'archived'
    createdAt: string | null
    month: string | null
    rating: number | null
    n: number
    mean: number | null
    least: number | null
    last: string | null
  }[]
> = posts
  .where('views', '>', 1)
  .groupBy('status', day('createdAt', 'Europe/Berlin'), month('publishAt', 'UTC', 'month'), bucket('rating', 0.5))
  .where('pinned', '==', true)
  .sort('n', 'desc')
  .limit(10)
  .aggregate(
    { n: count(), mean: avg('rating'), least: min('views'), last: max('publishAt') },
    { having: [['n', '>', 1]] },
  )
export const oneGroup: Promise<{ total: number }[]> = posts.aggregate({ total: sum('views') }, { search: 'word' })
export const looseGroups: Promise<{ anything: unknown; n: number }[]> = loose
  .groupBy('anything')
  .aggregate({ n: 'count' })
export async function iterate(): Promise<void> {
  for await (const post of posts.where('status', '==', 'draft')) post.title satisfies string
}

// Relations: names as the server derives them, and the records that they add
const included = posts.include({
  author: { fields: ['name'] },
  editor: ['name', 'age'],
  comments: {
    where: [
      ['text', '!=', ''],
      ['author.name', '==', 'Ann'],
    ],
    sort: 'createdAt:desc',
    limit: 3,
    count: true,
    include: { author: {} },
  },
})
type Included = NonNullable<Result<typeof included.first>>
type Person = Row<Config['databases']['shared']['tables']['people']>
type Comment = Row<Config['databases']['shared']['tables']['comments']>
export const relations = [
  true satisfies Same<Included['title'], string>,
  true satisfies Same<Included['author'], { name: string } | null>,
  true satisfies Same<Included['editor'], { name: string; age: number | null } | null>,
  true satisfies Same<Included['comments']['total'], number>,
  true satisfies Same<Included['comments']['items'][number]['author'], Person | null>,
  true satisfies Same<Included['comments']['items'][number]['text'], string>,
  posts.include({}),
  posts.include({ author: { include: { manager: { include: { people: { count: true } } } } } }),
  posts.where('status', '==', 'live').include({ comments: {} }).sort('title').limit(3),
  comments.include({ post: { include: { author: ['name'] } }, author: {} }),
  people.include({ 'posts.authorId': ['title'], 'posts.editor_id': {}, comments: { limit: 0, count: true } }),
  posts.where('author.name', '==', 'Ann'),
  posts.where('author.manager.name', 'in', ['Ann']),
  posts.where('comments', 'some', [['text', 'contains', 'x']]),
  posts.where('author.comments', 'none', []),
  posts.or(['author.age', '>', 30], ['comments', 'none', []], ['views', '>', 3]),
]
export const relatedPosts: Promise<{ items: Comment[] }[]> = posts
  .include({ comments: {} })
  .select('id', 'title')
  .list()
  .then(({ items }) => items.map((post) => post.comments))
export const untypedRelation = untyped
  .db()
  .whatever.include({ any: { limit: 1 } })
  .where('any.thing', '==', 1)

// Tables
export const got: Promise<Post> = posts.get('p1')
export const maybe: Promise<Post | null> = posts.find('p1')
export const inserted: Promise<Post> = posts.insert({ title: 'x', authorId: 'a' }, { idempotencyKey: 'k' })
export const upserted: Promise<'inserted' | 'updated'> = posts
  .upsert({ id: 'p1', title: 'x', authorId: 'a' }, { on: 'id' })
  .then((row) => row.action)
export const updated: Promise<Post> = posts.update('p1', { views: increment(1) }, { ifMatch: '"1"' })
export const removed: Promise<void> = posts.delete('p1')
export const bulk: Promise<{ processed: number }> = posts.where('views', '==', 0).update({ status: 'archived' })
export const bulkRemoved: Promise<{ succeeded: number }> = posts.where('views', '==', 0).delete()
export const defaulted: Promise<{ text: string }> = comments.insert({ postId: 'p1', authorId: 'a' })
export const looseRow: Promise<{ [field: string]: unknown }> = loose.insert({ anything: 1, other: [true] })
export const looseQuery = loose.where('anything', '>', 1).or(['other', 'contains', 'x']).sort('anything')
export const task: Promise<{ done: boolean | null }> = tasks.get('t1')
export const byName: Promise<Post> = client.db('shared').table('posts').get('p1')
export const optimistic: Promise<Post> = posts.optimistic.update('p1', { title: 'x' })
export const live: LiveList<{ id: string }> = posts.sort('createdAt').select('id').live()
export const liveRecord: LiveRecord<Post> = posts.liveRecord('p1')
export const asQuery: Query<{ title: string }> = posts
export const asTable: Table<{ title: string }> = posts

// Batches and transactions
export const batch = client.db().batch((tx) => {
  tx.posts.insert({ title: 'x', authorId: 'a' })
  tx.posts.update('p1', { views: increment(1) }, { ifMatch: '"1"' })
  tx.comments.delete('c1')
  tx.comments.upsert({ postId: 'p1', authorId: 'a' }, { on: 'id' })
})
export const batched = batch.then(async ([first, second]) => {
  const changed: { id: string; createdAt: string } | undefined = first?.updated[0]
  const views: number | undefined = first?.table === 'posts' ? first.updated[0]?.views : undefined
  const texts: string[] = second?.table === 'comments' ? second.inserted.map((row) => row.text) : []
  const done: (boolean | null)[] = (await client.db('workspace', 'w1').batch(() => undefined)).flatMap((result) =>
    result.inserted.map((row) => row.done),
  )
  const loosely: BatchResult = { table: 'any', inserted: [{ field: 1 }], updated: [], deleted: ['a'] }
  return { changed, views, texts, done, loosely }
})
export const build = (tx: BatchBuilder<Config>): void => tx.comments.upsert({ postId: 'p1', authorId: 'a' })
export const transferred: Promise<number> = client.db().transaction(async (tx) => {
  const post = await tx.posts.get('p1')
  tx.posts.update('p1', { views: post.views + 1 })
  return post.views
})

// Rooms: the handlers' payloads and results, the latter as JSON
export const moved: Promise<{ isFree: boolean; by: string; at: string }> = game.send('move', { x: 1, y: 2 })
export const resigned: Promise<null> = game.send('resign')
export const chatted: Promise<number> = game.send('chat')
export const chattedText: Promise<number> = game.send('chat', 'hello', { timeout: 1000 })
export const predicted = game.predict('move', (shared, me, payload) => {
  shared[me] = payload.x satisfies number
})

// Buckets, push and functions
export const uploaded = client.files('avatars').upload('me.png', 'data', { contentType: 'image/png' })
export const subscribed = client.push.subscribe('any-topic')
export const ordered: Promise<{ orderId: string }> = client.call('checkout', { items: ['a'] })
export const pong: Promise<'pong'> = client.call('ping')
export const numbers: AsyncIterable<number> = client.stream('countdown', { from: 3 })

// Without a configuration every name is accepted.
export const anyRow = untyped.db('any', 'i').whatever.where('a', '==', 1).list()
export const anyTable = untyped.db().table('whatever').insert({ a: 1 })
export const anyRoom = untyped.room('any', 'r').send('anything', { a: 1 })
export const anyBucket = untyped.files('any').download('key')
export const anyCall: Promise<{ ok: boolean }> = untyped.call<{ ok: boolean }>('any', { a: 1 })
export const anyStream: AsyncIterable<number> = untyped.stream<number>('any')
export const asUntyped: Client<unknown> = untyped

// Types by name, for functions that take them
export const titles = async (db: Database<Config>): Promise<string[]> =>
  (await db.posts.list()).items.map((post) => post.title)
export const titlesOfShared = titles(client.db('shared'))
export type PostOfList = Result<typeof posts.list>['items'][number]
export const samePost: Same<PostOfList, Post> = true
