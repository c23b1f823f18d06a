/** Types of the configuration section `push`. `push.ts` validates it at start. */

/** Firebase Cloud Messaging, which reaches Android, iOS and browsers. */
export interface FcmOptions {
  /** Default: the one of the service account. */
  readonly projectId?: string
  /**
   * The JSON of a service account's key, or the path of a file with it. Left undefined (an unset environment variable)
   * nothing is sent through FCM.
   */
  readonly serviceAccount: string | undefined
  /**
   * Instead of Google's: where access tokens are had, where messages go, and the Instance ID API. An origin alone has
   * Google's path appended. HTTPS, or HTTP on this machine.
   */
  readonly endpoints?: { readonly token?: string; readonly send?: string; readonly topics?: string }
}

/** Web push without Google: browsers' own push services, by the keys that `plinth keys vapid` makes. */
export interface VapidOptions {
  /** Whom a push service turns to: `mailto:` and an address, or an https URL. */
  readonly subject: string
  readonly publicKey: string
  /** Left undefined (an unset environment variable) nothing is sent to browsers in this way. */
  readonly privateKey: string | undefined
  /** Origins of push services that would be refused otherwise: not HTTPS, or inside your own network. */
  readonly localServices?: readonly string[]
}

export interface PushOptions {
  readonly fcm?: FcmOptions
  readonly vapid?: VapidOptions
}
