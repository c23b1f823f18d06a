/** Types of the section `auth` as users write it. `auth` validates it at start. */
import type { Auth } from '../../../access/auth.ts'
import type { Filter } from '../../../access/filter.ts'

/** An undefined secret (such as an unset environment variable) is a configuration error. */
type Secret = string | undefined

interface ProviderOptions {
  readonly clientId: Secret
  readonly clientSecret: Secret
  /** Overrides the default scopes of the provider. */
  readonly scopes?: readonly string[]
}

/** For tests against a fake provider on a loopback address; plain HTTP is allowed only there. */
interface OtherIssuer {
  readonly issuer?: string
}
interface OtherEndpoints {
  /** `user` replaces GitHub's `/user` (with `/emails` below it) or Discord's `/users/@me`. */
  readonly endpoints?: { readonly authorize?: string; readonly token?: string; readonly user?: string }
}

export interface ProvidersOptions {
  readonly google?: ProviderOptions & OtherIssuer
  readonly github?: ProviderOptions & OtherEndpoints
  readonly discord?: ProviderOptions & OtherEndpoints
  /**
   * `tenant` restricts who may sign in; default `common`. An email counts as verified only with the optional claim
   * `xms_edov`, which is added in the token configuration of the app registration.
   */
  readonly microsoft?: ProviderOptions & OtherIssuer & { readonly tenant?: string }
  /** `privateKey` is the PEM content of the key file from Apple. */
  readonly apple?: OtherIssuer & {
    readonly clientId: Secret
    readonly teamId: Secret
    readonly keyId: Secret
    readonly privateKey: Secret
  }
  /**
   * Any OpenID Connect provider under a name of your choice: `issuer` (the discovery document is at
   * `/.well-known/openid-configuration` below it), `clientId`, `clientSecret`, `scopes`, and `name`, the display name.
   */
  readonly [name: string]: object | undefined
}

export interface MailOptions {
  /** Sender, such as `Acme <no-reply@example.com>`. */
  readonly from: string
  /** Without it mails are discarded, or in development mode written to the log and the outbox of the data folder. */
  readonly smtp?: {
    readonly host: string
    readonly port: number
    /** Implicit TLS; default for port 465. Otherwise STARTTLS if the server offers it. */
    readonly secure?: boolean
    readonly user?: Secret
    readonly password?: Secret
    /** PEM of the certificate authority of the mail server, if it is not a public one. */
    readonly ca?: string
  }
  /** Name of the app in mails. */
  readonly appName?: string
  /** Whether a sign-up with an email sends a verification link; default false. */
  readonly verifySignups?: boolean
  /** Pages of the app that mails link to; the token is added as `?token=`. */
  readonly links?: {
    readonly magicLink?: string
    readonly passwordReset?: string
    readonly emailVerification?: string
    readonly emailChange?: string
  }
  /** Templates by language tag and template name; override the built-in English ones. */
  readonly templates?: {
    readonly [locale: string]: { readonly [name: string]: { readonly subject: string; readonly text: string } }
  }
}

type PublicUserField = 'id' | 'displayName' | 'avatarUrl' | 'role' | 'email' | 'createdAt' | 'updatedAt'

/** A read rule, as for tables. */
export type PublicUsersRule =
  | boolean
  | ((
      auth: Auth | null,
    ) =>
      | boolean
      | null
      | undefined
      | ''
      | 0
      | { readonly [F in PublicUserField]?: string | null }
      | Filter<PublicUserField>)

export interface AuthOptions {
  /** Whether users may sign up themselves; default true. */
  readonly signup?: boolean
  /** Whether anonymous users may sign in; default true. */
  readonly anonymous?: boolean
  /** Read rule of `_users_public`, the table of public user profiles. By default the table does not exist. */
  readonly publicUsers?: PublicUsersRule
  /** Origins and exact URLs that tokens may be sent to. Development mode also allows loopback hosts. */
  readonly redirectUrls?: readonly string[]
  /** 8 (the default) to 64. */
  readonly passwordMinLength?: number
  /** Sessions per user, 1 to 100 (the default); one more ends the least recently used one. */
  readonly maxActiveSessions?: number
  readonly providers?: ProvidersOptions
  readonly mail?: MailOptions
  readonly passkeys?: {
    /** The domain of the passkeys, such as `example.com`. */
    readonly rpId: string
    readonly rpName?: string
    /** Origins of the pages that use them, on that domain or a subdomain. */
    readonly origins: readonly string[]
  }
}
