/** Types of the configuration section `broadcasts`. `broadcasts.ts` validates it at start. */
import type { Auth } from '../../../access/auth.ts'

/** Gives `true` to allow. `name` is the channel without `broadcast:`. */
export type BroadcastRule = boolean | ((auth: Auth | null, name: string) => unknown)

/** Rules of broadcast channels as they are written. One that is left out denies everyone but the service key. */
export interface BroadcastConfig {
  /** Who may receive. */
  readonly subscribe?: BroadcastRule
  /** Who may send from a client. */
  readonly publish?: BroadcastRule
}
