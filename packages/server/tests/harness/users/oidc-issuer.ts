/** A real OpenID Connect provider on this machine, which signs a browser in as the person in its `login_hint`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Configuration } from 'oidc-provider'

export interface OidcIssuer {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  close(): void
}

/** The claims of `ada`: email `ada@example.com`, verified unless the name begins with `unverified-`. */
const claimsOf = (person: string) => ({
  sub: person,
  email: `${person.replace('unverified-', '')}@example.com`,
  email_verified: !person.startsWith('unverified-'),
  name: `Name of ${person}`,
  picture: `https://images.example.com/${person}.png`,
})

export interface IssuerOptions {
  readonly redirectUris: readonly string[]
  /** Returns the email at the userinfo endpoint only, as the standard requires. */
  readonly isStrict?: boolean
}

/** Must be closed. The person `canceling` cancels the sign-in. */
export async function openOidcIssuer({ redirectUris, isStrict = false }: IssuerOptions): Promise<OidcIssuer> {
  const client = { clientId: 'plinth', clientSecret: 'client-secret-of-plinth-0123456789' }
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const configuration: Configuration = {
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: [...redirectUris],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    conformIdTokenClaims: isStrict,
    pkce: { required: () => true },
    cookies: { keys: ['cookie-key-for-tests'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    findAccount: (_, id) => ({ accountId: id, claims: async () => claimsOf(id) }),
  }
  const provider = new Provider(issuer, configuration)
  const handle = provider.callback()
  server.on('request', async (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return handle(request, response)
    const { params } = await provider.interactionDetails(request, response)
    const accountId = String(params.login_hint)
    if (accountId === 'canceling') {
      const cancellation = { error: 'access_denied', error_description: '<b>no</b>' }
      return provider.interactionFinished(request, response, cancellation)
    }
    const grant = new provider.Grant({ accountId, clientId: client.clientId })
    grant.addOIDCScope(String(params.scope))
    const login = { login: { accountId }, consent: { grantId: await grant.save() } }
    return provider.interactionFinished(request, response, login)
  })
  return {
    issuer,
    ...client,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
