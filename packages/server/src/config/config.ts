/**
 * The loaded configuration and settings: validated, complete and frozen. `define` has the types that users write;
 * `validate`, `load` and `settings` convert one into the other.
 */

import type { BucketDefinition, NamespaceDefinition } from '../access/definition.ts'
import type { ServiceKey } from '../access/service-keys.ts'
import type { Cidr, TrustProxy } from '../base/network/address.ts'
import type { StoreAddress } from '../engines/blobs/store-address.ts'
import type { rateLimitRequests } from '../limits/api.ts'
import type { LogLevel } from '../log-events/log-event.ts'
import type { AnalyticsConfig } from './sections/analytics/analytics.ts'
import type { AuthConfig } from './sections/auth/auth.ts'
import type { BroadcastDefinition } from './sections/broadcasts/broadcasts.ts'
import type { DashboardConfig } from './sections/dashboard/dashboard.ts'
import type { FunctionsConfig } from './sections/functions/functions.ts'
import type { KvNamespace } from './sections/kv/kv.ts'
import type { PushConfig } from './sections/push/push.ts'
import type { RoomNamespace } from './sections/rooms/rooms.ts'
import type { SqlDatabase } from './sections/sql/sql.ts'
import type { VectorIndexDefinition } from './sections/vector/vector.ts'

/** `development` is a single developer on one machine; `release` is everything else. Access rules apply in both. */
export type Mode = 'development' | 'release'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface Config {
  readonly mode: Mode
  /** The namespaces that the API serves. */
  readonly namespaces: ReadonlyMap<string, NamespaceDefinition>
  readonly buckets: ReadonlyMap<string, BucketDefinition>
  /** All stored namespaces: the served ones and the platform's own. */
  readonly storedNamespaces: ReadonlyMap<string, NamespaceDefinition>
  readonly auth: AuthConfig
  /** In matching order. */
  readonly broadcasts: readonly BroadcastDefinition[]
  readonly rooms: ReadonlyMap<string, RoomNamespace>
  readonly vector: ReadonlyMap<string, VectorIndexDefinition>
  readonly kv: ReadonlyMap<string, KvNamespace>
  readonly sql: ReadonlyMap<string, SqlDatabase>
  readonly push: PushConfig
  readonly functions: FunctionsConfig
  readonly analytics: AnalyticsConfig
  /** Null where the dashboard is switched off. */
  readonly dashboard: DashboardConfig | null
  /** The declared keys and the root key `root`, which has all permissions. */
  readonly serviceKeys: readonly ServiceKey[]
  readonly rateLimits: Readonly<Record<keyof typeof rateLimitRequests, RateLimit>>
  readonly cors: { readonly origins: readonly string[] }
  readonly schemaEndpoint: boolean | 'authenticated'
  readonly captcha: { readonly siteKey: string } | null
  readonly changes: { readonly retentionMs: number; readonly bytesMax: number }
  /** `writeBytes` per window of `writeBudgetWindowMs`. */
  readonly limits: { readonly responseBytes: number; readonly writeBytes: number }
  /** Private networks that outgoing requests may reach. */
  readonly outbound: { readonly allow: readonly Cidr[] }
}

/** Settings of the command line and the environment. */
export interface Settings {
  /** The folder of the configuration, absolute; null where it comes from no file. */
  readonly projectFolder: string | null
  /** Variables of the process, for the secrets that functions declare. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly dataFolder: string
  /** Where backups are that the server starts and lists, absolute; null for none. */
  readonly backupFolder: string | null
  /** Whether databases that are missing from the data folder may be recreated empty. */
  readonly acceptsLoss: boolean
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** Signs tokens. */
  readonly secret: string
  /** The root key. */
  readonly serviceKey: string
  readonly trustProxy: TrustProxy
  /** The public URL of the server, without a trailing slash. */
  readonly publicUrl: string | null
  readonly logLevel: LogLevel
  /** PostgreSQL, used instead of SQLite in the data folder. Contains a password. */
  readonly databaseUrl: string | null
  /** Redis, for coordination between nodes. Contains a password. */
  readonly redisUrl: string | null
  /** Prefix of every key in Redis. */
  readonly redisPrefix: string
  /** The S3-compatible store, used for files instead of the data folder. Contains a secret. */
  readonly s3: StoreAddress | null
}
