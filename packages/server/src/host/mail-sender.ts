/** `ctx.mail`: renders templates here and hands the mail to the server, which stores and sends it. */
import type { Mail } from '../config/sections/functions/context.ts'
import type { MailTemplates } from './mail-templates.ts'
import type { Post } from './platform-clients.ts'

export const createMailSender = (post: Post, templates: MailTemplates) => ({
  async send({ template, data = {}, ...message }: Mail): Promise<void> {
    const rendered = template === undefined ? {} : templates.render(template, data)
    await post('/api/functions/mail', { ...rendered, ...message })
  },
})
