/** A page of the dashboard of a real server, signed in with the session of an administrator. */
import type { Browser, BrowserContextOptions } from 'playwright-core'
import type { TestAdministrator } from '../../../server/tests/harness/dashboard/administrators.ts'
import type { TestServer } from '../../../server/tests/harness/server.ts'
import { openSheet, type Sheet } from './browser.ts'
import { signIn } from './dashboard.ts'

export interface SignedIn extends Sheet {
  readonly administrator: TestAdministrator
  /** Opens a path below `/dashboard`, and resolves when the heading of the view is shown. */
  open(path: string, heading: string | RegExp): Promise<void>
}

export async function openSignedIn(
  browser: Browser,
  server: TestServer,
  { role = 'owner', ...options }: BrowserContextOptions & { readonly role?: string } = {},
): Promise<SignedIn> {
  const sheet = await openSheet(browser, options)
  const administrator = await signIn(sheet, server, role)
  return {
    ...sheet,
    administrator,
    async open(path, heading) {
      await sheet.page.goto(`${server.url}/dashboard${path}`)
      await sheet.page.getByRole('heading', { level: 1, name: heading }).waitFor()
    },
  }
}
