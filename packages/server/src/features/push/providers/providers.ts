/** The configured push providers. Recreated when a reload replaces the configuration. */
import type { Clock } from '../../../base/clock.ts'
import type { PushConfig } from '../../../config/sections/push/push.ts'
import type { OutboundPolicy } from '../../../engines/fetch/public-fetch.ts'
import { createFcm, type Fcm } from './fcm.ts'
import { createWebPush, type WebPush } from './web-push.ts'

/** Null for a provider without credentials. */
export interface Providers {
  readonly fcm: Fcm | null
  readonly web: WebPush | null
}

/** Returns a function that returns the providers of the current configuration. */
export function createProviders(config: () => PushConfig, clock: Clock, policy: () => OutboundPolicy): () => Providers {
  let known: { readonly config: PushConfig; readonly providers: Providers } | null = null
  return () => {
    const current = config()
    if (known?.config !== current) {
      const { fcm, vapid } = current
      const providers = { fcm: fcm && createFcm(fcm, clock), web: vapid && createWebPush(vapid, clock, policy) }
      known = { config: current, providers }
    }
    return known.providers
  }
}
