/** What users write the section `auth` with. Whether it makes sense is asked again at start, by `auth`. */
import type { Auth } from '../../../access/caller.ts'
import type { Filter } from '../../../access/filter.ts'

/** Left undefined (an unset environment variable) a secret is a mistake, never an open door. */
type Secret = string | undefined

interface ProviderOptions {
  readonly clientId: Secret
  readonly clientSecret: Secret
  /** Instead of the provider's usual ones. */
  readonly scopes?: readonly string[]
}

/** For tests, against something on this machine that plays the provider; plain HTTP goes nowhere else. */
interface OtherIssuer {
  readonly issuer?: string
}
interface OtherEndpoints {
  /** `user` is GitHub's `/user`, with `/emails` below it, or Discord's `/users/@me`. */
  readonly endpoints?: { readonly authorize?: string; readonly token?: string; readonly user?: string }
}

export interface ProvidersOptions {
  readonly google?: ProviderOptions & OtherIssuer
  readonly github?: ProviderOptions & OtherEndpoints
  readonly discord?: ProviderOptions & OtherEndpoints
  /**
   * `tenant` restricts who may sign in; default `common`. An e-mail counts as verified only with the optional claim
   * `xms_edov`, to be added in the app's token configuration.
   */
  readonly microsoft?: ProviderOptions & OtherIssuer & { readonly tenant?: string }
  /** `privateKey` is the PEM text of the key file that Apple gives out once. */
  readonly apple?: OtherIssuer & {
    readonly clientId: Secret
    readonly teamId: Secret
    readonly keyId: Secret
    readonly privateKey: Secret
  }
  /**
   * Any OpenID Connect provider, under a name of your own: `issuer`, below which its discovery document is at
   * `/.well-known/openid-configuration`, `clientId`, `clientSecret`, `scopes`, and a `name` for people to read.
   */
  readonly [name: string]: object | undefined
}

export interface MailOptions {
  /** Such as `Acme <no-reply@example.com>`. */
  readonly from: string
  /** Without it mails go nowhere; in development mode to the log and the outbox of the data folder. */
  readonly smtp?: {
    readonly host: string
    readonly port: number
    /** TLS from the first byte; default for port 465. Otherwise STARTTLS where the server offers it. */
    readonly secure?: boolean
    readonly user?: Secret
    readonly password?: Secret
    /** PEM of the authority that signed the server's certificate, where it is none that everybody knows. */
    readonly ca?: string
  }
  /** What mails call the app. */
  readonly appName?: string
  /** Whether whoever signs up with an e-mail is mailed a link that verifies it; default false. */
  readonly verifySignups?: boolean
  /** Pages of the app to which mails lead; the token is added as `?token=`. */
  readonly links?: {
    readonly magicLink?: string
    readonly passwordReset?: string
    readonly emailVerification?: string
    readonly emailChange?: string
  }
  /** Language tag to template name to words, in place of the built-in English ones. */
  readonly templates?: {
    readonly [locale: string]: { readonly [name: string]: { readonly subject: string; readonly text: string } }
  }
}

type PublicUserField = 'id' | 'displayName' | 'avatarUrl' | 'role' | 'email' | 'createdAt' | 'updatedAt'

/** A read rule like a table's. */
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
  /** Whether people may make accounts themselves; default true. */
  readonly signup?: boolean
  /** Whether they may do so without saying who they are; default true. */
  readonly anonymous?: boolean
  /** Who may read `_users_public`, the table of what is public of users; nobody, and there is none, by default. */
  readonly publicUsers?: PublicUsersRule
  /** Origins and whole URLs that people may be sent back to with tokens. Development mode also allows this machine. */
  readonly redirectUrls?: readonly string[]
  /** 8 (the default) to 64. */
  readonly passwordMinLength?: number
  /** Sessions that a user may have, 1 to 100 (the default); one more ends the one unused for longest. */
  readonly maxActiveSessions?: number
  readonly providers?: ProvidersOptions
  readonly mail?: MailOptions
  readonly passkeys?: {
    /** The domain that passkeys are for, such as `example.com`. */
    readonly rpId: string
    readonly rpName?: string
    /** Origins of the pages that ask for them, on that domain or below it. */
    readonly origins: readonly string[]
  }
}
