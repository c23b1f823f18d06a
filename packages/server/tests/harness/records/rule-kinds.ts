/**
 * Kinds of access rules, each with a hand-written model of its result for a caller and a row. The rule matrix compares
 * the server with these models.
 */
import { and, not, or } from '../../../src/access/filter.ts'
import { brokenLater } from '../config.ts'

type Auth = { readonly id: string; readonly custom: Readonly<Record<string, unknown>> } | null

export interface Row {
  readonly ownerId: string | null
  readonly published: boolean | null
}

/**
 * A rule as it is configured, and what it says of a caller and a row, worked out by hand. `constant`: false for every
 * row.
 */
export interface Kind {
  readonly rule: unknown
  readonly denies: (user: string | null) => boolean
  readonly allows: (user: string | null, row: Row) => boolean
}

/** A broken rule denies every caller. */
const broken = (rule: (auth: Auth) => unknown): Kind => ({
  rule: brokenLater(rule),
  denies: () => true,
  allows: () => false,
})

export const kinds: Readonly<Record<string, Kind>> = {
  absent: { rule: undefined, denies: () => true, allows: () => false },
  no: { rule: false, denies: () => true, allows: () => false },
  yes: { rule: true, denies: () => false, allows: () => true },
  signedIn: { rule: (auth: Auth) => auth !== null, denies: (user) => user === null, allows: (user) => user !== null },
  own: {
    rule: (auth: Auth) => auth && { ownerId: auth.id },
    denies: (user) => user === null,
    allows: (user, row) => user !== null && row.ownerId === user,
  },
  published: { rule: () => ({ published: true }), denies: () => false, allows: (_, row) => row.published === true },
  publishedOrOwn: {
    rule: (auth: Auth) => (auth ? or({ published: true }, { ownerId: auth.id }) : { published: true }),
    denies: () => false,
    allows: (user, row) => row.published === true || (user !== null && row.ownerId === user),
  },
  notOwn: {
    rule: (auth: Auth) => auth && not({ ownerId: auth.id }),
    denies: (user) => user === null,
    allows: (user, row) => user !== null && row.ownerId !== user,
  },
  publishedAndOwn: {
    rule: (auth: Auth) => auth && and({ published: true }, { ownerId: auth.id }),
    denies: (user) => user === null,
    allows: (user, row) => user !== null && row.published === true && row.ownerId === user,
  },
}

export const brokenKinds: Readonly<Record<string, Kind>> = {
  throws: broken(() => {
    throw new Error('a mistake in a rule')
  }),
  compareUndefined: broken((auth: Auth) => ({ ownerId: auth?.custom.missing })),
  notUndefined: broken((auth: Auth) => not({ ownerId: auth?.custom.missing } as never)),
  orUndefined: broken((auth: Auth) => or({ published: true }, { ownerId: auth?.custom.missing } as never)),
  unknownField: broken(() => ({ nope: 1 })),
  wrongType: broken(() => ({ published: 'yes' })),
  emptyFilter: broken(() => ({})),
  promise: broken(() => Promise.resolve(true)),
  text: broken(() => 'yes'),
  list: broken(() => [{ published: true }]),
}

export const rows: Readonly<Record<string, Row>> = {
  a: { ownerId: 'alice', published: false },
  b: { ownerId: 'bob', published: true },
  c: { ownerId: 'alice', published: true },
  d: { ownerId: null, published: null },
}

const schema = {
  title: { type: 'string' },
  ownerId: { type: 'string' },
  published: { type: 'boolean' },
  rank: { type: 'number' },
} as const

/** Three tables for each kind: with the rule on all operations, on writes only, and on reads only. */
export const shapes = {
  all: ({ rule }: Kind) => ({ read: rule, insert: rule, update: rule, delete: rule }),
  write: ({ rule }: Kind) => ({ read: true, insert: rule, update: rule, delete: rule }),
  read: ({ rule }: Kind) => ({ read: rule, insert: true, update: true, delete: true }),
}
const yes = kinds.yes as Kind

const withoutUndefined = (access: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(access).filter(([, rule]) => rule !== undefined))

export const matrixTables = Object.fromEntries(
  Object.entries({ ...kinds, ...brokenKinds }).flatMap(([name, kind]) =>
    Object.entries(shapes).map(([shape, access]) => [
      `${name}_${shape}`,
      { schema, search: ['title'], access: withoutUndefined(access(kind)) },
    ]),
  ),
)

/** The expected statuses of one caller on one table; `service` passes every rule. */
export interface Model {
  readonly list: number
  /** The ids of the rows that the caller may read, in order. */
  readonly visible: readonly string[]
  get(row: Row | null): number
  insert(row: Row): number
  /** `after` is null for a delete. */
  change(row: Row | null, after: Row | null): number
  upsert(row: Row | null, after: Row): number
}

/** The model of a table of this kind and shape. `user` is null for callers without a token. */
export function createModel(
  kind: Kind,
  shape: string,
  { user, service }: { readonly user: string | null; readonly service: boolean },
): Model {
  const read = shape === 'write' ? yes : kind
  const write = shape === 'read' ? yes : kind
  const denial = user === null ? 401 : 403
  const may = (rule: Kind, row: Row): boolean => service || rule.allows(user, row)
  const never = (rule: Kind): boolean => !service && rule.denies(user)
  const insert = (row: Row): number => (may(write, row) ? 201 : denial)
  return {
    list: never(read) ? denial : 200,
    visible: Object.entries(rows).flatMap(([id, row]) => (may(read, row) ? [id] : [])),
    insert,
    get(row) {
      if (never(read)) return denial
      return row && may(read, row) ? 200 : 404
    },
    change(row, after) {
      if (never(write)) return denial
      if (!row || !may(read, row)) return 404
      if (!may(write, row)) return denial
      return after && !may(write, after) ? denial : 200
    },
    upsert(row, after) {
      if (never(write)) return denial
      if (!row) return insert(after)
      if (!may(read, row)) return 409
      return may(write, row) && may(write, after) ? 200 : denial
    },
  }
}
