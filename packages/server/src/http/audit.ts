/**
 * Port: the audit log. The pipeline reports each request of a service key or an administrator that changes something;
 * handlers add what changed. `features/dashboard/audit` stores the entries.
 */
import type { Caller, ServiceCaller } from '../access/caller.ts'
import type { Endpoint, OpenCall, Reply } from './endpoint.ts'

/** A request that is recorded. */
export interface AuditedRequest {
  readonly caller: ServiceCaller
  readonly endpoint: Endpoint
  readonly call: OpenCall
}

export interface Audit {
  /**
   * Runs the work of a request and records it before the reply is sent. Work that is refused changes nothing and
   * leaves no entry. Throws what the work throws, and 503 if the entry cannot be stored.
   */
  record(request: AuditedRequest, work: () => Reply | Promise<Reply>): Promise<Reply>
}

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a validated request of this caller is recorded. */
export function isAudited(endpoint: Endpoint, call: OpenCall, caller: Caller): caller is ServiceCaller {
  const { changes, credentials, scope } = endpoint
  // What every caller may do, such as signing up, is not done with the rights of the key.
  if (caller.kind !== 'service' || (credentials === 'public' && scope === undefined)) return false
  if (typeof changes === 'function') return changes(call.body)
  return changes ?? !readMethods.has(call.method)
}
