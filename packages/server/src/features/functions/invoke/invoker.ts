/**
 * Invokes functions: builds their context, answers their requests to the API, logs their lines and their failures, and
 * counts them.
 */
import type { Caller, ServiceCaller } from '../../../access/caller.ts'
import {
  type FunctionHosts,
  HostError,
  type HostLogLevel,
  type HostRequest,
  type HostResponse,
  type InvocationContext,
  type InvocationResult,
} from '../../../engines/hosts/hosts.ts'
import { createDurations, type Durations, requestBounds } from '../../../http/durations.ts'
import type { RunInternally } from '../../../http/internal-request.ts'
import { redactValue } from '../secrets/redaction.ts'
import { type Counts, type CountsDeps, createCounts } from './counts.ts'
import { createEffectBounds } from './effect-bounds.ts'
import { faultOf } from './failures.ts'

/** Who acts where `ctx` goes past the access rules. */
export const functionsCaller: ServiceCaller = Object.freeze({
  kind: 'service',
  auth: null,
  keyName: 'functions',
  scopes: Object.freeze(['*']),
})

export interface InvokerDeps extends CountsDeps {
  readonly hosts: FunctionHosts
  readonly run: RunInternally
  /** The values of all declared secrets. */
  readonly secrets: () => Readonly<Record<string, string>>
}

export interface FunctionCall {
  readonly name: string
  /** See `Invocation`. */
  readonly together?: readonly string[]
  readonly input: unknown
  /** Null where there is none: `ctx.db` is absent. */
  readonly caller: Caller | null
  /** In the log, and in requests that the function makes. */
  readonly requestId: string
  readonly timeoutMs: number
  /** The id of its job: a repeated attempt makes the same writes once. */
  readonly effects?: string
  /** See `Invocation`. */
  readonly signal?: () => AbortSignal
  /** Overrides of the context, such as those of a job. */
  readonly context?: Partial<InvocationContext>
}

export interface Invoker extends Counts {
  /** Rejects with `HostError`. */
  invoke(call: FunctionCall): Promise<InvocationResult>
  /** From a call to its result or the first byte of it, by function; not of functions that run together. */
  readonly durations: ReadonlyMap<string, Durations>
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

export function createInvoker({ hosts, run, secrets, locationOf, lines, clock, log }: InvokerDeps): Invoker {
  const { countsOf, countRun, report } = createCounts({ locationOf, lines, clock, log })
  const durations = new Map<string, Durations>()
  const durationsOf = (name: string): Durations =>
    durations.getOrInsertComputed(name, () => createDurations(requestBounds))

  function answer({ name, caller, requestId, effects }: FunctionCall) {
    const bounds = effects === undefined ? null : createEffectBounds()
    return async (content: HostRequest, as: 'caller' | 'service', signal: AbortSignal): Promise<HostResponse> => {
      const { method, path, headers, body, effect } = content
      const effectKey = effects !== undefined && effect !== undefined ? `${effects}:${effect}` : undefined
      const perform = async (): Promise<HostResponse> =>
        hostResponseOf(
          await run({
            method,
            target: path,
            headers,
            body: body as string | Uint8Array<ArrayBuffer> | null,
            caller: as === 'caller' && caller ? caller : functionsCaller,
            requestId: requestIdOf(name, requestId),
            effectKey,
            functionName: name,
            signal,
          }),
        )
      return bounds === null || effectKey === undefined ? perform() : bounds.run(perform)
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
    if (!fault) return
    const name = fault.function ?? call.name
    if (name !== call.name) countRun(name)
    report({ name, requestId: call.requestId }, fault)
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
    countRun,
    durations,
    async invoke(call) {
      const { name, together, input, caller, requestId, timeoutMs, signal, context } = call
      countsOf(name).calls++
      const startedMs = performance.now()
      try {
        const result = await hosts.invoke({
          name,
          input,
          timeoutMs,
          ...(together && { together }),
          ...(signal && { signal }),
          context: {
            auth: caller?.auth ?? null,
            callerKind: caller?.kind ?? null,
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
      } finally {
        if (!together) durationsOf(name).record((performance.now() - startedMs) / 1000)
      }
    },
  }
}
