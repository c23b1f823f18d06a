/**
 * The session of the page: an anonymous user, created on the first visit and stored in this browser. Requests are sent
 * with the access token of the user, which is renewed when it expires.
 */

const storageKey = 'drawer.session'

/** An error response of the API. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** @param {Response} response */
async function errorOf(response) {
  const body = await response.json().catch(() => null)
  return new ApiError(response.status, body?.message ?? `HTTP status ${response.status}`)
}

/**
 * Signs in as the stored user of this browser, or as a new one. Rejects when the server cannot be reached.
 * @param {string} url
 */
export async function openSession(url) {
  const read = () => JSON.parse(localStorage.getItem(storageKey) ?? 'null')
  /** The user and the tokens, as returned by the server. */
  let session = read()
  /** Shared by concurrent requests whose token has expired. */
  let renewal = null

  async function authenticate(path, body) {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}/api/auth/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw await errorOf(response)
    session = { ...session, ...(await response.json()) }
    localStorage.setItem(storageKey, JSON.stringify(session))
  }

  const signIn = () => authenticate('signin/anonymous', {})

  function renew() {
    // Refresh tokens are valid once, and another window may have renewed the session.
    renewal ??= authenticate('refresh', { refreshToken: (read() ?? session).refreshToken }).finally(() => {
      renewal = null
    })
    return renewal
  }

  if (session === null) await signIn()
  // An anonymous user has no credentials: when the session has ended, create a new user.
  else
    await renew().catch((error) => {
      if (error.status !== 401) throw error
      return signIn()
    })

  return {
    userId: session.user.id,
    authorization: () => `Bearer ${session.accessToken}`,
    renew,

    /**
     * `fetch` for a path of the API. Rejects with `ApiError` unless the response is a success.
     * @param {string} path
     * @param {{ method?: string, headers?: Record<string, string>, json?: unknown }} options
     */
    async request(path, { method = 'GET', headers = {}, json } = {}) {
      const body = json === undefined ? {} : { body: JSON.stringify(json) }
      const type = json === undefined ? {} : { 'Content-Type': 'application/json' }
      for (let isFirst = true; ; isFirst = false) {
        const all = { ...headers, ...type, Authorization: `Bearer ${session.accessToken}` }
        const response = await fetch(`${url}${path}`, { method, headers: all, ...body })
        if (response.ok) return response
        if (response.status !== 401 || !isFirst) throw await errorOf(response)
        await renew()
      }
    },
  }
}
