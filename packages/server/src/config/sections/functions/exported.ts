/** Declared functions: frozen objects that a function host finds among the exports of the application's code. */
import type { Operation } from './context.ts'
import { callerLocation, type SourceLocation } from './location.ts'
import type { Secret } from './secret.ts'
import type { StandardSchema } from './standard-schema.ts'
import type { UserEventName } from './users.ts'

// biome-ignore lint/suspicious/noExplicitAny: what functions receive is typed where they are declared.
type Untyped = any

const brand = Symbol.for('plinth.function')

interface Declaration<Kind extends string> {
  readonly [brand]: true
  readonly kind: Kind
  /** Of the call that declared it. */
  readonly location: SourceLocation | null
}

export type Caller = 'anyone' | 'user' | 'service' | ((auth: Untyped) => boolean)

export interface BeforeFunction extends Declaration<'before'> {
  readonly table: string
  readonly on: readonly Operation[]
  readonly run: (event: Untyped, ctx: Untyped) => unknown
}

export interface ChangeOptions {
  /** All operations by default. */
  readonly on?: readonly Operation[]
  readonly where?: object
  /** After the first attempt. */
  readonly retries?: number
  readonly timeout?: string
  /** Whether the function also runs for changes that it has caused itself. */
  readonly recursive?: boolean
}

export interface ChangeFunction extends Declaration<'onChange'>, ChangeOptions {
  readonly table: string
  readonly run: (event: Untyped, ctx: Untyped) => unknown
}

export interface RpcOptions {
  /** Who may call; default `user`. Service keys may call every function. */
  readonly caller?: Caller
  /** Such as `3/m per user` or `100/s`. */
  readonly limit?: string
  /** Such as `30s`. */
  readonly timeout?: string
}

export interface RpcFunction<Input = Untyped, Output = unknown> extends Declaration<'rpc'>, RpcOptions {
  /** What a client sends and receives; only a type. */
  readonly types?: (input: Input) => Output
  readonly input?: StandardSchema | undefined
  /** Of the result, or of each value that the function yields. */
  readonly output?: StandardSchema | undefined
  readonly run: (input: Untyped, ctx: Untyped) => unknown
}

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'all'

export interface HttpOptions {
  /** The body may be anything; otherwise a body that claims to be JSON must be JSON. */
  readonly rawBody?: boolean
  readonly limit?: string
  readonly timeout?: string
}

export interface HttpFunction extends Declaration<'http'>, HttpOptions {
  readonly method: HttpMethod
  readonly path: string
  readonly run: (request: Request, ctx: Untyped) => unknown
}

export interface ScheduleOptions {
  /** A time zone such as `Europe/Berlin`; default UTC. */
  readonly tz?: string
  /** What happens with runs that were due while no server ran; default `skip`. */
  readonly missed?: 'skip' | 'run-once'
  readonly timeout?: string
  readonly retries?: number
}

export interface ScheduleFunction extends Declaration<'schedule'>, ScheduleOptions {
  readonly cron: string
  readonly run: (ctx: Untyped) => unknown
}

export interface QueueOptions<Input = Untyped> {
  readonly concurrency?: number
  /** Such as `10/s`. */
  readonly rate?: string
  readonly retries?: number
  readonly timeout?: string
  readonly uniqueBy?: (input: Input) => string
}

export interface QueueFunction extends Declaration<'queue'>, QueueOptions {
  readonly queue: string
  readonly input?: StandardSchema | undefined
  readonly run: (input: Untyped, ctx: Untyped) => unknown
}

export interface WebhookOptions {
  readonly url: string | Secret
  readonly secret: string | Secret
  readonly on?: readonly Operation[]
  readonly where?: object
  /** All fields by default. */
  readonly fields?: readonly string[]
}

export interface WebhookFunction extends Declaration<'webhook'>, WebhookOptions {
  readonly table: string
}

export interface BeforeSignUpFunction extends Declaration<'beforeSignUp'> {
  readonly run: (event: Untyped, ctx: Untyped) => unknown
}

export interface ClaimsFunction extends Declaration<'claims'> {
  readonly run: (user: Untyped, ctx: Untyped) => unknown
}

export interface UserFunction extends Declaration<'onUser'> {
  readonly on: readonly UserEventName[]
  readonly run: (event: Untyped, ctx: Untyped) => unknown
}

export type Exported =
  | BeforeFunction
  | ChangeFunction
  | RpcFunction
  | HttpFunction
  | ScheduleFunction
  | QueueFunction
  | WebhookFunction
  | BeforeSignUpFunction
  | ClaimsFunction
  | UserFunction

/** Declares a function where the caller of this module is. */
export const declare = <Declared extends Exported>(declared: Omit<Declared, typeof brand | 'location'>): Declared =>
  Object.freeze({ ...declared, [brand]: true, location: callerLocation() }) as unknown as Declared

export const isExported = (value: unknown): value is Exported =>
  typeof value === 'object' && value !== null && brand in value
