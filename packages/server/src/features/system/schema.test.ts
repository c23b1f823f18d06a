import { describe, expect, test } from 'bun:test'
import type { NamespaceDefinition } from '../../access/definition.ts'
import { createdAtField, type Field, idField, type Table, updatedAtField } from '../../query/table.ts'
import { describeSchema as describeConfig, type SchemaDescription } from './schema.ts'

const plain = (name: string, more: Partial<Field> = {}): Field => ({
  name,
  type: 'string',
  required: false,
  unique: false,
  ...more,
})

function table(namespace: string, name: string, own: readonly Field[], more: Partial<Table> = {}): Table {
  const fields = [idField, ...own, createdAtField, updatedAtField]
  return {
    namespace,
    name,
    perInstance: false,
    schemaless: false,
    fields: new Map(fields.map((field) => [field.name, field])),
    hidden: new Set(),
    indexes: [],
    search: [],
    computed: [],
    ...more,
  }
}

/** Every rule names something that must never be shown. */
const access = {
  read: () => ({ secretRule: true }),
  insert: false,
  update: { before: true, after: false },
  delete: false,
} as const

function namespaces(...tables: readonly Table[]): ReadonlyMap<string, NamespaceDefinition> {
  const made = new Map<string, NamespaceDefinition & { tables: Map<string, { table: Table; access: typeof access }> }>()
  for (const each of tables) {
    const name = each.namespace
    const namespace = made.get(name) ?? { name, instance: false, access: null, tables: new Map() }
    namespace.tables.set(each.name, { table: each, access })
    made.set(name, namespace)
  }
  return made
}

/** The description of a configuration that has nothing but tables. */
const describeSchema = (some: ReadonlyMap<string, NamespaceDefinition>): SchemaDescription =>
  describeConfig({ namespaces: some, buckets: new Map(), rooms: new Map() })

const builtIn = {
  id: { type: 'string', required: true, unique: true },
  createdAt: { type: 'datetime', required: true, unique: false },
  updatedAt: { type: 'datetime', required: true, unique: false },
} as const

describe('describeSchema', () => {
  test('[SYS-7, DB-SEARCH-22] the options of a search are described with the weights of its fields', () => {
    const ranking = { weights: [4, 1], typos: true, prefix: true, substring: false }
    const { tables } = describeSchema(namespaces(table('shared', 'notes', [], { search: ['body', 'title'], ranking })))
    expect(tables.notes).toMatchObject({
      search: ['body', 'title'],
      searchOptions: {
        language: 'simple',
        typos: true,
        prefix: true,
        substring: false,
        weights: { body: 4, title: 1 },
      },
    })
  })

  test('[SYS-7] a table is described by namespace, fields, search and indexes', () => {
    const posts = table(
      'shared',
      'posts',
      [
        plain('title', { required: true, min: 1, max: 200, pattern: /^[^<]+$/u }),
        plain('slug', { unique: true }),
        plain('state', { enum: ['draft', 'live'], default: 'draft' }),
        plain('done', { type: 'boolean', default: false }),
        plain('authorId', { references: 'authors' }),
      ],
      { search: ['title'], indexes: [{ fields: ['authorId', 'createdAt'], unique: false }] },
    )
    expect(describeSchema(namespaces(posts))).toStrictEqual({
      namespaces: { shared: { instance: false } },
      buckets: [],
      rooms: {},
      functions: {},
      tables: {
        posts: {
          namespace: 'shared',
          name: 'posts',
          schemaless: false,
          fields: {
            ...builtIn,
            title: { type: 'string', required: true, unique: false, min: 1, max: 200, pattern: '^[^<]+$' },
            slug: { type: 'string', required: false, unique: true },
            state: { type: 'string', required: false, unique: false, enum: ['draft', 'live'], default: 'draft' },
            done: { type: 'boolean', required: false, unique: false, default: false },
            authorId: { type: 'string', required: false, unique: false, references: 'authors' },
          },
          search: ['title'],
          indexes: [{ fields: ['authorId', 'createdAt'], unique: false }],
        },
      },
    })
  })

  test('[SYS-8] hidden fields and access rules are not described', () => {
    const notes = table('shared', 'notes', [plain('body'), plain('pin')], {
      hidden: new Set(['pin']),
      search: ['body', 'pin'],
      indexes: [
        { fields: ['body'], unique: false },
        { fields: ['body', 'pin'], unique: true },
      ],
    })
    const schema = describeSchema(namespaces(notes))
    expect(schema.tables.notes).toMatchObject({ search: ['body'], indexes: [{ fields: ['body'], unique: false }] })
    expect(Object.keys(schema.tables.notes?.fields ?? {})).toEqual(['id', 'body', 'createdAt', 'updatedAt'])
    expect(JSON.stringify(schema)).not.toMatch(/pin|secretRule|access/)
  })

  test('[SYS-9] a table name used in two namespaces is qualified in both', () => {
    const schema = describeSchema(
      namespaces(
        table('shared', 'tasks', []),
        table('workspace', 'tasks', [plain('title')]),
        table('shared', 'tags', []),
      ),
    )
    expect(Object.keys(schema.tables)).toEqual(['shared.tasks', 'tags', 'workspace.tasks'])
    expect(schema.tables['workspace.tasks']?.fields).toHaveProperty('title')
  })

  test('[SYS-7] a configuration without tables has an empty description', () => {
    expect(describeSchema(new Map())).toEqual({ tables: {}, namespaces: {}, buckets: [], rooms: {}, functions: {} })
  })
})
