/** `ctx.mail`: renders templates here and hands the mail to the server, which stores and sends it. */
import type { Mail } from '../config/sections/functions/context.ts'
import type { InvocationContext } from '../engines/hosts/hosts.ts'
import type { MailTemplates } from './mail-templates.ts'
import type { Post } from './platform-clients.ts'

/**
 * In a job, a mail without a key of its own gets one from its place in the run, so that a repeated attempt does not send
 * it again.
 */
export function createMailSender(
  post: Post,
  templates: MailTemplates,
  { jobId, idempotencyKey: runKey }: Pick<InvocationContext, 'jobId' | 'idempotencyKey'>,
) {
  let sent = 0
  return {
    async send({ template, data = {}, ...message }: Mail): Promise<void> {
      const ownKey = jobId === undefined ? undefined : `${runKey}:mail:${++sent}`
      const rendered = template === undefined ? {} : templates.render(template, data)
      const idempotencyKey = message.idempotencyKey ?? ownKey
      await post('/api/functions/mail', {
        ...rendered,
        ...message,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
    },
  }
}
