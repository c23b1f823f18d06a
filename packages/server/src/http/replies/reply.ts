/** What handlers answer with, and how an answer becomes a `Response`. What is answered is up to the handlers. */
import { openFileSlice } from '../../base/files/file-slice.ts'
import { largeResponseBytes } from '../../limits/api.ts'
import type { Reply } from '../endpoint.ts'
import { encodeText, isQuickJson, serializeJson } from './json-slices.ts'

type ReplyHeaders = Readonly<Record<string, string>>

/** A JSON answer. A large value is serialized when it is sent and must not change until then. */
export const json = (value: unknown, status = 200, headers?: ReplyHeaders): Reply => {
  if (isQuickJson(value)) return jsonText(JSON.stringify(value), status, headers)
  return headers ? { status, text: null, value, headers } : { status, text: null, value }
}

/** A JSON answer that is serialized already, as text or as its UTF-8. */
export const jsonText = (text: NonNullable<Reply['text']>, status = 200, headers?: ReplyHeaders): Reply =>
  headers ? { status, text, headers } : { status, text }

/** The body of a JSON answer as text, made in one step; null for no body. */
export function textOf({ text, value }: Reply): string | null {
  if (value !== undefined) return JSON.stringify(value)
  return text instanceof Uint8Array ? new TextDecoder().decode(text) : text
}

/** Whether a reply must go through `prepare` before it is sent. A handler's mistake, no reply at all, must not. */
export const isLarge = (reply: Reply | undefined): boolean =>
  reply?.value !== undefined || (typeof reply?.text === 'string' && reply.text.length >= largeResponseBytes)

/** The same reply with its body in UTF-8, made in slices of the event loop. */
export async function prepare({ value, ...reply }: Reply): Promise<Reply> {
  if (value !== undefined) return { ...reply, text: await serializeJson(value) }
  return typeof reply.text === 'string' ? { ...reply, text: await encodeText(reply.text) } : reply
}

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
export function toResponse(reply: Reply, templates: ReplyTemplates, send: SendText = same): Response {
  const { status, text, headers, contentType, source } = reply
  const textBody = text === null ? null : send(text)
  const body = source === undefined ? textBody : bodyOf(source)
  const response = new Response(body, { status, headers: text === null ? templates.withoutBody : templates.withBody })
  if (contentType !== undefined) response.headers.set('Content-Type', contentType)
  for (const name in headers) response.headers.set(name, headers[name] as string)
  return response
}

type SendText = (text: NonNullable<Reply['text']>) => BodyInit

const same: SendText = (text) => text

function bodyOf(source: NonNullable<Reply['source']>): BodyInit {
  if (source instanceof Uint8Array) return source
  return source.kind === 'file' ? openFileSlice(source.path, source.start, source.end) : source.stream
}
