/** The script of the page: a client that tests control by global functions. */
import { createClient, isPlinthError } from '../../src/all.ts'

const state = { refreshes: 0, signOuts: 0, userId: (): string | null => null }

/** Counts the requests for new tokens. */
const countingFetch: typeof fetch = Object.assign(
  (input: RequestInfo | URL, init?: RequestInit) => {
    if (String(input).endsWith('/api/auth/refresh')) state.refreshes++
    return fetch(input, init)
  },
  { preconnect: () => undefined },
)

let client: ReturnType<typeof createClient>

/** Connects to a server; the first tab signs up, the others find its session. */
async function connect(url: string): Promise<void> {
  client = createClient(url, { fetch: countingFetch, retries: 10 })
  await client.auth.ready
  if (!client.auth.session) await client.auth.signInAnonymously()
  state.userId = () => client.auth.user?.id ?? null
  client.auth.onChange((session) => {
    if (!session) state.signOuts++
  })
}

const list = async (): Promise<number> => (await client.db().items.list()).total

async function refresh(): Promise<string> {
  try {
    await client.auth.refresh()
    return 'refreshed'
  } catch (error) {
    return isPlinthError(error) ? error.slug : String(error)
  }
}

Object.assign(globalThis, { connect, list, refresh, state, client: () => client })
