/** A blog with relations in every form: forward, backward, ambiguous, to itself, under names that are taken, hidden. */
import { exists, field, or } from '../../../src/access/filter.ts'
import type { Answer, Client } from '../client.ts'
import { query } from '../client.ts'

export const tablePath = (table: string): string => `/api/db/shared/tables/${table}`

interface Auth {
  readonly id: string
}

const text = { type: 'string' } as const
const reference = (references: string) => ({ type: 'string', references }) as const

/**
 * Users see themselves and users who are not private; posts that are live; comments without a flag, or their own; and
 * no reports at all. Notes are visible to members of a team.
 */
export const blogConfig = {
  databases: {
    shared: {
      tables: {
        users: {
          schema: { name: text, role: text, private: { type: 'boolean' }, email: text },
          hidden: ['email'],
          access: {
            read: (auth: Auth | null) => (auth ? or({ private: false }, { id: auth.id }) : { private: false }),
          },
        },
        posts: {
          schema: {
            title: { type: 'text' },
            views: { type: 'number' },
            status: text,
            tags: { type: 'json' },
            authorId: reference('users'),
            editor_id: reference('users'),
            reviewerId: reference('users'),
          },
          hidden: ['reviewerId'],
          search: ['title'],
          access: {
            read: () => ({ status: 'live' }),
            insert: true,
            update: (auth: Auth | null) => auth && { authorId: auth.id },
            delete: (auth: Auth | null) => auth && { authorId: auth.id },
          },
        },
        comments: {
          schema: {
            postId: { ...reference('posts'), required: true },
            authorId: reference('users'),
            body: { type: 'text' },
            rank: { type: 'number' },
            flagged: { type: 'boolean' },
            note: text,
          },
          hidden: ['note'],
          indexes: [{ fields: ['postId', 'rank'] }],
          access: {
            read: (auth: Auth | null) => (auth ? or({ flagged: false }, { authorId: auth.id }) : { flagged: false }),
          },
        },
        categories: { schema: { name: text, parentId: reference('categories') }, access: { read: true } },
        // The relation `author` is taken by a field, and `users` of the members of a team stands under a field.
        teams: { schema: { author: reference('users'), authorId: reference('users') }, access: { read: true } },
        members: { schema: { teamId: reference('teams'), userId: text }, access: { read: false } },
        notes: {
          schema: { teamId: reference('teams'), body: text },
          access: {
            read: (auth: Auth | null) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }),
          },
        },
        reports: { schema: { postId: reference('posts'), reason: text }, access: { read: false } },
        things: { access: { read: true } },
        parts: { schema: { thingId: reference('things'), label: text }, access: { read: true } },
      },
    },
  },
} as const

export type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>

export const blogRows: Rows = {
  users: [
    { id: 'ann', name: 'Ann', role: 'editor', private: false, email: 'ann@x.test' },
    { id: 'bob', name: 'Bob', role: 'author', private: false, email: 'bob@x.test' },
    { id: 'eve', name: 'Eve', role: 'editor', private: true, email: 'eve@x.test' },
  ],
  posts: [
    { id: 'p1', title: 'one fish', views: 10, status: 'live', tags: ['a'], authorId: 'ann', editor_id: 'bob' },
    { id: 'p2', title: 'two fish', views: 20, status: 'live', authorId: 'eve', reviewerId: 'bob' },
    { id: 'p3', title: 'red fish', views: 30, status: 'live' },
    { id: 'p4', title: 'blue fish', views: 40, status: 'draft', authorId: 'ann' },
  ],
  comments: [
    { id: 'c1', postId: 'p1', authorId: 'bob', body: 'first', rank: 1, flagged: false, note: 'n1' },
    { id: 'c2', postId: 'p1', authorId: 'eve', body: 'second', rank: 3, flagged: false },
    { id: 'c3', postId: 'p1', authorId: 'bob', body: 'third', rank: 2, flagged: true },
    { id: 'c4', postId: 'p2', authorId: 'ann', body: 'fourth', rank: 4, flagged: false },
    { id: 'c5', postId: 'p4', authorId: 'ann', body: 'fifth', rank: 5, flagged: false },
  ],
  categories: [
    { id: 'top', name: 'Top' },
    { id: 'mid', name: 'Mid', parentId: 'top' },
    { id: 'low', name: 'Low', parentId: 'mid' },
  ],
  teams: [{ id: 't1', author: 'ann', authorId: 'bob' }, { id: 't2' }],
  members: [{ id: 'm1', teamId: 't1', userId: 'ann' }],
  notes: [
    { id: 'n1', teamId: 't1', body: 'of t1' },
    { id: 'n2', teamId: 't2', body: 'of t2' },
  ],
  reports: [{ id: 'r1', postId: 'p1', reason: 'spam' }],
  things: [{ id: 'x', parts: 'a field of its own', 'a.b': 1 }, { id: 'y' }],
  parts: [{ id: 'q', thingId: 'x', label: 'L' }],
}

/** Inserts the rows, tables in order. */
export async function insertRows(service: Client, rows: Rows): Promise<void> {
  for (const [table, inserts] of Object.entries(rows)) {
    const { status, text: answer } = await service.post(`${tablePath(table)}/batch`, { inserts })
    if (status !== 200) throw new Error(`${table}: ${answer}`)
  }
}

/** A list with `include` and other parameters. */
export const listWith = (
  client: Client,
  table: string,
  include: unknown,
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<Answer> => client.get(tablePath(table) + query({ ...parameters, include }))
