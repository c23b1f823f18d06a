/** What handlers answer with, and how an answer becomes a `Response`. What is answered is up to the handlers. */
import { openFilePart } from '../base/file-part.ts'
import type { Reply } from './endpoint.ts'

type ReplyHeaders = Readonly<Record<string, string>>

/** A JSON answer. */
export const json = (value: unknown, status = 200, headers?: ReplyHeaders): Reply =>
  jsonText(JSON.stringify(value), status, headers)

/** A JSON answer that is serialised already. */
export const jsonText = (text: string, status = 200, headers?: ReplyHeaders): Reply =>
  headers ? { status, text, headers } : { status, text }

/** An answer without a body. */
export const empty = (status: number, headers?: ReplyHeaders): Reply =>
  headers ? { status, text: null, headers } : { status, text: null }

/** An answer of bytes; `headers` say what they are. */
export const bytes = (source: NonNullable<Reply['source']>, status: number, headers: ReplyHeaders): Reply => ({
  status,
  text: null,
  headers,
  source,
})

/**
 * Headers that answers start from. Copying a native `Headers` and adding to it costs a quarter of building one from an
 * object, so whatever is the same for all requests is put in once.
 */
export interface ReplyTemplates {
  readonly withBody: Headers
  readonly withoutBody: Headers
}

/** `common` is what every answer carries, whatever its status. An answer's own headers win over these. */
export function createReplyTemplates(common: ReplyHeaders): ReplyTemplates {
  const shared = {
    'X-Content-Type-Options': 'nosniff',
    // Answers depend on who asks: a cache may keep one for its own user, and must ask again before showing it.
    'Cache-Control': 'private, no-cache',
    ...common,
  }
  return {
    withBody: new Headers({ 'Content-Type': 'application/json', ...shared }),
    withoutBody: new Headers(shared),
  }
}

/**
 * Makes the `Response`. The runtime adds `Date` and `Content-Length`, and drops the body for HEAD. `send` gives the
 * body for a text.
 */
export function toResponse(reply: Reply, templates: ReplyTemplates, send: (text: string) => BodyInit = same): Response {
  const { status, text, headers, contentType, source } = reply
  const textBody = text === null ? null : send(text)
  const body = source === undefined ? textBody : bodyOf(source)
  const response = new Response(body, { status, headers: text === null ? templates.withoutBody : templates.withBody })
  if (contentType !== undefined) response.headers.set('Content-Type', contentType)
  for (const name in headers) response.headers.set(name, headers[name] as string)
  return response
}

const same = (text: string): BodyInit => text

function bodyOf(source: NonNullable<Reply['source']>): BodyInit {
  if (source instanceof Uint8Array) return source
  return source.kind === 'file' ? openFilePart(source.path, source.start, source.end) : source.stream
}
