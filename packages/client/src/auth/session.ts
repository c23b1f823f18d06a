/**
 * The session of a signed-in user: kept in storage, shared by the tabs of a browser, refreshed on use.
 *
 * States: signed out, valid, refreshing. A session ends only when the user signs out or the server refuses its refresh
 * token while storage still holds that very token; a network error, a busy server or another tab never ends it.
 */
import type { Core } from '../core/core.ts'
import { failure, type PlinthError } from '../core/error.ts'
import { createListeners } from '../core/listeners.ts'
import { createLocalValues, type LocalValues } from '../core/local-values.ts'
import { exclusively } from '../core/lock.ts'
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
  /** How long the access token is valid, in seconds: the clocks of server and device may differ. */
  readonly expiresIn: number
  readonly deviceToken?: string
}

/** How long before its expiry a token is refreshed, in milliseconds. */
const refreshAheadMs = 60_000
/** How long one tab waits for another that refreshes, in milliseconds. Then both do, which the server tolerates. */
const lockWaitMs = 5_000
/** Refusals of a refresh that end the session. Any other error keeps it. */
const endingSlugs = /^(token-expired|invalid-token|session-ended|account-disabled)$/

function parseStored(text: string | null | undefined): StoredSession | null {
  try {
    const stored = JSON.parse(text as string) as StoredSession
    return stored.user.id && stored.refreshToken ? stored : null
  } catch {
    return null
  }
}

export class SessionKeeper implements Credentials {
  readonly ready: Promise<Session | null>
  readonly changes = createListeners<[session: Session | null]>()
  readonly core: Core
  /** Also keeps the device token, which survives a sign-out. */
  readonly values: LocalValues
  #current: StoredSession | null = null
  #refreshing: Promise<void> | undefined

  constructor(core: Core) {
    this.core = core
    this.values = createLocalValues(core)
    this.ready = this.#read().then((stored) => {
      // A sign-in during the read wins.
      if (!this.#current) this.#set(stored)
      return this.session
    })
    const { storage, keyOf } = this.values
    const stop = storage.watch?.(keyOf(''), (text) => this.#set(parseStored(text)))
    if (stop) core.closing.add(stop)
  }

  get session(): Session | null {
    return this.#current
  }

  async token(): Promise<string | undefined> {
    await this.ready
    const { expiresAt = Infinity } = this.#current ?? {}
    if (expiresAt - refreshAheadMs <= Date.now())
      try {
        await this.refresh()
      } catch (error) {
        // Within the last minute the old token is still good.
        if (!this.#current || expiresAt <= Date.now()) throw error
      }
    return this.#current?.accessToken
  }

  async renew(rejected: string): Promise<string | undefined> {
    if (this.#current?.accessToken === rejected) await this.refresh()
    return this.#current?.accessToken
  }

  /** Replaces the tokens. Concurrent calls share one request, also with other tabs where the browser has locks. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshExclusively().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  /** Refreshes in one tab at a time. Runs no code of the application. */
  async #refreshExclusively(): Promise<void> {
    await this.ready
    const old = this.#current?.refreshToken
    const refresh = () => this.#refreshOnce(old)
    const { storage, keyOf } = this.values
    return storage.watch ? exclusively(keyOf(''), lockWaitMs, refresh) : refresh()
  }

  /**
   * A request under `/api/auth` as the signed-in user. The user of an answer without tokens replaces that of the
   * session. An answer that only confirms is undefined.
   */
  async asUser<Data = void>(method: string, path: string, body?: object, token?: null): Promise<Data> {
    type Answer = { ok?: true; user?: User; accessToken?: string } | null
    const data = await this.core.json<Answer>(method, `/api/auth/${path}`, { body, token })
    if (data?.user && !data.accessToken) await this.#setUser(data.user)
    return (data?.ok ? undefined : data) as Data
  }

  /** A request without credentials. */
  publicly<Data = void>(path: string, body: object): Promise<Data> {
    return this.asUser('POST', path, body, null)
  }

  /** The same with the device token, with which failed attempts from elsewhere do not rate-limit this device. */
  async fromDevice<Data = void>(path: string, body: object): Promise<Data> {
    return this.publicly(path, { ...body, deviceToken: await this.values.get('device') })
  }

  /** Starts the session of an answer. */
  async start(answered: SignedIn | Promise<SignedIn>): Promise<Session> {
    const { deviceToken, expiresIn, ...answer } = await answered
    if (deviceToken) void this.values.set('device', deviceToken)
    const session = { ...answer, expiresAt: Date.now() + expiresIn * 1000 }
    await this.#keep(session)
    return session
  }

  async #setUser(user: User): Promise<void> {
    // Another tab may have refreshed meanwhile; its tokens are the valid ones.
    const latest = (await this.#read()) ?? this.#current
    if (latest?.user.id === user.id) await this.#keep({ ...latest, user })
  }

  /** Forgets the session. Returns its refresh token. */
  async end(): Promise<string | undefined> {
    await this.ready
    const token = this.#current?.refreshToken
    await this.#keep(null)
    return token
  }

  async #keep(session: StoredSession | null): Promise<void> {
    const stored = this.values.set('', session && JSON.stringify(session))
    this.#set(session)
    await stored
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
    const { refreshToken } = used
    const isCurrent = () => this.#current?.refreshToken === refreshToken
    try {
      const answer = await this.publicly<SignedIn>('refresh', { refreshToken })
      if (!answer?.accessToken) throw failure('invalid-answer')
      // The user signed out or in as another one meanwhile.
      if (isCurrent()) await this.start(answer)
    } catch (error) {
      if (!endingSlugs.test((error as PlinthError).slug)) throw error
      const now = await this.#read()
      if (now && now.refreshToken !== refreshToken) this.#set(now)
      else if (isCurrent()) await this.end()
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
    return parseStored(await this.values.get(''))
  }
}
