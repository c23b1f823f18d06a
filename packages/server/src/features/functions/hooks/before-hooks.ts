/** Runs the `before` functions of the application: all events of a request in one message to a function host. */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import {
  type BeforeInput,
  type BeforeOutcome,
  HostError,
  type HostFailure,
  type InvocationResult,
} from '../../../engines/hosts/hosts.ts'
import { ApiError, clientClosedRequest, type FieldErrors, hookFailed, unavailable } from '../../../errors.ts'
import { beforeDepthMax, beforeTimeoutMs, beforeTimeoutMsMax } from '../../../limits/functions.ts'
import {
  type BeforeHooks,
  type HookEvent,
  type HookedRow,
  HookRefusal,
  type HookRequest,
  type NamespaceHooks,
} from '../../before-hooks.ts'
import { createBeforeTimes } from './before-times.ts'
import { compileHooks, type DeclaredHook, type TableHooks } from './declared-hooks.ts'

/** Invokes a function with the permissions of a request's caller. Rejects with `HostError`. */
export type InvokeHook = (call: {
  readonly name: string
  readonly input: BeforeInput
  readonly timeoutMs: number
  readonly request: HookRequest
}) => Promise<InvocationResult>

export interface BeforeHooksDeps {
  /** The `before` functions of the code in force; another list for other code. */
  readonly declared: () => readonly DeclaredHook[]
  readonly invoke: InvokeHook
  readonly clock: Clock
  readonly log: Log
}

export interface BeforeHookRuns extends BeforeHooks {
  /** Durations of the runs, by table. */
  readonly times: ReturnType<typeof createBeforeTimes>
}

/** How many functions have caused each other before this request: such requests have ids of their own. */
const depthOf = (requestId: string): number => Number(/^fn:(\d+):/.exec(requestId)?.[1] ?? 0)

export function createBeforeHooks({ declared, invoke, clock, log }: BeforeHooksDeps): BeforeHookRuns {
  /** By the list of functions, since a reload brings another one. */
  const compiled = new WeakMap<readonly DeclaredHook[], ReadonlyMap<string, TableHooks>>()
  const times = createBeforeTimes(clock, log)

  function tablesOf(namespace: string): TableHooks | null {
    const list = declared()
    if (list.length === 0) return null
    let found = compiled.get(list)
    if (!found) {
      found = compileHooks(list)
      compiled.set(list, found)
    }
    return found.get(namespace) ?? null
  }

  /** Logs a failure of the application's code. Returns the error for the caller. */
  function fail(hook: DeclaredHook, failure: { readonly message: string } & Partial<HostFailure>, requestId: string) {
    const location = ('location' in failure && failure.location) || hook.location
    log.error('functions.hook_failed', {
      function: hook.name,
      ...(location ? { location: `${location.file}:${location.line}` } : {}),
      requestId,
      reason: failure.message,
    })
    return hookFailed()
  }

  /** The error for a failure of the whole call. */
  function failureOf(error: unknown, hook: DeclaredHook, requestId: string): unknown {
    if (!(error instanceof HostError)) return error
    const { failure } = error
    if (failure.kind === 'aborted') return clientClosedRequest()
    if (failure.kind === 'overloaded') return unavailable(1, 'The functions of this server are overloaded')
    const failed = fail(hook, failure, requestId)
    return failure.kind === 'crashed' ? unavailable(1, 'A process that runs functions has ended') : failed
  }

  async function run(
    tables: TableHooks,
    events: readonly HookEvent[],
    request: HookRequest,
  ): Promise<readonly (HookedRow | null)[]> {
    const { caller, requestId } = request
    const hooksOf = events.map(({ table, operation }) => tables.get(table)?.[operation] ?? [])
    const [first] = hooksOf[0] ?? []
    if (!first) return events.map(() => null)
    const hookBy = (name: string): DeclaredHook => hooksOf.flat().find((hook) => hook.name === name) ?? first
    if (depthOf(requestId) >= beforeDepthMax)
      throw fail(first, { message: `Functions have caused each other ${beforeDepthMax} times` }, requestId)
    const input: BeforeInput = {
      calls: events.map(({ operation, row, previous }, index) => ({
        hooks: (hooksOf[index] ?? []).map(({ name }) => name),
        event: { operation, row, previous },
      })),
      caller: { kind: caller.kind, auth: caller.auth },
    }
    const timeoutMs = events.length > 1 ? beforeTimeoutMsMax : beforeTimeoutMs
    const startedMs = performance.now()
    const result = await invoke({ name: first.name, input, timeoutMs, request }).catch((error: unknown) => {
      throw failureOf(error, first, requestId)
    })
    times.record(first.table, (performance.now() - startedMs) / 1000)
    const outcome = JSON.parse((result.kind === 'value' && result.json) || '{"results":[]}') as BeforeOutcome
    if ('failed' in outcome) throw errorOf(outcome.failed)
    return outcome.results.map(
      (one) => one && { row: one.row, fail: (problem) => fail(hookBy(one.hook), { message: problem }, requestId) },
    )

    function errorOf({ index, hook, failure }: Extract<BeforeOutcome, { failed: unknown }>['failed']): Error {
      if (failure.kind !== 'refused') return fail(hookBy(hook), failure, requestId)
      const { status, slug, message, data } = failure
      // The application decides what `data` is.
      return new HookRefusal(index, new ApiError(status, slug, message, data as FieldErrors | undefined))
    }
  }

  return {
    times,
    of(namespace): NamespaceHooks | null {
      const tables = tablesOf(namespace)
      if (!tables) return null
      return {
        covers: (table, operation) => tables.get(table)?.[operation] !== undefined,
        run: (events, request) => run(tables, events, request),
      }
    },
  }
}
