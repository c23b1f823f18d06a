/**
 * `ctx.fetch` in tests: each request goes to the process of the test, which answers in place of the other server. The
 * test's side is `testing/outside`.
 */

/** The URL that the function requested. */
export const relayedUrlHeader = 'x-plinth-relayed-url'
/** Set on a response where there is no answer: why. */
export const relayErrorHeader = 'x-plinth-relay-error'

/** A `fetch` whose requests are all answered at `relay`. Rejects as `fetch` does if the test gives no answer. */
export const createRelayedFetch = (relay: string): typeof fetch =>
  (async (input: RequestInfo | URL, init?: RequestInit) => {
    const outgoing = new Request(input, init)
    const headers = new Headers(outgoing.headers)
    headers.set(relayedUrlHeader, outgoing.url)
    const { method, signal } = outgoing
    const body = method === 'GET' || method === 'HEAD' ? null : await outgoing.arrayBuffer()
    const response = await fetch(relay, { method, headers, body, signal, redirect: 'manual' })
    const error = response.headers.get(relayErrorHeader)
    if (error !== null) throw new TypeError(decodeURIComponent(error))
    return response
  }) as typeof fetch
