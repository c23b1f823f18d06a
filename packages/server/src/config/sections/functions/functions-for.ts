/** `functionsFor`: the functions by which an application declares its server code, typed by its configuration. */
import type { BeforeEvent, CallerContext, ChangeEvent, Context, Operation } from './context.ts'
import {
  type BeforeFunction,
  type BeforeSignUpFunction,
  type ChangeFunction,
  type ChangeOptions,
  type ClaimsFunction,
  declare,
  type HttpFunction,
  type HttpMethod,
  type HttpOptions,
  type QueueFunction,
  type QueueOptions,
  type RpcFunction,
  type RpcOptions,
  type ScheduleFunction,
  type ScheduleOptions,
  type UserFunction,
  type WebhookFunction,
  type WebhookOptions,
} from './exported.ts'
import type { ReturnedRow, TableAddress } from './names.ts'
import type { SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.ts'
import type { SignUpData, SignUpEvent, User, UserEvent, UserEventName } from './users.ts'

// biome-ignore lint/suspicious/noExplicitAny: an input without a schema.
type Untyped = any

type Awaitable<T> = T | Promise<T>

type Yielded<Value> = AsyncIterable<Value> | Iterable<Value>

/** What a function with a schema of its result may return. */
type Returnable<Schema> = Awaitable<SchemaInput<Schema> | Yielded<SchemaInput<Schema>>>

/** What its callers get. */
type Answer<Schema, Returned> =
  Awaited<Returned> extends Iterator<unknown> | AsyncIterator<unknown>
    ? AsyncIterable<SchemaOutput<Schema>>
    : SchemaOutput<Schema>

interface Rpc<Config> {
  /**
   * A function that clients call: `POST /api/fn/{name}` with the input as JSON. What does not fit the schema `input` is
   * refused with 400. An asynchronous generator streams its values. With the schema `output`, callers get what it makes
   * of the result or of each value; a result that does not fit is a fault of the function.
   */
  <Schema extends StandardSchema, Result extends StandardSchema, Returned extends Returnable<Result>>(
    options: RpcOptions & { readonly input: Schema; readonly output: Result },
    run: (input: SchemaOutput<Schema>, ctx: CallerContext<Config>) => Returned,
  ): RpcFunction<SchemaInput<Schema>, Answer<Result, Returned>>
  <Result extends StandardSchema, Returned extends Returnable<Result>, Input = Untyped>(
    options: RpcOptions & { readonly input?: undefined; readonly output: Result },
    run: (input: Input, ctx: CallerContext<Config>) => Returned,
  ): RpcFunction<Input, Answer<Result, Returned>>
  <Schema extends StandardSchema, Output>(
    options: RpcOptions & { readonly input: Schema; readonly output?: undefined },
    run: (input: SchemaOutput<Schema>, ctx: CallerContext<Config>) => Output,
  ): RpcFunction<SchemaInput<Schema>, Output>
  <Output, Input = Untyped>(
    options: RpcOptions & { readonly input?: undefined; readonly output?: undefined },
    run: (input: Input, ctx: CallerContext<Config>) => Output,
  ): RpcFunction<Input, Output>
}

type Http<Config> = Readonly<
  Record<
    HttpMethod,
    (
      path: string,
      options: HttpOptions,
      run: (
        request: Request,
        ctx: CallerContext<Config> & { readonly params: Readonly<Record<string, string>> },
      ) => Awaitable<Response>,
    ) => HttpFunction
  >
>

interface Queue<Config> {
  /** Runs the jobs of a queue; `ctx.enqueue(name, input)` adds one. */
  <Schema extends StandardSchema>(
    name: string,
    options: QueueOptions<SchemaOutput<Schema>> & { readonly input: Schema },
    run: (input: SchemaOutput<Schema>, ctx: JobContext<Config>) => unknown,
  ): QueueFunction
  <Input = Untyped>(
    name: string,
    options: QueueOptions<Input> & { readonly input?: undefined },
    run: (input: Input, ctx: JobContext<Config>) => unknown,
  ): QueueFunction
}

export type JobContext<Config = unknown> = Context<Config> & {
  /** From 1. */
  readonly attempt: number
  readonly jobId: string
}

export interface FunctionsFor<Config = unknown> {
  /**
   * Runs before a write, on every write path. Returns the row to store, or nothing for the row as it is; throws
   * `HttpError` to refuse the write. Of the files of a bucket it can change the custom metadata. Limit 500 ms.
   */
  before<const Address extends TableAddress<Config>>(
    table: Address,
    on: readonly Operation[],
    run: (
      event: BeforeEvent<Config, Address>,
      ctx: CallerContext<Config>,
    ) => Awaitable<ReturnedRow<Config, Address> | undefined>,
  ): BeforeFunction
  /** Runs after a change is committed, at least once, in order per record or file. */
  onChange<const Address extends TableAddress<Config>>(
    table: Address,
    options: ChangeOptions,
    run: (event: ChangeEvent<Config, Address>, ctx: Context<Config>) => unknown,
  ): ChangeFunction
  readonly rpc: Rpc<Config>
  /** Serves `/api/fn{path}`; a segment `:name` of the path is `ctx.params.name`. */
  readonly http: Http<Config>
  /** Runs at the times of a cron pattern of five fields, or six with seconds first. */
  schedule(
    cron: string,
    options: ScheduleOptions,
    run: (ctx: Context<Config> & { readonly scheduledAt: Date }) => unknown,
  ): ScheduleFunction
  readonly queue: Queue<Config>
  /** Sends changes of a table or of a bucket's files to a URL, signed by Standard Webhooks. */
  webhook<const Address extends TableAddress<Config>>(table: Address, options: WebhookOptions): WebhookFunction
  readonly auth: {
    /**
     * Runs before an account is created, and before an anonymous one is upgraded. Returns fields of `data` to store in
     * place of the given ones, or nothing; throws `HttpError` to refuse. Limit 500 ms. At most one per application.
     */
    beforeSignUp(
      run: (event: SignUpEvent, ctx: CallerContext<Config>) => Awaitable<Partial<SignUpData> | undefined>,
    ): BeforeSignUpFunction
    /**
     * Returns custom claims of a user's access tokens, at each sign-in and refresh; rules see them as `auth.custom`.
     * They are added to those that an administrator has set, and win over them. Limit 500 ms. At most one per
     * application.
     */
    claims(run: (user: User, ctx: Context<Config>) => Awaitable<object>): ClaimsFunction
    /** Runs after a user was created, deleted or disabled, at least once, in order per user. */
    onUser<const Event extends UserEventName>(
      on: readonly Event[],
      run: (event: UserEvent<Event>, ctx: Context<Config>) => unknown,
    ): UserFunction
  }
}

const httpOf = (method: HttpMethod) => (path: string, options: HttpOptions, run: HttpFunction['run']) =>
  declare<HttpFunction>({ ...options, kind: 'http', method, path, run })

/** The functions that declare server code for a configuration: `functionsFor<typeof config>()`. */
export const functionsFor = <Config = unknown>(): FunctionsFor<Config> =>
  ({
    before: (table: string, on: readonly Operation[], run: BeforeFunction['run']) =>
      declare<BeforeFunction>({ kind: 'before', table, on, run }),
    onChange: (table: string, options: ChangeOptions, run: ChangeFunction['run']) =>
      declare<ChangeFunction>({ ...options, kind: 'onChange', table, run }),
    rpc: (options: RpcOptions & { input?: StandardSchema; output?: StandardSchema }, run: RpcFunction['run']) =>
      declare<RpcFunction>({ ...options, kind: 'rpc', run }),
    http: {
      get: httpOf('get'),
      post: httpOf('post'),
      put: httpOf('put'),
      patch: httpOf('patch'),
      delete: httpOf('delete'),
      all: httpOf('all'),
    },
    schedule: (cron: string, options: ScheduleOptions, run: ScheduleFunction['run']) =>
      declare<ScheduleFunction>({ ...options, kind: 'schedule', cron, run }),
    queue: (queue: string, options: QueueOptions & { input?: StandardSchema }, run: QueueFunction['run']) =>
      declare<QueueFunction>({ ...options, kind: 'queue', queue, run }),
    webhook: (table: string, options: WebhookOptions) =>
      declare<WebhookFunction>({ ...options, kind: 'webhook', table }),
    auth: {
      beforeSignUp: (run: BeforeSignUpFunction['run']) => declare<BeforeSignUpFunction>({ kind: 'beforeSignUp', run }),
      claims: (run: ClaimsFunction['run']) => declare<ClaimsFunction>({ kind: 'claims', run }),
      onUser: (on: UserFunction['on'], run: UserFunction['run']) => declare<UserFunction>({ kind: 'onUser', on, run }),
    },
  }) as unknown as FunctionsFor<Config>
