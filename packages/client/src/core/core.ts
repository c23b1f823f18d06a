/**
 * What the features of one client share. Every request goes through `send`: credentials, retries, deadlines, errors.
 */
import type { ClientOptions } from '../types/options.ts'
import { limitCall } from './deadline.ts'
import { failure, type PlinthError } from './error.ts'
import { createListeners } from './listeners.ts'
import type { Credentials, Reply, Request } from './request.ts'
import { sendRepeatedly } from './sending.ts'

export class Core {
  /** Emits when the user changes: data of the previous user must no longer be shown. */
  readonly identity = createListeners()
  /** Emits when a new access token replaces an older one of the same user. */
  readonly token = createListeners()
  /** Emits when the client is closed. */
  readonly closing = createListeners<[error: PlinthError]>()
  /** What features offer to others, such as `live` to queries. */
  readonly parts: Record<string, unknown> = {}
  /** Set by the feature `auth`, or for `getToken`. */
  declare credentials: Credentials | undefined
  /** Without a slash at the end. */
  declare readonly url: string
  declare readonly options: ClientOptions

  constructor(url: string, options: ClientOptions) {
    this.url = url
    this.options = options
    const { getToken } = options
    if (getToken) this.credentials = { token: getToken, renew: getToken }
  }

  /** What a feature offers. Throws if the feature was not passed to `createClient`. */
  part<Part>(name: string): Part {
    const part = this.parts[name]
    if (!part) throw failure('feature-not-loaded', `No feature ${name}`)
    return part as Part
  }

  /** The access token of the next request. Null where the user is signed out, and with a service key. */
  async accessToken(): Promise<string | null> {
    return (!this.options.serviceKey && (await this.credentials?.token())) || null
  }

  /** Rejects the calls under way and all later ones. */
  close(): void {
    const error = failure('aborted')
    this.send = () => Promise.reject(error)
    this.closing.emit(error)
  }

  /** The data of an answer. */
  async json<Data = unknown>(method: string, path: string, request?: Request): Promise<Data> {
    return (await this.send(method, path, request)).data as Data
  }

  /** Sends a request, with retries where it is repeatable. Rejects with `PlinthError`. */
  async send(method: string, path: string, request: Request = {}): Promise<Reply> {
    // Another origin must not receive the credentials.
    if (!/^\/(?![/\\])/.test(path)) throw failure('invalid-input', `Not a path: ${path}`)
    const { signal, as, timeout = this.options.timeout ?? 30_000 } = request
    const controller = new AbortController()
    return new Promise((resolve, reject) => {
      const cancel = (error: PlinthError): void => {
        reject(error)
        controller.abort(error)
      }
      const stopClosing = this.closing.add(cancel)
      const stop = limitCall({ signal, timeout }, cancel)
      const sending = { ...request, core: this, method, path, signal: controller.signal }
      sendRepeatedly(sending, Date.now() + timeout)
        .then(resolve, reject)
        .finally(() => {
          stop()
          // A stream can be aborted for as long as it is read.
          if (as === 'stream') limitCall({ signal }, cancel)
          else stopClosing()
        })
    })
  }
}
