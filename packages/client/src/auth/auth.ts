/** The feature `auth`: users and their sessions. */
import type { Core } from '../core/core.ts'
import type { Feature } from '../core/feature.ts'
import { createAccount } from './account.ts'
import { type Session, SessionKeeper } from './session.ts'
import { createSignIn } from './sign-in.ts'

function createAuth(core: Core): object {
  const keeper = new SessionKeeper(core)
  // Not beside `getToken`.
  core.credentials ??= keeper
  return {
    get session() {
      return keeper.session
    },
    get user() {
      return keeper.session?.user ?? null
    },
    ready: keeper.ready,
    onChange: keeper.changes.add,
    ...createSignIn(keeper),
    ...createAccount(keeper),
    async refresh(): Promise<Session | null> {
      await keeper.refresh()
      return keeper.session
    },
    /** Also while the server is away: this device forgets the session first. */
    async signOut(): Promise<void> {
      const refreshToken = await keeper.end()
      if (refreshToken) await keeper.publicly('signout', { refreshToken }).catch(() => undefined)
    },
  }
}

/** Users: every way to sign in, and the session that all other requests use. */
export const auth: Feature = (core) => ({ auth: createAuth(core) })
