/** What the features of one client share. */

import type { ClientOptions } from '../types/options.ts'
import { failure } from './error.ts'
import { createListeners, type Listeners } from './listeners.ts'
import { type Credentials, Transport } from './transport.ts'

export class Core {
  readonly transport: Transport
  /** Emits when the user changes: data of the previous user must no longer be shown. */
  readonly identity: Listeners = createListeners()
  /** Emits when a new access token replaces an older one of the same user. */
  readonly token: Listeners = createListeners()
  /** Called by `close`. */
  readonly cleanups: (() => void)[] = []
  /** What features offer to others, such as `live` to queries. */
  readonly parts: Record<string, unknown> = {}

  constructor(
    readonly url: string,
    readonly options: ClientOptions,
  ) {
    this.transport = new Transport(url, options)
    const { getToken } = options
    if (getToken) this.transport.credentials = credentialsOf(getToken)
  }

  /** The part that a feature has registered. Throws if the feature was not passed to `createClient`. */
  part<Part>(name: string): Part {
    const part = this.parts[name]
    if (part === undefined)
      throw failure('feature-not-loaded', `Pass the feature \`${name}\` to createClient to use this`)
    return part as Part
  }

  close(): void {
    this.transport.close()
    for (const cleanUp of this.cleanups.splice(0)) cleanUp()
  }
}

const credentialsOf = (getToken: () => string | null | Promise<string | null>): Credentials => ({
  token: async () => getToken(),
  renew: async () => getToken(),
})
