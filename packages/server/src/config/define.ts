/**
 * The public API for `plinth.config.ts`: the types of a configuration, which check names at compile time. `validate`
 * checks everything again at start, also for configurations written in JavaScript.
 */
import type { rateLimitRequests } from '../limits/api.ts'
import type { Part, Unknown } from './define-parts.ts'
import type { AnalyticsOptions } from './sections/analytics/define-analytics.ts'
import type { AuthOptions } from './sections/auth/define-auth.ts'
import type { BroadcastConfig } from './sections/broadcasts/define-broadcasts.ts'
import type { DashboardOptions } from './sections/dashboard/define-dashboard.ts'
import type { ComputedParameters, NamespaceConfig } from './sections/databases/define-tables.ts'
import type { FunctionsOptions } from './sections/functions/define-options.ts'
import type { KvConfig } from './sections/kv/define-kv.ts'
import type { PushOptions } from './sections/push/define-push.ts'
import type { RoomConfig } from './sections/rooms/define-rooms.ts'
import type { SqlDatabaseConfig } from './sections/sql/define-sql.ts'
import type { BucketConfig } from './sections/storage/define-buckets.ts'
import type { VectorConfig } from './sections/vector/define-vector.ts'

export type { Auth } from '../access/auth.ts'
export type { InstanceRule } from '../access/definition.ts'
export type { Filter, FilterValue, RuleOp } from '../access/filter.ts'
export { and, exists, field, not, or, where } from '../access/filter.ts'
export type { FieldType } from '../query/table.ts'
export type { BroadcastConfig } from './sections/broadcasts/define-broadcasts.ts'
export type { DashboardOptions } from './sections/dashboard/define-dashboard.ts'
export { when } from './sections/databases/computed/build-expression.ts'
export type {
  BooleanExpression,
  ComputedOperands,
  DatetimeExpression,
  NumberExpression,
  TextExpression,
} from './sections/databases/computed/define-computed.ts'
export type {
  AccessConfig,
  FieldConfig,
  NamespaceConfig,
  RuleConfig,
  TableConfig,
} from './sections/databases/define-tables.ts'
export type { KvConfig } from './sections/kv/define-kv.ts'
export type { RoomAccessConfig, RoomConfig } from './sections/rooms/define-rooms.ts'
export type { Room, RoomDatabase, RoomPlayer, RoomState } from './sections/rooms/room-code.ts'
export type { SqlDatabaseConfig } from './sections/sql/define-sql.ts'
export type { BucketConfig, FileRuleConfig } from './sections/storage/define-buckets.ts'
export type { VectorConfig } from './sections/vector/define-vector.ts'

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

/** `C`: the literal type of the configuration, against which its own names are checked. */
export interface PlinthConfig<C = Unknown, D = Part<C, 'databases'>, B = Part<Part<C, 'storage'>, 'buckets'>> {
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
  /** The application's server code. */
  readonly functions?: FunctionsOptions
  /** Databases for custom SQL, accessed with the service key. */
  readonly sql?: { readonly [database: string]: SqlDatabaseConfig }
  /** Credentials for push notifications. */
  readonly push?: PushOptions
  /** Events, who may send them, and request statistics. */
  readonly analytics?: AnalyticsOptions
  /** The dashboard at `/dashboard`; false switches it off. */
  readonly dashboard?: false | DashboardOptions
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
  /** Requests that the server makes to URLs of clients and of the project: web push, webhooks, `ctx.fetch`. */
  readonly outbound?: {
    /** Private networks that may be reached, such as `10.0.0.0/8`; none by default. */
    readonly allow?: readonly string[]
  }
}

/**
 * Infers `C` from the whole argument without being part of what the argument is checked against: with `C` itself, a
 * misspelled option would be an option.
 */
type Inferred<C> = [C] extends [never] ? C : object

/** Types the parameters of the expressions of computed fields. */
type WithParameters<D> = { readonly [Section in keyof PlinthConfig]?: unknown } & {
  readonly databases?: ComputedParameters<D>
}

/** Infers the type of a configuration, with all of its literals, and returns it unchanged. */
export function defineConfig<const C, const D>(config: PlinthConfig<C> & WithParameters<D> & Inferred<C>): C {
  return config as C
}
