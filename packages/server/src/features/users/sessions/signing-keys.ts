/**
 * Token signing keys, one per generation, each derived from the server secret and the id of its generation; no private
 * key is stored. Owns `_signing_keys`: which generations exist, which one signs, and how long retired ones stay valid.
 */
import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { conflict } from '../../../errors.ts'
import { refreshTokenLifetimeMs, signingKeyReloadIntervalMs, signingKeysMax } from '../../../limits/users.ts'
import { msOf, msOrNullOf, usersTable } from '../migrations.ts'

export interface SigningKey {
  /** The generation; the first is `0`. */
  readonly id: string
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly publicJwk: Readonly<Record<string, string>>
}

/** JSON Web Key Set (RFC 7517) of public keys. */
export interface JsonWebKeySet {
  readonly keys: readonly Readonly<Record<string, string>>[]
}

export interface SigningKeys {
  /** The key that signs new tokens. */
  current(): SigningKey
  /** By the id of the generation; null once every token that it signed has expired. */
  find(id: string): SigningKey | null
  /** By the `kid` of a token header. Loads keys that other nodes created before it returns null. */
  findByKid(kid: string): Promise<SigningKey | null>
  /** Every key that may have signed a valid token; the signing key first. */
  jwks(): JsonWebKeySet
}

export interface StoredSigningKeys extends SigningKeys {
  /** Loads the keys that other nodes created. */
  reload(): Promise<void>
  /** Starts signing with a new key, immediately on this node and within seconds on others. Throws 409 at the limit. */
  rotate(): Promise<SigningKey>
}

/** HKDF label; other purposes use other labels and get other keys. */
const keyLabel = 'plinth access token ed25519 v1'
/** Id of the first generation, which every server has. */
const firstId = '0'
/** The fixed part of a PKCS #8 Ed25519 private key (RFC 8410); the 32 bytes of the seed follow. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const seedBytes = 32
const channel = 'users.signing-keys'

function deriveKey(secret: string, id: string): SigningKey {
  const label = id === firstId ? keyLabel : `${keyLabel} ${id}`
  const seed = Buffer.from(hkdfSync('sha256', secret, '', label, seedBytes))
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey(privateKey)
  const { x } = publicKey.export({ format: 'jwk' })
  if (x === undefined) throw new Error('An Ed25519 public key must have an x coordinate')
  // RFC 7638: the hash of the key's required members in alphabetic order, so the id follows from the key itself.
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url')
  const publicJwk = Object.freeze({ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' })
  return { id, kid, privateKey, publicKey, publicJwk }
}

/** The first generation only, for programs that have the secret and no database. */
export function createFirstSigningKey(secret: string): SigningKeys {
  const key = deriveKey(secret, firstId)
  return {
    current: () => key,
    find: (id) => (id === firstId ? key : null),
    findByKid: async (kid) => (kid === key.kid ? key : null),
    jwks: () => ({ keys: [key.publicJwk] }),
  }
}

/**
 * Retires the signing key and records a new generation. Returns its id; running servers pick it up at their next
 * reload. Throws 409 if too many generations are still valid.
 */
export async function rotateSigningKeys(database: Database, clock: Clock): Promise<string> {
  const table = usersTable(database.dialect, 'signing_keys')
  const nowMs = clock.now()
  const id = createUuid7(clock)()
  await database.write(async (tx) => {
    await tx.run(sql`DELETE FROM ${table} WHERE retired_at <= ${nowMs - refreshTokenLifetimeMs}`)
    const rows = await tx.all(sql`SELECT id FROM ${table}${database.dialect.forUpdate}`)
    if (rows.length >= signingKeysMax)
      throw conflict(`Already ${signingKeysMax} keys are valid; wait until tokens of the oldest have expired`)
    await tx.run(sql`UPDATE ${table} SET retired_at = ${nowMs} WHERE retired_at IS NULL`)
    await tx.run(sql`INSERT INTO ${table} (id, created_at, retired_at) VALUES (${id}, ${nowMs}, NULL)`)
  })
  return id
}

interface Generation {
  readonly id: string
  readonly created_at: unknown
  readonly retired_at: unknown
}

/** Loads the keys. Rotations are announced to other nodes on `bus`. Must be closed. */
export async function openSigningKeys(deps: {
  database: Database
  bus: Bus
  secret: string
  clock: Clock
}): Promise<StoredSigningKeys & { close(): void }> {
  const { database, bus, secret, clock } = deps
  const table = usersTable(database.dialect, 'signing_keys')
  /** Of the valid generations; the one that signs first. */
  let ids: readonly string[] = []
  let loadedAtMs = Number.NEGATIVE_INFINITY
  const derived = new Map<string, SigningKey>()

  /** Derived when it is first needed: a start needs none. */
  const keyOf = (id: string): SigningKey => {
    const key = derived.get(id) ?? deriveKey(secret, id)
    derived.set(id, key)
    return key
  }

  async function reload(): Promise<void> {
    const nowMs = clock.now()
    loadedAtMs = nowMs
    const rows = await database.all<Generation>(
      sql`SELECT id, created_at, retired_at FROM ${table} ORDER BY created_at DESC, id DESC`,
    )
    const isValid = ({ retired_at }: Generation): boolean =>
      retired_at === null || nowMs < msOf(retired_at) + refreshTokenLifetimeMs
    // If two nodes rotated at the same time, the newer key signs.
    ids = rows
      .filter(isValid)
      .sort((a, b) => Number(msOrNullOf(b.retired_at) === null) - Number(msOrNullOf(a.retired_at) === null))
      .map(({ id }) => id)
    for (const id of derived.keys()) if (!ids.includes(id)) derived.delete(id)
  }

  /** Unauthenticated requests can carry any `kid`, so reloads are rate-limited. */
  async function reloadIfDue(): Promise<void> {
    const sinceMs = clock.now() - loadedAtMs
    if (sinceMs < 0 || sinceMs >= signingKeyReloadIntervalMs) await reload()
  }

  const findByKid = (kid: string): SigningKey | null => ids.map(keyOf).find((key) => key.kid === kid) ?? null

  await reload()
  // A failed reload is retried for the next unknown key and by the periodic job.
  const unsubscribe = bus.subscribe(channel, () => void reload().catch(() => undefined))
  return {
    current: () => keyOf(ids[0] as string),
    find: (id) => (ids.includes(id) ? keyOf(id) : null),
    async findByKid(kid) {
      const known = findByKid(kid)
      if (known) return known
      await reloadIfDue()
      return findByKid(kid)
    },
    jwks: () => ({ keys: ids.map((id) => keyOf(id).publicJwk) }),
    reload,
    async rotate() {
      const id = await rotateSigningKeys(database, clock)
      await reload()
      bus.publish(channel, id)
      return keyOf(id)
    },
    close: unsubscribe,
  }
}
