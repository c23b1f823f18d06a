import { describe, expect, test } from 'bun:test'
import { declaredNameCharsMax } from '../../../limits/api.ts'
import { findMistakes } from '../../validate.ts'

const text = { type: 'string' }
const schema = { title: text, views: { type: 'number' }, tags: { type: 'json' }, Rank: text }
const at = 'databases.shared.tables.posts'

const mistakesOf = (table: unknown): readonly string[] =>
  findMistakes({ databases: { shared: { tables: { posts: table } } } }, '')

describe('names', () => {
  const long = 'a'.repeat(declaredNameCharsMax + 1)

  test.each<[name: string, place: string, message: string]>([
    ['_x', '._x', 'must not start with "_", which marks the platform\'s own names'],
    ['SqliteX', '.SqliteX', 'must not start with "sqlite"'],
    ['a-b', '["a-b"]', 'must be a letter, then letters, digits and "_"'],
    ['é', '["é"]', 'must be a letter, then letters, digits and "_"'],
    ['1', '["1"]', 'must be a letter, then letters, digits and "_"'],
    ['', '[""]', 'must be a letter, then letters, digits and "_"'],
    ['constructor', '.constructor', 'is a reserved name'],
    ['__proto__', '.__proto__', 'is a reserved name'],
    [long, `.${long}`, `must have at most ${declaredNameCharsMax} characters`],
  ])('%j', (name, place, message) => {
    // An own key, also where it is called __proto__.
    const named = (value: unknown): unknown => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)
    expect(findMistakes({ databases: named({ tables: {} }) }, '')).toEqual([`databases${place}: ${message}`])
    expect(findMistakes({ databases: { shared: { tables: named({}) } } }, '')).toEqual([
      `databases.shared.tables${place}: ${message}`,
    ])
    expect(mistakesOf({ schema: named(text) })).toEqual([`${at}.schema${place}: ${message}`])
  })

  test.each<[name: string, message: string]>([
    ['ID', 'is built in: every record has "id"'],
    ['createdAt', 'is built in: every record has "createdAt"'],
    ['rowid', 'is reserved for a system column of the database'],
    ['Xmin', 'is reserved for a system column of the database'],
  ])('%s as a field', (name, message) => {
    expect(mistakesOf({ schema: { [name]: text } })).toEqual([`${at}.schema.${name}: ${message}`])
  })

  test('that differ only in case', () => {
    const databases = {
      shared: { tables: { posts: { schema: { a: text, A: text } }, Posts: {} } },
      Shared: { tables: {} },
    }
    expect(findMistakes({ databases }, '')).toEqual([
      'databases.Shared: differs from "shared" only in upper and lower case',
      'databases.shared.tables.Posts: differs from "posts" only in upper and lower case',
      'databases.shared.tables.posts.schema.A: differs from "a" only in upper and lower case',
    ])
  })
})

describe('lists of fields', () => {
  test.each<[table: object, place: string, message: string]>([
    [{ indexes: [{ fields: [] }] }, 'indexes[0].fields', 'must not be empty'],
    [{ indexes: [{ field: 'a' }] }, 'indexes[0].fields', 'is missing'],
    [
      { indexes: [{ fields: ['titel'] }] },
      'indexes[0].fields[0]',
      '"titel" is not a field of this table. Did you mean "title"?',
    ],
    [{ indexes: [{ fields: ['title', 'title'] }] }, 'indexes[0].fields[1]', '"title" stands here twice'],
    [{ indexes: [{ fields: ['tags'] }] }, 'indexes[0].fields[0]', '"tags" is of type json, which cannot be indexed'],
    [
      { indexes: [{ fields: ['title'] }, { fields: ['title'], unique: true }] },
      'indexes[1].fields',
      'the same index stands above',
    ],
    [{ search: ['body'] }, 'search[0]', '"body" is not a field of this table.'],
    [{ search: ['id'] }, 'search[0]', '"id" is built in and not searched; filter on it'],
    [{ search: ['views'] }, 'search[0]', '"views" is of type number; only string and text are searched'],
    [{ search: ['Rank'] }, 'search[0]', '"Rank" cannot be searched under this name; rename it'],
    [{ search: [{ field: 'body', weight: 2 }] }, 'search[0]', '"body" is not a field of this table.'],
    [{ search: ['title', { field: 'title' }] }, 'search[1]', '"title" stands here twice'],
    [{ search: [{ field: 'title', weight: 0 }] }, 'search[0].weight', 'must be at least 1'],
    [{ search: [{ field: 'title', weight: 101 }] }, 'search[0].weight', 'must be at most 100'],
    [{ search: [{ field: 'title', weight: 1.5 }] }, 'search[0].weight', 'must be a whole number, not 1.5'],
    [{ search: [{ name: 'title' }] }, 'search[0].field', 'is missing'],
    [{ search: [7] }, 'search[0]', 'must be the name of a field, or { field, weight }'],
    [{ searchOptions: { typos: true } }, 'searchOptions', 'needs searched fields: add "search"'],
    [
      { search: ['title'], searchOptions: { typo: true } },
      'searchOptions.typo',
      'is not known here. Did you mean "typos"?',
    ],
    [
      { search: ['title'], searchOptions: { language: 'german' } },
      'searchOptions.language',
      'must be "simple": words are compared as they are written, since the stemming of the engines differs',
    ],
    [
      { search: [{ field: 'title' }], hidden: ['title'] },
      'search[0]',
      '"title" is hidden: a search would reveal its content',
    ],
    [{ search: ['title'], hidden: ['title'] }, 'search[0]', '"title" is hidden: a search would reveal its content'],
    [{ hidden: ['body'] }, 'hidden[0]', '"body" is not a field of this table.'],
    [{ hidden: ['createdAt'] }, 'hidden[0]', '"createdAt" is built in and cannot be hidden'],
    [{ hidden: 'title' }, 'hidden', 'must be a list, not a string'],
  ])('%j', (table, place, message) => {
    expect(mistakesOf({ schema, ...table })).toContain(`${at}.${place}: ${message}`)
  })

  test('without a schema', () => {
    expect(mistakesOf({ search: ['title'], hidden: ['title'], indexes: [{ fields: ['title', 'createdAt'] }] })).toEqual(
      [
        `${at}.search: needs a schema that declares its fields`,
        `${at}.hidden: needs a schema that declares its fields`,
        `${at}.indexes[0].fields[0]: "title" is not a field of this table.`,
      ],
    )
  })

  test('an index of too many fields, a schema of too many', () => {
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${index}`, text]))
    expect(mistakesOf({ schema: many, indexes: [{ fields: Object.keys(many).slice(0, 9) }] })).toEqual([
      `${at}.schema: has more than 500 fields`,
      `${at}.indexes[0].fields: must be at most 8`,
    ])
  })

  test('a required hidden field without a default is allowed: the service key fills it', () => {
    expect(mistakesOf({ schema: { pin: { ...text, required: true } }, hidden: ['pin'] })).toEqual([])
  })
})

describe('rules', () => {
  const later = async () => true

  test.each<[access: unknown, place: string, message: string]>([
    [{ read: 'all' }, '.read', 'must be true, false or a function'],
    [{ read: null }, '.read', 'must be true, false or a function'],
    [{ read: later }, '.read', 'must not be asynchronous'],
    [{ *read() {} }, '.read', 'must not be asynchronous'],
    [{ write: true }, '.write', 'is not known here. Known: read, insert, update, delete.'],
    [{ update: 5 }, '.update', 'must be true, false, a function, or { before, after }'],
    [{ update: later }, '.update', 'must not be asynchronous'],
    [{ update: { before: true } }, '.update.after', 'must be true, false or a function'],
    [{ update: { before: true, after: true, afer: true } }, '.update.afer', 'is not known here. Did you mean "after"?'],
    [true, '', 'must be an object, not a boolean'],
  ])('%p', (access, place, message) => {
    expect(mistakesOf({ access })).toEqual([`${at}.access${place}: ${message}`])
  })

  test('of namespaces', () => {
    const databases = {
      shared: { access: () => true, tables: {} },
      team: { instance: true, access: true, tables: {} },
    }
    expect(findMistakes({ databases }, '')).toEqual([
      'databases.team.access: must be a function of the caller and the instance id',
      'databases.shared.access: is only for namespaces with instance: true',
    ])
  })
})
