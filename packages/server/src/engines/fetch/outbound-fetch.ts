/**
 * Requests of the application's functions to other servers: to public addresses and to networks that the configuration
 * allows, at the very address that was checked. Responses are not buffered, and redirects are checked like requests.
 */
import { type Lookup, type OutboundPolicy, resolveReachable } from './public-fetch.ts'

const redirectsMax = 20

/** A `fetch` that rejects with `NotPublicError` before anything is sent to an address that is not allowed. */
export function createOutboundFetch(policy: OutboundPolicy, lookup?: Lookup): typeof fetch {
  async function send(target: Request): Promise<Response> {
    const url = new URL(target.url)
    const address = await resolveReachable(url, policy, lookup)
    const headers = new Headers(target.headers)
    headers.set('Host', url.host)
    const at = new URL(url)
    at.hostname = address.includes(':') ? `[${address}]` : address
    const isNamed = at.hostname !== url.hostname && url.protocol === 'https:'
    return fetch(at.href, {
      method: target.method,
      headers,
      body: target.body,
      signal: target.signal,
      redirect: 'manual',
      ...(isNamed ? { tls: { serverName: url.hostname } } : {}),
    })
  }

  return (async (input: RequestInfo | URL, init?: RequestInit) => {
    let target = new Request(input, init)
    const { redirect } = target
    for (let redirects = 0; ; redirects++) {
      // A body can be sent once, so it is copied as long as it may have to be sent again.
      const again = target.clone()
      const response = await send(target)
      const location = response.headers.get('location')
      if (redirect === 'manual' || location === null || ![301, 302, 303, 307, 308].includes(response.status))
        return response
      await response.body?.cancel()
      if (redirect === 'error') throw new TypeError('The response is a redirect')
      if (redirects === redirectsMax) throw new TypeError('Too many redirects')
      target = redirected(again, new URL(location, target.url), response.status)
    }
  }) as typeof fetch
}

/** The request that follows a redirect, as the Fetch standard defines it. */
function redirected(target: Request, url: URL, status: number): Request {
  const { method } = target
  const headers = new Headers(target.headers)
  const becomesGet = status === 303 ? method !== 'GET' && method !== 'HEAD' : status < 303 && method === 'POST'
  if (becomesGet) for (const name of ['content-type', 'content-length', 'content-encoding']) headers.delete(name)
  if (new URL(target.url).origin !== url.origin)
    for (const name of ['authorization', 'cookie', 'proxy-authorization']) headers.delete(name)
  return new Request(url, {
    method: becomesGet ? 'GET' : method,
    headers,
    body: becomesGet ? null : target.body,
    signal: target.signal,
  })
}
