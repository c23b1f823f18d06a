/**
 * A passkey authenticator and its browser in software: real keys and signatures in WebAuthn formats, which a test can
 * falsify in every member that a broken or hostile authenticator could.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export type KeyAlgorithm = 'ES256' | 'EdDSA' | 'RS256'

/** The options of `navigator.credentials.create` that are used here. */
export interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id?: string }
  readonly user: { readonly id: string }
}

/** The options of `navigator.credentials.get`. */
export interface RequestOptions {
  readonly challenge: string
  readonly rpId?: string
}

/** Values sent instead of the correct ones. */
export interface Forgery {
  readonly origin?: string
  readonly rpId?: string
  readonly challenge?: string
  readonly type?: string
  readonly isUserPresent?: boolean
  readonly isUserVerified?: boolean
  readonly isBackedUp?: boolean
  /** The signature counter to send; the authenticator's own counter still increments. */
  readonly counter?: number
  readonly userHandle?: string | null
  readonly credentialId?: string
  readonly algorithm?: number
  readonly hasInvalidSignature?: boolean
  /** Format and statement of the attestation; default `none`. */
  readonly attestation?: { readonly format: string; readonly statement: ReadonlyMap<string, Cbor> }
  readonly clientData?: Readonly<Record<string, unknown>>
}

export interface Authenticator {
  readonly credentialId: string
  /** The result of `navigator.credentials.create` as JSON. */
  register(options: CreationOptions, forged?: Forgery): PasskeyResponse
  /** The result of `navigator.credentials.get` as JSON. */
  authenticate(options: RequestOptions, forged?: Forgery): PasskeyResponse
}

export interface PasskeyResponse {
  readonly id: string
  readonly rawId: string
  readonly type: 'public-key'
  readonly clientExtensionResults: object
  readonly response: Readonly<Record<string, unknown>>
}

type Cbor = number | string | Uint8Array | ReadonlyMap<string | number, Cbor> | readonly Cbor[]

const coseAlgorithms: Readonly<Record<KeyAlgorithm, number>> = { ES256: -7, EdDSA: -8, RS256: -257 }

const flag = { userPresent: 0x01, userVerified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 } as const

/**
 * A new authenticator with one key, used by a browser at `origin`. With `counts` it counts signatures as security keys
 * do; otherwise its counter stays at 0, as that of synchronized passkeys does.
 */
export function createAuthenticator({
  origin,
  algorithm = 'ES256',
  counts = true,
}: {
  readonly origin: string
  readonly algorithm?: KeyAlgorithm
  readonly counts?: boolean
}): Authenticator {
  const { privateKey, publicKey } = generateKey(algorithm)
  const credentialId = randomBytes(32)
  let counter = 0
  let userHandle = ''

  function authenticatorData(rpId: string, forged: Forgery, attested: Uint8Array | null): Buffer {
    if (counts) counter++
    let flags = attested ? flag.attested : 0
    if (forged.isUserPresent ?? true) flags |= flag.userPresent
    if (forged.isUserVerified ?? true) flags |= flag.userVerified
    if (forged.isBackedUp) flags |= flag.backupEligible | flag.backedUp
    const head = Buffer.alloc(5)
    head.writeUInt8(flags, 0)
    head.writeUInt32BE(forged.counter ?? counter, 1)
    return Buffer.concat([sha256(forged.rpId ?? rpId), head, attested ?? Buffer.alloc(0)])
  }

  const clientData = (type: string, challenge: string, forged: Forgery): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: forged.type ?? type,
        challenge: forged.challenge ?? challenge,
        origin: forged.origin ?? origin,
        crossOrigin: false,
        ...forged.clientData,
      }),
    )

  const signed = (data: Uint8Array, forged: Forgery): Buffer => {
    const signature = sign(algorithm === 'EdDSA' ? null : 'sha256', data, privateKey)
    if (forged.hasInvalidSignature) signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1
    return signature
  }

  const respond = (response: Readonly<Record<string, unknown>>, forged: Forgery): PasskeyResponse => {
    const id = forged.credentialId ?? base64url(credentialId)
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response }
  }

  return {
    credentialId: base64url(credentialId),

    register(options, forged = {}) {
      userHandle = options.user.id
      const length = Buffer.alloc(2)
      length.writeUInt16BE(credentialId.length)
      const cose = cbor(coseKey(publicKey, forged.algorithm ?? coseAlgorithms[algorithm]))
      const attested = Buffer.concat([Buffer.alloc(16), length, credentialId, cose])
      const data = authenticatorData(options.rp.id ?? '', forged, attested)
      const { format, statement } = forged.attestation ?? { format: 'none', statement: new Map<string, Cbor>() }
      const attestation = new Map<string, Cbor>([
        ['fmt', format],
        ['attStmt', statement],
        ['authData', data],
      ])
      return respond(
        {
          clientDataJSON: base64url(clientData('webauthn.create', options.challenge, forged)),
          attestationObject: base64url(cbor(attestation)),
          transports: ['internal', 'hybrid'],
        },
        forged,
      )
    },

    authenticate(options, forged = {}) {
      const client = clientData('webauthn.get', options.challenge, forged)
      const data = authenticatorData(options.rpId ?? '', forged, null)
      const handle = forged.userHandle === undefined ? userHandle : forged.userHandle
      return respond(
        {
          clientDataJSON: base64url(client),
          authenticatorData: base64url(data),
          signature: base64url(signed(Buffer.concat([data, sha256(client)]), forged)),
          ...(handle === null ? {} : { userHandle: handle }),
        },
        forged,
      )
    },
  }
}

function generateKey(algorithm: KeyAlgorithm): { privateKey: KeyObject; publicKey: KeyObject } {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519')
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

/** The key in COSE (RFC 9053). */
function coseKey(publicKey: KeyObject, algorithm: number): ReadonlyMap<number, Cbor> {
  const { kty, x, y, n, e } = publicKey.export({ format: 'jwk' })
  const bytes = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url')
  const members: Readonly<Record<string, readonly (readonly [number, Cbor])[]>> = {
    EC: [
      [1, 2],
      [3, algorithm],
      [-1, 1],
      [-2, bytes(x)],
      [-3, bytes(y)],
    ],
    OKP: [
      [1, 1],
      [3, algorithm],
      [-1, 6],
      [-2, bytes(x)],
    ],
    RSA: [
      [1, 3],
      [3, algorithm],
      [-1, bytes(n)],
      [-2, bytes(e)],
    ],
  }
  return new Map(members[kty ?? ''])
}

/** CBOR (RFC 8949), for the types that WebAuthn uses. */
function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? cborHead(1, -1 - value) : cborHead(0, value)
  if (typeof value === 'string') return Buffer.concat([cborHead(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([cborHead(2, value.length), value])
  if (value instanceof Map)
    return Buffer.concat([cborHead(5, value.size), ...[...value].flatMap(([key, member]) => [cbor(key), cbor(member)])])
  const items = value as readonly Cbor[]
  return Buffer.concat([cborHead(4, items.length), ...items.map(cbor)])
}

function cborHead(major: number, argument: number): Buffer {
  const type = major << 5
  if (argument < 24) return Buffer.from([type | argument])
  if (argument < 0x100) return Buffer.from([type | 24, argument])
  return Buffer.from([type | 25, argument >> 8, argument & 0xff])
}

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()
const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
