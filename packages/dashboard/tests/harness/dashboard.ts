/** A real server with the dashboard, and an administrator whose browser is signed in. */
import { buildDashboard } from '../../../../scripts/build/dashboard.ts'
import { openAdministrator, type TestAdministrator } from '../../../server/tests/harness/dashboard/administrators.ts'
import { type ServerOptions, startServer, type TestServer } from '../../../server/tests/harness/server.ts'
import type { Sheet } from './browser.ts'

export type { TestServer } from '../../../server/tests/harness/server.ts'

const unlimited = { requests: 10_000_000 }

/** Starts a server with the current build of the dashboard. Must be closed. */
export async function startDashboardServer(
  config: ServerOptions['config'],
  options: Omit<ServerOptions, 'config'> = {},
): Promise<TestServer> {
  await buildDashboard()
  return startServer({
    ...options,
    config: { rateLimits: { auth: unlimited, signin: unlimited, global: unlimited, db: unlimited }, ...config },
  })
}

/** Gives the browser the session of a new administrator. */
export async function signIn(sheet: Sheet, server: TestServer, role = 'owner'): Promise<TestAdministrator> {
  const administrator = await openAdministrator(server, role)
  await setSession(sheet, server, administrator)
  return administrator
}

/** Gives the browser the session of an administrator. */
export async function setSession(
  { context }: Sheet,
  server: TestServer,
  { cookie }: Pick<TestAdministrator, 'cookie'>,
): Promise<void> {
  const [name = '', value = ''] = cookie.split('=')
  await context.addCookies([{ name, value, url: server.url, httpOnly: true, sameSite: 'Strict' }])
}
