/**
 * The session of a signed-in user: kept in storage, shared by the tabs of a browser, refreshed on use.
 *
 * States: signed out, valid, refreshing. A session ends only when the user signs out or the server refuses its refresh
 * token while storage still holds that very token; a network error, a busy server or another tab never ends it.
 */
import type { Core } from '../core/core.ts'
import { failure, isPlinthError, type PlinthError } from '../core/error.ts'
import { createListeners } from '../core/listeners.ts'
import { createLocalValues, type LocalValues } from '../core/local-values.ts'
import type { Credentials } from '../core/request.ts'

export interface User {
  readonly id: string
  readonly isAnonymous: boolean
  readonly [member: string]: unknown
}

/** A signed-in user. `expiresAt` is in milliseconds since 1970, by the clock of this device. */
export interface Session {
  readonly user: User
  readonly accessToken: string
  readonly expiresAt: number
}

interface StoredSession extends Session {
  readonly refreshToken: string
}

/** What every sign-in and refresh answers. */
export interface SignedIn {
  readonly user: User
  readonly accessToken: string
  readonly refreshToken: string
  readonly deviceToken?: string
}

/** How long before its expiry a token is refreshed, in milliseconds. */
const refreshAheadMs = 60_000
/** How long one tab waits for another that refreshes, in milliseconds. Then both do, which the server tolerates. */
const lockWaitMs = 5_000
/** Lifetime of a token that does not state one, in milliseconds. */
const lifetimeDefaultMs = 900_000

/** Refusals of a refresh that end the session. Any other error keeps it. */
const endingSlugs = ['invalid-token', 'token-expired', 'session-ended', 'account-disabled']

/**
 * When a token that was issued just now expires. Uses its lifetime instead of its `exp`, since the clocks of server and
 * device may differ.
 */
function expiryOf(token: string): number {
  let lifetimeMs = lifetimeDefaultMs
  try {
    const payload = token.split('.')[1] as string
    const { iat, exp } = JSON.parse(atob(payload.replace(/-/g, '+').replace(/_/g, '/')))
    if (exp > iat) lifetimeMs = (exp - iat) * 1000
  } catch {
    // Not a JWT that this client can read.
  }
  return Date.now() + lifetimeMs
}

function parseStored(text: string | null): StoredSession | null {
  try {
    const stored = JSON.parse(text as string) as StoredSession
    return stored.user.id && stored.accessToken && stored.refreshToken ? stored : null
  } catch {
    return null
  }
}

export class SessionKeeper implements Credentials {
  readonly ready: Promise<Session | null>
  readonly changes = createListeners<[session: Session | null]>()
  readonly core: Core
  readonly #values: LocalValues
  #current: StoredSession | null = null
  #refreshing: Promise<void> | undefined

  constructor(core: Core) {
    this.core = core
    this.#values = createLocalValues(core)
    this.ready = this.#read().then((stored) => {
      // A sign-in during the read wins.
      if (!this.#current) this.#set(stored)
      return this.session
    })
    const { storage, keyOf } = this.#values
    const stop = storage.watch?.(keyOf(''), (text) => this.#set(parseStored(text)))
    if (stop) core.cleanups.push(stop)
  }

  get session(): Session | null {
    return this.#current
  }

  /** The device token, which survives a sign-out. */
  async deviceToken(): Promise<string | undefined> {
    return (await this.#values.get('device')) ?? undefined
  }

  async token(): Promise<string | null> {
    await this.ready
    const { expiresAt = Infinity } = this.#current ?? {}
    if (expiresAt - refreshAheadMs <= Date.now())
      try {
        await this.refresh()
      } catch (error) {
        // Within the last minute the old token is still good.
        if (!this.#current || expiresAt <= Date.now()) throw error
      }
    return this.#current?.accessToken ?? null
  }

  async renew(rejected: string): Promise<string | null> {
    if (this.#current?.accessToken === rejected) await this.refresh()
    return this.#current?.accessToken ?? null
  }

  /** Replaces the tokens. Concurrent calls share one request, also with other tabs where the browser has locks. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.ready
      .then(() => {
        const old = this.#current?.refreshToken
        return this.#exclusively(() => this.#refreshOnce(old))
      })
      .finally(() => {
        this.#refreshing = undefined
      })
    return this.#refreshing
  }

  /** Starts the session of an answer. */
  async start({ deviceToken, ...answer }: SignedIn): Promise<Session> {
    if (deviceToken) void this.#values.set('device', deviceToken)
    return this.#keep({ ...answer, expiresAt: expiryOf(answer.accessToken) })
  }

  /** Replaces the user of the session, after a change of the profile. */
  async setUser(user: User): Promise<void> {
    // Another tab may have refreshed meanwhile; its tokens are the valid ones.
    const latest = (await this.#read()) ?? this.#current
    if (latest?.user.id === user.id) await this.#keep({ ...latest, user })
  }

  /** Forgets the session. Returns its refresh token. */
  async end(): Promise<string | undefined> {
    await this.ready
    const token = this.#current?.refreshToken
    const removed = this.#values.set('', null)
    this.#set(null)
    await removed
    return token
  }

  async #keep(session: StoredSession): Promise<Session> {
    const stored = this.#values.set('', JSON.stringify(session))
    this.#set(session)
    await stored
    return session
  }

  /** `old`: the refresh token when the refresh was requested, before this tab waited for the others. */
  async #refreshOnce(old: string | undefined): Promise<void> {
    const stored = await this.#read()
    // Another tab has refreshed it already.
    if (stored && stored.refreshToken !== old) {
      this.#set(stored)
      if (stored.expiresAt - refreshAheadMs > Date.now()) return
    }
    const used = this.#current
    if (!used) return
    const body = { refreshToken: used.refreshToken }
    const isCurrent = () => this.#current?.refreshToken === used.refreshToken
    try {
      const answer = await this.core.json<SignedIn>('POST', '/api/auth/refresh', { body, isAnonymous: true })
      if (!answer?.accessToken) throw failure('invalid-answer', 'No access token')
      // The user signed out or in as another one meanwhile.
      if (isCurrent()) await this.start(answer)
    } catch (error) {
      if (!endingSlugs.includes((error as PlinthError).slug)) throw error
      const now = await this.#read()
      if (now && now.refreshToken !== used.refreshToken) this.#set(now)
      else if (isCurrent()) await this.end()
    }
  }

  /** Runs `work` in one tab at a time. Never runs code of the application. */
  async #exclusively(work: () => Promise<void>): Promise<void> {
    const { locks } = (globalThis.navigator ?? {}) as Partial<Navigator>
    const { storage, keyOf } = this.#values
    if (!locks || !storage.watch) return work()
    try {
      await locks.request(keyOf(''), { signal: AbortSignal.timeout(lockWaitMs) }, work)
    } catch (error) {
      if (isPlinthError(error)) throw error
      // A frozen tab can hold the lock for as long as it is frozen.
      await work()
    }
  }

  #set(next: StoredSession | null): void {
    const previous = this.#current
    if (previous?.accessToken === next?.accessToken && previous?.user === next?.user) return
    this.#current = next
    const { identity, token } = this.core
    ;(previous?.user.id === next?.user.id ? token : identity).emit()
    this.changes.emit(next)
  }

  async #read(): Promise<StoredSession | null> {
    return parseStored(await this.#values.get(''))
  }
}
