/** Passkeys: converts between the server's JSON and the buffers of `navigator.credentials`. */
import { failure } from '../core/error.ts'

type Json = Record<string, unknown>

const toBuffer = (text: string): ArrayBuffer =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0)).buffer

const toText = (buffer: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')

const withBuffer = (one: Json): Json => ({ ...one, id: toBuffer(one.id as string) })

/** The options with buffers in place of base64url. */
function decodeOptions(options: Json): Json {
  const { user, excludeCredentials, allowCredentials } = options as Record<string, never>
  const decoded: Json = { ...options, challenge: toBuffer(options.challenge as string) }
  if (user) decoded.user = withBuffer(user)
  for (const [name, list] of Object.entries({ excludeCredentials, allowCredentials }))
    if (list) decoded[name] = (list as Json[]).map(withBuffer)
  return decoded
}

function encodeCredential(credential: PublicKeyCredential): Json {
  const encoded: Json = {}
  const { response } = credential
  for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']) {
    const value = (response as unknown as Json)[name]
    if (value instanceof ArrayBuffer) encoded[name] = toText(value)
  }
  const { getTransports } = response as Partial<AuthenticatorAttestationResponse>
  if (getTransports) encoded.transports = getTransports.call(response)
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    clientExtensionResults: credential.getClientExtensionResults(),
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined,
    response: encoded,
  }
}

/** Asks the browser to create or use a passkey. Rejects with slug `aborted` if the user cancels. */
export async function useCredential(method: 'create' | 'get', options: Json): Promise<Json> {
  try {
    const request = { publicKey: decodeOptions(options) } as never
    const credential = (await navigator.credentials[method](request)) as PublicKeyCredential
    return encodeCredential(credential)
  } catch (cause) {
    throw failure('aborted', 'The browser did not use a passkey', cause)
  }
}
