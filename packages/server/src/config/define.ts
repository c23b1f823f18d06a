/**
 * What users write `plinth.config.ts` with: the package's public face. Owns the shape of a configuration and the types
 * that check its names; whether a configuration makes sense is asked again at start, by `validate`, for those who write
 * JavaScript.
 */
import type { Auth } from '../access/caller.ts'
import type { InstanceRule } from '../access/definition.ts'
import type { Filter, FilterValue } from '../access/filter.ts'
import type { rateLimitRequests } from '../limits/api.ts'
import type { FieldType } from '../query/table.ts'
import type { AnalyticsOptions } from './sections/analytics.ts'
import type { AuthOptions } from './sections/auth/define-auth.ts'
import type { BroadcastConfig } from './sections/broadcasts.ts'
import type { SqlDatabaseConfig } from './sections/define-sql.ts'
import type { KvConfig } from './sections/kv.ts'
import type { PushOptions } from './sections/push/define-push.ts'
import type { RoomConfig } from './sections/rooms/define-rooms.ts'
import type { VectorConfig } from './sections/vector.ts'

export type { Auth } from '../access/caller.ts'
export type { InstanceRule } from '../access/definition.ts'
export type { Filter, FilterValue, RuleOp } from '../access/filter.ts'
export { and, exists, field, not, or, where } from '../access/filter.ts'
export type { FieldType } from '../query/table.ts'
export type { BroadcastConfig } from './sections/broadcasts.ts'
export type { SqlDatabaseConfig } from './sections/define-sql.ts'
export type { KvConfig } from './sections/kv.ts'
export type { RoomAccessConfig, RoomConfig } from './sections/rooms/define-rooms.ts'
export type { Room, RoomDatabase, RoomPlayer, RoomState } from './sections/rooms/room-code.ts'
export type { VectorConfig } from './sections/vector.ts'

interface FieldOptions<Type extends FieldType, Value> {
  readonly type: Type
  /** Refuses records in which the field is null or left out; a `default` fills it first. */
  readonly required?: boolean
  /** Taken on insert when the field is left out. */
  readonly default?: Value
}

interface UniqueOption {
  /** No two records of the table have the same value; nulls do not count. */
  readonly unique?: boolean
}

interface TextOptions {
  /** Least length in characters (code points). */
  readonly min?: number
  readonly max?: number
  /**
   * A regular expression, with the flag `u`; it matches anywhere unless anchored with `^` and `$`. It is tried on
   * whatever anybody sends: give the field a `max` too, and repeat nothing in which repetitions follow one another.
   */
  readonly pattern?: string
  readonly enum?: readonly string[]
}

interface NumberOptions {
  /** Least value. */
  readonly min?: number
  readonly max?: number
  readonly enum?: readonly number[]
}

interface ReferenceOption {
  /** A table of the same namespace, whose `id` the value must be. */
  readonly references?: string
}

/** One field of a table's schema. */
export type FieldConfig =
  | (FieldOptions<'string', string> & UniqueOption & TextOptions & ReferenceOption)
  | (FieldOptions<'text', string> & UniqueOption & TextOptions)
  | (FieldOptions<'number', number> & UniqueOption & NumberOptions)
  | (FieldOptions<'boolean', boolean> & UniqueOption)
  | (FieldOptions<'datetime', string> & UniqueOption)
  | FieldOptions<'json', unknown>

type BuiltIn = 'id' | 'createdAt' | 'updatedAt'

/** `S` is a table's schema as written, or `unknown` for a table without one, whose fields may have any name. */
type Declared<S, Type extends FieldType = FieldType> = {
  [F in keyof S]: S[F] extends { readonly type: Type } ? F : never
}[keyof S] &
  string
type AnyField<S> = unknown extends S ? string : (keyof S & string) | BuiltIn
type IndexField<S> = Declared<S, Exclude<FieldType, 'json'>> | BuiltIn

type ValueOfType<Type> = Type extends 'number'
  ? number
  : Type extends 'boolean'
    ? boolean
    : Type extends 'json'
      ? never
      : string
type ValueOf<F> = F extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : F extends { readonly type: infer Type }
    ? ValueOfType<Type>
    : FilterValue
type ConditionsOf<S> = unknown extends S
  ? { readonly [name: string]: FilterValue }
  : { readonly [F in AnyField<S>]?: (F extends keyof S ? ValueOf<S[F]> : string) | null }

/**
 * Who may do something with which rows: `true`, `false`, or a function of the caller (null when anonymous) that gives
 * one of them or a filter. Anything falsy denies. Must be synchronous and depend on nothing but its argument.
 */
export type RuleConfig<S = unknown> =
  | boolean
  | ((auth: Auth | null) => boolean | null | undefined | '' | 0 | ConditionsOf<S> | Filter<AnyField<S>>)

/** Rules of a table. One that is left out denies everybody but the service key. */
export interface AccessConfig<S = unknown> {
  readonly read?: RuleConfig<S>
  readonly insert?: RuleConfig<S>
  /** Must hold for the row before and after; `{ before, after }` gives each a rule of its own. */
  readonly update?: RuleConfig<S> | { readonly before: RuleConfig<S>; readonly after: RuleConfig<S> }
  readonly delete?: RuleConfig<S>
}

/** Options that a field of its type does not have are `never`: an inferred type would take a misspelt one silently. */
type Checked<F> = [FieldConfigFor<F>] extends [never]
  ? FieldConfig
  : FieldConfigFor<F> & { readonly [Option in Exclude<keyof F, keyof FieldConfigFor<F>>]: never }
type FieldConfigFor<F> = F extends { readonly type: infer Type extends FieldType }
  ? Extract<FieldConfig, { readonly type: Type }>
  : never

export interface TableConfig<S = unknown> {
  /**
   * Field by field, beside the built-in `id`, `createdAt` and `updatedAt`. Without a schema a table takes any field.
   */
  readonly schema?: S & { readonly [F in keyof S]: Checked<S[F]> }
  readonly indexes?: NoInfer<readonly { readonly fields: readonly IndexField<S>[]; readonly unique?: boolean }[]>
  /** Fields of the full-text search. */
  readonly search?: NoInfer<readonly Declared<S, 'string' | 'text'>[]>
  /** Fields that only the service key sends, sees, filters and sorts by. */
  readonly hidden?: NoInfer<readonly Declared<S>[]>
  readonly access?: NoInfer<AccessConfig<S>>
}

/** `T`: table name to schema. */
export interface NamespaceConfig<T = Record<string, unknown>> {
  /** True for one database per instance id: per workspace, per user. */
  readonly instance?: boolean
  /**
   * With `instance: true`: who may address an instance at all. The tables' own rules still apply. It gives `true`,
   * `false`, a promise of one, or a filter over the instance's `id`, whose `exists` ask tables of the instance and of
   * the namespace `shared`.
   */
  readonly access?: InstanceRule
  readonly tables: { readonly [Table in keyof T]: TableConfig<T[Table]> }
}

/** The fields of a stored file that rules of a bucket see. */
type FileField = 'key' | 'size' | 'contentType' | 'uploadedBy' | 'createdAt' | `customMetadata.${string}`

/** What a rule of a bucket may give, `R` being what it does: conditions on anything but a file's fields are `never`. */
type CheckedFileRule<R> = R extends boolean | null | undefined | '' | 0 | Filter<FileField>
  ? R
  : { readonly [F in keyof R]: F extends FileField ? (F extends 'size' ? number : string) | null : never }

/** Who may do something with which files of a bucket; otherwise like `RuleConfig`. */
export type FileRuleConfig<R = unknown> = boolean | ((auth: Auth | null) => R & CheckedFileRule<R>)

/** `A`: what each rule gives. */
export interface BucketConfig<A = { readonly read: unknown; readonly write: unknown; readonly delete: unknown }> {
  /** Of one file: `'5mb'`, `'1.5gb'`, or bytes. */
  readonly maxFileSize?: string | number
  /** Of everything in the bucket. */
  readonly quota?: string | number
  /** Of what one user has uploaded to it. */
  readonly userQuota?: string | number
  /** True: pictures may be asked for in other sizes and formats (`?width=&height=&fit=&format=`). */
  readonly images?: boolean
  /**
   * Rules over `key size contentType uploadedBy createdAt customMetadata.*`; their `exists` ask tables of the namespace
   * `shared`. `write` must hold for the file as it will
   * be and, where one is overwritten, for that one too. A rule that is left out denies everybody but the service key.
   */
  readonly access?: {
    readonly [Action in keyof A]?: Action extends 'read' | 'write' | 'delete' ? FileRuleConfig<A[Action]> : never
  }
}

export interface ServiceKeyConfig {
  /** For the log. */
  readonly name: string
  /** At least 16 characters. Left undefined (an unset environment variable) it is a mistake, never an open door. */
  readonly key: string | undefined
  /** Such as `db:table:posts:read`; `*` stands for any part, or alone for everything. */
  readonly scopes: readonly string[]
  /** A timestamp with date and time zone. */
  readonly expiresAt?: string
  /** Networks the key may be used from, such as `10.0.0.0/8`. */
  readonly ipCidr?: readonly string[]
}

/** `D`: namespace to table name to schema. `B`: bucket to what its rules give. */
export interface PlinthConfig<D = Record<string, Record<string, unknown>>, B = Record<string, unknown>> {
  readonly databases?: { readonly [Namespace in keyof D]: NamespaceConfig<D[Namespace]> }
  /** Files, bucket by bucket. */
  readonly storage?: { readonly buckets: { readonly [Bucket in keyof B]: BucketConfig<B[Bucket]> } }
  /** Who may become a user, how, and what is public of them. */
  readonly auth?: AuthOptions
  /** Channels of no table, by name or `prefix*`: who may subscribe to `broadcast:{name}`, and who may publish. */
  readonly broadcasts?: { readonly [name: string]: BroadcastConfig }
  /** Rooms, namespace by namespace. */
  readonly rooms?: { readonly [namespace: string]: RoomConfig }
  /** Vector indexes by name. */
  readonly vector?: { readonly [index: string]: VectorConfig }
  /** Key-value stores, namespace by namespace. */
  readonly kv?: { readonly [namespace: string]: KvConfig }
  /** Databases for SQL of your own, used with the service key. */
  readonly sql?: { readonly [database: string]: SqlDatabaseConfig }
  /** Push notifications: the credentials they are sent with. */
  readonly push?: PushOptions
  /** Which events there are, who may send them, and whether requests are counted. */
  readonly analytics?: AnalyticsOptions
  readonly serviceKeys?: readonly ServiceKeyConfig[]
  /** Requests per client address in a window (default `60s`). */
  readonly rateLimits?: {
    readonly [Group in keyof typeof rateLimitRequests]?: { readonly requests: number; readonly window?: string }
  }
  /** Origins whose pages may call the server. Development mode also allows localhost. */
  readonly cors?: { readonly origins: readonly string[] }
  /** Who may read the tables' structure at `/api/schema`; nobody by default. */
  readonly api?: { readonly schemaEndpoint?: boolean | 'authenticated' }
  readonly captcha?: { readonly siteKey: string }
  /** How long a client may be away and still be told every change. */
  readonly changes?: {
    /** Default `24h`. */
    readonly retention?: string
    /** Most bytes of the log of one database, at least `1mb`; the oldest changes go first. Default `1gb`. */
    readonly maxSize?: string | number
  }
  readonly limits?: {
    /** Most bytes of a JSON response, such as `'8mb'` (the default); from `'64kb'` to `'64mb'`. */
    readonly responseBytes?: string | number
    /**
     * Most bytes one user, or one address without credentials, adds to the change logs in a minute; default `'64mb'`,
     * a hundred times that in development.
     */
    readonly writeBytes?: string | number
  }
}

/** Gives a configuration its types, and gives it back unchanged. */
export function defineConfig<
  const D extends { readonly [namespace: string]: { readonly [table: string]: unknown } },
  const B extends { readonly [bucket: string]: unknown },
>(config: PlinthConfig<D, B>): PlinthConfig<D, B> {
  return config
}
