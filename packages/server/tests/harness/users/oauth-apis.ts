/**
 * GitHub and Discord as far as a sign-in sees them: a token endpoint, and user endpoints in the documented shapes. Each
 * answers as the test says, and keeps who asked.
 */

/** Paths to what they answer; `/token` is the token endpoint. */
export type ApiAnswers = Readonly<Record<string, () => Response | Promise<Response>>>

export interface OAuthApi {
  readonly endpoints: { readonly authorize: string; readonly token: string; readonly user: string }
  answers: ApiAnswers
  /** Path and headers of what was asked. */
  readonly asked: readonly { readonly path: string; readonly headers: Headers; readonly body: string }[]
  close(): void
}

/** Must be closed. */
export function openOAuthApi(answers: ApiAnswers): OAuthApi {
  const asked: { path: string; headers: Headers; body: string }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname
      asked.push({ path, headers: request.headers, body: await request.text() })
      return api.answers[path]?.() ?? new Response('nothing here', { status: 404 })
    },
  })
  const { origin } = server.url
  const api: OAuthApi = {
    endpoints: { authorize: `${origin}/authorize`, token: `${origin}/token`, user: `${origin}/user` },
    answers,
    asked,
    close: () => void server.stop(true),
  }
  return api
}

export const bearerToken = (): Response =>
  Response.json({ access_token: 'api-access-token', token_type: 'bearer', scope: 'user:email' })

/** In the documented shape of `GET /user` and `GET /user/emails`. */
export const githubAnswers = (id: number, emails: readonly object[]): ApiAnswers => ({
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

/** In the documented shape of `GET /users/@me`. */
export const discordAnswers = (user: object): ApiAnswers => ({
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
