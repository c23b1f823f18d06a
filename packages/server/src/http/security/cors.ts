/** CORS: the origins whose pages may read responses. Cookies are never used, so credentials are never allowed. */
import type { Reply } from '../endpoint.ts'
import { empty } from '../replies/reply.ts'

export interface Cors {
  /** Headers of every response; part of the reply templates. */
  readonly common: Readonly<Record<string, string>>
  /** Adds the headers that let a page of an allowed origin read the response. */
  expose(request: Headers, response: Headers): void
  /** The reply to a preflight; `expose` adds the permission itself. */
  preflight(): Reply
}

export interface CorsOptions {
  readonly mode: 'development' | 'release'
  /** Origins such as `https://app.example.org`, or `*` for all. */
  readonly origins: readonly string[]
}

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const requestHeaders = [
  'Authorization, Content-Type, If-Match, If-None-Match, If-Range, Range, Idempotency-Key, X-Platform-Service-Key',
  'Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset',
].join(', ')
const exposedHeaders = [
  'ETag, X-Request-Id, Retry-After, Accept-Ranges, Content-Range, Content-Disposition, Location',
  'Tus-Resumable, Tus-Version, Tus-Extension, Upload-Expires, Upload-Length, Upload-Offset',
].join(', ')
/** Chromium caches a preflight for at most two hours. */
const preflightMaxAgeSeconds = 7200

/** A page served by this machine, on any port; `*.localhost` resolves to the loopback too. */
const localOrigin = /^https?:\/\/(?:(?:[a-z\d-]{1,63}\.){0,4}localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/

export function createCors({ mode, origins }: CorsOptions): Cors {
  const isOpen = origins.includes('*')
  const listed = new Set(origins)
  const isClosed = mode === 'release' && listed.size === 0
  const isAllowed = (origin: string): boolean =>
    isOpen || listed.has(origin) || (mode === 'development' && localOrigin.test(origin))

  return {
    // Responses that differ by origin need `Vary`; those for `*` do not.
    common: isOpen || isClosed ? {} : { Vary: 'Origin' },
    expose(request, response) {
      if (isClosed) return
      const origin = request.get('origin')
      if (origin === null || !isAllowed(origin)) return
      response.set('Access-Control-Allow-Origin', isOpen ? '*' : origin)
      response.set('Access-Control-Expose-Headers', exposedHeaders)
    },
    preflight: () =>
      empty(204, {
        'Access-Control-Allow-Methods': methods,
        'Access-Control-Allow-Headers': requestHeaders,
        'Access-Control-Max-Age': String(preflightMaxAgeSeconds),
      }),
  }
}
