import { expect, test } from 'bun:test'
import { relationsOf } from './relations.ts'
import { createdAtField, type Field, idField, type Table, updatedAtField } from './table.ts'

/** `fields`: names, and for references the table they refer to. */
function tableOf(name: string, fields: Readonly<Record<string, string | null>>, hidden: readonly string[] = []): Table {
  const declared = Object.entries(fields).map(
    ([field, references]): Field => ({
      name: field,
      type: 'string',
      required: false,
      unique: false,
      ...(references === null ? {} : { references }),
    }),
  )
  const all = [idField, ...declared, createdAtField, updatedAtField]
  return {
    namespace: 'shared',
    name,
    perInstance: false,
    schemaless: false,
    fields: new Map(all.map((field) => [field.name, field])),
    hidden: new Set(hidden),
    indexes: [],
    search: [],
    computed: [],
  }
}

const namesOf = (tables: readonly Table[], of: string, showsHidden = false): string[] => {
  const table = tables.find(({ name }) => name === of) ?? expect.unreachable()
  return [...relationsOf(table, tables, showsHidden).values()].map(
    ({ name, kind, target, field, targetField }) => `${name}: ${kind} ${target} ${field}=${targetField}`,
  )
}

test('[DB-INC-2] a forward relation is named by its field without Id or _id', () => {
  const tables = [tableOf('users', {}), tableOf('posts', { authorId: 'users', editor_id: 'users', owner: 'users' })]
  expect(namesOf(tables, 'posts')).toEqual([
    'author: one users authorId=id',
    'editor: one users editor_id=id',
    'owner: one users owner=id',
  ])
})

test('[DB-INC-2] where that name is taken, a forward relation has the name of its field', () => {
  const tables = [
    tableOf('users', {}),
    tableOf('posts', { authorId: 'users', author: null, ownerId: 'users', owner_id: 'users', Id: 'users' }),
  ]
  expect(namesOf(tables, 'posts').map((text) => text.split(':')[0])).toEqual(['authorId', 'ownerId', 'owner_id', 'Id'])
})

test('[DB-INC-3] a backward relation is named by its table, or by table and field where the name is taken', () => {
  const tables = [
    tableOf('users', { posts: null }),
    tableOf('posts', { authorId: 'users' }),
    tableOf('comments', { authorId: 'users', editorId: 'users' }),
    tableOf('categories', { parentId: 'categories' }),
    tableOf('notes', { ownerId: 'users' }),
  ]
  expect(namesOf(tables, 'users')).toEqual([
    'posts.authorId: many posts id=authorId',
    'comments.authorId: many comments id=authorId',
    'comments.editorId: many comments id=editorId',
    'notes: many notes id=ownerId',
  ])
  expect(namesOf(tables, 'categories')).toEqual([
    'parent: one categories parentId=id',
    'categories: many categories id=parentId',
  ])
})

test('[DB-INC-9] hidden fields change no name, and give relations only to those who see them', () => {
  const visible = [tableOf('users', {}), tableOf('posts', { authorId: 'users' })]
  const withHidden = [
    tableOf('users', {}),
    tableOf('posts', { authorId: 'users', author: null, reviewerId: 'users' }, ['author', 'reviewerId']),
  ]
  for (const of of ['users', 'posts']) expect(namesOf(withHidden, of)).toEqual(namesOf(visible, of))
  expect(namesOf(withHidden, 'posts', true)).toEqual([
    'author: one users authorId=id',
    'reviewer: one users reviewerId=id',
  ])
  expect(namesOf(withHidden, 'users', true)).toEqual([
    'posts: many posts id=authorId',
    'posts.reviewerId: many posts id=reviewerId',
  ])
})
