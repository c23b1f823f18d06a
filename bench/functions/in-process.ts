/**
 * The floor of the run of functions: the server with hooks that are called in its own process. Starts like the program,
 * with the same arguments.
 */
import { HostPool } from '../../packages/server/src/engines/hosts/host-pool.ts'
import type { BeforeInput, Invocation, InvocationResult } from '../../packages/server/src/engines/hosts/hosts.ts'
import { runBefore } from '../../packages/server/src/host/before.ts'
import type { AnyContext } from '../../packages/server/src/host/context.ts'
import { type LoadedCode, loadCode } from '../../packages/server/src/host/load-code.ts'

let code: LoadedCode | null = null
const load = HostPool.prototype.load

HostPool.prototype.load = async function (entry, check) {
  code = await loadCode(entry, {})
  return load.call(this, entry, check)
}

HostPool.prototype.invoke = async ({ input, context }: Invocation): Promise<InvocationResult> => {
  if (!code) throw new Error('No code is loaded')
  const ctx = {} as AnyContext
  const outcome = await runBefore(JSON.parse(JSON.stringify(input)) as BeforeInput, {
    functions: code.functions,
    ctx,
    caller: { kind: context.callerKind ?? 'anonymous', auth: context.auth },
    failureOf(error) {
      throw error
    },
    onStep() {},
  })
  return { kind: 'value', json: JSON.stringify(outcome) }
}

await import('../../packages/server/src/main.ts')
