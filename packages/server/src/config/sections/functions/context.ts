/** What functions receive: `ctx`, and the events of `before` and `onChange`. */
import type { Client } from 'plinth-client'
import type { Auth } from '../../../access/auth.ts'
import type { KvName, StoredRow, VectorName } from './names.ts'

// biome-ignore lint/suspicious/noExplicitAny: JSON of the application.
type AnyJson = any

export interface KeyValueStore {
  /** The value; null if there is none. */
  get(key: string): Promise<AnyJson>
  /** `ttl` is a duration such as `1h`. */
  set(key: string, value: unknown, options?: { ttl?: string }): Promise<void>
  delete(key: string): Promise<void>
  list(options?: { prefix?: string; limit?: number; cursor?: string }): Promise<AnyJson>
}

interface Vector {
  id: string
  values: readonly number[]
  metadata?: object
  namespace?: string
}

/** The commands of `POST /api/vector/{index}`. */
export interface VectorIndex {
  upsert(vectors: readonly Vector[]): Promise<AnyJson>
  /** Fails with `conflict` if one of the ids exists. */
  insert(vectors: readonly Vector[]): Promise<AnyJson>
  search(query: {
    vector: readonly number[]
    topK?: number
    filter?: object
    namespace?: string
    returnValues?: boolean
    returnMetadata?: boolean
  }): Promise<AnyJson>
  getByIds(ids: readonly string[]): Promise<AnyJson>
  delete(ids: readonly string[]): Promise<AnyJson>
}

export interface PushSender {
  /** To the devices of a user. */
  send(userId: string, payload: object): Promise<AnyJson>
  sendMany(userIds: readonly string[], payload: object): Promise<AnyJson>
  sendToTopic(topic: string, payload: object): Promise<AnyJson>
  broadcast(payload: object): Promise<AnyJson>
}

export interface Mail {
  to: string
  subject?: string
  text?: string
  html?: string
  template?: string
  data?: object
  /** Mails with the same key are sent once. */
  idempotencyKey?: string
}

export interface EnqueueOptions {
  /** A duration such as `10m`. */
  delay?: string
  at?: Date
  /** Jobs with the same key run one after the other. */
  key?: string
}

type Logger = (message: string, fields?: object) => void

/** What every function receives. Without a caller, `db` is absent. */
export interface Context<Config = unknown> {
  readonly db?: undefined
  /** Past the access rules. */
  readonly service: { readonly db: Client<Config>['db'] }
  /** The signed-in user whose request caused the call. */
  readonly auth: Auth | null
  readonly files: Client<Config>['files']
  kv(namespace: KvName<Config>): KeyValueStore
  vector(index: VectorName<Config>): VectorIndex
  readonly push: PushSender
  readonly mail: { send(message: Mail): Promise<void> }
  /** Adds a job to a queue. Inside of `transaction()` it is part of it. */
  enqueue(queue: string, input: unknown, options?: EnqueueOptions): Promise<{ jobId: string }>
  /** The time by the server's clock. */
  now(): Date
  /** The declared secrets by name. */
  readonly secrets: Readonly<Record<string, string>>
  readonly log: Readonly<Record<'debug' | 'info' | 'warn' | 'error', Logger>>
  /** Aborted at the deadline, and when the caller disconnects. */
  readonly signal: AbortSignal
  /** Requests to the public internet, and to the networks of `outbound.allow`. */
  readonly fetch: typeof fetch
  /** Stable over all attempts of a job, for services that accept one. */
  readonly idempotencyKey: string
}

/** The context of functions that a caller invokes. */
export interface CallerContext<Config = unknown> extends Omit<Context<Config>, 'db'> {
  /** As the caller: access rules apply. */
  readonly db: Client<Config>['db']
}

export type Operation = 'insert' | 'update' | 'delete'

export interface BeforeEvent<Config = unknown, Address = string> {
  readonly operation: Operation
  /** The row as it would be stored; of a delete, the row that is deleted. */
  readonly row: StoredRow<Config, Address>
  readonly previous: StoredRow<Config, Address> | null
  readonly caller: { readonly kind: 'anonymous' | 'user' | 'service'; readonly auth: Auth | null }
}

export interface ChangeEvent<Config = unknown, Address = string> {
  readonly operation: Operation
  /** Null for a delete. */
  readonly after: StoredRow<Config, Address> | null
  /** Null for an insert. */
  readonly previous: StoredRow<Config, Address> | null
  readonly change: { readonly id: string; readonly at: string }
  /** From 1. */
  readonly attempt: number
}
