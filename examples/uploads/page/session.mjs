/**
 * Who the page is: an anonymous user of its own, made at the first visit and kept in this browser. Every request of the
 * page goes out with the user's token, which is renewed when it has run out.
 */

const storageKey = 'drawer.session'

/** What the server refused. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** @param {Response} response */
async function refusalOf(response) {
  const body = await response.json().catch(() => null)
  return new Refused(response.status, body?.message ?? `The server said ${response.status}`)
}

/**
 * Signs in: as the user this browser has been before, or as a new one. Rejects while the server cannot be reached.
 * @param {string} url
 */
export async function openSession(url) {
  const read = () => JSON.parse(localStorage.getItem(storageKey) ?? 'null')
  /** Tokens that the server gave, and the user they are of. */
  let session = read()
  /** Several requests may find the token old at the same time; one renews it for all. */
  let renewal = null

  async function ask(path, body) {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}/api/auth/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw await refusalOf(response)
    session = { ...session, ...(await response.json()) }
    localStorage.setItem(storageKey, JSON.stringify(session))
  }

  const signIn = () => ask('signin/anonymous', {})

  function renew() {
    // Another window may have renewed it, and a refresh token is good once.
    renewal ??= ask('refresh', { refreshToken: (read() ?? session).refreshToken }).finally(() => {
      renewal = null
    })
    return renewal
  }

  if (session === null) await signIn()
  // Nobody knows an anonymous user's way back in: one whose session has ended is another from now on.
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
     * `fetch` below the API's address. Rejects with `Refused` for every answer that is not a success.
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
        if (response.status !== 401 || !isFirst) throw await refusalOf(response)
        await renew()
      }
    },
  }
}
