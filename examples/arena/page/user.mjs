/** The anonymous user of a tab: created with the first visit and kept in the session storage. */

/** A token is renewed this long before it expires. */
const renewalMs = 60_000
const storageKey = 'user'

/** Expiry of a token, in milliseconds since 1970. */
function expiryOf(token) {
  const claims = atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))
  return JSON.parse(claims).exp * 1000
}

/**
 * Tokens of one user. `get` resolves with a valid token and rejects while the server is unavailable; `forget` drops the
 * user, so that `get` creates another one.
 * @param {string} url
 */
export function createUser(url) {
  async function post(path, body) {
    const response = await fetch(`${url}/api/auth/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.ok ? response.json() : Promise.reject(new Error(`${path}: ${response.status}`, { cause: response }))
  }

  const forget = () => sessionStorage.removeItem(storageKey)

  return {
    async get() {
      let session = JSON.parse(sessionStorage.getItem(storageKey) ?? 'null')
      const isValid = session !== null && expiryOf(session.accessToken) - renewalMs > Date.now()
      if (!isValid) {
        try {
          session = await (session
            ? post('refresh', { refreshToken: session.refreshToken })
            : post('signin/anonymous', {}))
        } catch (error) {
          if (error.cause?.status === 401) forget()
          throw error
        }
        const { accessToken, refreshToken } = session
        sessionStorage.setItem(storageKey, JSON.stringify({ accessToken, refreshToken }))
      }
      return { token: session.accessToken, renewInMs: expiryOf(session.accessToken) - renewalMs - Date.now() }
    },
    forget,
  }
}
