/**
 * Who asks for a bucket, by credentials or by a signed URL. A URL's token stands for its issuer, who must still be who
 * they were; a token that is not good is refused, whatever the rules would have allowed its bearer.
 */
import { type Caller, callerKey, type UserCaller } from '../../../access/caller.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { authenticationRequired, invalidToken } from '../../../errors.ts'
import { type BucketCall, type Buckets, scopeOf } from '../buckets.ts'
import type { Store } from '../schema.ts'
import { callerOf, type ReadToken, type Tokens, type WriteToken } from './tokens.ts'

/** The query parameters of a signed URL; undefined where they were not sent. */
export interface SignedQuery {
  readonly token?: string | undefined
  readonly key?: string | undefined
}

export interface Reader {
  readonly call: BucketCall
  readonly token: ReadToken | null
}

export interface Writer {
  readonly call: BucketCall
  readonly grant: WriteToken | null
  /** Whose the upload is: its session can be continued by this one alone. */
  readonly owner: string
  /** The user who counts as uploader; null for the service's own. */
  readonly uploader: string | null
  /** Of one file, by the bucket and by the grant. */
  readonly bytesMax: number
}

export interface Admission {
  /** Throws 404 for an unknown bucket, 401 for a bad token or one for another object. */
  admitReader(bucket: string, caller: Caller, key: string, token: string | undefined): Promise<Reader>
  /** Throws the same, and 401 for an anonymous caller without a token. */
  admitWriter(bucket: string, caller: Caller, query: SignedQuery): Promise<Writer>
  /**
   * To be asked when the bytes are there, which may be hours later. Throws 401 where the user was thrown out since;
   * that their token has expired meanwhile is no matter.
   */
  checkActive(writer: Writer): Promise<void>
  /** Throws 401 for a grant that was used: early, for those who would send bytes in vain. */
  checkGrant(grant: WriteToken | null): Promise<void>
  /** Uses the grant up. Throws 401 where somebody else has. */
  useGrant(tx: Transaction, grant: WriteToken | null): Promise<void>
}

export interface AdmissionDeps {
  readonly store: Store
  readonly buckets: Buckets
  readonly tokens: Tokens
  /** A user with the role and the claims of now; null for one who is disabled or deleted. */
  readonly reloadUser: (user: UserCaller) => Promise<UserCaller | null>
  /** A user with the role and the claims of now. Rejects with 401 once their session has ended. */
  readonly refreshClaims: (user: UserCaller) => Promise<UserCaller>
  /** Whether the service key of this name is still good and has the scope. */
  readonly keyPermits: (keyName: string, scope: string) => boolean
}

export function createAdmission({
  store,
  buckets,
  tokens,
  reloadUser,
  refreshClaims,
  keyPermits,
}: AdmissionDeps): Admission {
  const { database, tables } = store

  async function resolveIssuer(bucket: string, { issuer, use }: ReadToken | WriteToken): Promise<BucketCall> {
    const scope = scopeOf(bucket, use)
    const signer = callerOf(issuer, scope)
    if (signer.kind === 'service') {
      if (!keyPermits(signer.keyName, scope)) throw invalidToken()
      return buckets.resolve(bucket, signer)
    }
    const user = await reloadUser(signer)
    if (!user) throw invalidToken()
    return buckets.resolve(bucket, user)
  }

  return {
    async admitReader(bucket, caller, key, text) {
      const call = buckets.resolve(bucket, caller)
      if (text === undefined) return { call, token: null }
      const token = tokens.open('read', text)
      if (token.bucket !== bucket || token.key !== key) throw invalidToken()
      return { call: await resolveIssuer(bucket, token), token }
    },

    async admitWriter(bucket, caller, query) {
      const call = buckets.resolve(bucket, caller)
      const { fileBytesMax } = call.bucket
      if (query.token !== undefined) {
        const grant = tokens.open('write', query.token)
        if (grant.bucket !== bucket || grant.key !== query.key) throw invalidToken()
        const issued = await resolveIssuer(bucket, grant)
        const uploader = issued.caller.auth?.id ?? null
        const bytesMax = Math.min(fileBytesMax, grant.bytesMax ?? fileBytesMax)
        return { call: issued, grant, owner: `grant:${grant.id}`, uploader, bytesMax }
      }
      if (caller.kind === 'anonymous') throw authenticationRequired()
      const uploader = caller.auth?.id ?? null
      return { call, grant: null, owner: callerKey(caller), uploader, bytesMax: fileBytesMax }
    },

    async checkActive({ call: { caller }, grant }) {
      if (caller.kind !== 'user') return
      // A signed URL outlives the session that it was made in.
      if (!grant) await refreshClaims(caller)
      else if (!(await reloadUser(caller))) throw invalidToken()
    },

    async checkGrant(grant) {
      if (!grant) return
      const [used] = await database.all(sql`SELECT id FROM ${tables.grants} WHERE id = ${sha256(grant.id)}`)
      if (used) throw invalidToken()
    },

    async useGrant(tx, grant) {
      if (!grant) return
      const made =
        await tx.run(sql`INSERT INTO ${tables.grants} (id, expires) VALUES (${sha256(grant.id)}, ${grant.expires})
        ON CONFLICT (id) DO NOTHING`)
      if (made !== 1) throw invalidToken()
    },
  }
}
