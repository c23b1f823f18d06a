/** The messages between the server and a function host, over the runtime's IPC channel. */
import type { Cidr } from '../../base/network/address.ts'
import type {
  CodeLocation,
  HostFailure,
  HostLogLevel,
  HostRequest,
  HostResponse,
  InvocationContext,
  Manifest,
} from './hosts.ts'

/** From the server to a host. */
export type ToHost =
  | {
      readonly type: 'load'
      readonly entry: string
      /** Of the server. */
      readonly url: string
      readonly networks: readonly Cidr[]
      /** Where requests of `ctx.fetch` go instead, in tests. */
      readonly fetchRelay: string | null
      /** Source by absolute path, instead of the files; empty for the first host of a version. */
      readonly sources: Readonly<Record<string, string>>
    }
  | InvokeMessage
  /** Starts an invocation whose `mayStart` was false, after its `ready`. */
  | { readonly type: 'start'; readonly id: string }
  /** Drops an invocation that was not started: another host runs it. */
  | { readonly type: 'drop'; readonly id: string }
  | { readonly type: 'abort'; readonly id: string; readonly reason: 'timeout' | 'aborted' }
  /** Answers a `request`. */
  | { readonly type: 'response'; readonly request: number; readonly response: HostResponse }
  /** The consumer of a stream has read a chunk. */
  | { readonly type: 'pull'; readonly id: string }
  | { readonly type: 'ping' }

export interface InvokeMessage {
  readonly type: 'invoke'
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly context: InvocationContext
  readonly timeoutMs: number
  /**
   * False where the host runs other functions, which may block it: it answers `ready` and waits for `start`, so that an
   * invocation that a blocked host has not begun can safely move to another one.
   */
  readonly mayStart: boolean
}

/** From a host to the server. */
export type FromHost =
  /** The program runs and accepts `load`. */
  | { readonly type: 'up' }
  | { readonly type: 'loaded'; readonly manifest: Manifest; readonly sources: Readonly<Record<string, string>> }
  | {
      readonly type: 'load-failed'
      readonly message: string
      readonly location: CodeLocation | null
      readonly files: readonly string[]
    }
  | { readonly type: 'pong' }
  /** The process ends by the application's own doing. */
  | { readonly type: 'ending'; readonly reason: string; readonly location: CodeLocation | null }
  /** Lines that exceeded the bound. */
  | { readonly type: 'logs-dropped'; readonly count: number }
  | FromInvocation

/** About one invocation. */
export type FromInvocation =
  | { readonly type: 'ready'; readonly id: string }
  | {
      readonly type: 'request'
      readonly id: string
      /** Unique in the host. */
      readonly request: number
      readonly as: 'caller' | 'service'
      readonly content: HostRequest
    }
  | {
      readonly type: 'log'
      readonly id: string
      readonly level: HostLogLevel
      readonly message: string
      readonly fields?: object
    }
  | { readonly type: 'value'; readonly id: string; readonly json: string | null }
  /** The function yields values: chunks of JSON text follow. */
  | { readonly type: 'stream'; readonly id: string }
  /** The function has returned a response; chunks of bytes follow if it has a body. */
  | {
      readonly type: 'http'
      readonly id: string
      readonly status: number
      readonly headers: readonly (readonly [string, string])[]
      readonly hasBody: boolean
    }
  | { readonly type: 'chunk'; readonly id: string; readonly chunk: string | Uint8Array }
  | { readonly type: 'end'; readonly id: string }
  /** Nothing follows. */
  | { readonly type: 'failed'; readonly id: string; readonly failure: HostFailure }

/** Whether a message is the last one of its invocation. */
export const isLast = (message: FromInvocation): boolean =>
  message.type === 'value' ||
  message.type === 'end' ||
  message.type === 'failed' ||
  (message.type === 'http' && !message.hasBody)
