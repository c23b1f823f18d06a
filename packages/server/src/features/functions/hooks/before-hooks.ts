/** Runs the `before` functions of the application: all events of a request in one message to a function host. */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import { type BeforeInput, type BeforeOutcome, HostError, type InvocationResult } from '../../../engines/hosts/hosts.ts'
import { type ApiError, hookFailed } from '../../../errors.ts'
import { beforeDepthMax, beforeTimeoutMs, beforeTimeoutMsMax } from '../../../limits/functions.ts'
import {
  type BeforeHooks,
  type HookEvent,
  type HookedRow,
  HookRefusal,
  type HookRequest,
  type NamespaceHooks,
} from '../../before-hooks.ts'
import type { BeforeDefinition } from '../definitions/definition.ts'
import { apiErrorOf, faultOf, hookErrorOf } from '../invoke/failures.ts'
import type { FunctionCall, Invoker } from '../invoke/invoker.ts'
import { createBeforeTimes } from './before-times.ts'
import { compileHooks, type HookList, hookList, type TableHooks } from './declared-hooks.ts'
import { HookResult } from './hook-result.ts'
import { reportHook } from './report-hook.ts'

export interface BeforeHooksDeps {
  /** The `before` functions of the code in force; another list for other code. */
  readonly declared: () => readonly BeforeDefinition[]
  readonly invoker: Pick<Invoker, 'invoke' | 'report' | 'countRun'>
  readonly clock: Clock
  readonly log: Log
}

export interface BeforeHookRuns extends BeforeHooks {
  /** Durations of the runs, by table. */
  readonly times: ReturnType<typeof createBeforeTimes>
}

const none = hookList([])

/** The hooks of several events, once each. */
const together = (lists: readonly HookList[]): HookList => hookList([...new Set(lists.flatMap(({ hooks }) => hooks))])

/** How many functions have caused each other before this request: the ids of their requests say so. */
const depthOf = (requestId: string): number =>
  requestId.startsWith('fn:') ? Number(/^fn:(\d+):/.exec(requestId)?.[1] ?? 0) : 0

export function createBeforeHooks({ declared, invoker, clock, log }: BeforeHooksDeps): BeforeHookRuns {
  /** By the list of functions, since a reload brings another one. */
  const compiled = new WeakMap<readonly BeforeDefinition[], ReadonlyMap<string, TableHooks>>()
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

  const fail = (hook: BeforeDefinition, requestId: string, message: string): ApiError =>
    reportHook(invoker, hook, requestId, message)

  async function invoke(call: FunctionCall): Promise<InvocationResult> {
    try {
      return await invoker.invoke(call)
    } catch (error) {
      throw hookErrorOf(error)
    }
  }

  async function run(
    tables: TableHooks,
    events: readonly HookEvent[],
    request: HookRequest,
  ): Promise<readonly (HookedRow | null)[]> {
    const { caller, requestId } = request
    const listOf = ({ table, operation }: HookEvent): HookList => tables.get(table)?.[operation] ?? none
    const [event] = events
    // Most requests write one row.
    const { hooks, names } = event && events.length === 1 ? listOf(event) : together(events.map(listOf))
    const [first] = hooks
    if (!first) return events.map(() => null)
    const hookBy = (name: string): BeforeDefinition => hooks.find((hook) => hook.name === name) ?? first
    if (depthOf(requestId) >= beforeDepthMax)
      throw fail(first, requestId, `Functions have caused each other ${beforeDepthMax} times`)
    const input: BeforeInput = events.map((one) => {
      const { operation, row, previous } = one
      return { hooks: listOf(one).names, event: { operation, row, previous } }
    })
    const timeoutMs = events.length > 1 ? beforeTimeoutMsMax : beforeTimeoutMs
    const startedMs = performance.now()
    const { name } = first
    const call = { name, together: names, input, caller, requestId, timeoutMs, signal: () => request.signal }
    const result = await invoke(call)
    times.record(first.table, (performance.now() - startedMs) / 1000)
    const outcome = JSON.parse((result.kind === 'value' && result.json) || '{"results":[]}') as BeforeOutcome
    // The invocation has counted the first alone.
    if ('failed' in outcome) {
      if (outcome.failed.hook !== name) invoker.countRun(outcome.failed.hook)
      throw errorOf(outcome.failed)
    }
    for (const hook of hooks) if (hook !== first) invoker.countRun(hook.name)
    const report = (hook: string, problem: string): ApiError => fail(hookBy(hook), requestId, problem)
    return outcome.results.map((one, index) => one && new HookResult(one, events[index] as HookEvent, report))

    function errorOf({ index, hook, failure }: Extract<BeforeOutcome, { failed: unknown }>['failed']): Error {
      const error = new HostError(failure)
      if (failure.kind === 'refused') return new HookRefusal(index, apiErrorOf(error))
      const fault = faultOf(error)
      if (fault) invoker.report({ name: hook, requestId }, fault)
      return hookFailed()
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
