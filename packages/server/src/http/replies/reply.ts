/** Constructors of replies, and the conversion of a reply to a `Response`. */
import { openFileSlice } from '../../base/files/file-slice.ts'
import { largeResponseBytes } from '../../limits/api.ts'
import type { Reply } from '../endpoint.ts'
import { encodeText, isQuickJson, serializeJson } from './json-slices.ts'

type ReplyHeaders = Readonly<Record<string, string>>

/** A JSON reply. A large value is serialized when it is sent and must not change until then. */
export const json = (value: unknown, status = 200, headers?: ReplyHeaders): Reply => {
  if (isQuickJson(value)) return jsonText(JSON.stringify(value), status, headers)
  return headers ? { status, text: null, value, headers } : { status, text: null, value }
}

/** A JSON reply that is serialized already, as text or UTF-8. */
export const jsonText = (text: NonNullable<Reply['text']>, status = 200, headers?: ReplyHeaders): Reply =>
  headers ? { status, text, headers } : { status, text }

/** The body of a JSON reply as text; null without a body. */
export function textOf({ text, value }: Reply): string | null {
  if (value !== undefined) return JSON.stringify(value)
  return text instanceof Uint8Array ? new TextDecoder().decode(text) : text
}

/** A JSON object with one more member, without the headers of the reply, whose entity tag would be wrong. */
export const withMember = (reply: Reply, name: string, value: unknown): Reply => {
  const text = textOf(reply) ?? '{}'
  return jsonText(`${text.slice(0, -1)}${text === '{}' ? '' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}}`)
}

/** Whether a reply must be serialized by `prepare` before it is sent. Accepts undefined, the mistake of a handler. */
export const isLarge = (reply: Reply | undefined): boolean =>
  reply?.value !== undefined || (typeof reply?.text === 'string' && reply.text.length >= largeResponseBytes)

/** The same reply, serialized to UTF-8 in slices of the event loop. */
export async function prepare({ value, ...reply }: Reply): Promise<Reply> {
  if (value !== undefined) return { ...reply, text: await serializeJson(value) }
  return typeof reply.text === 'string' ? { ...reply, text: await encodeText(reply.text) } : reply
}

/** A reply without a body. */
export const empty = (status: number, headers?: ReplyHeaders): Reply =>
  headers ? { status, text: null, headers } : { status, text: null }

/** A binary reply; `headers` describe it. */
export const bytes = (source: NonNullable<Reply['source']>, status: number, headers: ReplyHeaders): Reply => ({
  status,
  text: null,
  headers,
  source,
})

/**
 * Precomputed headers of replies. Copying a native `Headers` and adding to it costs a quarter of building one from an
 * object.
 */
export interface ReplyTemplates {
  readonly withBody: Headers
  readonly withoutBody: Headers
}

/** `common` are the headers of every reply. A reply's own headers take precedence. */
export function createReplyTemplates(common: ReplyHeaders): ReplyTemplates {
  const shared = {
    'X-Content-Type-Options': 'nosniff',
    // Replies depend on the caller: only private caches may store them, and must revalidate.
    'Cache-Control': 'private, no-cache',
    ...common,
  }
  return {
    withBody: new Headers({ 'Content-Type': 'application/json', ...shared }),
    withoutBody: new Headers(shared),
  }
}

/**
 * Creates the `Response`. The runtime adds `Date` and `Content-Length`, and drops the body for HEAD. `send` converts a
 * text into the body.
 */
export function toResponse(reply: Reply, templates: ReplyTemplates, send: SendText = same): Response {
  const { status, text, headers, contentType, source } = reply
  const textBody = text === null ? null : send(text)
  const body = source === undefined ? textBody : bodyOf(source)
  const response = new Response(body, { status, headers: text === null ? templates.withoutBody : templates.withBody })
  if (contentType !== undefined) response.headers.set('Content-Type', contentType)
  for (const name in headers) response.headers.set(name, headers[name] as string)
  if (reply.cookies) for (const cookie of reply.cookies) response.headers.append('Set-Cookie', cookie)
  return response
}

type SendText = (text: NonNullable<Reply['text']>) => BodyInit

const same: SendText = (text) => text

function bodyOf(source: NonNullable<Reply['source']>): BodyInit {
  if (source instanceof Uint8Array) return source
  return source.kind === 'file' ? openFileSlice(source.path, source.start, source.end) : source.stream
}
