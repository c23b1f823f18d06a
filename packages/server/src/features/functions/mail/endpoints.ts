/** The endpoint of mails: what `ctx.mail.send` calls. */
import { z } from 'zod'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { notFound } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import {
  functionMailCharsMax,
  functionMailKeyCharsMax,
  functionMailSubjectCharsMax,
} from '../../../limits/function-deliveries.ts'
import { KiB } from '../../../limits/units.ts'
import type { Background } from '../background.ts'
import { jobsCommon } from '../jobs/job-endpoints.ts'
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

type MailBody = z.output<typeof mailBody>

export interface MailEndpointDeps {
  readonly background: Background
  readonly clock: Clock
}

export function createMailEndpoint({ background, clock }: MailEndpointDeps): Endpoint {
  const newId = createUuid7(clock)

  /** A mail with a known key, or of a repeated attempt of a job, is not added again. */
  function idOf({ body, effectKey }: Call<unknown, MailBody>): string {
    const key = body.idempotencyKey === undefined ? effectKey : `key:${body.idempotencyKey}`
    return `mail-${key === undefined ? newId() : sha256(key).slice(0, 32)}`
  }

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
    async handle(call) {
      if (!background.findFunction(mailFunction)) throw notFound('Functions')
      const { id } = await background.enqueue(mailJob(call.body, idOf(call), clock.now()))
      return json({ jobId: id }, 202)
    },
  })
}
