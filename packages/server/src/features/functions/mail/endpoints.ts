/** The endpoint of mails: what `ctx.mail.send` calls. */

import type { Clock } from '../../../base/clock.ts'
import { z } from '../../../base/schemas/z.ts'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import {
  functionMailCharsMax,
  functionMailKeyCharsMax,
  functionMailSubjectCharsMax,
} from '../../../limits/function-deliveries.ts'
import { KiB } from '../../../limits/units.ts'
import type { Background } from '../background.ts'
import { jobsCommon } from '../jobs/job-endpoints.ts'
import { createJobIds } from '../jobs/job-ids.ts'
import { mailFunction, mailJob } from './mails.ts'

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
  readonly background: Background
  readonly clock: Clock
}

export function createMailEndpoint({ background, clock }: MailEndpointDeps): Endpoint {
  const idOf = createJobIds(clock)
  return endpoint({
    ...jobsCommon,
    name: 'functions.mail',
    method: 'POST',
    paths: ['/api/functions/mail'],
    summary: 'Send a mail',
    description: `The mail is stored and then sent, with retries. Its job is listed under the function \`${mailFunction}\`.`,
    // A character has up to three bytes of UTF-8, or six as an escape of JSON.
    bodyBytesMax: 6 * functionMailCharsMax + 16 * KiB,
    body: mailBody,
    replies: { 202: { description: 'Stored', schema: z.object({ jobId: z.string() }) } },
    errors: [404, 413, 503],
    async handle({ body, effectKey }) {
      if (!background.findFunction(mailFunction)) throw notFound('Functions')
      const { idempotencyKey } = body
      const id = `mail-${idOf(idempotencyKey === undefined ? effectKey : `key:${idempotencyKey}`)}`
      const job = await background.enqueue(mailJob(body, id, clock.now()))
      return json({ jobId: job.id }, 202)
    },
  })
}
