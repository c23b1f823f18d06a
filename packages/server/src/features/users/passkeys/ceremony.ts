/**
 * WebAuthn's two ceremonies: what a browser is asked for, and whether its answer is genuine. Remembers nothing; whose a
 * challenge was and whose a key is are for `passkeys`.
 */
import type { VerifiedAuthenticationResponse, VerifiedRegistrationResponse } from '@simplewebauthn/server'
import { z } from 'zod'
import type { AuthConfig } from '../../../config/sections/auth/auth.ts'
import { passkeyBodyBytesMax, passkeyChallengeLifetimeMs, passkeyIdCharsMax } from '../../../limits/users.ts'

/** For whom the browser makes a key. */
export interface RelyingParty {
  /** The domain that keys are bound to. */
  readonly rpId: string
  readonly name: string
  /** Whether a page of this origin may use them. */
  readonly allows: (origin: string) => boolean
}

const localRelyingParty: RelyingParty = {
  rpId: 'localhost',
  name: 'localhost',
  allows: (origin) => /^https?:\/\/localhost(?::\d{1,5})?$/.test(origin),
}

/** As configured; else in development mode whatever runs on this machine, and in release mode null. */
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

/** Browsers may add to what they answer, and name transports that are not known yet. */
const transports = z
  .array(z.string())
  .max(32)
  .transform((names) => names.flatMap((name) => transport.safeParse(name).data ?? []))
  .default([])

/** `RegistrationResponseJSON` of WebAuthn level 3, as far as it is looked at. */
export const registrationResponse = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal('public-key'),
  response: z.object({ clientDataJSON: base64url, attestationObject: base64url, transports }),
})
export type RegistrationResponse = z.output<typeof registrationResponse>

/** `AuthenticationResponseJSON`, as far as it is looked at. */
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

/** A key as it must be kept to recognise its signatures. */
export interface Credential {
  /** Base64url. */
  readonly id: string
  /** COSE. */
  readonly publicKey: Uint8Array<ArrayBuffer>
  /** How many signatures the authenticator has made; 0 for good where it does not count. */
  readonly counter: number
  readonly transports: readonly z.output<typeof transport>[]
  /** Whether it lives on more than one device. */
  readonly isBackedUp: boolean
}

/** A genuine answer, and the challenge it answers: the caller must know it for one of its own. */
export interface Answer<T> {
  readonly challenge: string
  readonly outcome: T
}

export interface CreationInput {
  readonly challenge: string
  readonly userId: string
  readonly userName: string
  readonly displayName: string
  /** Keys the user has already: an authenticator with one of these makes no second. */
  readonly existing: readonly Pick<Credential, 'id' | 'transports'>[]
}

/** EdDSA, ES256 and RS256: every authenticator has one of them. */
const algorithms = [-8, -7, -257]
const userVerification = 'required'

/**
 * Loaded when the first passkey is asked for: with its certificates and ASN.1 the library takes 0.2 s and 20 MB, which
 * a server without passkeys need not pay.
 */
const loadLibrary = () => import('@simplewebauthn/server')
const loadFormats = () => import('@simplewebauthn/server/helpers')

/**
 * What `navigator.credentials.create` is asked: a discoverable key, so that nobody need say who they are before they
 * sign in, whose use takes a finger or a PIN, so that it is two factors.
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
 * What `navigator.credentials.get` is asked. It names no keys: they are discoverable, and a list would tell strangers
 * which addresses have an account.
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

/** The new key of an answer to `createCreationOptions`; null when the answer is not genuine. */
export async function verifyCreation(
  party: RelyingParty,
  given: RegistrationResponse,
): Promise<Answer<Credential> | null> {
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
          attestationObject: await withoutStatement(given.response.attestationObject),
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

/** The credential after an answer to `createRequestOptions`; null when the answer is not genuine, or not by it. */
export async function verifyRequest(
  party: RelyingParty,
  given: AuthenticationResponse,
  credential: Credential,
): Promise<Answer<Credential> | null> {
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
      // Refuses a counter that does not go on: the key was copied, and the copy has been used.
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

/** What the browser says of itself: where it was, which must be allowed, alone in its window, and what it was asked. */
function readClientData(party: RelyingParty, encoded: string): { challenge: string; origin: string } | null {
  let said: unknown
  try {
    said = JSON.parse(Buffer.from(encoded, 'base64url').toString())
  } catch {
    return null
  }
  const { data } = clientData.safeParse(said)
  return data && party.allows(data.origin) ? data : null
}

/**
 * The attestation without its statement. Nobody asked who made the authenticator, some tell all the same, and to check
 * what they tell would mean to fetch addresses out of certificates that anybody can write.
 */
async function withoutStatement(encoded: string): Promise<string> {
  const { decodeAttestationObject, isoCBOR } = await loadFormats()
  const authData = decodeAttestationObject(new Uint8Array(Buffer.from(encoded, 'base64url'))).get('authData')
  const bare = new Map<string, string | Uint8Array | Map<never, never>>([
    ['fmt', 'none'],
    ['attStmt', new Map<never, never>()],
    ['authData', authData],
  ])
  return Buffer.from(isoCBOR.encode(bare)).toString('base64url')
}
