/** Who plays: an anonymous user, made with the first visit and kept for as long as the tab is. */

/** A token is renewed this long before it expires. */
const renewalMs = 60_000
const stored = 'person'

/** When a token ends, in milliseconds since 1970, as it says itself. */
function endOf(token) {
  const claims = atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))
  return JSON.parse(claims).exp * 1000
}

/**
 * Gives tokens of one user: `get` one that is good for a while yet (rejects where the server cannot be asked), `forget`
 * the user, so that the next token is somebody else's.
 * @param {string} url
 */
export function createPerson(url) {
  async function ask(path, body) {
    const response = await fetch(`${url}/api/auth/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.ok ? response.json() : Promise.reject(new Error(`${path}: ${response.status}`, { cause: response }))
  }

  const forget = () => sessionStorage.removeItem(stored)

  return {
    async get() {
      let person = JSON.parse(sessionStorage.getItem(stored) ?? 'null')
      const isGood = person !== null && endOf(person.accessToken) - renewalMs > Date.now()
      if (!isGood) {
        try {
          person = await (person ? ask('refresh', { refreshToken: person.refreshToken }) : ask('signin/anonymous', {}))
        } catch (error) {
          if (error.cause?.status === 401) forget()
          throw error
        }
        const { accessToken, refreshToken } = person
        sessionStorage.setItem(stored, JSON.stringify({ accessToken, refreshToken }))
      }
      return { token: person.accessToken, renewInMs: endOf(person.accessToken) - renewalMs - Date.now() }
    },
    forget,
  }
}
