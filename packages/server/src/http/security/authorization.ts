/** What an endpoint requires of its caller: the bearer token, service-key scopes and the kind of credentials. */
import type { Caller } from '../../access/caller.ts'
import { permitsScope, scopeMissing } from '../../access/service-keys.ts'
import { countedAddress } from '../../base/network/address.ts'
import { accessDenied, authenticationRequired, invalidToken } from '../../errors.ts'
import type { Endpoint, Params } from '../endpoint.ts'

export const anonymous = (address: string): Caller => ({
  kind: 'anonymous',
  auth: null,
  address: countedAddress(address),
})

/**
 * The token of `Bearer <token>`. Throws 401 for any other scheme: a malformed credential is an error, not an anonymous
 * request.
 */
export function parseBearer(authorization: string): string {
  if (!/^bearer +[^\s]+ *$/i.test(authorization)) throw invalidToken()
  return authorization.slice('bearer'.length).trim()
}

/** The scopes of which a service key needs one; empty where any key is accepted. */
export function scopesOf({ scope }: Endpoint, params: Params): readonly string[] {
  const needed = scope?.(params) ?? []
  return typeof needed === 'string' ? [needed] : needed
}

/**
 * Checks whether this kind of caller may use the endpoint; access rules then decide what it can read and write. Throws
 * 401 or 403.
 */
export function authorize(endpoint: Endpoint, caller: Caller, params: Params): void {
  if (caller.kind === 'service') {
    const needed = scopesOf(endpoint, params)
    if (needed.length > 0 && !needed.some((scope) => permitsScope(caller.scopes, scope))) throw scopeMissing(caller)
    return
  }
  if (['public', 'rules', 'page'].includes(endpoint.credentials)) return
  if (endpoint.credentials === 'key') throw accessDenied()
  if (caller.kind === 'anonymous') throw authenticationRequired()
  if (endpoint.credentials === 'service') throw accessDenied()
}
