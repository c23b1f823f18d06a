/** What tests put in place of the server's ways to the outside, so that nothing is sent. */
import type { AdmissionControl } from '../base/concurrency/admission-control.ts'
import type { BoundedFetch } from '../engines/fetch/bounded-fetch.ts'
import type { Mails } from '../engines/mail/mail.ts'
import type { PushRecorder } from '../features/push/recorded-sending.ts'

export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

export interface Substitutes {
  /** In place of the mail server and of the outbox. */
  readonly mails?: Mails
  /** In place of the push providers. */
  readonly push?: PushRecorder
  /** In place of the requests of webhooks. */
  readonly webhookFetch?: BoundedFetch
  /** In place of the folder with the built page of the dashboard. */
  readonly dashboardFolder?: string
  /** In place of admission by the time of the processor. */
  readonly admission?: AdmissionControl
  /** The address of a server that answers the requests of `ctx.fetch`; see `host/relayed-fetch`. */
  readonly fetchRelay?: string
  /** In place of what the system says of the disk with a folder. */
  readonly readDiskSpace?: (folder: string) => Promise<DiskSpace>
}
