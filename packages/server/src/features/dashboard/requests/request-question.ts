/** The question about access that a request of the records API raises: what the playground of the rules explains. */
import type { Auth, Caller } from '../../../access/caller.ts'
import type { Params } from '../../../http/endpoint.ts'

/** The body of `POST /api/rules/explain`. */
export interface AccessQuestion {
  readonly namespace: string
  readonly instanceId?: string
  readonly table: string
  readonly operation: 'list' | 'get' | 'create' | 'update' | 'delete'
  readonly caller: { readonly kind: 'anonymous' } | { readonly kind: 'claims'; readonly auth: Auth }
  readonly id?: string
  readonly row?: Readonly<Record<string, unknown>>
}

const operations: Readonly<Record<string, AccessQuestion['operation']>> = {
  'records.list': 'list',
  'records.search': 'list',
  'records.count': 'list',
  'records.aggregate': 'list',
  'records.get': 'get',
  'records.insert': 'create',
  'records.update': 'update',
  'records.delete': 'delete',
}

/** The caller with the properties that rules read; null for a service key, which passes all of them. */
function callerOf({ kind, auth }: Caller): AccessQuestion['caller'] | null {
  if (kind === 'service') return null
  if (auth === null) return { kind: 'anonymous' }
  const { id, email, displayName, role, isAnonymous, emailVerified, custom } = auth
  return { kind: 'claims', auth: { id, email, displayName, role, isAnonymous, emailVerified, custom } }
}

/** The record of a create, where its body is kept as it was. */
function rowOf(body: string | null): AccessQuestion['row'] | null {
  if (body === null || body.includes('[masked]')) return null
  try {
    return JSON.parse(body) as AccessQuestion['row']
  } catch {
    // Cut at its bound.
    return null
  }
}

export interface KeptRequest {
  readonly endpoint: string
  readonly caller: Caller
  readonly params: Params
  /** As it is shown. */
  readonly body: string | null
}

/** Null for a request that no rule of a table decides, and for a create whose record is not known. */
export function accessQuestion({ endpoint, caller, params, body }: KeptRequest): AccessQuestion | null {
  const operation = operations[endpoint]
  const { namespace, instanceId, table, id } = params
  const from = callerOf(caller)
  if (!operation || !namespace || !table || !from) return null
  const row = operation === 'create' ? rowOf(body) : undefined
  if (row === null) return null
  return {
    namespace,
    ...(instanceId !== undefined && { instanceId }),
    table,
    operation,
    caller: from,
    ...(id !== undefined && { id }),
    ...(row && { row }),
  }
}
