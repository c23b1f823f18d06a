/** The signed-in user as access rules and the handlers of rooms receive it. Part of the types of a configuration. */

/** The signed-in user as access rules receive it. Frozen. */
export interface Auth {
  readonly id: string
  /** Null until the address is verified; an unverified address is only what was entered at sign-up. */
  readonly email: string | null
  /** Whether the user has a verified `email`; false exactly when `email` is null. */
  readonly emailVerified: boolean
  readonly displayName: string | null
  readonly role: string
  readonly isAnonymous: boolean
  /** Custom claims, which only a service key can set. Values are arbitrary JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: claims are the application's own JSON; rules index into them freely.
  readonly custom: Readonly<Record<string, any>>
}
