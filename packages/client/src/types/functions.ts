/**
 * Functions of the server, typed by `typeof functions`: the exports of `functions/index.ts` that `rpc` created. They
 * are recognized by their shape, so nothing of the server is imported. Without that type any name is accepted.
 */
import type { Call } from './options.ts'
import type { Json } from './rooms.ts'

/** What an export of `rpc` has in its type: its input before validation, and what it returns. */
export interface RpcShape<Input = never, Output = unknown> {
  readonly kind: 'rpc'
  readonly types?: (input: Input) => Output
}

/** The names of the functions. */
export type FunctionName<Functions> = {
  [Name in keyof Functions]: Functions[Name] extends RpcShape ? Name : never
}[keyof Functions] &
  string

type InputOf<Rpc> = Rpc extends RpcShape<infer Input> ? Input : never
type OutputOf<Rpc> = Rpc extends { readonly types?: (input: never) => infer Output } ? Output : never

type CallArguments<Input> = undefined extends Input ? [input?: Input, options?: Call] : [input: Input, options?: Call]

type Streamed = AsyncIterable<unknown> | Iterator<unknown>

/** The names of the functions that answer once. */
type Answering<Functions> = {
  [Name in FunctionName<Functions>]: Awaited<OutputOf<Functions[Name]>> extends Streamed ? never : Name
}[FunctionName<Functions>]

/** The names of the functions that yield. */
type Streaming<Functions> = Exclude<FunctionName<Functions>, Answering<Functions>>

type YieldOf<Output> = Output extends AsyncIterable<infer Value> | Iterator<infer Value> ? Json<Value> : never

export interface Functions<Declared = unknown> {
  /** Calls a function of the server. */
  readonly call: unknown extends Declared
    ? <T = unknown>(name: string, input?: unknown, options?: Call) => Promise<T>
    : <const Name extends Answering<Declared>>(
        name: Name,
        ...args: CallArguments<InputOf<Declared[Name]>>
      ) => Promise<Json<Awaited<OutputOf<Declared[Name]>>>>
  /** Calls a function that yields. */
  readonly stream: unknown extends Declared
    ? <T = unknown>(name: string, input?: unknown, options?: Call) => AsyncIterable<T>
    : <const Name extends Streaming<Declared>>(
        name: Name,
        ...args: CallArguments<InputOf<Declared[Name]>>
      ) => AsyncIterable<YieldOf<Awaited<OutputOf<Declared[Name]>>>>
}
