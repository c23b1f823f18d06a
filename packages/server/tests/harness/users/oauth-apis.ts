/**
 * Stubs of GitHub and Discord: a token endpoint and user endpoints with documented responses. A test can replace each
 * response and read the requests.
 */

/** Responses by path; `/token` is the token endpoint. */
export type ApiResponses = Readonly<Record<string, () => Response | Promise<Response>>>

export interface OAuthApi {
  readonly endpoints: { readonly authorize: string; readonly token: string; readonly user: string }
  responses: ApiResponses
  /** The requests so far. */
  readonly requests: readonly { readonly path: string; readonly headers: Headers; readonly body: string }[]
  close(): void
}

/** Must be closed. */
export function openOAuthApi(responses: ApiResponses): OAuthApi {
  const requests: { path: string; headers: Headers; body: string }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      requests.push({ path, headers: request.headers, body: await request.text() })
      return api.responses[path]?.() ?? new Response('not found', { status: 404 })
    },
  })
  const { origin } = server.url
  const api: OAuthApi = {
    endpoints: { authorize: `${origin}/authorize`, token: `${origin}/token`, user: `${origin}/user` },
    responses,
    requests,
    close: () => void server.stop(true),
  }
  return api
}

export const bearerToken = (): Response =>
  Response.json({ access_token: 'api-access-token', token_type: 'bearer', scope: 'user:email' })

/** Responses of `GET /user` and `GET /user/emails` as documented. */
export const githubResponses = (id: number, emails: readonly object[]): ApiResponses => ({
  '/token': bearerToken,
  '/user': () =>
    Response.json({
      login: 'octocat',
      id,
      node_id: 'MDQ6VXNlcjE=',
      avatar_url: 'https://avatars.githubusercontent.com/u/583231',
      type: 'User',
      name: null,
      email: 'public@example.com',
    }),
  '/user/emails': () => Response.json(emails),
})

/** The response of `GET /users/@me` as documented. */
export const discordResponses = (user: object): ApiResponses => ({
  '/token': bearerToken,
  '/user': () =>
    Response.json({
      id: '80351110224678912',
      username: 'nelly',
      discriminator: '0',
      global_name: null,
      avatar: '8342729096ea3675442027381ff50dfe',
      mfa_enabled: true,
      locale: 'en-US',
      ...user,
    }),
})
