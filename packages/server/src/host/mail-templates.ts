/**
 * Templates of mails in the folder `mail` beside the code: `receipt.txt` begins with a line `Subject: …`, and
 * `receipt.html` is optional. Placeholders have the syntax of Mustache. They are rendered in the host, where an endless
 * template does not delay other requests of the server.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Mustache from 'mustache'

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html?: string
}

export interface MailTemplates {
  /** Throws an `Error` for an unknown or faulty template. */
  render(name: string, data: object): RenderedMail
}

interface Template {
  readonly subject: string
  readonly text: string
  readonly html: string | null
}

const namePattern = /^[\w-]{1,64}$/
const formPattern = /^Subject:[ \t]*(\S.*)\r?\n\r?\n([\s\S]*)$/

/** Plain text has nothing to escape. */
const plain = { escape: (value: unknown): string => String(value) }

/** Templates of a folder, each read when it is first used. */
export function createMailTemplates(folder: string): MailTemplates {
  const known = new Map<string, Template>()

  function read(name: string): Template {
    const path = join(folder, `${name}.txt`)
    if (!namePattern.test(name) || !existsSync(path))
      throw new Error(`There is no mail template "${name}": create ${name}.txt in the folder "mail" of the functions`)
    const [, subject, text] = formPattern.exec(readFileSync(path, 'utf8')) ?? []
    if (subject === undefined || text === undefined)
      throw new Error(`The mail template ${name}.txt must begin with a line "Subject: …" and an empty line`)
    const htmlPath = join(folder, `${name}.html`)
    const html = existsSync(htmlPath) ? readFileSync(htmlPath, 'utf8') : null
    for (const part of [subject, text, html ?? '']) Mustache.parse(part)
    return { subject, text, html }
  }

  return {
    render(name, data) {
      const template = known.get(name) ?? read(name)
      known.set(name, template)
      const { subject, text, html } = template
      return {
        subject: Mustache.render(subject, data, {}, plain),
        text: Mustache.render(text, data, {}, plain),
        ...(html === null ? {} : { html: Mustache.render(html, data) }),
      }
    },
  }
}
