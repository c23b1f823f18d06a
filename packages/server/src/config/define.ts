/**
 * The public API for `plinth.config.ts`: the types of a configuration, which check names at compile time. `validate`
 * checks everything again at start, also for configurations written in JavaScript.
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
  /** Refuses records in which the field is null or absent; a `default` is applied first. */
  readonly required?: boolean
  /** Applied on insert if the field is absent. */
  readonly default?: Value
}

interface UniqueOption {
  /** No two records of the table have the same value; nulls are exempt. */
  readonly unique?: boolean
}

interface TextOptions {
  /** Minimum length in characters (code points). */
  readonly min?: number
  readonly max?: number
  /**
   * A regular expression with the flag `u`; it matches anywhere unless anchored with `^` and `$`. It runs on untrusted
   * input: set `max` too, and avoid adjacent repetitions, which can backtrack for a long time (ReDoS).
   */
  readonly pattern?: string
  readonly enum?: readonly string[]
}

interface NumberOptions {
  /** Minimum value. */
  readonly min?: number
  readonly max?: number
  readonly enum?: readonly number[]
}

interface ReferenceOption {
  /** The table of the same namespace whose `id` the value refers to. */
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

/** `S` is the schema of a table, or `unknown` for a table without one, whose fields may have any name. */
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
 * An access rule: `true`, `false`, or a function of the caller (null if anonymous) that returns one of them or a filter
 * over rows. A falsy value denies. Must be synchronous and depend only on its argument.
 */
export type RuleConfig<S = unknown> =
  | boolean
  | ((auth: Auth | null) => boolean | null | undefined | '' | 0 | ConditionsOf<S> | Filter<AnyField<S>>)

/** Access rules of a table. Without a rule, only the service key has access. */
export interface AccessConfig<S = unknown> {
  readonly read?: RuleConfig<S>
  readonly insert?: RuleConfig<S>
  /** Checked against the row before and after the update; `{ before, after }` sets separate rules. */
  readonly update?: RuleConfig<S> | { readonly before: RuleConfig<S>; readonly after: RuleConfig<S> }
  readonly delete?: RuleConfig<S>
}

/** Options that a field type does not have are `never`: an inferred type would silently accept a misspelled one. */
type Checked<F> = [FieldConfigFor<F>] extends [never]
  ? FieldConfig
  : FieldConfigFor<F> & { readonly [Option in Exclude<keyof F, keyof FieldConfigFor<F>>]: never }
type FieldConfigFor<F> = F extends { readonly type: infer Type extends FieldType }
  ? Extract<FieldConfig, { readonly type: Type }>
  : never

export interface TableConfig<S = unknown> {
  /**
   * Fields besides the built-in `id`, `createdAt` and `updatedAt`. Without a schema a table accepts any field.
   */
  readonly schema?: S & { readonly [F in keyof S]: Checked<S[F]> }
  readonly indexes?: NoInfer<readonly { readonly fields: readonly IndexField<S>[]; readonly unique?: boolean }[]>
  /** Fields in the full-text index. */
  readonly search?: NoInfer<readonly Declared<S, 'string' | 'text'>[]>
  /** Fields that only the service key can write, read, filter and sort by. */
  readonly hidden?: NoInfer<readonly Declared<S>[]>
  readonly access?: NoInfer<AccessConfig<S>>
}

/** `T`: table name to schema. */
export interface NamespaceConfig<T = Record<string, unknown>> {
  /** Whether there is a database per instance id, such as per workspace or per user. */
  readonly instance?: boolean
  /**
   * With `instance: true`: who may access an instance. The tables' rules still apply. Returns `true`, `false`, a
   * promise of one, or a filter over the instance's `id`; its `exists` may query tables of the instance and of the
   * namespace `shared`.
   */
  readonly access?: InstanceRule
  readonly tables: { readonly [Table in keyof T]: TableConfig<T[Table]> }
}

/** The fields of a stored file in rules of a bucket. */
type FileField = 'key' | 'size' | 'contentType' | 'uploadedBy' | 'createdAt' | `customMetadata.${string}`

/** Restricts the result `R` of a bucket's rule: conditions on anything but a file's fields are `never`. */
type CheckedFileRule<R> = R extends boolean | null | undefined | '' | 0 | Filter<FileField>
  ? R
  : { readonly [F in keyof R]: F extends FileField ? (F extends 'size' ? number : string) | null : never }

/** An access rule over files of a bucket; otherwise like `RuleConfig`. */
export type FileRuleConfig<R = unknown> = boolean | ((auth: Auth | null) => R & CheckedFileRule<R>)

/** `A`: the result types of the rules. */
export interface BucketConfig<A = { readonly read: unknown; readonly write: unknown; readonly delete: unknown }> {
  /** Maximum size of a file: `'5mb'`, `'1.5gb'`, or bytes. */
  readonly maxFileSize?: string | number
  /** Quota of the bucket. */
  readonly quota?: string | number
  /** Quota per user. */
  readonly userQuota?: string | number
  /** Whether images can be transformed (`?width=&height=&fit=&format=`). */
  readonly images?: boolean
  /**
   * Rules over `key size contentType uploadedBy createdAt customMetadata.*`; their `exists` query tables of the
   * namespace `shared`. `write` is checked against the new file and, if it overwrites one, against the old file too.
   * Without a rule, only the service key has access.
   */
  readonly access?: {
    readonly [Action in keyof A]?: Action extends 'read' | 'write' | 'delete' ? FileRuleConfig<A[Action]> : never
  }
}

export interface ServiceKeyConfig {
  /** Appears in the log. */
  readonly name: string
  /** At least 16 characters. Undefined (an unset environment variable) is an error. */
  readonly key: string | undefined
  /** Such as `db:table:posts:read`; `*` matches any part, or everything if alone. */
  readonly scopes: readonly string[]
  /** A timestamp with date and time zone. */
  readonly expiresAt?: string
  /** Networks from which the key is accepted, such as `10.0.0.0/8`. */
  readonly ipCidr?: readonly string[]
}

/** `D`: schemas by namespace and table. `B`: result types of rules by bucket. */
export interface PlinthConfig<D = Record<string, Record<string, unknown>>, B = Record<string, unknown>> {
  readonly databases?: { readonly [Namespace in keyof D]: NamespaceConfig<D[Namespace]> }
  /** File storage, by bucket. */
  readonly storage?: { readonly buckets: { readonly [Bucket in keyof B]: BucketConfig<B[Bucket]> } }
  /** Sign-up, sign-in methods and public profiles. */
  readonly auth?: AuthOptions
  /** Broadcast channels by name or `prefix*`: who may subscribe to `broadcast:{name}` and who may publish. */
  readonly broadcasts?: { readonly [name: string]: BroadcastConfig }
  /** Rooms, by namespace. */
  readonly rooms?: { readonly [namespace: string]: RoomConfig }
  /** Vector indexes, by name. */
  readonly vector?: { readonly [index: string]: VectorConfig }
  /** Key-value stores, by namespace. */
  readonly kv?: { readonly [namespace: string]: KvConfig }
  /** Databases for custom SQL, accessed with the service key. */
  readonly sql?: { readonly [database: string]: SqlDatabaseConfig }
  /** Credentials for push notifications. */
  readonly push?: PushOptions
  /** Events, who may send them, and request statistics. */
  readonly analytics?: AnalyticsOptions
  readonly serviceKeys?: readonly ServiceKeyConfig[]
  /** Requests per client address and window (default `60s`). */
  readonly rateLimits?: {
    readonly [Group in keyof typeof rateLimitRequests]?: { readonly requests: number; readonly window?: string }
  }
  /** Origins whose pages may call the API (CORS). Development mode also allows localhost. */
  readonly cors?: { readonly origins: readonly string[] }
  /** Who may read the table schemas at `/api/schema`; disabled by default. */
  readonly api?: { readonly schemaEndpoint?: boolean | 'authenticated' }
  readonly captcha?: { readonly siteKey: string }
  /** How long a disconnected client can resume its subscriptions without missing changes. */
  readonly changes?: {
    /** Default `24h`. */
    readonly retention?: string
    /** Maximum size of the log per database, at least `1mb`; the oldest changes are removed first. Default `1gb`. */
    readonly maxSize?: string | number
  }
  readonly limits?: {
    /** Maximum size of a JSON response, from `'64kb'` to `'64mb'`. Default `'8mb'`. */
    readonly responseBytes?: string | number
    /**
     * Maximum bytes that a user, or an address without credentials, may add to the change logs per minute. Default
     * `'64mb'`, a hundred times that in development.
     */
    readonly writeBytes?: string | number
  }
}

/** Infers the types of a configuration and returns it unchanged. */
export function defineConfig<
  const D extends { readonly [namespace: string]: { readonly [table: string]: unknown } },
  const B extends { readonly [bucket: string]: unknown },
>(config: PlinthConfig<D, B>): PlinthConfig<D, B> {
  return config
}
