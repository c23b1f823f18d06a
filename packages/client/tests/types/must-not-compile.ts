/** Uses of the client that must not compile. The line after each directive has exactly one mistake. */
import { count, day, max } from '../../src/records/aggregates.ts'
import type { Client } from '../../src/types/client.ts'
import type { Row } from '../../src/types/rows.ts'
import type { Config, Functions } from './blog-config.ts'

declare const client: Client<Config, Functions>
declare const increment: (by: number) => { readonly $op: 'increment'; readonly value: number }
declare const deleteField: () => { readonly $op: 'deleteField' }

type Post = Row<Config['databases']['shared']['tables']['posts']>
declare const post: Post
const { posts, comments, people } = client.db()
const game = client.room('game', 'g1')

// biome-ignore format: a comment and one line for each mistake.
export const mistakes = [
  // @ts-expect-error a field that the schema does not have
  posts.where('titel', '==', 'x'),
  // @ts-expect-error a hidden field
  posts.where('moderatorNote', '==', 'x'),
  // @ts-expect-error an operator that does not exist
  posts.where('title', '=', 'x'),
  // @ts-expect-error a substring of a number
  posts.where('views', 'contains', 1),
  // @ts-expect-error an order of booleans
  posts.where('pinned', '>', false),
  // @ts-expect-error an order of JSON
  posts.where('tags', '<', 1),
  // @ts-expect-error a list of JSON
  posts.where('tags', 'in', ['a']),
  // @ts-expect-error JSON compared with a value
  posts.where('tags', '==', 'a'),
  // @ts-expect-error a text for a number
  posts.where('views', '>', '10'),
  // @ts-expect-error a number for a text
  posts.where('title', '==', 1),
  // @ts-expect-error a value outside the enumeration
  posts.where('status', '==', 'deleted'),
  // @ts-expect-error a value outside the enumeration in a list
  posts.where('status', 'in', ['live', 'deleted']),
  // @ts-expect-error a single value where a list is required
  posts.where('status', 'in', 'live'),
  // @ts-expect-error null for a field that always has a value
  posts.where('title', '==', null),
  // @ts-expect-error null with an operator of order
  posts.where('rating', '>', null),
  // @ts-expect-error a date that is not text
  posts.where('publishAt', '<', new Date()),
  // @ts-expect-error a value of another type in an alternative
  posts.or(['views', '>', 'x']),
  // @ts-expect-error an unknown field in an alternative
  posts.or(['status', '==', 'live'], ['titel', '==', 'x']),
  // @ts-expect-error an operator that does not apply in an alternative
  posts.or(['views', 'contains', 'x']),
  // @ts-expect-error a sort by an unknown field
  posts.sort('titel'),
  // @ts-expect-error near a text
  people.where('name', 'near', [13.4, 52.5, '5km']),
  // @ts-expect-error near without a distance
  people.where('home', 'near', [13.4, 52.5]),
  // @ts-expect-error a place that is compared
  people.where('home', '>', [13.4, 52.5]),
  // @ts-expect-error within a text
  people.where('name', 'within', [[13, 52], [14, 53]]),
  // @ts-expect-error a place with a height
  people.insert({ name: 'x', home: [13.4, 52.5, 34] }),
  // @ts-expect-error a sort by a place
  people.sort('home'),
  // @ts-expect-error the distance of a text
  people.sort('name.distance'),
  // @ts-expect-error a sort by JSON
  posts.sort('tags'),
  // @ts-expect-error a direction that does not exist
  posts.sort('title', 'down'),
  // @ts-expect-error a selection of an unknown field
  posts.select('id', 'titel'),
  // @ts-expect-error a group by an unknown field
  posts.groupBy('titel'),
  // @ts-expect-error a measure that does not exist
  posts.aggregate({ n: { median: 'views' } }),
  // @ts-expect-error a period of an unknown field
  posts.groupBy(day('titel')),
  // @ts-expect-error a measure of a hidden field
  posts.aggregate({ n: max('moderatorNote') }),
  // @ts-expect-error a key that the groups do not have
  posts.groupBy('status').aggregate({ n: count() }).then(([group]) => group?.views),
  // @ts-expect-error the value of a measure as text
  posts.aggregate({ n: count() }).then(([group]): string => group?.n),
  // @ts-expect-error a relation by its name alone
  posts.include('comments'),
  // @ts-expect-error a relation that was not included
  posts.include({ author: {} }).first().then((row) => row?.comments),
  // @ts-expect-error a relation that does not exist
  posts.include({ author: {}, writer: {} }),
  // @ts-expect-error a relation by a hidden field
  posts.include({ reviewer: {} }),
  // @ts-expect-error the field in place of its relation
  posts.include({ authorId: {} }),
  // @ts-expect-error an ambiguous relation
  people.include({ posts: {} }),
  // @ts-expect-error an unknown field of a relation
  posts.include({ author: ['nam'] }),
  // @ts-expect-error a hidden field of a relation
  posts.include({ author: { fields: ['email'] } }),
  // @ts-expect-error a limit of a single record
  posts.include({ author: { limit: 3 } }),
  // @ts-expect-error a limit that is text
  posts.include({ comments: { limit: '3' } }),
  // @ts-expect-error an unknown field in a condition of a relation
  posts.include({ comments: { where: [['txt', '==', 'x']] } }),
  // @ts-expect-error an unknown relation of a relation
  posts.include({ comments: { include: { writer: {} } } }),
  // @ts-expect-error a record that may be null
  posts.include({ author: {} }).first().then((row) => row?.author.name),
  // @ts-expect-error a total that was not counted
  posts.include({ comments: {} }).first().then((row) => row?.comments.total),
  // @ts-expect-error a field of a relation that was not selected
  posts.include({ author: ['name'] }).first().then((row) => row?.author?.age),
  // @ts-expect-error a path that does not begin with a relation
  posts.where('writer.name', '==', 'x'),
  // @ts-expect-error a backward relation with an operator of fields
  posts.where('comments', '==', 'x'),
  // @ts-expect-error some without a list
  posts.where('comments', 'some', 'x'),
  // @ts-expect-error a field that was not selected
  posts.select('id').first().then((row) => row?.title),
  // @ts-expect-error a required field is missing
  posts.insert({ title: 'x' }),
  // @ts-expect-error an unknown field
  posts.insert({ title: 'x', authorId: 'a', titel: 'x' }),
  // @ts-expect-error a hidden field
  posts.insert({ title: 'x', authorId: 'a', moderatorNote: 'x' }),
  // @ts-expect-error null for a required field
  posts.insert({ title: null, authorId: 'a' }),
  // @ts-expect-error an operator in an insert
  posts.insert({ title: 'x', authorId: 'a', views: increment(1) }),
  // @ts-expect-error a value outside the enumeration
  posts.insert({ title: 'x', authorId: 'a', status: 'deleted' }),
  // @ts-expect-error an unknown field in a patch
  posts.update('p1', { titel: 'x' }),
  // @ts-expect-error an increment of a text
  posts.update('p1', { title: increment(1) }),
  // @ts-expect-error the deletion of a required field
  posts.update('p1', { title: deleteField() }),
  // @ts-expect-error the deletion of a field with a default
  posts.update('p1', { views: deleteField() }),
  // @ts-expect-error a patch of the id
  posts.update('p1', { id: 'p2' }),
  // @ts-expect-error a patch by filter with a value of another type
  posts.where('views', '>', 1).update({ pinned: 'yes' }),
  // @ts-expect-error an upsert by an unknown field
  posts.upsert({ title: 'x', authorId: 'a' }, { on: 'slug' }),
  // @ts-expect-error a table that does not exist
  client.db().articles,
  // @ts-expect-error a table that does not exist, by name
  client.db().table('articles'),
  // @ts-expect-error a table of another namespace
  client.db().tasks,
  // @ts-expect-error a namespace that does not exist
  client.db('private'),
  // @ts-expect-error a namespace with instances without an id
  client.db('workspace'),
  // @ts-expect-error an instance of a namespace without instances
  client.db('shared', 'w1'),
  // @ts-expect-error a batch that inserts less than is required
  client.db().batch((tx) => tx.comments.insert({ authorId: 'a' })),
  // @ts-expect-error a batch of an unknown table
  client.db().batch((tx) => tx.articles.delete('a')),
  // @ts-expect-error a field that only some tables of a batch have
  client.db().batch((tx) => tx.posts.delete('a')).then(([result]) => result?.updated[0]?.title),
  // @ts-expect-error a field that the rows of a batch do not have
  client.db().batch((tx) => tx.posts.delete('a')).then(([one]) => one?.table === 'posts' && one.updated[0]?.titel),
  // @ts-expect-error the result of a table that does not exist
  client.db().batch((tx) => tx.posts.delete('a')).then(([result]) => result?.table === 'articles'),
  // @ts-expect-error a transaction that reads an unknown field
  client.db().transaction(async (tx) => (await tx.posts.get('p1')).titel),
  // @ts-expect-error a hidden field of a row
  post.moderatorNote,
  // @ts-expect-error a value that may be null
  post.body satisfies string,
  // @ts-expect-error a reference to an unknown member of JSON
  post.tags.first,
  // @ts-expect-error an action that does not exist
  game.send('jump'),
  // @ts-expect-error an action of rooms without actions
  client.room('lobby', 'l1').send('jump'),
  // @ts-expect-error an action without its payload
  game.send('move'),
  // @ts-expect-error an action with a payload of another type
  game.send('move', { x: 1, y: '2' }),
  // @ts-expect-error a result of another type
  game.send('move', { x: 1, y: 2 }).then((result) => result.isTaken),
  // @ts-expect-error a prediction of an action that does not exist
  game.predict('jump', () => {}),
  // @ts-expect-error a namespace of rooms that does not exist
  client.room('chess', 'c1'),
  // @ts-expect-error a bucket that does not exist
  client.files('photos'),
  // @ts-expect-error a function that does not exist
  client.call('refund', {}),
  // @ts-expect-error an input of another type
  client.call('checkout', { items: [1] }),
  // @ts-expect-error an export that is not a remote procedure
  client.call('onSignUp'),
  // @ts-expect-error a stream of a function that answers once
  client.stream('ping'),
  // @ts-expect-error a live list of another row
  comments.live().current.items[0]?.title,
]
