/** Requests of functions to the API of the server: a `fetch` over the channel, with bounds. */
import { createSemaphore } from '../base/concurrency/semaphore.ts'
import type { HostRequest, HostResponse } from '../engines/hosts/hosts.ts'
import { functionRequestBytesMax, functionRequestsMax } from '../limits/functions.ts'
import { send } from './channel.ts'
import type { EffectNumbers } from './effect-numbers.ts'

const pending = new Map<number, (response: HostResponse) => void>()
let requests = 0

/** Called with each answer of the server. */
export function answer(request: number, response: HostResponse): void {
  pending.get(request)?.(response)
  pending.delete(request)
}

/** Sends requests of one invocation with the permissions of its caller, or past the access rules. */
export type SendRequest = (as: 'caller' | 'service', request: HostRequest) => Promise<HostResponse>

export function createSender(id: string): SendRequest {
  const slots = createSemaphore({ running: functionRequestsMax, waiting: Number.POSITIVE_INFINITY })
  return (as, content) =>
    slots.run(
      () =>
        new Promise<HostResponse>((resolve) => {
          const request = ++requests
          pending.set(request, resolve)
          send({ type: 'request', id, request, as, content })
        }),
    ) as Promise<HostResponse>
}

export interface ServerFetchParts {
  /** Of the server. */
  readonly url: string
  readonly as: 'caller' | 'service'
  readonly sendRequest: SendRequest
  readonly effects: EffectNumbers
  /** May replace a response. */
  readonly onResponse?: (response: HostResponse) => HostResponse
}

/** The client's `fetch`. */
export const createServerFetch = ({ url, as, sendRequest, effects, onResponse }: ServerFetchParts): typeof fetch =>
  // The client calls it with a URL and plain options only.
  (async (target: string, init: RequestInit = {}) => {
    init.signal?.throwIfAborted()
    const { method = 'GET' } = init
    const effect = effects.ofRequest(method)
    const response = sendRequest(as, {
      method,
      ...(effect !== undefined && { effect }),
      path: target.slice(url.length),
      ...(await contentOf(init)),
    })
    const answered = await unlessAborted(response, init.signal ?? null)
    const { status, headers, body } = onResponse?.(answered) ?? answered
    return new Response(body as BodyInit | null, { status, headers: { ...headers } })
  }) as unknown as typeof fetch

async function contentOf(init: RequestInit): Promise<Pick<HostRequest, 'headers' | 'body'>> {
  const given = new Headers(init.headers)
  if (init.body === undefined || init.body === null || typeof init.body === 'string')
    return { headers: Object.fromEntries(given), body: init.body ?? null }
  // A form gets its boundary here.
  const encoded = new Response(init.body)
  const type = encoded.headers.get('content-type')
  if (type !== null && !given.has('content-type')) given.set('content-type', type)
  const body = await encoded.bytes()
  if (body.length > functionRequestBytesMax)
    throw new RangeError(`A function can send at most ${functionRequestBytesMax} bytes in one request`)
  return { headers: Object.fromEntries(given), body }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (!signal) return work
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', abort))
}
