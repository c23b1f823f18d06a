/**
 * Invokes functions: builds their context, answers their requests to the API, logs their lines and their failures, and
 * counts them.
 */
import type { Caller, ServiceCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import {
  type CodeLocation,
  type FunctionHosts,
  HostError,
  type HostLogLevel,
  type HostRequest,
  type HostResponse,
  type InvocationContext,
  type InvocationResult,
} from '../../../engines/hosts/hosts.ts'
import type { RunInternally } from '../../../http/internal-request.ts'
import type { RecentLines } from '../logs/recent-lines.ts'
import { redactValue } from '../secrets/redaction.ts'
import { type Fault, faultOf } from './failures.ts'

/** Who acts where `ctx` goes past the access rules. */
export const functionsCaller: ServiceCaller = Object.freeze({
  kind: 'service',
  auth: null,
  keyName: 'functions',
  scopes: Object.freeze(['*']),
})

export interface InvokerDeps {
  readonly hosts: FunctionHosts
  readonly run: RunInternally
  /** The values of all declared secrets. */
  readonly secrets: () => Readonly<Record<string, string>>
  /** Keeps the lines and failures of functions for operators. */
  readonly lines: RecentLines
  readonly clock: Clock
  readonly log: Log
}

export interface FunctionCall {
  readonly name: string
  readonly input: unknown
  /** Null where there is none: `ctx.db` is absent. */
  readonly caller: Caller | null
  /** In the log, and in requests that the function makes. */
  readonly requestId: string
  readonly timeoutMs: number
  /** The id of its job: a repeated attempt makes the same writes once. */
  readonly effects?: string
  readonly signal?: AbortSignal
  /** Overrides of the context, such as those of a job. */
  readonly context?: Partial<InvocationContext>
}

/** Counters of a function since the start of the node. */
export interface FunctionCounts {
  calls: number
  failures: number
  /** Whether the last call that ended has failed. */
  isFailing: boolean
  lastError: { readonly at: string; readonly message: string; readonly location: CodeLocation | null } | null
}

export interface Invoker {
  /** Rejects with `HostError`. */
  invoke(call: FunctionCall): Promise<InvocationResult>
  /** Logs and counts a failure of a function that its invocation did not reject with. */
  report(call: Pick<FunctionCall, 'name' | 'requestId'>, fault: Fault): void
  countsOf(name: string): FunctionCounts
}

const textTypes = /^(?:text\/|application\/json)/

async function hostResponseOf(response: Response): Promise<HostResponse> {
  const { status, headers } = response
  const isText = textTypes.test(headers.get('content-type') ?? '')
  const body = isText ? await response.text() : await response.bytes()
  return { status, headers: Object.fromEntries(headers), body: body.length === 0 ? null : body }
}

/** Ids of a function's requests have the number of functions that have caused each other, so that loops end. */
function requestIdOf(name: string, cause: string): string {
  const [prefix = '', depth = '0'] = /^fn:(\d+):/.exec(cause) ?? []
  return `fn:${Number(depth) + 1}:${name}:${cause.slice(prefix.length)}`
}

export function createInvoker({ hosts, run, secrets, lines, clock, log }: InvokerDeps): Invoker {
  const counts = new Map<string, FunctionCounts>()
  const countsOf = (name: string): FunctionCounts => {
    const known = counts.get(name) ?? { calls: 0, failures: 0, isFailing: false, lastError: null }
    counts.set(name, known)
    return known
  }

  const answer = ({ name, caller, requestId, effects }: FunctionCall) => {
    let writes = 0
    return async (content: HostRequest, as: 'caller' | 'service', signal: AbortSignal): Promise<HostResponse> => {
      const isEffect = effects !== undefined && content.method !== 'GET' && content.method !== 'HEAD'
      return hostResponseOf(
        await run({
          method: content.method,
          target: content.path,
          headers: content.headers,
          body: content.body as string | Uint8Array<ArrayBuffer> | null,
          caller: as === 'caller' && caller ? caller : functionsCaller,
          requestId: requestIdOf(name, requestId),
          effectKey: isEffect ? `${effects}:${++writes}` : undefined,
          functionName: name,
          signal,
        }),
      )
    }
  }

  const writeLine =
    ({ name, requestId }: FunctionCall) =>
    (level: HostLogLevel, message: string, data?: object): void => {
      const fields = redactValue({ function: name, message, requestId, ...(data && { data }) }, secrets())
      lines.add({ ...fields, level, data: fields.data ?? null, location: null, atMs: clock.now() })
      if (level === 'debug') log.debug('functions.debug', fields)
      else if (level === 'info') log.info('functions.info', fields)
      else if (level === 'warn') log.warn('functions.warning', fields)
      else log.error('functions.error', fields)
    }

  /** Errors reach the log, the stored jobs and, if the function wants it, the caller. */
  const withoutSecrets = (error: unknown): unknown =>
    error instanceof HostError ? new HostError(redactValue(error.failure, secrets())) : error

  function record(call: FunctionCall, error: unknown): void {
    const fault = faultOf(error)
    if (fault) report(call, fault)
  }

  const report: Invoker['report'] = ({ name, requestId }, fault) => {
    const { reason, message, location, stack } = fault
    const count = countsOf(name)
    count.failures++
    count.isFailing = true
    count.lastError = { at: new Date(clock.now()).toISOString(), message, location }
    lines.add({ level: 'error', function: name, message, requestId, location, data: { reason }, atMs: clock.now() })
    const at = location ? { location: `${location.file}:${location.line}` } : {}
    log.error('functions.failed', { function: name, reason, message, requestId, ...at, ...(stack && { stack }) })
  }

  /** Records an error of a stream too. */
  async function* recorded(call: FunctionCall, values: AsyncIterable<string>): AsyncGenerator<string> {
    try {
      yield* values
    } catch (error) {
      const redacted = withoutSecrets(error)
      record(call, redacted)
      throw redacted
    }
  }

  return {
    countsOf,
    report,
    async invoke(call) {
      const { name, input, caller, requestId, timeoutMs, signal, context } = call
      countsOf(name).calls++
      try {
        const result = await hosts.invoke({
          name,
          input,
          timeoutMs,
          ...(signal && { signal }),
          context: {
            invocationId: requestId,
            auth: caller?.auth ?? null,
            callerKind: caller?.kind ?? null,
            hasCaller: caller !== null,
            nowMs: clock.now(),
            idempotencyKey: requestId,
            secrets: secrets(),
            ...context,
          },
          onRequest: answer(call),
          onLog: writeLine(call),
        })
        countsOf(name).isFailing = false
        return result.kind === 'stream' ? { kind: 'stream', values: recorded(call, result.values) } : result
      } catch (error) {
        const redacted = withoutSecrets(error)
        record(call, redacted)
        throw redacted
      }
    },
  }
}
