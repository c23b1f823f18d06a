/**
 * Webhooks after Standard Webhooks 1.0: one attempt to deliver a change to a receiver, and when the next one follows.
 * The job store makes the attempts durable.
 */
import { signWebhook, type WebhookKeys } from '../../../base/crypto/webhook-signature.ts'
import type { BoundedFetch } from '../../../engines/fetch/bounded-fetch.ts'
import { NotPublicError } from '../../../engines/fetch/public-fetch.ts'
import { webhookBodyBytesMax, webhookPausesMs, webhookRetryAfterMaxMs } from '../../../limits/function-deliveries.ts'

type Row = Readonly<Record<string, unknown>>

/** A change of a row, as hooks receive it; hidden fields are included. */
export interface WebhookChange {
  readonly operation: 'insert' | 'update' | 'delete'
  readonly after: Row | null
  readonly previous: Row | null
  readonly change: { readonly id: string; readonly at: string }
}

export interface WebhookTarget {
  /** `namespace.table` */
  readonly table: string
  readonly url: string
  readonly keys: WebhookKeys
  /** The fields that are sent; null for all but the hidden ones. */
  readonly fields: readonly string[] | null
  /** The fields of the table that the API hides. */
  readonly hidden: ReadonlySet<string>
}

/** How an attempt ended. Errors are texts for operators and quote nothing that the receiver sent. */
export type Delivery =
  | { readonly kind: 'delivered'; readonly status: number }
  /** Another attempt follows, not before the receiver's `Retry-After`. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs: number }
  /** 410: the receiver wants no more messages. */
  | { readonly kind: 'gone'; readonly error: string }
  /** No attempt can succeed. */
  | { readonly kind: 'refused'; readonly error: string }

function shown(row: Row | null, { fields, hidden }: WebhookTarget): Row | null {
  if (row === null) return null
  const isShown = fields === null ? (name: string) => !hidden.has(name) : (name: string) => fields.includes(name)
  return Object.fromEntries(Object.entries(row).filter(([name]) => isShown(name)))
}

/** The body of a webhook: `{type, timestamp, data, previous}`. The `data` of a delete is the deleted record. */
export function webhookBody(target: WebhookTarget, { operation, after, previous, change }: WebhookChange): string {
  return JSON.stringify({
    type: `${target.table}.${operation}`,
    timestamp: change.at,
    data: shown(after ?? previous, target),
    previous: operation === 'update' ? shown(previous, target) : null,
  })
}

/** Seconds or a date; 0 for anything else. */
function retryAfterOf(headers: Headers, nowMs: number): number {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), webhookRetryAfterMaxMs)
}

const failed = (error: string, retryAfterMs = 0): Delivery => ({ kind: 'failed', error, retryAfterMs })

/** One attempt. `fetch` discards the body of the response and follows no redirect. Never rejects. */
export async function deliverWebhook(
  target: WebhookTarget,
  change: WebhookChange,
  { fetch, nowMs, signal }: { readonly fetch: BoundedFetch; readonly nowMs: number; readonly signal?: AbortSignal },
): Promise<Delivery> {
  const body = webhookBody(target, change)
  if (Buffer.byteLength(body) > webhookBodyBytesMax)
    return { kind: 'refused', error: `The message is larger than ${webhookBodyBytesMax} bytes; list fewer fields` }
  const message = { id: change.change.id, timestamp: Math.floor(nowMs / 1000), body }
  const headers = { ...signWebhook(message, target.keys), 'Content-Type': 'application/json' }
  try {
    const response = await fetch(target.url, { method: 'POST', headers, body, ...(signal ? { signal } : {}) })
    const { status } = response
    if (status >= 200 && status < 300) return { kind: 'delivered', status }
    if (status === 410) return { kind: 'gone', error: 'The receiver answered 410: it wants no more messages' }
    return failed(`The receiver answered ${status}`, retryAfterOf(response.headers, nowMs))
  } catch (error) {
    if (error instanceof NotPublicError)
      return failed('The address of the receiver is not public; outbound.allow can list its network')
    const isLate = (error as Error).name === 'TimeoutError'
    return failed(isLate ? 'The receiver did not answer in time' : 'The receiver cannot be reached')
  }
}

/**
 * The pause after attempt number `attempt` (from 1), in milliseconds; null where no attempt follows. A tenth of the
 * pause is random, so that receivers that were away are not called by all messages at once.
 */
export function webhookPauseMs(attempt: number, retryAfterMs: number, random: () => number): number | null {
  const pauseMs = webhookPausesMs[attempt - 1]
  return pauseMs === undefined ? null : Math.max(Math.round(pauseMs * (1 + random() / 10)), retryAfterMs)
}
