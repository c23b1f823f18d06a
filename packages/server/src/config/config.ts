/**
 * A configuration and its settings in the form the program runs on: checked, complete, frozen. What users write is
 * `define`; how one becomes the other is `validate`, `load` and `settings`.
 */

import type { BucketDefinition, NamespaceDefinition } from '../access/definition.ts'
import type { ServiceKey } from '../access/service-keys.ts'
import type { TrustProxy } from '../base/network/address.ts'
import type { StoreAddress } from '../engines/blobs/store-address.ts'
import type { rateLimitRequests } from '../limits/api.ts'
import type { LogLevel } from '../log-events/log-event.ts'
import type { AnalyticsConfig } from './sections/analytics.ts'
import type { AuthConfig } from './sections/auth/auth.ts'
import type { BroadcastDefinition } from './sections/broadcasts.ts'
import type { KvNamespace } from './sections/kv.ts'
import type { PushConfig } from './sections/push/push.ts'
import type { RoomNamespace } from './sections/rooms/rooms.ts'
import type { SqlDatabase } from './sections/sql.ts'
import type { VectorIndexDefinition } from './sections/vector.ts'

/** `development` is one person at one machine; `release` is everything else. Access rules are the same in both. */
export type Mode = 'development' | 'release'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface Config {
  readonly mode: Mode
  /** What the API serves. */
  readonly namespaces: ReadonlyMap<string, NamespaceDefinition>
  readonly buckets: ReadonlyMap<string, BucketDefinition>
  /** What there is: the same and the platform's own tables, whether or not they are served. */
  readonly storedNamespaces: ReadonlyMap<string, NamespaceDefinition>
  readonly auth: AuthConfig
  /** In the order in which they are tried. */
  readonly broadcasts: readonly BroadcastDefinition[]
  readonly rooms: ReadonlyMap<string, RoomNamespace>
  readonly vector: ReadonlyMap<string, VectorIndexDefinition>
  readonly kv: ReadonlyMap<string, KvNamespace>
  readonly sql: ReadonlyMap<string, SqlDatabase>
  readonly push: PushConfig
  readonly analytics: AnalyticsConfig
  /** The declared keys and the root key, which is named `root` and may do everything. */
  readonly serviceKeys: readonly ServiceKey[]
  readonly rateLimits: Readonly<Record<keyof typeof rateLimitRequests, RateLimit>>
  readonly cors: { readonly origins: readonly string[] }
  readonly schemaEndpoint: boolean | 'authenticated'
  readonly captcha: { readonly siteKey: string } | null
  readonly changes: { readonly retentionMs: number; readonly bytesMax: number }
  /** `writeBytes` in a window of `writeBudgetWindowMs`. */
  readonly limits: { readonly responseBytes: number; readonly writeBytes: number }
}

/** What the command line and the environment decide. */
export interface Settings {
  /** Absolute. */
  readonly dataFolder: string
  /** Whether databases that are missing from the data folder may begin again, empty. */
  readonly acceptsLoss: boolean
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Signs tokens. */
  readonly secret: string
  /** The root key. */
  readonly serviceKey: string
  readonly trustProxy: TrustProxy
  /** Where browsers reach the server, without a slash at the end. */
  readonly publicUrl: string | null
  readonly logLevel: LogLevel
  /** PostgreSQL, where records and platform tables are instead of in the data folder. Holds a password. */
  readonly databaseUrl: string | null
  /** Redis, through which several nodes agree. Holds a password. */
  readonly redisUrl: string | null
  /** Begins every key in Redis. */
  readonly redisPrefix: string
  /** The S3-compatible store where files are instead of in the data folder. Holds a secret. */
  readonly s3: StoreAddress | null
}
