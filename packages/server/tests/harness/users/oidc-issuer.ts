/** A real OpenID Connect provider on this machine, at which whoever says who they are is that person. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Configuration } from 'oidc-provider'

export interface OidcIssuer {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  close(): void
}

/** What is told of `ada`: e-mail `ada@example.com`, verified unless the name says otherwise (`unverified-ada`). */
const claimsOf = (person: string) => ({
  sub: person,
  email: `${person.replace('unverified-', '')}@example.com`,
  email_verified: !person.startsWith('unverified-'),
  name: `Name of ${person}`,
  picture: `https://images.example.com/${person}.png`,
})

export interface IssuerOptions {
  readonly redirectUris: readonly string[]
  /** Tells the e-mail at the user-info endpoint alone, as the standard has it. */
  readonly isStrict?: boolean
}

/** Must be closed. A browser says who it is with `login_hint`. */
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
  const answer = provider.callback()
  server.on('request', async (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return answer(request, response)
    const { params } = await provider.interactionDetails(request, response)
    const accountId = String(params.login_hint)
    if (accountId === 'nobody') {
      const refusal = { error: 'access_denied', error_description: '<b>no</b>' }
      return provider.interactionFinished(request, response, refusal)
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
