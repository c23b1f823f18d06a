/** Decorator of the port `FunctionHosts`: calls in sampled requests are added to their traces (`base/tracing`). */
import { currentTrace, runTraced } from '../../base/tracing/request-trace.ts'
import type { FunctionHosts, Invocation } from './hosts.ts'

const nameOf = ({ name, together }: Invocation): string => (together ? together.join(', ') : name)

/** Requests that a function makes are traced with the one that it runs for. */
export const tracedHosts = (hosts: FunctionHosts): FunctionHosts => ({
  load: (entry, check) => hosts.load(entry, check),
  invoke(call) {
    const trace = currentTrace()
    if (!trace) return hosts.invoke(call)
    const onRequest: Invocation['onRequest'] = (...request) => runTraced(trace, () => call.onRequest(...request))
    return trace.time('function', nameOf(call), () => hosts.invoke({ ...call, onRequest }))
  },
  status: () => hosts.status(),
  close: () => hosts.close(),
})
