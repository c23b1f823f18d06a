/**
 * Port: processes that run the application's code. Isolates the server from its faults (endless loops, memory, crashes,
 * `process.exit`); it is not a sandbox for hostile code. Knows nothing of tables or endpoints.
 */

/** A line in the application's code. */
export interface CodeLocation {
  /** Absolute path. */
  readonly file: string
  readonly line: number
}

/** An exported function with its options, which are JSON as the application wrote them and must be validated. */
export interface ManifestEntry {
  readonly name: string
  readonly kind: string
  /** Of its declaration. */
  readonly location: CodeLocation | null
  readonly [option: string]: unknown
}

/** What the application's code declares. */
export interface Manifest {
  readonly functions: readonly ManifestEntry[]
  /** Names of secrets, once each. */
  readonly secrets: readonly { readonly name: string; readonly location: CodeLocation | null }[]
  /** Absolute paths of the local modules that were loaded. */
  readonly files: readonly string[]
}

/** Code that does not load: a syntax error, a missing import, or an error thrown by a module. */
export class LoadError extends Error {
  constructor(
    message: string,
    readonly location: CodeLocation | null,
    /** Absolute paths of the modules that were loaded or failed to. */
    readonly files: readonly string[] = [],
  ) {
    super(message)
    this.name = 'LoadError'
  }
}

/** Who called, and what does not depend on the function. */
export interface InvocationContext {
  /** The user as access rules see it. */
  readonly auth: object | null
  /** Null where there is no caller: then `ctx.db` is absent. */
  readonly callerKind: 'anonymous' | 'user' | 'service' | null
  readonly nowMs: number
  readonly idempotencyKey: string
  readonly attempt?: number
  readonly jobId?: string
  readonly scheduledAtMs?: number
  readonly secrets: Readonly<Record<string, string>>
}

/** A request of a function to the API of the server. */
export interface HostRequest {
  readonly method: string
  /** With the query string. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
  /** The number of a write: the same in each attempt of a job. Absent for a request that only reads. */
  readonly effect?: string
}

export interface HostResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
}

export type HostLogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface Invocation {
  /** The name of the export. */
  readonly name: string
  /** The functions that run together, if they are several: the first is `name`. A failure has the one that ran. */
  readonly together?: readonly string[]
  /** By the kind of the function: JSON, or for `http` an `HttpInput`. */
  readonly input: unknown
  readonly context: InvocationContext
  readonly timeoutMs: number
  /** Aborts the invocation: its result is not needed any more. Read once it has lasted `hostAbortWatchMs`. */
  readonly signal?: () => AbortSignal
  /** A request of `ctx`; `as` states with whose permissions. Not called after the deadline; must not reject. */
  readonly onRequest: (request: HostRequest, as: 'caller' | 'service', signal: AbortSignal) => Promise<HostResponse>
  readonly onLog: (level: HostLogLevel, message: string, fields?: object) => void
  /** A host was given the invocation; again where it moves to another one. */
  readonly onHost?: () => void
}

/** An event of a write, and the names of its hooks in order. */
export interface BeforeCall {
  readonly hooks: readonly string[]
  readonly event: {
    readonly operation: 'insert' | 'update' | 'delete'
    readonly row: Readonly<Record<string, unknown>>
    readonly previous: Readonly<Record<string, unknown>> | null
  }
}

/** The input of functions of kind `before`: all events of a request, invoked by the name of the first hook. */
export type BeforeInput = readonly BeforeCall[]

/**
 * What the hooks of an event returned in place of its row, and the last hook that returned something. Of a row only the
 * members that may differ, and the names of those that it does not have: most hooks set a field or two.
 */
export type BeforeResult =
  | { readonly hook: string; readonly changed: Readonly<Record<string, unknown>>; readonly removed: readonly string[] }
  | { readonly hook: string; readonly returned: unknown }

/** The result of functions of kind `before`. */
export type BeforeOutcome =
  /** Of each event; null if no hook returned anything. */
  | { readonly results: readonly (BeforeResult | null)[] }
  | { readonly failed: { readonly index: number; readonly hook: string; readonly failure: HostFailure } }

/** The input of a function of kind `http`. */
export interface HttpInput {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array | null
  readonly params: Readonly<Record<string, string>>
}

export type InvocationResult =
  /** Null where the function returned nothing that JSON can express. */
  | { readonly kind: 'value'; readonly json: string | null }
  /** The JSON of each value; throws `HostError`. */
  | { readonly kind: 'stream'; readonly values: AsyncIterable<string> }
  | {
      readonly kind: 'response'
      readonly status: number
      readonly headers: readonly (readonly [string, string])[]
      readonly body: ReadableStream<Uint8Array> | null
    }

/** Details of an invocation that did not succeed. */
export type HostFailure =
  /** Past its deadline. */
  | { readonly kind: 'timeout'; readonly message: string; readonly function: string }
  /** The host ended: by another function or by this one. */
  | { readonly kind: 'crashed'; readonly message: string; readonly function: string }
  /** Not started: too many invocations, or no host. */
  | { readonly kind: 'overloaded'; readonly message: string }
  /** Its signal was aborted. */
  | { readonly kind: 'aborted'; readonly message: string }
  /** The function threw. */
  | {
      readonly kind: 'failed'
      readonly message: string
      readonly stack?: string
      readonly location: CodeLocation | null
    }
  /** The function threw an `HttpError`, or its input or caller was refused. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly slug: string
      readonly message: string
      readonly data?: unknown
    }

export class HostError extends Error {
  readonly failure: HostFailure
  readonly kind: HostFailure['kind']

  constructor(failure: HostFailure) {
    super(failure.message)
    this.name = 'HostError'
    this.failure = failure
    this.kind = failure.kind
  }
}

/** Processes in service, for operators. */
export interface HostStatus {
  readonly pid: number
  readonly invocations: number
  /** Whether it has loaded the code. */
  readonly isReady: boolean
  /** Whether it does not answer. */
  readonly isBlocked: boolean
  /** Resident memory; null if unknown. */
  readonly memoryBytes: number | null
  /** Since it was started. */
  readonly ageMs: number
}

/** The hosts of the code in force, and what became of earlier ones. */
export interface HostsStatus {
  readonly hosts: readonly HostStatus[]
  /** Invocations that wait for a host. */
  readonly waiting: number
  /** Hosts that have ended unexpectedly since the start of the server. */
  readonly restarts: number
  readonly lastEnd: { readonly ageMs: number; readonly reason: string } | null
  /** Resident memory at which a host is killed. */
  readonly memoryBytesMax: number
}

export interface FunctionHosts {
  /**
   * Loads code in new hosts. `check` may refuse the manifest by throwing. Until it returns, and if anything fails, the
   * code in force stays; invocations under way finish in the hosts in which they began. Rejects with `LoadError`, or
   * with what `check` throws.
   */
  load(entry: string, check?: (manifest: Manifest) => void | Promise<void>): Promise<Manifest>
  /** Rejects with `HostError`. */
  invoke(call: Invocation): Promise<InvocationResult>
  status(): HostsStatus
  /** Kills every host; invocations under way reject. */
  close(): Promise<void>
}
