/** How a request is sent: its headers, its retries, and what its answer means. */
import type { ClientOptions } from '../types/options.ts'
import { backoffMs, delay } from './deadline.ts'
import { failure, PlinthError } from './error.ts'
import { type Credentials, queryString, type Reply, type Request } from './request.ts'

/** What sends requests. */
interface Sender {
  /** Without a slash at the end. */
  readonly url: string
  readonly options: ClientOptions
  readonly credentials: Credentials | undefined
  /** The access token of the next request; null for none. */
  accessToken(): Promise<string | null>
}

/** A request under way. */
interface Sending extends Request {
  readonly core: Sender
  readonly method: string
  readonly path: string
  readonly signal: AbortSignal
}

/** Sends a request until it is answered, refused, or its time is over; `deadline` is in milliseconds since 1970. */
export async function sendRepeatedly(sending: Sending, deadline: number): Promise<Reply> {
  const { core, method, signal, idempotencyKey } = sending
  const isRepeatable = /^(GET|HEAD)$/.test(method) || idempotencyKey
  const { retries = isRepeatable ? (core.options.retries ?? 2) : 0 } = sending
  for (let attempt = 0; ; attempt++)
    try {
      return await sendAuthenticated(sending)
    } catch (error) {
      const { retryable, retryAfterMs = backoffMs(attempt) } = error as PlinthError
      if (signal.aborted || attempt >= retries || !retryable || Date.now() + retryAfterMs >= deadline) throw error
      await delay(retryAfterMs, signal)
    }
}

/** Sends the request once, and once more with a new token where the server rejects the token. */
async function sendAuthenticated(sending: Sending): Promise<Reply> {
  const { core } = sending
  const { token = await core.accessToken() } = sending
  try {
    return await sendOnce(sending, token)
  } catch (error) {
    const isRejected = /^(token-expired|invalid-token)$/.test((error as PlinthError).slug)
    const renewed = isRejected && token && (await core.credentials?.renew(token))
    if (!renewed || renewed === token) throw error
    return sendOnce(sending, renewed)
  }
}

async function sendOnce(sending: Sending, token: string | null): Promise<Reply> {
  const { core, as } = sending
  const json = JSON.stringify(sending.body)
  const headers = {
    'X-Platform-Service-Key': core.options.serviceKey,
    Authorization: token && `Bearer ${token}`,
    'Content-Type': json && 'application/json',
    'Idempotency-Key': sending.idempotencyKey,
    'If-Match': sending.ifMatch,
    ...sending.headers,
  }
  const init = {
    method: sending.method,
    headers: Object.entries(headers).filter(([, value]) => value) as [string, string][],
    body: sending.raw ?? json,
    signal: sending.signal,
  }
  let response: Response
  let text: string
  try {
    response = await (core.options.fetch ?? fetch)(core.url + sending.path + queryString(sending.query), init)
    if (response.ok && as)
      return { headers: response.headers, data: as === 'blob' ? await response.blob() : response.body }
    text = await response.text()
  } catch (cause) {
    throw failure('network', undefined, cause)
  }
  return readReply(response, text)
}

/** The data of a response, or the error that it states. A page of a proxy is neither. */
function readReply({ ok, status, headers }: Response, text: string): Reply {
  let data = null
  try {
    if (text) data = JSON.parse(text)
    if (ok) return { headers, data }
  } catch {
    // Not the server's.
  }
  throw new PlinthError({
    ...(!ok && data?.slug ? data : { slug: 'invalid-answer' }),
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    // A date, which proxies may send, is not used, and neither is 0: repeated requests are always spread.
    retryAfterMs: Number(headers.get('retry-after')) * 1000 || undefined,
  })
}
