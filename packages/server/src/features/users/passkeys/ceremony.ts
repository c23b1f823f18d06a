/**
 * The two WebAuthn ceremonies: options for the browser, and verification of its responses. Stateless; `passkeys` owns
 * challenges and credentials.
 */
import type { VerifiedAuthenticationResponse, VerifiedRegistrationResponse } from '@simplewebauthn/server'
import { z } from '../../../base/schemas/z.ts'
import type { AuthConfig } from '../../../config/sections/auth/auth.ts'
import { passkeyBodyBytesMax, passkeyChallengeLifetimeMs, passkeyIdCharsMax } from '../../../limits/users.ts'

/** The relying party of WebAuthn. */
export interface RelyingParty {
  /** The domain that passkeys are bound to. */
  readonly rpId: string
  readonly name: string
  /** Whether pages of this origin may use them. */
  readonly allows: (origin: string) => boolean
}

const localRelyingParty: RelyingParty = {
  rpId: 'localhost',
  name: 'localhost',
  allows: (origin) => /^https?:\/\/localhost(?::\d{1,5})?$/.test(origin),
}

/** The configured relying party. Without configuration: localhost in development mode, null in release mode. */
export function findRelyingParty({ passkeys, allowsLocalRedirects }: AuthConfig): RelyingParty | null {
  if (!passkeys) return allowsLocalRedirects ? localRelyingParty : null
  const { rpId, rpName, origins } = passkeys
  return { rpId, name: rpName ?? rpId, allows: (origin) => origins.includes(origin) }
}

const base64url = z
  .string()
  .max(passkeyBodyBytesMax)
  .regex(/^[\w-]+$/)
const credentialId = base64url.max(passkeyIdCharsMax)
const transport = z.enum(['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'])

/** Unknown transports are dropped: browsers may add new ones. */
const transports = z
  .array(z.string())
  .max(32)
  .transform((names) => names.flatMap((name) => transport.safeParse(name).data ?? []))
  .default([])

/** The members of `RegistrationResponseJSON` (WebAuthn level 3) that are used. */
export const registrationResponse = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal('public-key'),
  response: z.object({ clientDataJSON: base64url, attestationObject: base64url, transports }),
})
export type RegistrationResponse = z.output<typeof registrationResponse>

/** The members of `AuthenticationResponseJSON` that are used. */
export const authenticationResponse = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    authenticatorData: base64url,
    signature: base64url,
    userHandle: base64url.nullish(),
  }),
})
export type AuthenticationResponse = z.output<typeof authenticationResponse>

/** What must be stored to verify signatures of a passkey. */
export interface Credential {
  /** Base64url. */
  readonly id: string
  /** COSE. */
  readonly publicKey: Uint8Array<ArrayBuffer>
  /** Signature counter of the authenticator; always 0 if it does not count. */
  readonly counter: number
  readonly transports: readonly z.output<typeof transport>[]
  /** Whether it is backed up to more than one device. */
  readonly isBackedUp: boolean
}

/** A verified response and its challenge. The caller must check that it issued the challenge. */
export interface VerifiedResponse<T> {
  readonly challenge: string
  readonly outcome: T
}

export interface CreationInput {
  readonly challenge: string
  readonly userId: string
  readonly userName: string
  readonly displayName: string
  /** Passkeys of the user; an authenticator that has one of them does not create a second. */
  readonly existing: readonly Pick<Credential, 'id' | 'transports'>[]
}

/** EdDSA, ES256 and RS256; every authenticator supports one of them. */
const algorithms = [-8, -7, -257]
const userVerification = 'required'

/**
 * Loaded lazily: with its certificates and ASN.1 the library takes 0.2 s and 20 MB, which a server without passkeys
 * need not pay.
 */
const loadLibrary = () => import('@simplewebauthn/server')
const loadFormats = () => import('@simplewebauthn/server/helpers')

/**
 * Options for `navigator.credentials.create`: a discoverable credential, so that sign-in needs no user name, with user
 * verification (biometrics or a PIN), so that it counts as two factors.
 */
export async function createCreationOptions(party: RelyingParty, input: CreationInput): Promise<object> {
  const { generateRegistrationOptions } = await loadLibrary()
  return generateRegistrationOptions({
    rpID: party.rpId,
    rpName: party.name,
    userID: new TextEncoder().encode(input.userId),
    userName: input.userName,
    userDisplayName: input.displayName,
    challenge: new Uint8Array(Buffer.from(input.challenge, 'base64url')),
    timeout: passkeyChallengeLifetimeMs,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification },
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: input.existing.map(({ id, transports }) => ({ id, transports: [...transports] })),
  })
}

/**
 * Options for `navigator.credentials.get`. Lists no credentials: they are discoverable, and a list would reveal which
 * addresses have an account.
 */
export async function createRequestOptions(party: RelyingParty, challenge: string): Promise<object> {
  const { generateAuthenticationOptions } = await loadLibrary()
  return generateAuthenticationOptions({
    rpID: party.rpId,
    challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
    timeout: passkeyChallengeLifetimeMs,
    allowCredentials: [],
    userVerification,
  })
}

/** Verifies a response to `createCreationOptions` and returns the new credential; null if it is invalid. */
export async function verifyCreation(
  party: RelyingParty,
  given: RegistrationResponse,
): Promise<VerifiedResponse<Credential> | null> {
  const client = readClientData(party, given.response.clientDataJSON)
  if (!client) return null
  const { verifyRegistrationResponse } = await loadLibrary()
  let verified: VerifiedRegistrationResponse
  try {
    verified = await verifyRegistrationResponse({
      response: {
        ...given,
        clientExtensionResults: {},
        response: {
          clientDataJSON: given.response.clientDataJSON,
          attestationObject: await stripAttestation(given.response.attestationObject),
        },
      },
      expectedChallenge: client.challenge,
      expectedOrigin: client.origin,
      expectedRPID: party.rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    })
  } catch {
    return null
  }
  const { registrationInfo: info } = verified
  if (!info || info.credential.id !== given.id) return null
  const { id, publicKey, counter } = info.credential
  const { transports } = given.response
  const isBackedUp = info.credentialBackedUp
  return { challenge: client.challenge, outcome: { id, publicKey, counter, transports, isBackedUp } }
}

/** Verifies a response to `createRequestOptions` and returns the updated credential; null if it is invalid. */
export async function verifyRequest(
  party: RelyingParty,
  given: AuthenticationResponse,
  credential: Credential,
): Promise<VerifiedResponse<Credential> | null> {
  const client = readClientData(party, given.response.clientDataJSON)
  if (!client || given.id !== credential.id) return null
  const { verifyAuthenticationResponse } = await loadLibrary()
  const { clientDataJSON, authenticatorData, signature } = given.response
  let verified: VerifiedAuthenticationResponse
  try {
    verified = await verifyAuthenticationResponse({
      response: {
        ...given,
        clientExtensionResults: {},
        response: { clientDataJSON, authenticatorData, signature },
      },
      expectedChallenge: client.challenge,
      expectedOrigin: client.origin,
      expectedRPID: party.rpId,
      requireUserVerification: true,
      // Rejects a counter that does not increase: the credential was cloned.
      credential: { id: credential.id, publicKey: credential.publicKey, counter: credential.counter },
    })
  } catch {
    return null
  }
  if (!verified.verified) return null
  const { newCounter: counter, credentialBackedUp: isBackedUp } = verified.authenticationInfo
  return { challenge: client.challenge, outcome: { ...credential, counter, isBackedUp } }
}

const clientData = z.object({ challenge: z.string(), origin: z.string(), crossOrigin: z.literal(false).optional() })

/** Parses the client data. Null unless the origin is allowed and the page was not embedded by another origin. */
function readClientData(party: RelyingParty, encoded: string): { challenge: string; origin: string } | null {
  let parsed: unknown
  try {
    parsed = JSON.parse(Buffer.from(encoded, 'base64url').toString())
  } catch {
    return null
  }
  const { data } = clientData.safeParse(parsed)
  return data && party.allows(data.origin) ? data : null
}

/**
 * The attestation object without its statement. Attestation is not requested, but some authenticators send it.
 * Verifying it would mean fetching URLs from certificates that anyone can write.
 */
async function stripAttestation(encoded: string): Promise<string> {
  const { decodeAttestationObject, isoCBOR } = await loadFormats()
  const authData = decodeAttestationObject(new Uint8Array(Buffer.from(encoded, 'base64url'))).get('authData')
  const bare = new Map<string, string | Uint8Array | Map<never, never>>([
    ['fmt', 'none'],
    ['attStmt', new Map<never, never>()],
    ['authData', authData],
  ])
  return Buffer.from(isoCBOR.encode(bare)).toString('base64url')
}
