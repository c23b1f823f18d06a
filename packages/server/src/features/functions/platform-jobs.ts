/** Runs jobs by kind: functions in a host; webhooks, mails and bulk jobs in the server. */
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import type { BoundedFetch } from '../../engines/fetch/bounded-fetch.ts'
import { createPublicFetch } from '../../engines/fetch/public-fetch.ts'
import type { Mails } from '../../engines/mail/mail.ts'
import { webhookTimeoutMs } from '../../limits/function-deliveries.ts'
import type { LoadedFunctions } from './code.ts'
import type { Invoker } from './invoke/invoker.ts'
import type { ClaimedJob } from './jobs/job.ts'
import { JobError } from './jobs/job-error.ts'
import type { RunClaimed } from './jobs/job-runner.ts'
import { sendMail } from './mail/mails.ts'
import { runWebhookJob } from './webhooks/webhook-jobs.ts'
import { webhookTarget } from './webhooks/webhook-target.ts'

type Run = (job: ClaimedJob, signal: AbortSignal) => Promise<void>

export interface PlatformJobsDeps {
  /** Runs a function in a host. */
  readonly runJob: Run
  /** Counts and reports the attempts of webhooks. */
  readonly invoker: Pick<Invoker, 'countRun' | 'report'>
  readonly code: () => LoadedFunctions
  readonly config: () => Config
  readonly mails: Mails
  readonly runBulkJob: RunClaimed
  readonly pause: (name: string) => Promise<void>
  readonly clock: Clock
  /** Makes the requests of webhooks in tests; null in use. */
  readonly webhookFetch: BoundedFetch | null
}

export function createRunPlatformJob(deps: PlatformJobsDeps): RunClaimed {
  const { runJob, runBulkJob, invoker, code, config, mails, pause, clock, webhookFetch } = deps
  const policy = () => ({ allow: config().outbound.allow, anyPort: true })
  const fetch = webhookFetch ?? createPublicFetch({ timeoutMs: webhookTimeoutMs, bytesMax: 0, policy, clock })

  function targetOf(name: string) {
    const { definitions, secrets } = code()
    const definition = definitions.find((one) => one.name === name)
    if (definition?.kind !== 'webhook') throw new JobError('busy', 'The function is not declared')
    return webhookTarget(definition, secrets, config())
  }

  async function runWebhook(job: ClaimedJob, signal: AbortSignal): Promise<void> {
    invoker.countRun(job.function)
    try {
      await runWebhookJob({ targetOf, pause, fetch, clock }, job, signal)
    } catch (error) {
      const isFault = !signal.aborted && !(error instanceof JobError && error.kind === 'busy')
      const call = { name: job.function, requestId: job.id }
      if (isFault) invoker.report(call, { reason: 'failed', message: (error as Error).message, location: null })
      throw error
    }
  }

  return async (job, signal, closing) => {
    if (job.kind === 'bulk') return runBulkJob(job, signal, closing)
    if (job.kind === 'webhook') return runWebhook(job, signal)
    if (job.kind === 'mail') return sendMail(mails, job)
    return runJob(job, signal)
  }
}
