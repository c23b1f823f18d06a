import { describe, expect, test } from 'bun:test'
import { defineConfig, or } from './define.ts'
import { configShape } from './shape.ts'
import { findMistakes, type ParsedConfig, parseConfig } from './validate.ts'

const rootKey = 'root-key-0123456789'
const parse = (written: unknown, mode: 'development' | 'release' = 'release'): ParsedConfig =>
  parseConfig(written, { mode, rootKey })

describe('a good configuration', () => {
  const read = () => or({ title: 'x' }, { kind: 'b' })
  const enter = () => true
  const good = defineConfig({
    databases: {
      shared: {
        tables: {
          posts: {
            schema: {
              title: { type: 'string', required: true, min: 1, max: 20, pattern: '^\\p{L}', default: 'é' },
              views: { type: 'number', default: 0 },
              at: { type: 'datetime', default: '2026-01-31T13:00:00+01:00' },
              kind: { type: 'string', enum: ['a', 'b'], default: 'b', unique: true },
              tags: { type: 'json', default: { list: [1, null] } },
              parent: { type: 'string', references: 'posts' },
            },
            indexes: [{ fields: ['views', 'createdAt'] }, { fields: ['title'], unique: true }],
            search: ['title'],
            hidden: ['views'],
            access: { read, update: { before: true, after: read } },
          },
          loose: { access: { update: true } },
        },
      },
      team: { instance: true, access: enter, tables: { tasks: {} } },
    },
    serviceKeys: [
      {
        name: 'reader',
        key: 'reader-key-0123456789',
        scopes: ['db:table:posts:read', 'push:*:*:*'],
        expiresAt: '2030-01-01T00:00:00+01:00',
        ipCidr: ['10.0.0.0/8', '::1'],
      },
    ],
    rateLimits: { db: { requests: 7, window: '2m' }, auth: { requests: 3 } },
    cors: { origins: ['https://app.example.com', 'http://localhost:3000'] },
    api: { schemaEndpoint: 'authenticated' },
    captcha: { siteKey: 'site' },
    changes: { retention: '2h' },
    limits: { responseBytes: '1mb', writeBytes: '2mb' },
  })
  const { config, warnings } = parse(good)
  const table = config.namespaces.get('shared')?.tables.get('posts')

  test('fields stand in order of a record, complete and in stored form', () => {
    expect([...(table?.table.fields.values() ?? [])]).toEqual([
      { name: 'id', type: 'string', required: true, unique: true },
      {
        name: 'title',
        type: 'string',
        required: true,
        unique: false,
        default: 'é',
        min: 1,
        max: 20,
        pattern: /^\p{L}/u,
      },
      { name: 'views', type: 'number', required: false, unique: false, default: 0 },
      { name: 'at', type: 'datetime', required: false, unique: false, default: '2026-01-31T12:00:00.000Z' },
      { name: 'kind', type: 'string', required: false, unique: true, default: 'b', enum: ['a', 'b'] },
      { name: 'tags', type: 'json', required: false, unique: false, default: { list: [1, null] } },
      { name: 'parent', type: 'string', required: false, unique: false, references: 'posts' },
      { name: 'createdAt', type: 'datetime', required: true, unique: false },
      { name: 'updatedAt', type: 'datetime', required: true, unique: false },
    ])
  })

  test('the rest of a table', () => {
    expect(table?.table).toMatchObject({ namespace: 'shared', name: 'posts', schemaless: false, search: ['title'] })
    expect(table?.table.hidden).toEqual(new Set(['views']))
    expect(table?.table.indexes).toEqual([
      { fields: ['views', 'createdAt'], unique: false },
      { fields: ['title'], unique: true },
    ])
  })

  test('rules that are left out deny, one update rule counts twice', () => {
    expect(table?.access).toEqual({ read, insert: false, update: { before: true, after: read }, delete: false })
    expect(config.namespaces.get('shared')?.tables.get('loose')).toMatchObject({
      table: { schemaless: true, search: [] },
      access: { read: false, insert: false, update: { before: true, after: true }, delete: false },
    })
  })

  test('namespaces, keys and the other sections', () => {
    expect(config.namespaces.get('shared')).toMatchObject({ name: 'shared', instance: false, access: null })
    expect(config.namespaces.get('team')).toMatchObject({ name: 'team', instance: true, access: enter })
    expect(config.serviceKeys).toEqual([
      { name: 'root', key: rootKey, scopes: ['*'] },
      {
        name: 'reader',
        key: 'reader-key-0123456789',
        scopes: ['db:table:posts:read', 'push:*:*:*'],
        expiresAtMs: Date.UTC(2029, 11, 31, 23),
        ipCidr: ['10.0.0.0/8', '::1'],
      },
    ])
    expect(config).toMatchObject({
      mode: 'release',
      cors: { origins: ['https://app.example.com', 'http://localhost:3000'] },
      schemaEndpoint: 'authenticated',
      captcha: { siteKey: 'site' },
      changes: { retentionMs: 7_200_000, bytesMax: 1024 ** 3 },
      limits: { responseBytes: 1_048_576, writeBytes: 2_097_152 },
    })
    expect(warnings).toEqual([])
  })

  test('declared rate limits hold in both modes, the others are generous in development', () => {
    expect(config.rateLimits).toMatchObject({
      db: { requests: 7, windowMs: 120_000 },
      auth: { requests: 3, windowMs: 60_000 },
      push: { requests: 100, windowMs: 60_000 },
    })
    expect(parse(good, 'development').config.rateLimits).toMatchObject({
      db: { requests: 7, windowMs: 120_000 },
      push: { requests: 10_000, windowMs: 60_000 },
    })
  })

  test('everything is frozen', () => {
    const open: string[] = []
    const visit = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null || value instanceof RegExp) return
      if (value instanceof Map || value instanceof Set) {
        for (const [key, item] of value.entries()) visit(item, `${path}/${key}`)
        return
      }
      if (!Object.isFrozen(value)) open.push(path)
      for (const [key, item] of Object.entries(value)) visit(item, `${path}/${key}`)
    }
    visit(config, '')
    expect(open).toEqual([])
  })

  test('an empty one is complete too', () => {
    expect(parse({}).config).toMatchObject({
      cors: { origins: [] },
      schemaEndpoint: false,
      captcha: null,
      changes: { retentionMs: 86_400_000, bytesMax: 1024 ** 3 },
      limits: { responseBytes: 8_388_608, writeBytes: 67_108_864 },
    })
  })

  test('a dynamic namespace without a rule is warned of', () => {
    expect(parse({ databases: { team: { instance: true, tables: {} } } }).warnings).toEqual([
      'databases.team: without an access rule only the service key can use its instances',
    ])
  })
})

describe('mistakes', () => {
  const key = { name: 'a', key: 'key-0123456789-abc', scopes: ['*'] }
  const notOrigin = 'must be "*" or an origin such as "https://app.example.com", without a path'
  const keyed = (...keys: object[]) => ({ serviceKeys: keys.map((other) => ({ ...key, ...other })) })

  test.each<[written: unknown, mistake: string]>([
    [null, 'must be an object, not null'],
    [[], 'must be an object, not a list'],
    [{ files: {} }, `files: is not known here. Known: ${Object.keys(configShape.shape).join(', ')}.`],
    [
      { storage: { buckets: { 'a b': {} } } },
      'storage.buckets["a b"]: must be a letter or digit, then letters, digits, "_", "." and "-", at most 63 together',
    ],
    [
      { storage: { buckets: { a: { maxFileSize: 'big' } } } },
      'storage.buckets.a.maxFileSize: must be a size such as "5mb", or a number of bytes',
    ],
    [{ storage: { buckets: { a: { quota: 0 } } } }, 'storage.buckets.a.quota: must be at least 1'],
    [
      { storage: { buckets: { a: { access: { insert: true } } } } },
      'storage.buckets.a.access.insert: is not known here. Known: read, write, delete.',
    ],
    [
      { storage: { buckets: { a: { access: { write: 'all' } } } } },
      'storage.buckets.a.access.write: must be true, false or a function',
    ],
    [{ database: {} }, 'database: is not known here. Did you mean "databases"?'],
    [{ databases: [] }, 'databases: must be an object, not a list'],
    [{ databases: { shared: {} } }, 'databases.shared.tables: is missing'],
    [keyed({ key: undefined }), 'serviceKeys[0].key: is missing. Is its environment variable set?'],
    [keyed({ key: 'short' }), 'serviceKeys[0].key: must have at least 16 characters'],
    [keyed({ key: 'a key with spaces in it' }), 'serviceKeys[0].key: must be printable ASCII without spaces'],
    [keyed({ key: rootKey }), 'serviceKeys[0].key: is the root key; a key with scopes must be another'],
    [keyed({ name: 'root' }), 'serviceKeys[0].name: is the name of the root key'],
    [keyed({}, { name: 'b' }), 'serviceKeys[1].key: is the same as serviceKeys[0].key'],
    [keyed({}, { key: 'other-key-0123456789' }), 'serviceKeys[1].name: is the same as serviceKeys[0].name'],
    [keyed({ scopes: [] }), 'serviceKeys[0].scopes: must not be empty'],
    [
      keyed({ ipCidr: ['10.0.0.0/40'] }),
      "serviceKeys[0].ipCidr[0]: '10.0.0.0/40' has no prefix length between 0 and 32",
    ],
    [keyed({ expiresAt: 'soon' }), 'serviceKeys[0].expiresAt: must be a timestamp such as "2030-01-31T12:00:00Z"'],
    [
      { rateLimits: { database: { requests: 1 } } },
      'rateLimits.database: is not known here. Known: db, storage, auth, signin, signup, mail, push, events, functions, instances, global.',
    ],
    [{ rateLimits: { db: { requests: 0 } } }, 'rateLimits.db.requests: must be at least 1'],
    [{ rateLimits: { db: { requests: 0.5 } } }, 'rateLimits.db.requests: must be a whole number, not 0.5'],
    [
      { rateLimits: { db: { requests: 1, window: '1 m' } } },
      'rateLimits.db.window: must be a duration such as "30s", "15m", "12h" or "7d"',
    ],
    [{ cors: { origins: ['https://a.example/'] } }, `cors.origins[0]: ${notOrigin}`],
    [{ cors: { origins: ['javascript:1'] } }, `cors.origins[0]: ${notOrigin}`],
    [{ cors: { origins: ['https://A.example'] } }, `cors.origins[0]: ${notOrigin}`],
    [{ api: { schemaEndpoint: 'public' } }, 'api.schemaEndpoint: must be true, false or "authenticated"'],
    [{ captcha: {} }, 'captcha.siteKey: is missing'],
    [{ changes: { retention: 60 } }, 'changes.retention: must be text, not a number'],
    [{ changes: { maxSize: '1kb' } }, 'changes.maxSize: must be at least 1mb'],
    [{ limits: { responseBytes: '1kb' } }, 'limits.responseBytes: must be from 64kb to 64mb'],
    [{ limits: { responseBytes: 2 ** 30 } }, 'limits.responseBytes: must be from 64kb to 64mb'],
  ])('%j', (written, mistake) => {
    expect(findMistakes(written, rootKey)).toEqual([mistake])
  })

  test('an unknown scope', () => {
    expect(findMistakes(keyed({ scopes: ['db:table:posts:reed'] }), rootKey)[0]).toStartWith(
      'serviceKeys[0].scopes[0]: "db:table:posts:reed" is not a valid scope.',
    )
  })

  test('one does not hide another, in the same table or elsewhere', () => {
    const posts = {
      schema: { title: { type: 'strin' }, views: { type: 'number', default: 'x' } },
      indexes: [{ fields: ['titel'] }],
      serch: [],
      access: { read: 1 },
    }
    const written = { databases: { shared: { tables: { posts } } }, cors: { origins: 'x' } }
    const at = 'databases.shared.tables.posts'
    expect(findMistakes(written, rootKey).map((line) => line.split(': ')[0])).toEqual([
      `${at}.schema.title.type`,
      `${at}.access.read`,
      `${at}.serch`,
      'cors.origins',
      `${at}.schema.views.default`,
      `${at}.indexes[0].fields[0]`,
    ])
    expect(() => parse(written)).toThrow(findMistakes(written, rootKey).join('\n'))
  })
})
