/** Runs the functions of the application that accounts call: `auth.beforeSignUp` and `auth.claims`. */
import type { Caller } from '../../../access/caller.ts'
import { beforeTimeoutMs } from '../../../limits/functions.ts'
import type { AuthHooks, HookAnswer } from '../../auth-hooks.ts'
import type { HookRequest } from '../../before-hooks.ts'
import type { AuthDefinition, FunctionDefinition } from '../definitions/definition.ts'
import { hookErrorOf } from '../invoke/failures.ts'
import type { Invoker } from '../invoke/invoker.ts'
import { reportHook } from './report-hook.ts'

export interface AuthHooksDeps {
  /** The functions of the code in force; another list for other code. */
  readonly definitions: () => readonly FunctionDefinition[]
  readonly invoker: Pick<Invoker, 'invoke' | 'report'>
}

/** The hooks of the code in force, to be read for each request. */
export function createAuthHooks({ definitions, invoker }: AuthHooksDeps): () => AuthHooks {
  let compiled: { readonly list: readonly FunctionDefinition[]; readonly hooks: AuthHooks } | null = null

  async function run(
    definition: AuthDefinition,
    input: object,
    caller: Caller | null,
    request: HookRequest,
  ): Promise<HookAnswer> {
    const { requestId } = request
    const fail = (problem: string) => reportHook(invoker, definition, requestId, problem)
    const { name } = definition
    const result = await invoker
      .invoke({ name, input, caller, requestId, timeoutMs: beforeTimeoutMs, signal: () => request.signal })
      .catch((error) => {
        throw hookErrorOf(error)
      })
    if (result.kind === 'value') return { text: result.json, fail }
    if (result.kind === 'response') await result.body?.cancel()
    else await result.values[Symbol.asyncIterator]().return?.()
    throw fail('returned no JSON value')
  }

  function compile(list: readonly FunctionDefinition[]): AuthHooks {
    const of = (kind: AuthDefinition['kind']) => list.find((one): one is AuthDefinition => one.kind === kind) ?? null
    const beforeSignUp = of('beforeSignUp')
    const claims = of('claims')
    const events = new Set(list.flatMap((one) => (one.kind === 'onUser' ? one.on : [])))
    return {
      beforeSignUp: beforeSignUp && ((event, request) => run(beforeSignUp, event, request.caller, request)),
      // Claims are those of the user, for every caller.
      claims: claims && ((user, request) => run(claims, user, null, request)),
      waitsFor: (event) => events.has(event),
    }
  }

  return () => {
    const list = definitions()
    if (compiled?.list !== list) compiled = { list, hooks: compile(list) }
    return compiled.hooks
  }
}
