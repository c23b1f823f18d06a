/** The endpoint of mails: what `ctx.mail.send` calls. */
import { z } from 'zod'
import type { Clock } from '../../../base/clock.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { functionMailCharsMax, functionMailKeyCharsMax, functionMailSubjectCharsMax } from '../../../limits/function-mail.ts'
import type { NewJob } from '../jobs/job.ts'
import { mailJob } from './mails.ts'

const mailBody = z.strictObject({
  to: z.string().meta({ description: 'One email address' }),
  subject: z.string().max(functionMailSubjectCharsMax),
  text: z.string().max(functionMailCharsMax).optional(),
  html: z
    .string()
    .max(functionMailCharsMax)
    .optional()
    .meta({ description: 'Sent beside the text; without a text, the text is derived from it' }),
  idempotencyKey: z
    .string()
    .min(1)
    .max(functionMailKeyCharsMax)
    .optional()
    .meta({ description: 'Mails with the same key are sent once' }),
})

export interface MailEndpointDeps {
  readonly enqueue: (job: NewJob) => Promise<{ readonly id: string }>
  readonly newId: () => string
  readonly clock: Clock
}

export const createMailEndpoint = ({ enqueue, newId, clock }: MailEndpointDeps): Endpoint =>
  endpoint({
    name: 'functions.mail',
    method: 'POST',
    paths: ['/api/functions/mail'],
    tag: 'functions',
    summary: 'Send a mail',
    description: 'The mail is stored and then sent, with retries. Its job is listed under the function `@mail`.',
    credentials: 'service',
    scope: () => 'functions:mail:*:send',
    rateLimit: 'global',
    bodyBytesMax: 8 * functionMailCharsMax,
    body: mailBody,
    replies: { 202: { description: 'Stored', schema: z.object({ jobId: z.string() }) } },
    async handle({ body }) {
      const { id } = await enqueue(mailJob(body, newId(), clock))
      return json({ jobId: id }, 202)
    },
  })
