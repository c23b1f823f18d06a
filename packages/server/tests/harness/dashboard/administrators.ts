/** Administrators of the dashboard in tests: users with a dashboard role, and clients that send what the page sends. */
import { type Answer, type Client, createClient, type HeaderList } from '../client.ts'
import type { TestServer } from '../server.ts'

export interface TestAdministrator {
  readonly id: string
  readonly email: string
  readonly password: string
  readonly role: string
  /** `name=value` of the session's cookie. */
  readonly cookie: string
  /** Sends the cookie, the header and the origin of the page; paths are below `/dashboard`. */
  readonly client: Client
}

let count = 0

/** The headers of the page of a server, without a cookie. */
export const pageHeaders = (server: TestServer): HeaderList => ({ 'x-plinth-dashboard': '1', origin: server.url })

/** A client of the page with these headers; paths are below `/dashboard`. */
export const pageClient = (server: TestServer, headers: HeaderList): Client =>
  createClient(() => `${server.url}/dashboard`, headers)

/** Creates a user with a dashboard role; null for none. */
export async function createAdministrator(
  server: TestServer,
  role: string | null,
): Promise<{ id: string; email: string; password: string }> {
  const email = `admin${++count}@example.org`
  const password = `password of admin ${count}`
  const created = await server.service.post('/api/auth/admin/users', { email, password })
  if (created.status !== 201) throw new Error(`no user was created: ${created.status} ${created.text}`)
  const { id } = created.body.user
  if (role !== null) await setRole(server, id, role)
  return { id, email, password }
}

export async function setRole(server: TestServer, id: string, role: string | null): Promise<void> {
  const set = await server.service.request('PUT', `/api/auth/admin/users/${id}/dashboard-role`, { body: { role } })
  if (set.status !== 200) throw new Error(`the role was not set: ${set.status} ${set.text}`)
}

/** Signs in with the password. */
export const signInToDashboard = (
  server: TestServer,
  { email, password }: { readonly email: string; readonly password: string },
  headers: HeaderList = {},
): Promise<Answer> =>
  pageClient(server, { ...pageHeaders(server), ...headers }).post('/api/session', { email, password })

/** The cookie that a response sets, as `name=value`. */
export function cookieOf({ status, headers, text }: Answer): string {
  const cookie = headers.getSetCookie()[0]?.split(';', 1)[0]
  if (cookie === undefined) throw new Error(`no cookie was set: ${status} ${text}`)
  return cookie
}

/** A new administrator who is signed in. The server must not require a second factor. */
export async function openAdministrator(server: TestServer, role: string): Promise<TestAdministrator> {
  const user = await createAdministrator(server, role)
  const cookie = cookieOf(await signInToDashboard(server, user))
  return { ...user, role, cookie, client: pageClient(server, { ...pageHeaders(server), cookie }) }
}
