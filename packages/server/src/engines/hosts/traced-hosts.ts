/** Decorator of the port `FunctionHosts`: calls in sampled requests are added to their traces (`base/tracing`). */
import { currentTrace, type RequestTrace, runTraced } from '../../base/tracing/request-trace.ts'
import type { FunctionHosts, Invocation, InvocationResult } from './hosts.ts'

const nameOf = ({ name, together }: Invocation): string => (together ? together.join(', ') : name)

/** Requests that a function makes are traced with the one that it runs for. */
async function invokeTraced(hosts: FunctionHosts, call: Invocation, trace: RequestTrace): Promise<InvocationResult> {
  const startMs = trace.now()
  let waitMs: number | null = null
  let isFailed = true
  try {
    const result = await hosts.invoke({
      ...call,
      onRequest: (...request) => runTraced(trace, () => call.onRequest(...request)),
      onHost() {
        waitMs = trace.now() - startMs
        call.onHost?.()
      },
    })
    isFailed = false
    return result
  } finally {
    trace.span('function', nameOf(call), startMs, { waitMs, isFailed })
  }
}

export const tracedHosts = (hosts: FunctionHosts): FunctionHosts => ({
  load: (entry, check) => hosts.load(entry, check),
  invoke(call) {
    const trace = currentTrace()
    return trace ? invokeTraced(hosts, call, trace) : hosts.invoke(call)
  },
  status: () => hosts.status(),
  close: () => hosts.close(),
})
