/** Functions as the server knows them: validated and complete. `shapes` validates what the code declares. */
import type { CodeLocation } from '../../../engines/hosts/hosts.ts'
import type { FunctionLimit } from './limit.ts'

type Operation = 'insert' | 'update' | 'delete'

interface Named {
  /** The name of the export. */
  readonly name: string
  readonly location: CodeLocation | null
}

export interface SecretReference {
  readonly secret: string
}

/** The text, or the value of the secret that stands for it; undefined if the secret has none. */
export const textOf = (given: string | SecretReference, secrets: ReadonlyMap<string, string>): string | undefined =>
  typeof given === 'string' ? given : secrets.get(given.secret)

interface Invocable {
  readonly timeoutMs: number
  readonly limit: FunctionLimit | null
}

export interface RpcDefinition extends Named, Invocable {
  readonly kind: 'rpc'
  /** `function`: the function's own condition, which its host evaluates. */
  readonly caller: 'anyone' | 'user' | 'service' | 'function'
  /** The JSON Schema of the input; null if there is none. */
  readonly inputSchema: object | null
  /** The JSON Schema of the result, or of each value that it yields; null if there is none. */
  readonly outputSchema: object | null
  /** Whether it yields. */
  readonly streams: boolean
}

export interface HttpDefinition extends Named, Invocable {
  readonly kind: 'http'
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete' | 'all'
  /** Below `/api/fn`, with `:name` segments. */
  readonly path: string
  readonly rawBody: boolean
}

export interface BeforeDefinition extends Named {
  readonly kind: 'before'
  /** `namespace.table`, or `storage.bucket`. */
  readonly table: string
  readonly on: readonly Operation[]
}

export interface ChangeDefinition extends Named {
  readonly kind: 'onChange'
  readonly table: string
  readonly on: readonly Operation[]
  readonly where: object | null
  readonly retries: number | null
  readonly timeoutMs: number | null
  readonly recursive: boolean
}

export interface ScheduleDefinition extends Named {
  readonly kind: 'schedule'
  readonly cron: string
  readonly tz: string | null
  readonly missed: 'skip' | 'run-once'
  readonly retries: number | null
  readonly timeoutMs: number | null
}

export interface QueueDefinition extends Named {
  readonly kind: 'queue'
  readonly queue: string
  readonly concurrency: number | null
  readonly rate: FunctionLimit | null
  readonly retries: number | null
  readonly timeoutMs: number | null
  readonly hasUniqueBy: boolean
}

export interface WebhookDefinition extends Named {
  readonly kind: 'webhook'
  readonly table: string
  readonly url: string | SecretReference
  readonly secret: string | SecretReference
  readonly on: readonly Operation[]
  readonly where: object | null
  readonly fields: readonly string[] | null
}

export interface AuthDefinition extends Named {
  readonly kind: 'beforeSignUp' | 'claims'
}

export interface UserDefinition extends Named {
  readonly kind: 'onUser'
  readonly on: readonly ('created' | 'deleted' | 'disabled')[]
}

export type FunctionDefinition =
  | RpcDefinition
  | HttpDefinition
  | BeforeDefinition
  | ChangeDefinition
  | ScheduleDefinition
  | QueueDefinition
  | WebhookDefinition
  | AuthDefinition
  | UserDefinition
