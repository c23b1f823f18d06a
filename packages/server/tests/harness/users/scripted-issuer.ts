/**
 * An issuer whose response to each code is scripted by the test: a valid token, an invalid one, or any response. Keeps
 * the requests for tokens.
 */
import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

/** The response to a code. Omitted members default to a valid ID token. */
export interface Script {
  readonly claims?: JWTPayload
  readonly alg?: string
  readonly kid?: string
  /** Signs with a key that the issuer has not published. */
  readonly isForged?: boolean
  /** Instead of everything else. */
  readonly reply?: () => Response | Promise<Response>
}

export interface TokenRequest {
  readonly form: URLSearchParams
  readonly headers: Headers
}

export interface ScriptedIssuer {
  readonly issuer: string
  /** Its discovery document. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** A code for the flow that this authorization URL started. */
  grant(authorizationUrl: string, script?: Script): string
  /** The requests for tokens so far. */
  readonly requests: readonly TokenRequest[]
  /** Replaces the discovery response until called with null. */
  discover(reply: (() => Response) | null): void
  discoveries(): number
  close(): void
}

const kid = 'key-1'

/** Must be closed. A code works once, and only with the PKCE verifier of its flow. */
export async function openScriptedIssuer(): Promise<ScriptedIssuer> {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const unpublished = await generateKeyPair('RS256')
  const codes = new Map<string, { readonly left: URLSearchParams; readonly script: Script }>()
  const requests: TokenRequest[] = []
  let discovery: (() => Response) | null = null
  let discoveries = 0

  async function sign(left: URLSearchParams, { claims, alg = 'RS256', kid: ownKid = kid, isForged }: Script) {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const payload = {
      iss: issuer,
      aud: left.get('client_id') ?? '',
      sub: 'person-1',
      nonce: left.get('nonce') ?? '',
      iat: nowSeconds,
      exp: nowSeconds + 300,
      ...claims,
    }
    if (alg === 'none') return `${encode({ alg })}.${encode(payload)}.`
    const key =
      alg === 'HS256' ? new TextEncoder().encode('s'.repeat(32)) : (isForged ? unpublished : { privateKey }).privateKey
    return new SignJWT(payload).setProtectedHeader({ alg, kid: ownKid }).sign(key)
  }

  async function exchange(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    requests.push({ form, headers: request.headers })
    const code = form.get('code') ?? ''
    const grant = codes.get(code)
    codes.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (!grant || grant.left.get('code_challenge') !== challenge)
      return Response.json({ error: 'invalid_grant' }, { status: 400 })
    const { left, script } = grant
    if (script.reply) return script.reply()
    const id_token = await sign(left, script)
    return Response.json({ access_token: 'provider-access-token', token_type: 'Bearer', expires_in: 60, id_token })
  }

  const server: Bun.Server<undefined> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/.well-known/openid-configuration': (): Response => {
        discoveries++
        return discovery ? discovery() : Response.json(metadataOf(issuer))
      },
      '/jwks': async () =>
        Response.json({ keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' }] }),
      '/token': { POST: exchange },
    },
    fetch: () => new Response('not found', { status: 404 }),
  })
  const issuer: string = server.url.origin

  return {
    issuer,
    metadata: metadataOf(issuer),
    requests,
    grant(authorizationUrl, script = {}) {
      const code = crypto.randomUUID()
      codes.set(code, { left: new URL(authorizationUrl).searchParams, script })
      return code
    },
    discover(reply) {
      discovery = reply
    },
    discoveries: () => discoveries,
    close: () => void server.stop(true),
  }
}

const metadataOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  token_endpoint_auth_methods_supported: ['client_secret_post'],
})

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
