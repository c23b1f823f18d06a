/** The session of a page that a server renders: kept in the server's cookies, which the page reaches by requests. */
import { backoffMs, delay } from '../core/deadline.ts'
import { defaultStorage } from '../core/session-storage.ts'
import type { SessionStorage } from '../types/options.ts'
import { type CookieJar, type CookieOptions, isSessionKey, readSession, writeSession } from './cookies.ts'

/** Characters of a session as JSON, with the largest metadata. */
const charsMax = 64 * 1024
/** Attempts of a page to reach its server, with backoff about ten seconds. */
const attemptsMax = 6

const answer = (status: number, text: string | null = null): Response =>
  new Response(text, {
    status,
    headers: {
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(text !== null && { 'Content-Type': 'application/json' }),
    },
  })

/**
 * Answers the requests of `pageStorage`: GET reads the session, PUT replaces it and DELETE removes it. The cookies are
 * set in `jar`; those of `requestCookies` have to be added to the response.
 */
export async function handleSession(request: Request, jar: CookieJar, options?: CookieOptions): Promise<Response> {
  const site = request.headers.get('sec-fetch-site')
  // Another origin must not sign a browser in as another user. Without the header, PUT and DELETE have a preflight.
  if (site !== null && site !== 'same-origin') return answer(403)
  if (request.method === 'GET') {
    const text = readSession(jar, options)
    return text ? answer(200, text) : answer(204)
  }
  if (request.method === 'DELETE') {
    writeSession(jar, null, options)
    return answer(204)
  }
  if (request.method !== 'PUT') return answer(405)
  const text = await request.text()
  try {
    const { user, accessToken, refreshToken } = JSON.parse(text)
    if (!user || !accessToken || !refreshToken || text.length > charsMax) return answer(400)
    writeSession(jar, text, options)
  } catch {
    return answer(400)
  }
  return answer(204)
}

/**
 * The `storage` of a client in a page whose server answers `path` with `handleSession`. Other values of the client
 * are kept in `localStorage`.
 */
export function pageStorage(path = '/plinth-session'): SessionStorage {
  const others = defaultStorage()
  const listeners = new Set<(value: string | null) => void>()
  const channel = new BroadcastChannel(`plinth:${path}`)
  channel.onmessage = ({ data }) => {
    for (const listener of listeners) listener(data as string | null)
  }
  /** What the server could not store, which is newer than what it has. */
  let unsaved: { readonly text: string | null } | undefined

  const send = async (method: string, body?: string): Promise<string | null> => {
    for (let attempt = 1; ; attempt++)
      try {
        const response = await fetch(path, { method, body: body ?? null, cache: 'no-store', keepalive: true })
        const text = await response.text()
        if (response.ok) return text || null
        throw new TypeError(`Status ${response.status} of ${path}`)
      } catch (error) {
        if (attempt === attemptsMax) throw error
        await delay(backoffMs(attempt))
      }
  }
  const save = async (text: string | null): Promise<void> => {
    unsaved = { text }
    channel.postMessage(text)
    await (text === null ? send('DELETE') : send('PUT', text))
    unsaved = undefined
  }
  return {
    get: (key) => (isSessionKey(key) ? (unsaved ? unsaved.text : send('GET')) : others.get(key)),
    set: (key, value) => (isSessionKey(key) ? save(value) : others.set(key, value)),
    remove: (key) => (isSessionKey(key) ? save(null) : others.remove(key)),
    watch(_, listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
