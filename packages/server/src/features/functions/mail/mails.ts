/**
 * Mails of server code: each is a job, so that it survives a crash and is attempted again. A mail with the idempotency
 * key of an earlier one is not sent again for as long as the job of that one is kept.
 */
import { findEmailAddress } from '../../../base/text/email.ts'
import type { Mails } from '../../../engines/mail/mail.ts'
import { isPermanentFailure } from '../../../engines/mail/smtp.ts'
import { type FieldErrors, invalid, invalidField } from '../../../errors.ts'
import { functionMailCharsMax } from '../../../limits/function-deliveries.ts'
import type { ClaimedJob, NewJob } from '../jobs/job.ts'
import { JobError } from '../jobs/job-error.ts'

/** The function that runs these jobs; no export has such a name. */
export const mailFunction = '@mail'

export interface MailInput {
  readonly to: string
  readonly subject: string
  readonly text?: string | undefined
  readonly html?: string | undefined
}

/** Line breaks in a subject would be headers. */
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

/** The text of a mail that has HTML alone, for readers without HTML. */
export const textOfHtml = (html: string): string =>
  html
    .replace(/<(style|script|head)\b[\s\S]*?<\/\1\s*>/gi, '')
    .replace(/\s+/g, ' ')
    .replace(/<(?:br|\/p|\/div|\/tr|\/li|\/h\d)\b[^>]*>/gi, '\n')
    .replace(/<[^>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => entities[name] as string)
    .replace(/[ \t]*\n[ \t]*/g, '\n')
    .trim()

/** The job that sends a mail; `id` is that of the job. Throws 400 that names the faulty fields. */
export function mailJob(input: MailInput, id: string, nowMs: number): NewJob {
  const { text, html } = input
  const to = findEmailAddress(input.to)
  const subject = oneLine(input.subject)
  const errors: FieldErrors = {
    ...(to === null ? { to: { code: 'pattern', message: 'must be an email address' } } : {}),
    ...(subject === '' ? { subject: { code: 'required', message: 'is required' } } : {}),
    ...(!text && !html ? { text: { code: 'required', message: 'or html is required' } } : {}),
  }
  if (Object.keys(errors).length > 0) throw invalid(errors)
  if ((text?.length ?? 0) + (html?.length ?? 0) > functionMailCharsMax)
    throw invalidField('text', 'max', `and html must have at most ${functionMailCharsMax} characters`)
  return {
    id,
    function: mailFunction,
    kind: 'mail',
    key: null,
    uniqueKey: null,
    input: JSON.stringify({ to, subject, text: text || textOfHtml(html ?? ''), html: html || undefined }),
    runAtMs: nowMs,
    depth: 1,
  }
}

/** Sends the mail of a job. Throws `JobError`; addresses and contents are in no error. */
export async function sendMail(mails: Mails, { id, input }: Pick<ClaimedJob, 'id' | 'input'>): Promise<void> {
  const mail = JSON.parse(input) as { to: string; subject: string; text: string; html?: string }
  try {
    await mails.send({ ...mail, messageId: `<${id}@plinth>` })
  } catch (error) {
    const code = String((error as { code?: unknown }).code ?? 'unknown')
    throw new JobError(isPermanentFailure(error) ? 'final' : 'failed', `The mail server refused the mail (${code})`)
  }
}
