/**
 * What the types of `defineConfig` accept and refuse. The compiler is the test: `tsc` fails on a valid configuration
 * that they refuse, and on an `@ts-expect-error` that is not followed by an error. The line after each such comment has
 * exactly one mistake.
 */
import { expect, test } from 'bun:test'
import {
  type Auth,
  and,
  defineConfig,
  exists,
  type Filter,
  field,
  not,
  or,
  type PlinthConfig,
  type RuleConfig,
  where,
} from '../../src/config/define.ts'

const owner = (auth: Auth | null) => auth && { authorId: auth.id }

const good = defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true, max: 200 },
            body: { type: 'text', min: 1 },
            views: { type: 'number', default: 0, min: 0 },
            published: { type: 'boolean', default: false },
            location: { type: 'geo', index: true, default: [13.4, 52.5] },
            tags: { type: 'json', default: ['a', { b: 1 }] },
            publishAt: { type: 'datetime' },
            slug: { type: 'string', unique: true, pattern: '^[a-z0-9-]+$' },
            kind: { type: 'string', enum: ['note', 'page'], default: 'note' },
            authorId: { type: 'string', required: true, references: 'people' },
          },
          indexes: [{ fields: ['authorId', 'createdAt'] }, { fields: ['kind', 'slug'], unique: true }],
          search: [{ field: 'title', weight: 4 }, 'body'],
          searchOptions: { language: 'simple', typos: true, prefix: true, substring: false },
          hidden: ['tags', 'views'],
          access: {
            read: (auth) =>
              auth
                ? or({ published: true }, { authorId: auth.id }, and(where('views', '>', 10), not({ kind: 'page' })))
                : { published: true, publishAt: null },
            insert: (auth) => auth && { authorId: auth.id },
            update: { before: owner, after: (auth) => auth?.role === 'editor' || owner(auth) },
            delete: (auth) => auth?.custom.level > 3 && where('kind', 'in', ['note', 'page']),
          },
        },
        members: {
          schema: { userId: { type: 'string' }, teamId: { type: 'string' } },
          access: {
            read: (auth) => auth && exists('members', { userId: auth.id, teamId: field('teamId') }),
            insert: true,
            update: (auth) => auth && and({ userId: auth.id }, { id: 'x' }),
          },
        },
        loose: {
          access: {
            read: (auth) => auth && or({ anything: 1 }, not({ other: true }), where('third', 'contains', 'x')),
            insert: (auth) => auth && { anything: auth.id },
            update: { before: (auth) => auth && { anything: 1 }, after: true },
          },
          indexes: [{ fields: ['createdAt'] }],
        },
        bare: {},
      },
    },
    workspace: {
      instance: true,
      access: (auth, id) => auth?.custom.workspaces?.includes(id) ?? false,
      tables: { tasks: { schema: { title: { type: 'string' } }, access: { read: (auth) => auth && { title: 'x' } } } },
    },
  },
  storage: {
    buckets: {
      files: {
        maxFileSize: '5mb',
        quota: 1024,
        images: true,
        access: {
          read: (auth) =>
            auth ? or({ uploadedBy: auth.id }, { 'customMetadata.team': auth.custom.team }) : { size: 1 },
          write: (auth) =>
            auth && and(where('key', '>=', `${auth.id}/`), where('contentType', 'in', ['a/b']), { size: 1 }),
          delete: (auth) => auth?.role === 'editor' || not({ 'customMetadata.kept': 'yes' }),
        },
      },
      closed: {},
    },
  },
  kv: { cache: {}, sessions: { writeInterval: 0, maxValueSize: '4kb' } },
  serviceKeys: [
    { name: 'uploader', key: process.env.UPLOADER_KEY, scopes: ['db:table:posts:read'], ipCidr: ['10.0.0.0/8'] },
  ],
  rateLimits: { db: { requests: 10, window: '1m' }, auth: { requests: 5 } },
  cors: { origins: ['https://app.example.com'] },
  api: { schemaEndpoint: 'authenticated' },
  captcha: { siteKey: 'site' },
  changes: { retention: '2h' },
})

const kept = defineConfig({
  databases: {
    shared: { tables: { posts: { schema: { title: { type: 'string' } }, hidden: ['title'] } } },
    team: { instance: true, tables: {} },
  },
  storage: { buckets: { files: {} } },
  rooms: {
    game: {
      actions: {
        move: (room, player, to: { x: number }) => ({ by: player.id, isFree: to.x > room.players.size }),
        async leave() {},
      },
    },
  },
  vector: { docs: { dimensions: 3 } },
  kv: { cache: {} },
  sql: { reports: {} },
})

/** Names, flags and handlers remain in the type of a configuration, for the types of its clients. */
export const literals: readonly [
  instance: true,
  hidden: readonly ['title'],
  payload: { x: number },
  result: { by: string; isFree: boolean },
  names: readonly ['files', 'docs', 'cache', 'reports'],
] = [
  kept.databases.team.instance,
  kept.databases.shared.tables.posts.hidden,
  { x: 1 } satisfies Parameters<typeof kept.rooms.game.actions.move>[2],
  { by: 'x', isFree: true } satisfies ReturnType<typeof kept.rooms.game.actions.move>,
  [
    'files' satisfies keyof typeof kept.storage.buckets,
    'docs' satisfies keyof typeof kept.vector,
    'cache' satisfies keyof typeof kept.kv,
    'reports' satisfies keyof typeof kept.sql,
  ],
]

/** Rules that tables with different schemas share. */
const asConditions = (auth: Auth | null) => auth && { authorId: auth.id }
const asFilter = (auth: Auth | null) => auth && where('authorId', '==', auth.id)
const asEither = (auth: Auth | null) =>
  auth?.role === 'editor' || (auth && and({ authorId: auth.id }, not({ id: 'x' })))
const asRule: RuleConfig = (auth) => auth && { authorId: auth.id }
const isOwnedBy = (name: string) => (auth: Auth | null) => auth && and({ [name]: auth.id })
const asAnnotated = (auth: Auth | null): Filter | null => auth && where('authorId', '==', auth.id)
const shares = { read: asConditions, insert: asFilter, update: asEither, delete: asRule }

export const sharedRules = defineConfig({
  databases: {
    shared: {
      tables: {
        posts: { schema: { authorId: { type: 'string', required: true }, views: { type: 'number' } }, access: shares },
        notes: {
          schema: { authorId: { type: 'string', references: 'posts' }, flagged: { type: 'boolean' } },
          access: shares,
        },
        drafts: {
          schema: { authorId: { type: 'string' } },
          access: { read: isOwnedBy('authorId'), insert: asAnnotated, update: { before: asRule, after: asEither } },
        },
        loose: { access: shares },
        enumerated: {
          schema: { state: { type: 'string', enum: ['open', 'closed'] }, rank: { type: 'number', enum: [1, 2] } },
          access: {
            read: () => ({ state: 'open' }),
            insert: (auth) => auth && { state: 'open', rank: 1 },
            update: (auth) => (auth ? { state: 'open' } : or({ rank: 2 }, { state: 'closed' })),
          },
        },
      },
    },
  },
})

/** A configuration with a type of its own is checked in its shape only. */
export const annotated: PlinthConfig = {
  databases: { shared: { tables: { posts: { search: ['title'], access: { read: (auth) => auth !== null } } } } },
  storage: { buckets: { files: { access: { read: (auth) => auth && { uploadedBy: auth.id } } } } },
}
export const annotatedConfig: PlinthConfig = defineConfig(annotated)

/** One table in a complete configuration, so that inference works as it does for users. */
const schema = { title: { type: 'string' }, count: { type: 'number' }, data: { type: 'json' } } as const
const wrong = () => ({ t: 1 })
const kinds = { kind: { type: 'string', enum: ['x'] } } as const
const misspelled = { title: { type: 'string', requird: true } } as const

// biome-ignore format: a comment and one line for each mistake.
export const wrongNames = [
  // @ts-expect-error an index on a field the schema lacks
  defineConfig({ databases: { s: { tables: { a: { schema, indexes: [{ fields: ['titel'] }] } } } } }),
  // @ts-expect-error an index on json
  defineConfig({ databases: { s: { tables: { a: { schema, indexes: [{ fields: ['data'] }] } } } } }),
  // @ts-expect-error an index on a geo field, which declares its own
  defineConfig({ databases: { s: { tables: { a: { schema: { p: { type: 'geo' } }, indexes: [{ fields: ['p'] }] } } } } }),
  // @ts-expect-error a search on a field the schema lacks
  defineConfig({ databases: { s: { tables: { a: { schema, search: ['titel'] } } } } }),
  // @ts-expect-error a weighted search on a field the schema lacks
  defineConfig({ databases: { s: { tables: { a: { schema, search: [{ field: 'titel', weight: 2 }] } } } } }),
  // @ts-expect-error a language besides the one of all engines
  defineConfig({ databases: { s: { tables: { a: { schema, search: ['title'], searchOptions: { language: 'german' } } } } } }),
  // @ts-expect-error a search on a number
  defineConfig({ databases: { s: { tables: { a: { schema, search: ['count'] } } } } }),
  // @ts-expect-error hiding a field the schema lacks
  defineConfig({ databases: { s: { tables: { a: { schema, hidden: ['titel'] } } } } }),
  // @ts-expect-error hiding a built-in field
  defineConfig({ databases: { s: { tables: { a: { schema, hidden: ['id'] } } } } }),
  // @ts-expect-error a search on a table without a schema
  defineConfig({ databases: { s: { tables: { a: { search: ['title'] } } } } }),
  // @ts-expect-error hiding in a table without a schema
  defineConfig({ databases: { s: { tables: { a: { hidden: ['title'] } } } } }),
  // @ts-expect-error an index on an undeclared field
  defineConfig({ databases: { s: { tables: { a: { indexes: [{ fields: ['title'] }] } } } } }),
  // @ts-expect-error a rule on a field the schema lacks
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => ({ titel: 'x' }) } } } } } }),
  // @ts-expect-error the same beside a field that it has
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => ({ title: 'x', titel: 'x' }) } } } } } }),
  // @ts-expect-error the same in a rule that is a constant of its own
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: wrong } } } } } }),
  // @ts-expect-error the same inside or()
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => or({ titel: 'x' }) } } } } } }),
  // @ts-expect-error the same inside and(not())
  defineConfig({ databases: { s: { tables: { a: { schema, access: { insert: () => and(not({ t: 1 })) } } } } } }),
  // @ts-expect-error the same inside where()
  defineConfig({ databases: { s: { tables: { a: { schema, access: { delete: () => where('t', '>', 1) } } } } } }),
  // @ts-expect-error the outer field of exists()
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => exists('b', { x: field('t') }) }}}}}}),
  // @ts-expect-error a rule for the row before
  defineConfig({ databases: { s: { tables: { a: { schema, access: { update: { before: wrong, after: true } } } } } } }),
  // @ts-expect-error a rule for the row before without one for the row after
  defineConfig({ databases: { s: { tables: { a: { schema, access: { update: { before: true } } } } } } }),
  // @ts-expect-error before and after elsewhere than in update
  defineConfig({ databases: { s: { tables: { a: { schema, access: { delete: { before: true, after: true } } } } } } }),
  // @ts-expect-error an action that does not exist
  defineConfig({ databases: { s: { tables: { a: { schema, access: { write: true } } } } } }),
  // @ts-expect-error an operator that does not exist
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => where('title', '=', 'x') } } } } } }),
  // @ts-expect-error a misspelt option of a table
  defineConfig({ databases: { s: { tables: { a: { schema, acces: { read: true } } } } } }),
  // @ts-expect-error a misspelt option of a namespace
  defineConfig({ databases: { s: { tables: {}, instances: true } } }),
  // @ts-expect-error a namespace without tables
  defineConfig({ databases: { s: {} } }),
  // @ts-expect-error a rule on an unknown member of a file
  defineConfig({ storage: { buckets: { b: { access: { read: () => or(where('metadata.x', '==', 'x')) } } } } }),
  // @ts-expect-error the same as a plain object
  defineConfig({ storage: { buckets: { b: { access: { read: () => ({ 'metadata.x': 'x' }) } } } } }),
  // @ts-expect-error the same for a signed-in user
  defineConfig({ storage: { buckets: { b: { access: { write: (auth) => auth && { owner: auth.id } } } } } }),
  // @ts-expect-error the same together with a known member
  defineConfig({ storage: { buckets: { b: { access: { read: () => ({ uploadedBy: 'x', owner: 'x' }) } } } } }),
  // @ts-expect-error a claim of a caller who may be anonymous
  defineConfig({ storage: { buckets: { b: { access: { read: (auth) => ({ uploadedBy: auth?.id }) } } } } }),
  // @ts-expect-error an action that buckets do not have
  defineConfig({ storage: { buckets: { b: { access: { insert: true } } } } }),
  // @ts-expect-error a misspelt option of a bucket
  defineConfig({ storage: { buckets: { b: { maxSize: 5 } } } }),
  // @ts-expect-error a string where a file has a number
  defineConfig({ storage: { buckets: { b: { access: { write: () => ({ size: 'x' }) } } } } }),
  // @ts-expect-error a section that does not exist
  defineConfig({ databases: {}, storag: {} }),
  // @ts-expect-error a rate limit group that does not exist
  defineConfig({ rateLimits: { database: { requests: 1 } } }),
  // @ts-expect-error a mode of the schema endpoint that does not exist
  defineConfig({ api: { schemaEndpoint: 'public' } }),
]

// biome-ignore format: a comment and one line for each mistake.
export const wrongValues = [
  // @ts-expect-error a string where the field is a number
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => ({ count: 'x' }) } } } } } }),
  // @ts-expect-error a number where the field is a string
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: () => ({ title: 1 }) } } } } } }),
  // @ts-expect-error a claim that may be missing
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: (auth) => ({ title: auth?.id }) } } } } } }),
  // @ts-expect-error an object where a table without a schema is compared
  defineConfig({ databases: { s: { tables: { a: { access: { read: () => ({ title: {} }) } } } } } }),
  // @ts-expect-error a rule that is asynchronous
  defineConfig({ databases: { s: { tables: { a: { schema, access: { read: async () => true } } } } } }),
  // @ts-expect-error an instance rule that returns a filter
  defineConfig({ databases: { s: { instance: true, access: () => ({ a: 1 }), tables: {} } } }),
  // @ts-expect-error a value outside the enum
  defineConfig({ databases: { s: { tables: { a: { schema: kinds, access: { read: () => ({ kind: 'y' }) } } } } } }),
]

// The parameters of handlers and rules need no types of their own.
export const vectors = defineConfig({
  vector: { docs: { dimensions: 384, metric: 'dot-product', metadataIndexes: ['lang'], engine: 'memory' } },
})

export const rooms = defineConfig({
  rooms: {
    game: {
      access: { join: (auth, roomId) => auth?.custom.room === roomId, action: (_, __, type) => type !== 'cheat' },
      onJoin: (room, player) => room.broadcast('hello', player.id, { except: player.id }),
      actions: {
        async move(room, player, { x, y }) {
          room.shared.board = { ...room.shared.board, [`${x},${y}`]: player.id }
          player.state.moves = (player.state.moves ?? 0) + 1
          await room.db.insert('shared.moves', { x, y })
          return room.players.size
        },
      },
      timers: { ring: (room, data) => room.setMetadata({ rang: data }) },
    },
  },
})

export const sqlDatabases = defineConfig({
  sql: { reports: {}, archive: { timeout: '1m', maxRows: 5, maxSize: '2gb' } },
})

// biome-ignore format: a comment and one line for each mistake.
export const wrongSqlDatabases = [
  // @ts-expect-error a misspelt option
  defineConfig({ sql: { reports: { maxrows: 5 } } }),
  // @ts-expect-error a duration that is not a string
  defineConfig({ sql: { reports: { timeout: 5 } } }),
]

// biome-ignore format: a comment and one line for each mistake.
export const wrongRooms = [
  // @ts-expect-error a misspelt option
  defineConfig({ rooms: { game: { maxPlayer: 5 } } }),
  // @ts-expect-error a rule that does not resolve to a boolean
  defineConfig({ rooms: { game: { access: { join: async () => 'yes' } } } }),
  // @ts-expect-error a filter as a rule of rooms, which have no rows
  defineConfig({ rooms: { game: { access: { join: () => ({ a: 1 }) } } } }),
  // @ts-expect-error a durability that does not exist
  defineConfig({ rooms: { game: { durability: 'never' } } }),
  // @ts-expect-error an unknown method of a room
  defineConfig({ rooms: { game: { onJoin: (room) => room.send('hello') } } }),
  // @ts-expect-error an action that is not a function
  defineConfig({ rooms: { game: { actions: { move: 'left' } } } }),
  // @ts-expect-error an unknown metric
  defineConfig({ vector: { docs: { dimensions: 3, metric: 'manhattan' } } }),
]

// biome-ignore format: a comment and one line for each mistake.
export const wrongKv = [
  // @ts-expect-error a misspelt option
  defineConfig({ kv: { cache: { writeIntervall: 5 } } }),
  // @ts-expect-error an interval that is a duration
  defineConfig({ kv: { cache: { writeInterval: '1s' } } }),
]

// biome-ignore format: a comment and one line for each mistake.
export const wrongFields = [
  // @ts-expect-error a type that does not exist
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'strin' } } } } } } }),
  // @ts-expect-error no type
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { required: true } } } } } } }),
  // @ts-expect-error a misspelt option
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'string', requird: true } } } } } } }),
  // @ts-expect-error the same in a schema that is a constant of its own
  defineConfig({ databases: { s: { tables: { a: { schema: misspelled } } } } }),
  // @ts-expect-error a default of another type
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'number', default: '0' } } } } } } }),
  // @ts-expect-error unique json
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'json', unique: true } } } } } } }),
  // @ts-expect-error a default that is no place
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'geo', default: [1, 2, 3] } } } } } } }),
  // @ts-expect-error an index of a field that is not geo
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'string', index: true } } } } } } }),
  // @ts-expect-error a pattern for a number
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'number', pattern: 'x' } } } } } } }),
  // @ts-expect-error a reference that is text
  defineConfig({ databases: { s: { tables: { a: { schema: { t: { type: 'text', references: 'a' } } } } } } }),
]

test('a configuration keeps its types and its values', () => {
  const title: { readonly type: 'string'; readonly required: true; readonly max: 200 } =
    good.databases.shared.tables.posts.schema.title
  expect(title.max).toBe(200)
})
