/** The session of the administrator, and the requests that wait for a new one. */
import { createStore } from './store.ts'

export interface SessionUser {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
}

/** The user as whom the session views data and files. */
export interface Viewing extends SessionUser {
  readonly endsAt: string
}

export interface Session {
  readonly user: SessionUser
  readonly role: string
  /** What the role permits, as scopes of service keys. */
  readonly scopes: readonly string[]
  /** Whether the server refuses all writes: by the role, or while viewing as a user. */
  readonly isReadOnly: boolean
  readonly signedInAt: string
  readonly expiresAt: string
  readonly mode: 'development' | 'release'
  readonly version: string
  readonly viewing: Viewing | null
}

/** Why a sign-in is shown over the page: the session ended, or it is too old for what was requested. */
export type SignInReason = 'expired' | 'recent'

/** Undefined until it is known, null without a session. */
const current = createStore<Session | null | undefined>(undefined)
const reason = createStore<SignInReason | null>(null)
/** Counts responses that another view than the one on the page has given. */
const otherViews = createStore(0)
let waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []

const finish = (end: (one: (typeof waiting)[number]) => void): void => {
  const all = waiting
  waiting = []
  reason.set(null)
  for (const one of all) end(one)
}

export const session = {
  current,
  otherViews,
  /**
   * Whether a response belongs to the view that the page shows, by its header; otherwise another tab has started or
   * ended one, or its time is over.
   */
  shows(viewedId: string | null): boolean {
    const shown = current.get()
    if (!shown || (shown.viewing?.id ?? null) === viewedId) return true
    otherViews.set(otherViews.get() + 1)
    return false
  },
  /** Set while a sign-in is shown over the page. */
  reason,
  /** Resolves after the next sign-in. Rejects if the administrator declines, or with the signal. */
  requireSignIn(why: SignInReason, signal: AbortSignal | null): Promise<void> {
    return new Promise((resolve, reject) => {
      const one = { resolve, reject }
      waiting.push(one)
      signal?.addEventListener('abort', () => {
        waiting = waiting.filter((other) => other !== one)
        reject(new DOMException('Aborted', 'AbortError'))
      })
      if (current.get()) reason.set(why)
    })
  },
  signedIn(next: Session): void {
    const before = current.get()
    current.set(next)
    if (before && before.user.id !== next.user.id) {
      // What the page shows belongs to another administrator.
      finish(({ reject }) => reject(new Error('Another administrator signed in')))
      location.reload()
      return
    }
    finish(({ resolve }) => resolve())
  },
  signedOut(): void {
    current.set(null)
    finish(({ reject }) => reject(new Error('Signed out')))
  },
  /** Closes the sign-in; what waits for it fails. */
  decline(): void {
    finish(({ reject }) => reject(new Error('The sign-in was canceled')))
  },
}
