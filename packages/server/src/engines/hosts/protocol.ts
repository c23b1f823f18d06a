/** The messages between the server and a function host, over the runtime's IPC channel; see also `outbox.ts`. */
import type { Cidr } from '../../base/network/address.ts'
import type { Claim } from './claims.ts'
import type {
  CodeLocation,
  HostFailure,
  HostLogLevel,
  HostRequest,
  HostResponse,
  HttpInput,
  InvocationContext,
  Manifest,
} from './hosts.ts'
import type { Packet } from './outbox.ts'

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
  /** Claimed before the invocation begins; if that fails, it has moved to another host. */
  readonly claim: Claim
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

/** Whether a message contains bytes, which JSON cannot express. */
export function hasBytes(message: ToHost | FromHost): boolean {
  switch (message.type) {
    case 'invoke':
      return (message.input as Partial<HttpInput> | null)?.body instanceof Uint8Array
    case 'response':
      return message.response.body instanceof Uint8Array
    case 'request':
      return message.content.body instanceof Uint8Array
    case 'chunk':
      return message.chunk instanceof Uint8Array
    default:
      return false
  }
}

/** Roughly the characters of a message from a host. */
export function sizeOf(message: FromHost): number {
  switch (message.type) {
    case 'value':
      return message.json?.length ?? 0
    case 'chunk':
      return message.chunk.length
    case 'request':
      return message.content.body?.length ?? 0
    default:
      return 0
  }
}

/** A message from a host as lines. The JSON of a result is a line of its own, which is not encoded and parsed again. */
export function encodeFromHost(message: FromHost): string {
  if (message.type !== 'value' || message.json === null) return JSON.stringify(message)
  return `${JSON.stringify({ type: 'value', id: message.id })}\n${message.json}`
}

export function* decodeFromHost(packet: Packet<FromHost>): Generator<FromHost> {
  if (typeof packet !== 'string') return yield* packet
  const lines = packet.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const message = JSON.parse(lines[at] as string) as FromHost
    if (message.type === 'value' && message.json === undefined) yield { ...message, json: lines[++at] as string }
    else yield message
  }
}

export const decodeToHost = (packet: Packet<ToHost>): readonly ToHost[] =>
  typeof packet === 'string' ? packet.split('\n').map((line) => JSON.parse(line) as ToHost) : packet
