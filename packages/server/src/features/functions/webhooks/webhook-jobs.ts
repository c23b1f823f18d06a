/** Runs the jobs of webhooks: attempts by the pauses of Standard Webhooks until the receiver accepts the message. */
import type { Clock } from '../../../base/clock.ts'
import type { BoundedFetch } from '../../../engines/fetch/bounded-fetch.ts'
import type { ClaimedJob } from '../jobs/job.ts'
import { JobError } from '../jobs/job-error.ts'
import { deliverWebhook, type WebhookChange, type WebhookTarget, webhookPauseMs } from './webhook-delivery.ts'

export interface WebhookJobsDeps {
  /** The target of a function; throws `JobError` where its URL or secret is missing or not valid. */
  readonly targetOf: (name: string) => WebhookTarget
  /** Stops the deliveries of a function until an operator resumes them. */
  readonly pause: (name: string) => Promise<void>
  /** Discards the bodies of responses. */
  readonly fetch: BoundedFetch
  readonly clock: Clock
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** Throws `JobError` unless the message was delivered. */
export async function runWebhookJob(deps: WebhookJobsDeps, job: ClaimedJob, signal: AbortSignal): Promise<void> {
  const { targetOf, pause, fetch, clock, random = Math.random } = deps
  const change = JSON.parse(job.input) as WebhookChange
  const delivery = await deliverWebhook(targetOf(job.function), change, { fetch, nowMs: clock.now(), signal })
  if (delivery.kind === 'delivered') return
  if (delivery.kind === 'gone') await pause(job.function)
  if (delivery.kind !== 'failed') throw new JobError('final', delivery.error)
  const pauseMs = webhookPauseMs(job.attempt, delivery.retryAfterMs, random)
  throw new JobError(pauseMs === null ? 'final' : 'failed', delivery.error, pauseMs)
}
