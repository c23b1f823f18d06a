/** The tables of the tests of hooks, and every request that changes rows of `posts`. */
import { ApiError } from '../../../src/errors.ts'
import type { Hook, HookedRequest } from '../../harness/records/hooked-records.ts'

const access = { read: true, insert: true, update: true, delete: true }
export const tables = {
  posts: {
    schema: {
      title: { type: 'string', max: 100 },
      slug: { type: 'string', unique: true },
      n: { type: 'number', max: 1000 },
      kind: { type: 'string', enum: ['a', 'b'] },
      secret: { type: 'string' },
      parent: { type: 'string', references: 'posts' },
      data: { type: 'json' },
    },
    hidden: ['secret'],
    access,
  },
  notes: { schema: { post: { type: 'string', references: 'posts' }, text: { type: 'text' } }, access },
  owned: {
    schema: { owner: { type: 'string' }, text: { type: 'text' } },
    access: {
      read: false,
      insert: () => ({ owner: 'anyone' }),
      update: () => ({ owner: 'anyone' }),
      delete: false,
    },
  },
  closed: { schema: { text: { type: 'text' } }, access: { read: true, insert: false, update: false, delete: false } },
  loose: { access },
}

export const slugify = (title: unknown): string => String(title).toLowerCase().replaceAll(' ', '-')
export const addSlug: Hook = ({ row }) => ({ ...row, slug: slugify(row.title) })
export const refuse: Hook = () => {
  throw new ApiError(422, 'no-title', 'There is no title')
}

/** Every path that changes rows of `posts`; `p1` and `p2` exist. With the operations that it causes. */
export const paths: readonly (readonly [string, string, HookedRequest, readonly string[], string])[] = [
  ['insert', 'records.insert', { table: 'posts', body: { title: 'New One' } }, ['insert'], ''],
  ['update', 'records.update', { table: 'posts', id: 'p1', body: { title: 'New One' } }, ['update'], ''],
  ['delete', 'records.delete', { table: 'posts', id: 'p1' }, ['delete'], ''],
  [
    'upsert that inserts',
    'records.insert',
    { table: 'posts', query: { upsert: 'true' }, body: { id: 'p9', title: 'New One' } },
    ['insert'],
    '',
  ],
  [
    'upsert that updates',
    'records.insert',
    { table: 'posts', query: { upsert: 'true' }, body: { id: 'p1', title: 'New One' } },
    ['update'],
    '',
  ],
  [
    'batch of inserts',
    'records.batch',
    { table: 'posts', body: { inserts: [{ title: 'New One' }, { title: 'New Two' }] } },
    ['insert', 'insert'],
    'inserts[0]',
  ],
  [
    'batch',
    'records.batch',
    {
      table: 'posts',
      body: { inserts: [{ title: 'New One' }], updates: [{ id: 'p1', data: { title: 'New Two' } }], deletes: ['p2'] },
    },
    ['insert', 'update', 'delete'],
    'inserts[0]',
  ],
  [
    'batch of upserts',
    'records.batch',
    {
      table: 'posts',
      query: { upsert: 'true' },
      body: {
        inserts: [
          { id: 'p1', title: 'New One' },
          { id: 'p9', title: 'New Two' },
        ],
      },
    },
    // The order of the events is that of the statements, which share inserts.
    ['update', 'insert'],
    'inserts[0]',
  ],
  [
    'import',
    'records.import',
    { table: 'posts', body: { inserts: [{ title: 'New One' }, { title: 'New Two' }] } },
    ['insert', 'insert'],
    'inserts[0]',
  ],
  [
    'import of upserts',
    'records.import',
    {
      table: 'posts',
      body: {
        inserts: [
          { id: 'p1', title: 'New One' },
          { id: 'p9', title: 'New Two' },
        ],
        conflictTarget: 'id',
      },
    },
    ['update', 'insert'],
    'inserts[0]',
  ],
  [
    'update by filter',
    'records.batchByFilter',
    { table: 'posts', body: { action: 'update', filter: [['id', '==', 'p1']], data: { title: 'New One' } } },
    ['update'],
    '',
  ],
  [
    'delete by filter',
    'records.batchByFilter',
    { table: 'posts', body: { action: 'delete', filter: [['id', '==', 'p1']] } },
    ['delete'],
    '',
  ],
  [
    'transaction',
    'records.transaction',
    {
      body: {
        operations: [
          { table: 'notes', insert: { text: 'x' } },
          { table: 'posts', insert: { id: 'p8', title: 'New One' } },
          { table: 'posts', upsert: { id: 'p9', title: 'New Two' } },
          { table: 'posts', update: { id: 'p1', data: { title: 'New Three' } } },
          { table: 'posts', delete: { id: 'p2' } },
          { table: 'notes', insert: { post: 'p8' } },
        ],
      },
    },
    ['insert', 'insert', 'update', 'delete'],
    'operations[1]',
  ],
  [
    'transaction of inserts',
    'records.transaction',
    {
      body: {
        operations: [
          { table: 'notes', insert: {} },
          { table: 'posts', insert: { title: 'New One' } },
        ],
      },
    },
    ['insert'],
    'operations[1]',
  ],
]
